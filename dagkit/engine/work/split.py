"""Splitting: where work is cut so that all slots of a window end together. Pure.

A block is cut before it is read only where whole blocks cannot be dealt evenly: each cut makes a file of several
pieces. What a slot does not read in time is cut off by its tracker, and is dealt anew in the next window.
"""

import heapq
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from dagkit.api.stats import Backlog
from dagkit.engine.address import Address
from dagkit.engine.facts import Split
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import Number, WorkItem
from dagkit.scaling.policy import PIECE

LEAST = PIECE
"""Positions of a piece at least where nothing is known of their cost: less is not worth a cut."""
LEAST_MILLIS = 50.0
"""What a piece takes at least, where that is known."""
EVEN_ENOUGH = 1.05
"""How much more than its share a slot may be dealt before anything is cut."""
LONGEST_PATIENCE = 64
"""Windows for which a source is left whole at most, after its reader refused to have it cut."""
EVEN = "so that all slots end together"
LATER = "the rest is for the next window"
OVER = "its window was over"
PUT_OFF = "there was no more to do yet"

NO_BACKLOG = Backlog(blocks=0, positions=0, pieces=0, endless=0)
ENOUGH_PIECES = 1 << 16
"""An upper bound on slots."""

ItemEnd = tuple[str, str | None, Number, int]
"""A position of an element: where one was cut."""
CutNear = Callable[[WorkItem, int], int | None]
"""Where a block may be cut near a position; none: nowhere."""
SlotWork = list[list[WorkItem]]
Allocation = Mapping[Address, Sequence[Sequence[WorkItem]]]
"""The blocks of one window: by the input that they go to, then by slot."""


def all_in(allocation: Allocation) -> list[WorkItem]:
    """All that slots were dealt."""
    return [each for slot_work in allocation.values() for hand in slot_work for each in hand]


def nowhere(_: WorkItem, position: int) -> int | None:  # noqa: ARG001 - as whoever cuts is asked
    """Some work is all or nothing."""
    return None


def anywhere(_: WorkItem, position: int) -> int | None:
    """Lines and numbers may be cut at any position."""
    return position


@dataclass(frozen=True, slots=True)
class SlotResult:
    """What one slot did in a window."""

    level: int
    slot: int
    work: float
    busy_millis: float
    left: Sequence[WorkItem]


@dataclass
class SplitBackoff:
    """Which sources are left whole for now, because nothing came of cutting them."""

    _refused: dict[tuple[str, str | Number], tuple[int, int]] = field(default_factory=dict)
    """How often in a row, and up to which window the source is not tried again."""

    def allows(self, each: WorkItem, window: int) -> bool:
        return self._refused.get(_source_of(each), (0, 0))[1] <= window

    def refused(self, each: WorkItem, window: int) -> None:
        """Nothing came of it: it is tried again later, and each time much later."""
        key = _source_of(each)
        times, until = self._refused.get(key, (0, 0))
        if until <= window:
            self._refused[key] = times + 1, window + 1 + min(LONGEST_PATIENCE, 2**times)
            self._forget(window)

    def came_of_it(self, each: WorkItem) -> None:
        self._refused.pop(_source_of(each), None)

    def _forget(self, window: int) -> None:
        """A source that nobody tried for so long, though it was allowed, is done, or so rare that one try is cheap."""
        old = window - LONGEST_PATIENCE
        self._refused = {key: refused for key, refused in self._refused.items() if refused[1] > old}


def _source_of(each: WorkItem) -> tuple[str, str | Number]:
    """What is left whole together: all of a source, or one element that is of none."""
    return each.into, each.number if each.source is None else each.source


@dataclass
class SplitPlanner:
    """Whoever cuts blocks for one window, and what was cut."""

    forecast: CostEstimate = field(default_factory=CostEstimate)
    near: Mapping[Address, CutNear] = field(default_factory=dict)
    """Where blocks may be cut, by the input that they wait for; nowhere where nothing is said."""
    patience: SplitBackoff = field(default_factory=SplitBackoff)
    window: int = 0
    made: list[Split] = field(default_factory=list)
    places: list[ItemEnd] = field(default_factory=list)
    """Where that was, in the same order."""

    def at(self, each: WorkItem, position: int, why: str) -> tuple[WorkItem, WorkItem] | None:
        """A block as two, cut near a position; none where no piece would be worth it, or its reader has it whole."""
        if not each.has_end or not self._worth(each, position) or not self.patience.allows(each, self.window):
            return None
        place = self.near.get(each.into, nowhere)(each, position)
        if place is None or not self._worth(each, place):
            self.patience.refused(each, self.window)
            return None
        self.patience.came_of_it(each)
        self.made.append(split_of(each, place, why))
        self.places.append(place_in(each, place))
        return each.part(each.start, place), each.part(place, each.end)

    def millis(self, each: WorkItem) -> float:
        return self.forecast.millis(each)

    def _worth(self, each: WorkItem, position: int) -> bool:
        if not each.start < position < each.end:
            return False
        pieces = each.part(each.start, position), each.part(position, each.end)
        return min(map(self.millis, pieces)) >= self.least * (1 - 1e-9)

    @property
    def least(self) -> float:
        """What a piece is to take at least: milliseconds, or positions while nothing is measured."""
        return LEAST if self.forecast.usual is None else LEAST_MILLIS


def allocated(blocks: Sequence[WorkItem], slots: int, cutter: SplitPlanner) -> SlotWork:
    """The blocks by slot. Whole ones where that is even enough; else some are cut, less than one for each slot."""
    timed = [(cutter.millis(each), each) for each in blocks]
    told = [(millis, each) for millis, each in timed if millis]
    slot_work = _dealt_by_time(told, slots, cutter) if told else [[] for _ in range(slots)]
    return _spread([each for millis, each in timed if not millis], slot_work)


def _dealt_by_time(timed: Sequence[tuple[float, WorkItem]], slots: int, cutter: SplitPlanner) -> SlotWork:
    """So that all slots end together, as far as anybody knows."""
    slot_work, most = whole_blocks(timed, slots)
    share = sum(millis for millis, _ in timed) / slots
    if most <= EVEN_ENOUGH * share:
        return slot_work
    made = len(cutter.made)
    cut, most_cut = wrapped([each for _, each in timed], slots, max(share, cutter.least), cutter)
    if most_cut < most:
        return cut
    del cutter.made[made:], cutter.places[made:]
    return slot_work


def _spread(blocks: Sequence[WorkItem], slot_work: SlotWork) -> SlotWork:
    """What nobody can tell the time of, such as work without an end, lies in different hands, empty ones first."""
    counts = [(0, len(hand), slot) for slot, hand in enumerate(slot_work)]
    heapq.heapify(counts)
    for each in sorted(blocks, key=attrgetter("order")):
        spread, others, slot = counts[0]
        slot_work[slot].append(each)
        heapq.heapreplace(counts, (spread + 1, others, slot))
    for hand in slot_work:
        hand.sort(key=attrgetter("order"))
    return slot_work


def whole_blocks(timed: Sequence[tuple[float, WorkItem]], slots: int) -> tuple[SlotWork, float]:
    """The longest block goes to whoever has least so far; and what the fullest hand takes."""
    slot_work: SlotWork = [[] for _ in range(slots)]
    loads = [(0.0, slot) for slot in range(slots)]
    for millis, each in sorted(timed, key=lambda pair: (-pair[0], pair[1].order)):
        load, slot = loads[0]
        slot_work[slot].append(each)
        heapq.heapreplace(loads, (load + millis, slot))
    for hand in slot_work:
        hand.sort(key=attrgetter("order"))
    return slot_work, max(load for load, _ in loads)


def wrapped(blocks: Sequence[WorkItem], slots: int, share: float, cutter: SplitPlanner) -> tuple[SlotWork, float]:
    """One slot is filled after the other, and a block that goes over its share is cut there; and the fullest hand."""
    slot_work: SlotWork = [[] for _ in range(slots)]
    left = sorted(blocks, key=attrgetter("order"), reverse=True)
    loads = [0.0] * slots
    given, slot = 0.0, 0
    while left:
        each = left.pop()
        room, is_full = share * (slot + 1) - given, False
        millis = cutter.millis(each)
        if slot < slots - 1 and room < millis:
            pieces = cutter.at(each, max(each.start + 1, cutter.forecast.reached(each, room)), EVEN)
            if pieces is not None:
                each, rest = pieces
                millis = cutter.millis(each)
                left.append(rest)
                is_full = True
            elif room < millis / 2 and slot_work[slot]:
                left.append(each)
                slot += 1
                continue
        slot_work[slot].append(each)
        loads[slot] += millis
        given += millis
        while slot < slots - 1 and (is_full or given >= share * (slot + 1) * (1 - 1e-9)):
            slot, is_full = slot + 1, False
    return slot_work, max(loads)


def split_of(each: WorkItem, at: int, why: str, slot: int | None = None) -> Split:
    """A cut as a fact."""
    return Split(
        into=each.into,
        source=each.name,
        start=each.start,
        at=at,
        end=each.end if each.has_end else None,
        element_id=each.element_id,
        slot=slot,
        why=why,
    )


def split_at_the_end(allocation: Allocation, worked: Iterable[SlotResult]) -> list[Split]:
    """What was split while a slot was at work on it: its window was over, or its operator put the rest off."""
    allocated = {each.end_key: each for each in all_in(allocation)}
    return [
        split_of(before, left.start, OVER if left.due is None else PUT_OFF, one.slot)
        for one in worked
        for left in one.left
        if (before := allocated.get(left.end_key)) is not None and left.start > before.start
    ]


def joined(work: Sequence[WorkItem], cuts: Container[ItemEnd]) -> list[WorkItem]:
    """Work in its order, and in one what was cut apart in one of these places and touches still: nobody was there."""
    found: list[WorkItem] = []
    for each in work:
        before = found[-1] if found else None
        if before is not None and before.end_key == (*each.key, each.start) and place_in(each, each.start) in cuts:
            sizes = (before.size, each.size)
            size = None if None in sizes else sum(size for size in sizes if size is not None)
            found[-1] = before.model_copy(update={"end": each.end, "size": size})
        else:
            found.append(each)
    return found


def place_in(each: WorkItem, position: int) -> ItemEnd:
    """A position of an element."""
    return *each.key, position


def backlogs_of(waiting: Iterable[WorkItem], near: Mapping[Address, CutNear], now: datetime) -> dict[Address, Backlog]:
    """What waits and is due, by input."""
    by_input: dict[Address, list[WorkItem]] = {}
    for each in waiting:
        if each.due is None or each.due <= now:
            by_input.setdefault(each.into, []).append(each)
    return {into: backlog_of(work, near.get(into, nowhere)) for into, work in by_input.items()}


def backlog_of(waiting: Sequence[WorkItem], near: CutNear) -> Backlog:
    """What waits for all partitions together. If the first long one can be cut, all can."""
    lengths = [each.length for each in waiting]
    long = next((each for each, length in zip(waiting, lengths, strict=True) if length >= 2 * PIECE), None)
    cut = long is not None and near(long, long.start + long.length // 2) is not None
    pieces = sum(max(1, length // PIECE) for length in lengths) if cut else len(lengths)
    return Backlog(
        blocks=len(waiting),
        positions=sum(lengths),
        pieces=min(pieces, ENOUGH_PIECES),
        endless=sum(not each.has_end for each in waiting),
    )
