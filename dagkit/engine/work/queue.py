"""The work queue: blocks that were found and not yet read, and their allocation to the next window. Pure."""

from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from dagkit.api.stats import Backlog
from dagkit.engine.program.address import Address
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import Number, PromisedItem, WorkItem
from dagkit.engine.work.split import (
    LATER,
    Allocation,
    BacklogCount,
    CutNear,
    ItemEnd,
    SlotWork,
    SplitPlanner,
    allocated,
    backlog_of,
    is_long,
    joined,
    nowhere,
)
from dagkit.engine.work.waiting import Lane, Stretch, Waiting

Review = Callable[[Sequence[WorkItem]], list[WorkItem]]
MOST_AT_FRONT = 1024
"""How many blocks are looked at in each window; if more return, they become a lane."""
WORTH_LEAVING = 1.25
"""How far a block may exceed the work that a window still needs before the block is cut."""


class CountedLane(Lane):
    """A lane that knows its backlog."""

    def __init__(self, into: Address, items: Iterable[WorkItem] = ()) -> None:
        self._count = BacklogCount()
        self._work = 0.0
        """The amount of work that was not begun."""
        self.polls = 0
        """How many items had nothing to do last time."""
        self._begun: deque[WorkItem] = deque()
        """The blocks whose costs were measured, in order."""
        self._reviewed = 0
        """The place up to which `review` has seen them."""
        super().__init__(into, items)

    def append(self, item: WorkItem) -> None:
        super().append(item)
        self._count.add((item,))
        self.polls += item.deferral.in_vain
        if item.done.positions:
            self._begun.append(item)
        else:
            self._work += item.amount

    def popleft(self) -> WorkItem:
        item = super().popleft()
        self._count.remove_first(item)
        self.polls -= item.deferral.in_vain
        if item.done.positions:
            self._begun.popleft()
        else:
            self._work = self._work - item.amount if len(self) else 0.0  # an empty lane clears rounding errors
        return item

    @property
    def count(self) -> BacklogCount:
        """The backlog."""
        if self._count.long and self._count.first_long is None:
            self._count.first_long = next(item for item in self if is_long(item))
        return self._count

    def millis(self, forecast: CostEstimate) -> float:
        """How long one slot would be busy with all of it; blocks that were not begun have the usual cost."""
        unknown = 1.0 if forecast.usual is None else forecast.usual
        return sum(map(forecast.millis, self._begun)) + unknown * self._work

    def reviewed(self, review: Review) -> "CountedLane":
        """This lane, or another one if `review` changes an item that it did not see before, or one without an end."""
        # A review may shorten work without an end each time that windows return it, and other work once.
        start = self.start if self._count.endless else max(self._reviewed, self.start)
        before = self.view().since(start) if start < self.stop else []
        after, self._reviewed = review(before), self.stop
        if after == before:
            return self
        lane = CountedLane(self.into, [*self.view().until(start), *after])
        lane._reviewed = lane.stop
        return lane


class InputBacklog(NamedTuple):
    """How much work waits for one input."""

    blocks: int
    positions: int
    endless: int
    """How many of the blocks have no end."""

    @classmethod
    def of(cls, counts: Sequence[BacklogCount], ends: Mapping[str, int]) -> "InputBacklog":
        return cls(
            blocks=sum(count.blocks for count in counts),
            positions=sum(count.waiting(ends) for count in counts),
            endless=sum(len(count.endless) for count in counts),
        )


@dataclass
class InputQueue:
    """The pending blocks of one input. Each question costs time in proportion to the few at the front only."""

    into: Address
    front: deque[WorkItem] = field(default_factory=deque)
    """Blocks that windows did not finish lately; they come first."""
    lanes: list[CountedLane] = field(init=False)
    """Other blocks, in order. Those of the last lane were found, or have no end; windows did not finish the others."""

    def __post_init__(self) -> None:
        self.lanes = [CountedLane(self.into)]

    @property
    def new(self) -> CountedLane:
        """The lane of blocks that were found, and of those without an end."""
        return self.lanes[-1]

    @property
    def returned(self) -> Iterator[WorkItem]:
        """The blocks that windows did not finish."""
        return chain(self.front, *self.lanes[:-1])

    @property
    def has_returned(self) -> bool:
        return bool(self.front) or len(self.lanes) > 1

    def pop(self) -> WorkItem:
        if self.front:
            return self.front.popleft()
        item = self.lanes[0].popleft()
        if not self.lanes[0] and len(self.lanes) > 1:
            del self.lanes[0]
        return item

    def replace(self, returned: Iterable[WorkItem], new: Iterable[WorkItem]) -> None:
        """Make these blocks the whole content of the queue."""
        self.front, self.lanes = deque(), [CountedLane(self.into, new)]
        self.put_back(returned)

    def put_back(self, blocks: Iterable[WorkItem]) -> None:
        self.front.extendleft(reversed(list(blocks)))
        if len(self.front) > MOST_AT_FRONT:
            self.lanes.insert(0, CountedLane(self.into, self.front))
            self.front = deque()

    def review(self, review: Review) -> None:
        """Replace blocks by those that `review` makes of them. It sees blocks in lanes once while all have an end."""
        self.front = deque(review(list(self.front)))
        lanes = [lane.reviewed(review) for lane in self.lanes]
        self.lanes = [*(lane for lane in lanes[:-1] if lane), lanes[-1]]

    def all(self) -> list[WorkItem]:
        return [*self.returned, *self.new]

    def __len__(self) -> int:
        return len(self.front) + sum(map(len, self.lanes))

    @property
    def polls(self) -> int:
        return sum(item.deferral.in_vain for item in self.front) + sum(lane.polls for lane in self.lanes)

    @property
    def counts(self) -> list[BacklogCount]:
        """The backlog, in reading order."""
        return [BacklogCount.of(self.front), *(lane.count for lane in self.lanes)]

    def millis(self, forecast: CostEstimate) -> float:
        """How long one slot would be busy with all of it."""
        return sum(map(forecast.millis, self.front)) + sum(lane.millis(forecast) for lane in self.lanes)


@dataclass
class WorkQueue:
    """The pending blocks of each input, in reading order."""

    lines: dict[Address, InputQueue] = field(default_factory=dict)
    deferred: list[WorkItem] = field(default_factory=list)
    """Items with nothing to do before they are due."""
    seen_ends: dict[str, int] = field(default_factory=dict)
    """Where sources without an end end now, by name, as far as input operators report it."""

    @classmethod
    def of(cls, blocks: Iterable[WorkItem]) -> "WorkQueue":
        queue = cls()
        queue.add(blocks)
        return queue

    def add(self, blocks: Iterable[WorkItem]) -> None:
        """Append blocks that were found."""
        for item in blocks:
            if item.deferral.due is None:
                self._line(item.into).new.append(item)
            else:
                self.deferred.append(item)

    def put_back(self, blocks: Iterable[WorkItem], cuts: Container[ItemEnd] = ()) -> None:
        """Put the rest of a window at the front, since it is the oldest; append blocks without an end to their input.

        Pieces that were cut for the window and still touch become one block again.
        """
        returned = list(blocks)
        self.deferred += [item for item in returned if item.deferral.due is not None]
        returned = [item for item in returned if item.deferral.due is None]
        for into in {item.into for item in returned}:
            mine = sorted((item for item in returned if item.into == into), key=attrgetter("order"))
            line, ending = self._line(into), [item for item in mine if item.has_end]
            if ending and line.has_returned:  # it may be the rest of the block that was cut last
                ending.append(line.pop())
            line.put_back(joined(ending, cuts))
            for item in mine:
                if not item.has_end:
                    self._line(into).new.append(item)

    def all(self) -> list[WorkItem]:
        return [item for line in self.lines.values() for item in line.all()] + self.deferred

    def waiting(self, later: Iterable[WorkItem] = ()) -> Waiting:
        """All pending blocks, and those that are left to `later` launches."""
        parts: dict[str, Stretch] = {"front": tuple(item for line in self.lines.values() for item in line.front)}
        parts |= {lane.name: lane.view() for line in self.lines.values() for lane in line.lanes}
        return Waiting({**parts, "later": (*self.deferred, *later)})

    def ends(self) -> dict[str, int]:
        """The place behind the last block of each lane, by its name."""
        return {lane.name: lane.stop for line in self.lines.values() for lane in line.lanes}

    def review(self, review: Review) -> None:
        """Replace blocks by those that `review` makes of them: it sees each block that came since the last time."""
        for line in self.lines.values():
            line.review(review)
        self.deferred = review(self.deferred)

    def wake(self, now: datetime, asks_again: Callable[[WorkItem], bool]) -> None:
        """Put deferred items that are due back into their queues, if this launch asks them again."""
        awake, asleep = list[WorkItem](), list[WorkItem]()
        for item in self.deferred:
            due = item.deferral.due
            (awake if due is not None and due <= now and asks_again(item) else asleep).append(item)
        self.deferred = asleep
        self.put_back(replace(item, deferral=item.deferral._replace(due=None)) for item in awake)

    def replace(self, blocks: Iterable[WorkItem]) -> None:
        """Make these blocks the whole content of the queue."""
        self.lines.clear()
        self.deferred.clear()
        self.add(blocks)

    def removed(self, part_of: Callable[[WorkItem], WorkItem | None]) -> list[WorkItem]:
        """Remove the part of each pending item that `part_of` returns, and return these parts."""
        found: list[WorkItem] = []
        for line in self.lines.values():
            line.replace(_without(line.returned, part_of, found), _without(line.new, part_of, found))
        self.deferred = _without(self.deferred, part_of, found)
        return found

    def pending(self, others: Iterable[Mapping[Address, BacklogCount]] = ()) -> dict[Address, InputBacklog]:
        """The pending work by input, here and in `others`.

        Of deferred work, what waits since its source did not answer, or has more to read by now.
        """
        counts = {into: line.counts for into, line in self.lines.items()}
        for item in self.deferred:
            if item.deferral.unanswered or item.start < self._end_of(item):
                counts.setdefault(item.into, []).append(BacklogCount.of([item]))
        for into, count in chain.from_iterable(by_input.items() for by_input in others):
            counts.setdefault(into, []).append(count)
        return {into: InputBacklog.of(found, self.seen_ends) for into, found in counts.items()}

    def see(self, ends: Mapping[str, int], others: Iterable[WorkItem] = ()) -> Mapping[Address, int]:
        """Note where sources without an end end now; return how many more positions wait, here and in `others`."""
        if ends.items() <= self.seen_ends.items():
            return {}
        counts = [count for line in self.lines.values() for count in line.counts]
        queued = chain.from_iterable(count.endless.values() for count in counts)
        items = [item for item in (*queued, *self.deferred, *others) if not item.has_end and not item.is_shares]
        before = [item.waiting_up_to(self._end_of(item)) for item in items]
        self.seen_ends.update(ends)
        grown = Counter[Address]()
        for item, waited in zip(items, before, strict=True):
            grown[item.into] += max(0, item.waiting_up_to(self._end_of(item)) - waited)
        return +grown

    def _end_of(self, item: WorkItem) -> int:
        """Where the source of an item without an end ends, as far as an input operator reports it."""
        return self.seen_ends.get(item.source or "", 0)

    def counts(self, into: Address) -> list[BacklogCount]:
        """The backlog of one input without its deferred items."""
        return self._line(into).counts

    def backlogs(
        self, near: Mapping[Address, CutNear], now: datetime, others: Iterable[Mapping[Address, BacklogCount]] = ()
    ) -> dict[Address, Backlog]:
        """The backlog of each input with due work, here and in `others`, which come after the queue.

        The cost depends on the returned and the deferred blocks, not on the number of waiting blocks.
        """
        counts: dict[Address, list[BacklogCount]] = {
            into: line.counts for into, line in self.lines.items() if len(line)
        }
        for by_input in (BacklogCount.by_input(self.deferred, now), *others):
            for into, count in by_input.items():
                counts.setdefault(into, []).append(count)
        return {into: backlog_of(found, near.get(into, nowhere)) for into, found in counts.items()}

    def __len__(self) -> int:
        return sum(map(len, self.lines.values()))

    @property
    def polls(self) -> int:
        """How many of them had nothing to do last time."""
        return sum(line.polls for line in self.lines.values())

    def millis(self, into: Address, forecast: CostEstimate) -> float:
        """How long one slot would be busy with all pending work of an input."""
        return self._line(into).millis(forecast)

    def take(
        self,
        slots: Mapping[Address, int],
        work_millis: Mapping[str, float],
        cutter: SplitPlanner,
        *,
        besides: float = 0.0,
    ) -> Allocation:
        """Allocate `work_millis` of work to each slot, and at least one block to each slot while there are blocks.

        If whole blocks cannot be allocated evenly, the cutter may cut some. Each slot gets further work behind that,
        `besides` times its share, in case its work takes less time than expected.
        """
        allocation: dict[Address, SlotWork] = {}
        for into, count in slots.items():
            todo = work_millis[into] * count
            allocation[into] = allocated(self._first(into, count, todo, cutter), count, cutter)
            more = self._first(into, 0, todo * besides, cutter)
            for slot_items, further in zip(allocation[into], allocated(more, count, cutter), strict=True):
                slot_items.extend(further)
        return allocation

    def divide(self, divided: Iterable[tuple[WorkItem, WorkItem]]) -> None:
        """Replace each item that an operator divided for a promised window by its two pieces."""
        for pieces in divided:
            self.deferred = _in_pieces(self.deferred, pieces)
            line = self._line(pieces[0].into)
            line.replace(_in_pieces(line.returned, pieces), _in_pieces(line.new, pieces))

    def take_these(
        self, promised: Mapping[Address, Sequence[Sequence[PromisedItem]]], slots: Mapping[Address, int]
    ) -> Allocation:
        """Take exactly the stretches that a window was promised, for the present slots."""
        taken: dict[Address, SlotWork] = {}
        deferred, self.deferred = self.deferred, []
        for item in deferred:  # a promised stretch may have been deferred since
            self._line(item.into).new.append(item)
        for into, slot_work in promised.items():
            stretches = [
                (slot, n, start, end) for slot, slot_items in enumerate(slot_work) for n, start, end in slot_items
            ]
            taken[into] = [[] for _ in range(slots[into])]
            for slot, item in self._stretches(into, stretches):
                # The launch that made the promise may have had more slots.
                taken[into][slot % slots[into]].append(item.seeing(self._end_of(item)))
        if deferred:
            self.replace(self.all())  # defers those again that were not promised
        return taken

    def _stretches(self, into: Address, wanted: Sequence[tuple[int, Number, int, int]]) -> list[tuple[int, WorkItem]]:
        """Take the wanted stretches out of the queue; the work before and after each stays in its place."""
        line, numbers = self._line(into), {number for _, number, _, _ in wanted}
        parts: dict[Number, list[list[WorkItem]]] = {}
        """The pending parts of each wanted element; they shrink as stretches are taken out one by one."""
        kept: list[tuple[bool, list[WorkItem]]] = []
        for is_new, work in ((False, line.returned), (True, line.new)):
            for item in work:
                kept.append((is_new, [item]))
                if item.number in numbers:
                    parts.setdefault(item.number, []).append(kept[-1][1])
        asked: list[tuple[int, WorkItem]] = []
        for slot, number, start, end in wanted:
            taken = _taken_out(parts.get(number, ()), start, end)
            assert taken is not None, f"{number} [{start}, {end}) was promised and does not wait for {into}"
            asked.append((slot, taken))
        line.replace(
            [item for is_new, rest in kept if not is_new for item in rest],
            [item for is_new, rest in kept if is_new for item in rest],
        )
        return asked

    def _first(self, into: Address, slots: int, millis: float, cutter: SplitPlanner) -> list[WorkItem]:
        """Take the first blocks that together last about this long, and at least one for each slot.

        The last block of a queue may be taken in part, so that the next window has work, too.
        """
        line, taken = self._line(into), list[WorkItem]()
        while len(line) and (len(taken) < slots or millis > 0):
            item = line.pop()
            takes = cutter.millis(item)
            if not len(line) and takes > WORTH_LEAVING * millis > 0:
                pieces = cutter.at(item, cutter.forecast.reached(item, millis), LATER)
                if pieces is not None:
                    line.put_back(pieces[1:])
                    return [*taken, pieces[0]]
            taken.append(item.seeing(self._end_of(item)))
            millis -= takes
        return taken

    def _line(self, into: Address) -> InputQueue:
        return self.lines.setdefault(into, InputQueue(into))


def _without(
    work: Iterable[WorkItem], part_of: Callable[[WorkItem], WorkItem | None], removed: list[WorkItem]
) -> list[WorkItem]:
    """Work without the part of each item that `part_of` returns; `removed` gets these parts."""
    left: list[WorkItem] = []
    for item in work:
        part = part_of(item)
        if part is None:
            left.append(item)
            continue
        removed.append(part)
        rest = item.part(item.start, part.start), item.part(part.end, item.end)
        left += [piece for piece in rest if piece.start < piece.end]
    return left


def _in_pieces(work: Iterable[WorkItem], pieces: tuple[WorkItem, WorkItem]) -> list[WorkItem]:
    """Return the work with these pieces in the place of the item that they were."""
    first, rest = pieces
    return [
        part
        for item in work
        for part in (pieces if (item.start, item.end_key) == (first.start, rest.end_key) else (item,))
    ]


def _taken_out(found: Sequence[list[WorkItem]], start: int, end: int) -> WorkItem | None:
    """Take one stretch out of one or several parts; the work before and after it stays in its place."""
    pieces = [(item, parts) for parts in found for item in parts]
    whole = [(item, parts) for item, parts in pieces if item.start <= start and end <= item.end][:1]
    over = whole or sorted(
        ((item, parts) for item, parts in pieces if item.start < end and start < item.end),
        key=lambda pair: pair[0].order,
    )
    reached = start
    for item, _ in over:
        if item.start > reached:
            return None
        reached = item.end
    if not over or reached < end:
        return None
    first, last = over[0][0], over[-1][0]
    is_whole = len(over) == 1 and (first.start, last.end) == (start, end)
    assert is_whole or first.restriction is None, f"only its operator divides {first.name}"
    before, after = first.part(first.start, start), last.part(end, last.end)
    for item, parts in over:
        at = next(index for index, part in enumerate(parts) if part is item)
        rest = [*([before] if item is first else []), *([after] if item is last else [])]
        parts[at : at + 1] = [part for part in rest if part.start < part.end]
    one = first if len(over) == 1 else replace(first, end=last.end, size=None)
    return one.part(start, end)
