"""The values that a checkpoint is built from: the outcome of its window, and what remains after it. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dagkit.engine.aside.decided import NOTHING_DECIDED, DecidedWork
from dagkit.engine.aside.search import Search
from dagkit.engine.checkpoint.checkpoint import Altered, Partitioned
from dagkit.engine.event_time.watermark_flow import WatermarkFlow
from dagkit.engine.facts import Fact
from dagkit.engine.program.program import Program
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.split import Allocation, all_in
from dagkit.engine.work.waiting import Waiting
from dagkit.engine.worker.instances import SavedState
from dagkit.engine.worker.protocol import Answer

START_OF_TIME = datetime.min.replace(tzinfo=UTC)
State = Mapping[str, tuple[SavedState, ...]]
"""The state of operators: by operator, then by partition."""


@dataclass(frozen=True, slots=True)
class ConsumedWork:
    """The blocks of one window."""

    given: Sequence[WorkItem]
    """The blocks that its discoveries added to the queue."""
    allocation: Allocation
    """The blocks allocated to it, which may have been in the queue before."""
    queued: Mapping[str, int] = field(default_factory=dict)
    """Where each lane of the queue ended before its discoveries were added."""


@dataclass(frozen=True, slots=True)
class WindowOutcome:
    """One window that ended: its work and its results."""

    program: Program
    """The program that the window ran."""
    window_id: int
    consumed: ConsumedWork
    answer: Answer
    state: State
    """The state of all operators after the window."""
    last: bool = False
    """Whether the window notified operators that no more input is expected for now."""
    facts: Sequence[Fact] = ()
    """The decisions since the previous window."""
    decided: DecidedWork = NOTHING_DECIDED
    search: Search | None = None
    """The search that the next window continues."""
    flow: WatermarkFlow | None = None
    """The flow of watermarks; None if no operator estimates one."""
    launched: datetime | None = None
    """When the run began."""
    began: datetime | None = None
    """When the window began."""
    ended: datetime = START_OF_TIME
    """When the driver received the answer."""


@dataclass(frozen=True, slots=True)
class RemainingWork:
    """The work that no window has done, other than the rest of the window that is committed."""

    queue: Waiting = field(default_factory=Waiting)
    younger: Sequence[ConsumedWork] = ()
    """The work of younger windows in flight; in the ledger it is pending."""

    @property
    def in_flight(self) -> Iterator[WorkItem]:
        """The blocks allocated to younger windows."""
        return (item for window in self.younger for item in all_in(window.allocation))

    @property
    def discovered_later(self) -> Iterator[WorkItem]:
        """The blocks that come from discoveries of younger windows: the committed window does not contain them."""
        return (item for window in self.younger for item in window.given)


@dataclass(frozen=True, slots=True)
class InputStatus:
    """The progress of inputs when a window is committed."""

    ended: Collection[str] = ()
    """Input operators that have ended for ever."""
    behind: Collection[str] = ()
    """The input operators that found input which is not sent, or which no committed window contains."""
    watermarks: Mapping[str, datetime | None] = field(default_factory=dict)
    """The watermarks that input operators estimate."""


@dataclass(frozen=True, slots=True)
class ChangesInForce:
    """The changes to the application since its launch that still apply."""

    partitions: Mapping[str, Partitioned] = field(default_factory=dict)
    altered: tuple[Altered, ...] = ()
    answered: tuple[str, ...] = ()
    """The requests that take effect with the next commit."""
