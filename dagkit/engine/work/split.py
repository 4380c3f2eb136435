"""Decide where to cut work so that all slots of a window end together. Pure.

A block is cut before it is read only if whole blocks cannot be allocated evenly: each cut adds a piece to a file. If a
slot does not read a block in time, the tracker cuts off the rest, and the next window allocates it again.
"""

import heapq
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from dagkit.api.stats import Backlog
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Split
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import ItemKey, Number, WorkItem
from dagkit.scaling.policy import PIECE

LEAST = PIECE
"""The shortest piece in positions, if their cost is unknown: a smaller one is not worth a cut."""
LEAST_MILLIS = 50.0
"""The shortest piece in milliseconds, if the cost is known."""
EVEN_ENOUGH = 1.05
"""How far a slot may exceed its share before blocks are cut."""
LONGEST_PATIENCE = 64
"""The highest number of windows for which a source is left whole after its reader refused a cut."""
EVEN = "so that all slots end together"
LATER = "the rest is for the next window"
OVER = "its window was over"
HANDED = "another slot had no more work"
PUT_OFF = "there was no more to do yet"

NO_BACKLOG = Backlog(blocks=0, positions=0, pieces=0, endless=0)
ENOUGH_PIECES = 1 << 16
"""An upper bound on slots."""

ItemEnd = tuple[str, str | None, Number, int]
"""A position of an element, such as the place of a cut."""
Pieces = tuple[WorkItem, WorkItem]
"""An item that was cut: the part before the cut, and the rest."""
CutNear = Callable[[WorkItem, int], int | Pieces | None]
"""Returns where an item may be cut near a position, or the items that its operator divided it into; None: nowhere."""
SlotWork = list[list[WorkItem]]
Allocation = Mapping[Address, Sequence[Sequence[WorkItem]]]
"""The blocks of one window, by input and slot."""


def all_in(allocation: Allocation) -> list[WorkItem]:
    """All blocks of an allocation."""
    return [item for slot_work in allocation.values() for slot_items in slot_work for item in slot_items]


def nowhere(_: WorkItem, position: int) -> None:
    """Return None: the work cannot be cut."""


def anywhere(_: WorkItem, position: int) -> int:
    """Return the position itself: lines and numbers may be cut anywhere."""
    return position


@dataclass(frozen=True, slots=True)
class SlotResult:
    """The result of one slot in a window."""

    level: int
    slot: int
    work: float
    busy_millis: float
    left: Sequence[WorkItem]
    hands_over: bool = False
    """Whether it could hand work over until its end."""


@dataclass
class SplitBackoff:
    """The sources that are left whole for now, because attempts to cut them failed."""

    # An attempt calls the operator, which would refuse each block of the source, in each window.
    _refused: dict[tuple[str, str | Number], tuple[int, int]] = field(default_factory=dict)
    """The number of refusals in a row, and the last window without another attempt, by source."""

    def allows(self, item: WorkItem, window: int) -> bool:
        return not self._refused or self._refused.get(_source_of(item), (0, 0))[1] <= window

    def refused(self, item: WorkItem, window: int) -> None:
        """Record a refused cut: the pause before the next attempt doubles each time."""
        key = _source_of(item)
        times, until = self._refused.get(key, (0, 0))
        if until <= window:
            self._refused[key] = times + 1, window + 1 + min(LONGEST_PATIENCE, 2**times)
            self._forget(window)

    def came_of_it(self, item: WorkItem) -> None:
        if self._refused:
            self._refused.pop(_source_of(item), None)

    def _forget(self, window: int) -> None:
        """Forget sources without a recent attempt: they are done, or so rare that another attempt is cheap."""
        old = window - LONGEST_PATIENCE
        self._refused = {key: refused for key, refused in self._refused.items() if refused[1] > old}


def _source_of(item: WorkItem) -> tuple[str, str | Number]:
    """The unit that is left whole: a source, or one element without a source."""
    return item.into, item.number if item.source is None else item.source


@dataclass(frozen=True, slots=True)
class PlannedSplit:
    """A cut that was made before a window."""

    item: WorkItem
    pieces: Pieces
    why: str

    @property
    def fact(self) -> Split:
        """The fact that records it."""
        return split_of(self.item, self.pieces[1].start, self.why)


@dataclass
class SplitPlanner:
    """Cuts blocks for one window, and records the cuts."""

    forecast: CostEstimate = field(default_factory=CostEstimate)
    near: Mapping[Address, CutNear] = field(default_factory=dict)
    """Where blocks may be cut, by input; the blocks of other inputs are not cut."""
    patience: SplitBackoff = field(default_factory=SplitBackoff)
    window: int = 0
    made: list[PlannedSplit] = field(default_factory=list)

    def at(self, item: WorkItem, position: int, why: str) -> Pieces | None:
        """Cut a block in two near a position. Return None if a piece would be too small or the reader refuses."""
        if not self._is_worth(item, position) or not self.patience.allows(item, self.window):
            return None
        pieces = self._pieces(item, position)
        if pieces is None:
            self.patience.refused(item, self.window)
            return None
        self.patience.came_of_it(item)
        self.made.append(PlannedSplit(item, pieces, why))
        return pieces

    def millis(self, item: WorkItem) -> float:
        return self.forecast.millis(item)

    def _pieces(self, item: WorkItem, position: int) -> Pieces | None:
        """Cut a block where its reader allows it. Return None if that is nowhere or if a piece would be too small."""
        cut = self.near.get(item.into, nowhere)(item, position)
        if isinstance(cut, tuple):
            return cut if min(map(self.millis, cut)) >= self.least * (1 - 1e-9) else None
        if cut is None or (cut != position and not self._is_worth(item, cut)):
            return None
        return item.part(item.start, cut), item.part(cut, item.end)

    def _is_worth(self, item: WorkItem, position: int) -> bool:
        """Whether a block has an end and both its pieces would take at least `least`."""
        start, end = item.start, item.end
        if not item.has_end or not start < position < end:
            return False
        between, least = self.forecast.between, self.least * (1 - 1e-9)
        return between(item, start, position) >= least and between(item, position, end) >= least

    @property
    def least(self) -> float:
        """The smallest piece: in milliseconds, or in positions while nothing is measured."""
        return LEAST if self.forecast.usual is None else LEAST_MILLIS


def allocated(blocks: Sequence[WorkItem], slots: int, cutter: SplitPlanner) -> SlotWork:
    """Allocate blocks to slots: whole ones if that is even enough; otherwise cut some, fewer than one for each slot."""
    timed = [(cutter.millis(item), item) for item in blocks]
    measured = [(millis, item) for millis, item in timed if millis]
    slot_work = _allocated_by_time(measured, slots, cutter) if measured else [[] for _ in range(slots)]
    return _spread([item for millis, item in timed if not millis], slot_work)


def _allocated_by_time(timed: Sequence[tuple[float, WorkItem]], slots: int, cutter: SplitPlanner) -> SlotWork:
    """Allocate blocks so that all slots are expected to end together."""
    share = sum(millis for millis, _ in timed) / slots
    longest = max(millis for millis, _ in timed)
    whole = whole_blocks(timed, slots) if longest <= EVEN_ENOUGH * share else None  # otherwise it cannot be even
    if whole is not None and whole[1] <= EVEN_ENOUGH * share:
        return whole[0]
    made = len(cutter.made)
    cut, most_cut = wrapped(timed, slots, max(share, cutter.least), cutter)
    # Whole blocks take at least as long as the longest of them: this saves their allocation where that decides.
    if most_cut < longest:
        return cut
    slot_work, most = whole or whole_blocks(timed, slots)
    if most_cut < most:
        return cut
    del cutter.made[made:]  # these cuts are not used
    return slot_work


def _spread(blocks: Sequence[WorkItem], slot_work: SlotWork) -> SlotWork:
    """Spread work of unknown duration, such as work without an end, over the slots, empty ones first."""
    # This work counts first: by the other work, one slot with little of it would get all.
    counts = [(0, len(slot_items), slot) for slot, slot_items in enumerate(slot_work)]
    heapq.heapify(counts)
    for item in sorted(blocks, key=attrgetter("order")):
        spread, others, slot = counts[0]
        slot_work[slot].append(item)
        heapq.heapreplace(counts, (spread + 1, others, slot))
    _sort(slot_work)
    return slot_work


def _sort(slot_work: SlotWork) -> None:
    for slot_items in slot_work:
        if len(slot_items) > 1:
            slot_items.sort(key=attrgetter("order"))


def whole_blocks(timed: Sequence[tuple[float, WorkItem]], slots: int) -> tuple[SlotWork, float]:
    """Give each block, longest first, to the slot with the least work; return also the time of the fullest slot."""
    slot_work: SlotWork = [[] for _ in range(slots)]
    loads = [(0.0, slot) for slot in range(slots)]
    for millis, item in sorted(timed, key=lambda pair: (-pair[0], pair[1].order)):
        load, slot = loads[0]
        slot_work[slot].append(item)
        heapq.heapreplace(loads, (load + millis, slot))
    _sort(slot_work)
    return slot_work, max(load for load, _ in loads)


def wrapped(
    timed: Sequence[tuple[float, WorkItem]], slots: int, share: float, cutter: SplitPlanner
) -> tuple[SlotWork, float]:
    """Fill the slots in turn and cut blocks that exceed the share; return also the time of the fullest slot."""
    slot_work: SlotWork = [[] for _ in range(slots)]
    left = sorted(timed, key=lambda pair: pair[1].order, reverse=True)
    loads = [0.0] * slots
    given, slot = 0.0, 0
    while left:
        millis, item = left.pop()
        room, is_full = share * (slot + 1) - given, False
        if slot < slots - 1 and room < millis:
            pieces = cutter.at(item, max(item.start + 1, cutter.forecast.reached(item, room)), EVEN)
            if pieces is not None:
                item, rest = pieces
                millis = cutter.millis(item)
                left.append((cutter.millis(rest), rest))
                is_full = True
            # A block that its reader does not cut goes to the slot into whose share most of it falls.
            elif room < millis / 2 and slot_work[slot]:
                left.append((millis, item))
                slot += 1
                continue
        slot_work[slot].append(item)
        loads[slot] += millis
        given += millis
        # A sum of floats may fall just short of a share that is full.
        while slot < slots - 1 and (is_full or given >= share * (slot + 1) * (1 - 1e-9)):
            slot, is_full = slot + 1, False
    return slot_work, max(loads)


def split_of(item: WorkItem, at: int, why: str, slot: int | None = None) -> Split:
    """Return the fact that records a cut."""
    return Split(
        into=item.into,
        source=item.name,
        start=item.start,
        at=at,
        end=item.end if item.has_end else None,
        element_id=item.element_id,
        slot=slot,
        why=why,
        is_shares=item.is_shares,
    )


def split_at_the_end(allocation: Allocation, worked: Iterable[SlotResult]) -> list[Split]:
    """The splits of work in progress: because the window was over, or because the operator deferred the rest."""
    allocated = {item.end_key: item for item in all_in(allocation)}
    return [
        split_of(before, left.start, OVER if left.deferral.due is None else PUT_OFF, one.slot)
        for one in worked
        for left in one.left
        if (before := allocated.get(left.end_key)) is not None and left.start > before.start
    ]


def joined(work: Sequence[WorkItem], cuts: Container[ItemEnd]) -> list[WorkItem]:
    """Return the work with neighbours joined that touch at one of these cuts: no slot began there."""
    found: list[WorkItem] = []
    for item in work:
        before = found[-1] if found else None
        if (
            before is not None
            and before.end == item.start  # the first to fail, and cheaper than the keys
            and before.key == item.key
            and place_in(item, item.start) in cuts
        ):
            found[-1] = before.joined(item)
        else:
            found.append(item)
    return found


def is_long(item: WorkItem) -> bool:
    """Whether an item is long enough for a cut while the cost of work is unknown."""
    return item.known_length >= 2 * PIECE


def place_in(item: WorkItem, position: int) -> ItemEnd:
    """A position of an element."""
    return *item.key, position


@dataclass
class BacklogCount:
    """The backlog of some items of one input, counted while items are added and removed."""

    blocks: int = 0
    positions: int = 0
    pieces: int = 0
    """How many pieces there are if long items are cut."""
    endless: dict[ItemKey, WorkItem] = field(default_factory=dict)
    """The items without an end, whose positions are not among `positions`."""
    long: int = 0
    """How many items are long enough for a cut."""
    first_long: WorkItem | None = None
    """The first of these; None if it was removed and the next one is not known."""

    @classmethod
    def of(cls, items: Iterable[WorkItem]) -> "BacklogCount":
        count = cls()
        count.add(items)
        return count

    @classmethod
    def by_input(cls, items: Iterable[WorkItem], now: datetime) -> dict[Address, "BacklogCount"]:
        """Count due items by input."""
        due: dict[Address, list[WorkItem]] = {}
        for item in items:
            if item.deferral.due is None or item.deferral.due <= now:
                due.setdefault(item.into, []).append(item)
        return {into: cls.of(found) for into, found in due.items()}

    def add(self, items: Iterable[WorkItem]) -> None:
        """Count items behind all others."""
        for item in items:
            length, pieces = item.known_length, 1
            if is_long(item):
                pieces = length // PIECE
                self.first_long = item if not self.long else self.first_long
                self.long += 1
            self.blocks += 1
            self.pieces += pieces
            if not item.has_end:
                self.endless[item.key] = item
            elif not item.is_shares:
                self.positions += length

    def remove_first(self, item: WorkItem) -> None:
        """Count the first item no longer."""
        self.blocks -= 1
        self.pieces -= max(1, item.known_length // PIECE)
        if item.has_end:
            self.positions -= item.positions
        else:
            self.endless.pop(item.key, None)
        if is_long(item):
            self.long -= 1
            self.first_long = None

    def waiting(self, ends: Mapping[str, int]) -> int:
        """How many positions there are; `ends` are those of sources without an end, by name."""
        return self.positions + sum(
            item.waiting_up_to(ends.get(item.source or "", 0)) for item in self.endless.values() if not item.is_shares
        )


def backlog_of(counts: Sequence[BacklogCount], near: CutNear) -> Backlog:
    """The backlog of all partitions together."""
    # One item stands for all: to ask the operator of each would cost each window more, the more work waits.
    long = next((count.first_long for count in counts if count.first_long is not None), None)
    cut = long is not None and near(long, long.start + long.length // 2) is not None
    blocks = sum(count.blocks for count in counts)
    pieces = sum(count.pieces for count in counts) if cut else blocks
    return Backlog(
        blocks=blocks,
        positions=sum(count.positions for count in counts),
        pieces=min(pieces, ENOUGH_PIECES),
        endless=sum(len(count.endless) for count in counts),
    )
