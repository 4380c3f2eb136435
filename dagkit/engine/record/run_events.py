"""The events of a run, and their observers. An observer that raises is dropped; the run continues."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from dagkit.api.stats import OperatorStats, WorkProgress, by_unit
from dagkit.engine.program.facts import Fact
from dagkit.engine.worker.protocol import Sample, Stretch
from dagkit.ground.amounts import BYTE

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Starting:
    """A launch performs a step of its start, before the run begins."""

    step: str
    """In a few words, such as `starting Spark`."""
    spark_page: str | None = None
    """The URL of Spark's own page, once there is one."""


@dataclass(frozen=True, slots=True)
class PlanDiffers:
    """The launch resumes an application whose last launch ran another plan. Published before anything runs."""

    window_id: int
    """The last committed window."""
    last_launch: datetime
    changes: Sequence[str]
    """The differences, as sentences."""


class SetAside(NamedTuple):
    """The records, and elements that could not be read, that are set aside."""

    set_aside: int
    last_aside: str
    """The last of them, with the reason."""


NOTHING_ASIDE = SetAside(0, "")


@dataclass(frozen=True, slots=True)
class Resumed:
    """A run begins after the last committed window."""

    application: str
    window_id: int
    waiting: int
    promised: bool
    pending: Mapping[str, int] = field(default_factory=dict)
    """The positions that wait, by their unit."""
    aside: SetAside = NOTHING_ASIDE


@dataclass(frozen=True, slots=True)
class Found:
    """An input operator found work, which the ledger has recorded; or, without blocks and items, sources have grown."""

    operator: str
    blocks: int
    positions: int
    items: int
    amounts: Mapping[str, int] = field(default_factory=dict)
    """The positions by their unit."""
    unsent: int = 0
    """How many further elements the operator has found and not sent yet."""


@dataclass(frozen=True, slots=True)
class Started:
    """A window runs. One that only polls endless inputs is reported when it runs for long, or when it is committed."""

    window_id: int
    blocks: int
    lasts_millis: float | None
    amounts: Mapping[str, int] = field(default_factory=dict)
    """The positions of its work, by their unit."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The pending work of one input."""

    operator: str
    port: str
    blocks: int
    positions: int
    unit: str = BYTE
    endless: int = 0
    """How many of the blocks have no end: their positions are those that were seen."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A window is in the ledger; its results are permanent."""

    window_id: int
    millis: float
    """From its start to the commit."""
    read: Mapping[str, int]
    """The positions that were read, by their unit."""
    files: int
    """How many files were completed."""
    written: int
    """How many bytes were written: pieces of files, which may be completed later, and entries of external systems."""
    queues: Sequence[Queue] = ()
    """The work that is pending now."""
    underway: Mapping[str, Sequence[WorkProgress]] = field(default_factory=dict)
    """The work that was begun and is not finished, by operator: some of it, the least complete first."""
    visible: datetime | None = None
    """When the next incomplete file will be completed and become visible, if a limit of time applies to any."""
    block: int | None = None
    """The number of the window's block in the application's chain of the ledger."""
    received: int | None = None
    """The items that operators received, together; None if it is unknown."""
    completed: int = 0
    """How many bytes the completed files hold, which earlier windows may have written."""
    aside: SetAside = NOTHING_ASIDE

    @property
    def positions(self) -> int:
        """How many positions were read."""
        return sum(self.read.values())

    @property
    def waiting(self) -> int:
        """How many blocks are pending now."""
        return sum(queue.blocks for queue in self.queues)

    @property
    def waiting_positions(self) -> int:
        return sum(queue.positions for queue in self.queues)

    @property
    def pending(self) -> Mapping[str, int]:
        """The positions that wait, by their unit."""
        return by_unit((queue.unit, queue.positions) for queue in self.queues)


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt at a window failed. If `again`, the window runs again; otherwise the run ends with this failure."""

    window_id: int
    operator: str | None
    """The operator whose code raised; None if a machine was lost."""
    message: str
    """The type and the message of the exception."""
    again: bool


@dataclass(frozen=True, slots=True)
class StageRun:
    """The work of one slot of a stage in one window. Stages that share a slot share its time."""

    stage: str
    slot: int
    operators: tuple[str, ...]
    began: datetime
    """By the clock of the machine that ran the slot."""
    millis: float
    blocks: Mapping[str, Sequence[Stretch]] = field(default_factory=dict)
    """The stretches that were read, by operator."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a committed window; published after its `Committed` event."""

    window_id: int
    began: datetime
    ended: datetime
    """When the commit began."""
    committed: datetime
    operators: Mapping[str, Sequence[OperatorStats]]
    """The statistics of each partition, by operator."""
    metrics: Mapping[str, Mapping[str, Any]]
    """The metrics of each operator that declares any, aggregated over its partitions."""
    stages: Sequence[StageRun] = ()
    queues: Sequence[Queue] = ()
    facts: Sequence[Fact] = ()
    """The decisions since the previous window."""
    rejected: Sequence[Sample] = ()
    """Samples of rejected records."""


@dataclass(frozen=True, slots=True)
class Reshaped:
    """The application changed; the next window is the first that runs the new plan."""

    window_id: int
    fact: Fact


@dataclass(frozen=True, slots=True)
class FoundNothing:
    """A window that has started polled endless inputs in vain, and is not committed."""

    window_id: int


@dataclass(frozen=True, slots=True)
class Draining:
    """The run was asked to stop: it ends after the windows in flight."""

    window_id: int
    """The last committed window."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A run is over, and all output files are in place."""

    window_id: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The reasons why input that is there is not read yet have changed."""

    reasons: Sequence[str]
    """Each in a sentence that begins with its operator; none if there is no such input any more."""


@dataclass(frozen=True, slots=True)
class SlotAtWork:
    """The element that a slot processes."""

    window_id: int
    operator: str
    slot: int
    source: str
    """The name of the element in the ledger."""
    since: datetime
    """When the slot began it, by the clock of the driver."""
    fraction: float | None = None
    """The part that is done; None while it is unknown, and for work without an end."""


@dataclass(frozen=True, slots=True)
class Working:
    """What slots process, as they last reported to the board, ten times a second.

    Published about once a second while windows run, and only if slots reach the board.
    """

    work: Sequence[SlotAtWork]
    """The elements that take longest, longest first."""
    done: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """The positions that slots have processed so far, by window and unit."""
    shares: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """The share of each operator in the time of the slots so far, by window, without small ones."""


RunEvent = (
    Starting
    | PlanDiffers
    | Resumed
    | Found
    | Started
    | Failed
    | Committed
    | Measured
    | Reshaped
    | Waiting
    | Working
    | FoundNothing
    | Draining
    | Ended
)
Observer = Callable[[RunEvent], None]


class Observers:
    """The observers of a run."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)

    def publish(self, event: RunEvent) -> None:
        for observer in list(self._observers):
            try:
                observer(event)
            except Exception:  # an observer must not end the run that it observes
                _logger.exception("an observer raised, and is not called again: %r", observer)
                self._observers.remove(observer)
