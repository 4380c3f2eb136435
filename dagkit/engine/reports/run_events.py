"""What happens in a run, told to whoever wants to know. Who raises is heard no more; the run goes on."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dagkit.api.stats import OperatorStats
from dagkit.engine.facts import Fact
from dagkit.engine.worker.protocol import Stretch

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run begins, after the window that was committed last."""

    application: str
    window_id: int
    waiting: int
    promised: bool


@dataclass(frozen=True, slots=True)
class Found:
    """An input operator found work, and it is in the ledger."""

    operator: str
    blocks: int
    positions: int
    items: int


@dataclass(frozen=True, slots=True)
class Started:
    """A window is on its way; one that only asks what has no end whether there is more is told once it counts."""

    window_id: int
    blocks: int
    lasts_millis: float | None


@dataclass(frozen=True, slots=True)
class Committed:
    """A window is in the ledger; what it made is there for good."""

    window_id: int
    millis: float
    """From its start to the commit."""
    positions: int
    """How much was read."""
    files: int
    """How many files became whole."""
    written: int
    """Bytes that it wrote."""
    waiting: int
    """Blocks that wait now."""
    waiting_positions: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A window came to nothing. It runs again, if `again` says so; else the run ends with this."""

    window_id: int
    operator: str | None
    """Whose code raised; none where a machine went away."""
    told: str
    """The type and the words of what was raised."""
    again: bool


@dataclass(frozen=True, slots=True)
class StageRun:
    """One slot of a stage at work in one window. Stages that share a slot share its time."""

    stage: str
    slot: int
    operators: tuple[str, ...]
    began: datetime
    """By the clock of the machine that it ran on."""
    millis: float
    blocks: Mapping[str, Sequence[Stretch]] = field(default_factory=dict)
    """What was read, by the operator that read it."""


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits for one input."""

    operator: str
    port: str
    blocks: int
    positions: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What everybody did in a window that is in the ledger; told after it was `Committed`."""

    window_id: int
    began: datetime
    ended: datetime
    """When the commit began."""
    committed: datetime
    operators: Mapping[str, Sequence[OperatorStats]]
    """The statistics of each partition, by operator."""
    metrics: Mapping[str, Mapping[str, Any]]
    """The metrics of each operator that declares any, all partitions together."""
    stages: Sequence[StageRun] = ()
    queues: Sequence[Queue] = ()
    facts: Sequence[Fact] = ()
    """What was decided since the window before."""


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The application changed; the window that runs next is the first of its new shape."""

    window_id: int
    fact: Fact


@dataclass(frozen=True, slots=True)
class Ended:
    """A run is over, and everything is in place."""

    window_id: int


RunEvent = Resumed | Found | Started | Failed | Committed | Measured | Reshaped | Ended
Observer = Callable[[RunEvent], None]


class Observers:
    """Those who are told."""

    def __init__(self, observers: "tuple[Observer, ...] | list[Observer]" = ()) -> None:
        self._observers = list(observers)

    def tell(self, happening: RunEvent) -> None:
        for observer in list(self._observers):
            try:
                observer(happening)
            except Exception:  # whoever looks on must not stop what it looks at
                _logger.exception("an observer raised and is told no more: %r", observer)
                self._observers.remove(observer)
