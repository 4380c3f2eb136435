"""What the workers are given for one window, and what they tell of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from dagkit.engine.files.staging import Part, StagingPlace
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.record import WorkRecord
from dagkit.engine.work.split import ItemEnd
from dagkit.engine.worker.instances import SavedState
from dagkit.engine.worker.outbox import Sent
from dagkit.ranges import Deferred, OffsetRange

if TYPE_CHECKING:
    from dagkit.compiler import Compilation

SlotState = Mapping[str, SavedState]
"""The state of one slot, by operator."""


@dataclass(frozen=True, slots=True)
class WindowTask:
    """One attempt at one window."""

    window_id: int
    arriving: tuple[Sent, ...] = ()
    """Items that the driver found, and what delays held back."""
    state: Mapping[tuple[int, int], SlotState] = field(default_factory=dict)
    """What the windows before left, by level and slot."""
    work: Mapping[tuple[int, int], tuple[WorkItem, ...]] = field(default_factory=dict)
    """What splittable operators are dealt, by level and slot."""
    staging: StagingPlace | None = None
    """None where nobody writes files."""
    lasts_millis: float | None = None
    """How long a slot may begin new work; none: until there is no more."""
    committed: int = 0
    """The last window that can never come back."""
    last: bool = False
    """Whether nothing more comes for now, and operators are told so."""
    home: str = ""
    """The folder that relative paths of operators are taken from: where the driver was started."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A block, or a part of one, that was read in a window."""

    source: str
    start: int
    stop: int
    after_millis: float
    """From when its slot began with the window."""
    millis: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What one partition of an operator did in one window, as it was counted where it ran."""

    taken: Mapping[str, int] = field(default_factory=dict)
    """Items that came in, by input port; control tuples are none. Of blocks, those that were begun."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """Items that went out, by output port; one that no stream begins at is left out."""
    read: int = 0
    """Positions of blocks that were read: of files, bytes."""
    cpu_nanos: int = 0
    """Of the thread that it ran on; the operators that share a slot share it, and each is told all of it."""
    millis: float = 0.0
    """From when its slot began with the window to the end of the operator's own window."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Its metrics at the end of the window, by name."""
    stretches: tuple[Stretch, ...] = ()
    """The blocks that were read, or the first of them."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the driver learns of a slot when its window is over."""

    level: int
    slot: int
    state: SlotState = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    left: tuple[WorkItem, ...] = ()
    """What was not done in the window: whole elements, and the ends of others."""
    put_off: Mapping[ItemEnd, Deferred[OffsetRange]] = field(default_factory=dict)
    """How long what of it was put off for, by where it ends: when it is due, whoever hears of it says by his clock."""
    records: Mapping[str, WorkRecord] = field(default_factory=dict)
    """What was found and done of the work, by the input that it is for."""
    positions: int = 0
    """How many positions were read."""
    busy_millis: float = 0.0
    figures: Mapping[str, Figures] = field(default_factory=dict)
    """What each operator did in this slot, by name."""
    began: datetime | None = None
    """When the slot began, by the clock of its own machine."""
    reached: Mapping[str, datetime] = field(default_factory=dict)
    """The latest watermark that was told, by the input of the work that told it."""
    work: float = 0.0
    """How much work was done, as the operators count it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of an assignment."""

    reports: tuple[Report, ...] = ()
    delayed: tuple[Sent, ...] = ()
    """What delays hold back for the next window."""


@dataclass(frozen=True, slots=True)
class Cores:
    """How many slots run at the same time."""

    now: int = 1
    most: int = 1
    """How many could, were they asked for."""


class Backend(Protocol):
    """Runs windows of the application that it was given when it was made, or loaded with since."""

    def load(self, compilation: "Compilation") -> None:
        """Whatever window is run from here on is one of this. Called when none is under way."""

    def cores(self) -> Cores:
        """On how many slots a window runs at the same time."""

    def run(self, assignment: WindowTask) -> Answer:
        """Run one attempt at a window to its end. Called from one thread at a time for each window in flight."""

    def put_in_place(self, files: Mapping[str, Iterable[Part]], application_path: str, *, durable: bool) -> None:
        """Each file is whole and under its name, and its pieces are gone; may be done again by whoever was killed.

        Returns only then. What a file cannot be made of, or where it cannot be, is raised.
        """

    def close(self) -> None:
        """Nothing runs any more."""
