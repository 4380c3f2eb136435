"""The context of an operator: the argument of `setup`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from dagkit.api.attributes import Attribute


class Until(StrEnum):
    """When a launch ends."""

    ONCE = "once"
    """When all input is processed that the first look of each input operator found."""
    IDLE = "idle"
    """When no work is left, and a further look finds no new input."""
    DRAINED = "drained"
    """When all work found before is done. Inputs do not look for more, and endless work is truncated."""
    STOPPED = "stopped"
    """Only when it is stopped."""


@dataclass(frozen=True)
class Context:
    """The argument of `setup`: the operator's name, its partition, and its attributes."""

    application: str
    operator: str
    partition: int = 0
    partitions: int = 1
    window_id: int = 0
    """The ID of the next window."""
    home: str = ""
    """The folder to which paths are relative: the working directory of the launch, not that of a worker."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    until: Until = Until.STOPPED
    """When the launch ends. For `ONCE`, an input operator must look for input only once."""
    now: Callable[[], datetime] | None = None
    """The clock of the launch, on the driver, where input operators run; None on a worker."""

    def value(self, attribute: Attribute[Any]) -> Any:
        """The value of an attribute of the operator or the application, or its default if it is not set."""
        return self.attributes.get(attribute.qualified, attribute.default)


class Shutdown(Exception):
    """Raised by an input operator that will never emit again. The application ends once all of them raised it."""
