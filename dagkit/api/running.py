"""What `setup` passes to an operator: where it runs, and its attributes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from dagkit.api.attributes import Attribute


class Until(StrEnum):
    """When a launch stops by itself."""

    ONCE = "once"
    """When all is done that was there when each input first looked."""
    IDLE = "idle"
    """When nothing is left to do, and a further look finds nothing new."""
    DRAINED = "drained"
    """When all work found before is done; inputs look for nothing more, and endless work is truncated."""
    STOPPED = "stopped"
    """When it is stopped."""


@dataclass(frozen=True)
class Context:
    """Handed to `setup`: the operator's name, its partition, and the attributes that hold for it."""

    application: str
    operator: str
    partition: int = 0
    partitions: int = 1
    window_id: int = 0
    """The window that comes next."""
    home: str = ""
    """The folder that relative paths are taken from: where the launch was started, and not where a worker runs."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    until: Until = Until.STOPPED
    """When the launch is to stop: an input operator that is asked `ONCE` looks once, and no more."""
    now: Callable[[], datetime] | None = None
    """The clock of the launch; it is there on the driver, where input operators run."""

    def value(self, attribute: Attribute[Any]) -> Any:
        """What was set for an attribute of operators or applications, else its default."""
        return self.attributes.get(attribute.qualified, attribute.default)


class Shutdown(Exception):
    """Raised by an input operator that will never have anything again; the application ends once all have."""
