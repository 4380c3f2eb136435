"""The task of the workers for one window, and their reports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from dagkit.api.stats import WorkProgress
from dagkit.engine.files.staging import Part, StagingPlace
from dagkit.engine.program.address import Address, SourceKey
from dagkit.engine.program.failures import shown_record, shown_rejected
from dagkit.engine.program.program import Launch, SeenWatermarks
from dagkit.engine.work.handover import BoardPlace, Handover, SlotStanding
from dagkit.engine.work.item import PromisedItem, WorkItem
from dagkit.engine.work.record import NOTHING_RECORDED, WorkRecord
from dagkit.engine.work.split import ItemEnd, SlotResult
from dagkit.engine.worker.instances import SavedState
from dagkit.engine.worker.outbox import Sent
from dagkit.ranges import Deferred

# No worker imports the compiler, so that workers start fast.
if TYPE_CHECKING:
    from dagkit.compiler import Compilation

SlotState = Mapping[str, SavedState]
"""The state of one slot, by operator."""


class Leaving(StrEnum):
    """The work that an attempt leaves for a later window, without beginning it."""

    NOTHING = "nothing"
    FOUND = "found"
    """The work that other operators find in this window."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The part of a task that may differ between two attempts at one window."""

    staging: StagingPlace | None = None
    """None if no operator stages anything."""
    leaves: Leaving = Leaving.NOTHING
    without: frozenset[SourceKey] = frozenset()
    """The sources whose work the attempt leaves too, because their operator cannot read them and sets them aside."""
    without_work: Mapping[Address, tuple[PromisedItem, ...]] = field(default_factory=dict)
    """The stretches of work that the attempt leaves too, because a record in each ends its worker."""
    traces: str | None = None
    """The folder in which slots note what they process; None: they do not."""
    locates: tuple[str, ...] = ()
    """Operators to which all origins are taken along, because the attempt is to locate the record of a failure."""
    isolated: bool = False
    """Whether the attempt may end its process, so that it must not run in that of the driver."""
    timeout_millis: int | None = None
    """After how long without progress a slot ends its process; None: never."""
    movable: frozenset[Address] = frozenset()
    """The inputs whose work busy slots may hand over to idle ones while the window runs."""
    board: BoardPlace | None = None
    """Where slots report progress and hand work over; set by the backend, if it has a board."""


FIRST_ATTEMPT = Attempt()
NO_LAUNCH = Launch()
"""That of windows outside of a launch, as in tests."""


@dataclass(frozen=True, slots=True)
class WindowTask:
    """One attempt at one window."""

    window_id: int
    arriving: tuple[Sent, ...] = ()
    """Items that the driver found, and items that delays held."""
    state: Mapping[tuple[int, int], SlotState] = field(default_factory=dict)
    """The state after the previous windows, by level and slot."""
    work: Mapping[tuple[int, int], tuple[WorkItem, ...]] = field(default_factory=dict)
    """The work allocated to splittable operators, by level and slot."""
    lasts_millis: float | None = None
    """How long a slot may begin new work; None: until there is no more."""
    committed: int = 0
    """The last committed window, which never runs again."""
    last: bool = False
    """Whether operators are notified that no more input is expected for now."""
    began: datetime | None = None
    """When the driver began the window."""
    seen: Mapping[str, SeenWatermarks] = field(default_factory=dict)
    """The watermarks after the last committed window, by operator; only of operators that can have one."""
    taps: tuple["Tap", ...] = ()
    """The outputs of which the window takes samples, because a user watches them."""
    launch: Launch = NO_LAUNCH
    attempt: Attempt = FIRST_ATTEMPT

    def trying(self, **changes: Any) -> "WindowTask":
        """Return the task of an attempt with these changes."""
        return replace(self, attempt=replace(self.attempt, **changes))


@dataclass(frozen=True, slots=True)
class Tap:
    """A request to take samples of the items that an output sends."""

    request: str
    """Empty for the rejected records that are always kept."""
    operator: str
    port: str
    most: int
    """The highest number of samples of a slot."""
    every: int
    """Take each item whose number, from 0 on, is divisible by this."""

    def sample(self, slot: int, item: Any, place: str) -> "Sample":
        """The sample of one item, which was read at a place."""
        if self.request:
            return Sample(self.request, self.operator, slot, shown_record(item), place)
        text, own_place = shown_rejected(item)
        return Sample(self.request, self.operator, slot, text, own_place or place)


@dataclass(frozen=True, slots=True)
class Sample:
    """One item that a tapped output sent."""

    request: str
    operator: str
    slot: int
    item: str
    """Its repr, shortened."""
    place: str = ""
    """Where it was read, in words; empty if that is unknown."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A block, or a part of one, that a window read."""

    source: str
    start: int
    stop: int
    after_millis: float
    """The time since its slot began the window."""
    millis: float


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one partition of an operator in one window, counted where it ran."""

    taken: Mapping[str, int] = field(default_factory=dict)
    """Items received, by input port, without control tuples; of blocks, those that were begun."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """Items sent, by connected output port."""
    read: int = 0
    """How many positions of blocks were read, in the unit of the operator."""
    cpu_nanos: int = 0
    """CPU time of its thread; each of the operators that share a slot reports the whole time."""
    millis: float = 0.0
    """The time from the slot's begin of the window to the end of the operator's own window."""
    busy_millis: float = 0.0
    """Its share of the time for which the slot worked. The shares of the operators of a slot add up to that time."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Its metrics at the end of the window, by name."""
    underway: tuple[WorkProgress, ...] = ()
    """The work that was begun and is not finished, or the first of it."""


@dataclass(slots=True)
class WorkDone:
    """The work of a slot on one input in a window. The slot adds to it, and its report contains it."""

    left: list[WorkItem] = field(default_factory=list)
    """Work that was not done in the window: whole elements, and the rests of others."""
    put_off: dict[ItemEnd, Deferred[Any]] = field(default_factory=dict)
    """The delays of deferred work, keyed by the end of its range; the driver adds them to its own clock."""
    record: WorkRecord = NOTHING_RECORDED
    """The work that was found and done; set at the end of the window."""
    begun: int = 0
    """How many elements, or parts of elements, were begun."""
    positions: int = 0
    """How many positions were read."""
    amount: float = 0.0
    """How much work was done, in the unit of the operator."""
    reached: dict[str, datetime] = field(default_factory=dict)
    """The latest watermark of the elements, by source; see `source_to_report`."""
    stretches: list[Stretch] = field(default_factory=list)
    """The blocks that were read, or the first of them."""
    underway: list[WorkProgress] = field(default_factory=list)
    """How far the items have come that have a rest, or the first of them."""
    gave: list[Handover] = field(default_factory=list)
    """The work that was handed over, which is not in the record or in `left`; in the order of time."""
    took: list[str] = field(default_factory=list)
    """The tokens of the handovers that were taken; their work is in the record, in `left` or in `gave`."""
    is_linked: bool = False
    """Whether the slot reached the board until its end."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a slot to the driver at the end of a window."""

    level: int
    slot: int
    state: SlotState = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    done: Mapping[Address, WorkDone] = field(default_factory=dict)
    """The work of its splittable operators, by input."""
    busy_millis: float = 0.0
    figures: Mapping[str, Figures] = field(default_factory=dict)
    """The figures of each operator in this slot, by name."""
    began: datetime | None = None
    """When the slot began, by the clock of its own machine."""
    estimated: Mapping[str, datetime] = field(default_factory=dict)
    """The watermarks that operators estimated that are not splittable, by operator."""
    finalizers: tuple[bytes, ...] = ()
    """The pickled callbacks to call after the commit."""
    samples: tuple[Sample, ...] = ()
    """Samples of the items that tapped outputs sent."""
    printed: tuple[str, ...] = ()
    """Lines for the log of the driver, if the slot ran on another machine."""

    @property
    def left(self) -> list[WorkItem]:
        """The work of all inputs that was not done."""
        return [item for done in self.done.values() for item in done.left]

    @property
    def positions(self) -> int:
        """How many positions were read."""
        return sum(done.positions for done in self.done.values())

    @property
    def is_linked(self) -> bool:
        """Whether the slot reached the board until its end."""
        return any(done.is_linked for done in self.done.values())

    @property
    def gave(self) -> list[Handover]:
        """The work that was handed over."""
        return [handover for done in self.done.values() for handover in done.gave]

    @property
    def took(self) -> list[str]:
        """The tokens of the handovers that were taken."""
        return [token for done in self.done.values() for token in done.took]

    def leaving(self, left: Iterable[WorkItem]) -> "Report":
        """Return the report of a slot that left this work instead."""
        done = {into: replace(done, left=[]) for into, done in self.done.items()}
        for item in left:
            done[item.into].left.append(item)
        return replace(self, done=done)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a window task."""

    reports: tuple[Report, ...] = ()
    delayed: tuple[Sent, ...] = ()
    """The items that delays hold for the next window."""

    @property
    def parts(self) -> list[Part]:
        """The pieces of files that the window staged."""
        return [part for report in self.reports for part in report.parts]

    @property
    def samples(self) -> list[Sample]:
        """The samples of the items that tapped outputs sent."""
        return [sample for report in self.reports for sample in report.samples]

    @property
    def results(self) -> list[SlotResult]:
        """The result of each slot, for the scheduler."""
        return [
            SlotResult(
                report.level,
                report.slot,
                sum(done.amount for done in report.done.values()),
                report.busy_millis,
                report.left,
                report.is_linked,
            )
            for report in self.reports
        ]

    @property
    def has_handovers(self) -> bool:
        """Whether slots handed work over."""
        return any(report.gave or report.took for report in self.reports)

    @property
    def left(self) -> list[WorkItem]:
        """The work that the window did not do."""
        return [item for report in self.reports for item in report.left]


@dataclass(frozen=True, slots=True)
class Cores:
    """How many slots run at the same time."""

    now: int = 1
    most: int = 1
    """How many could run if they were requested."""


class Backend(Protocol):
    """Runs windows of the application that it was created with, or that was loaded later."""

    def load(self, compilation: "Compilation") -> None:
        """Run all later windows with this compilation. Called while no window is in flight."""

    def cores(self) -> Cores:
        """Return how many slots run at the same time."""

    def run(self, task: WindowTask) -> Answer:
        """Run one attempt at a window to its end. Called from one thread at a time for each window in flight."""

    def running(self) -> Sequence[SlotStanding]:
        """The last report of each slot of the windows that run. Called from any thread, and costs nothing."""

    def put_in_place(self, files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> None:
        """Assemble each file under its name and remove its pieces, before returning; safe to repeat after a crash.

        Raise if pieces are lost or a file cannot be put in place.
        """

    def close(self) -> None:
        """Stop everything that runs."""
