"""The block queue: what was found and not yet read, and who gets what of it in the next window. Pure."""

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

from dagkit.engine.address import Address
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import Number, WorkItem
from dagkit.engine.work.promise import PromisedItem
from dagkit.engine.work.split import LATER, Allocation, ItemEnd, SlotWork, SplitPlanner, allocated, joined

WORTH_LEAVING = 1.25
"""How much more than it should be given a window is given, rather than that a block is cut."""


@dataclass
class InputQueue:
    """The blocks that wait for one input. Whatever is asked of it costs as much as what windows gave back, not more."""

    returned: deque[WorkItem] = field(default_factory=deque)
    """What windows left, at the front."""
    new: deque[WorkItem] = field(default_factory=deque)
    """What was found, and what has no end."""
    new_positions: int = 0
    new_work: float = 0.0

    def append(self, each: WorkItem) -> None:
        self.new.append(each)
        self.new_positions += each.length
        self.new_work += each.amount

    def pop(self) -> WorkItem:
        if self.returned:
            return self.returned.popleft()
        each = self.new.popleft()
        self.new_positions -= each.length
        self.new_work = self.new_work - each.amount if self.new else 0.0  # what rounding left, goes
        return each

    def put_back(self, blocks: Iterable[WorkItem]) -> None:
        self.returned.extendleft(reversed(list(blocks)))

    def all(self) -> list[WorkItem]:
        return [*self.returned, *self.new]

    def __len__(self) -> int:
        return len(self.returned) + len(self.new)

    @property
    def positions(self) -> int:
        return sum(each.length for each in self.returned) + self.new_positions

    def millis(self, forecast: CostEstimate) -> float:
        """How long one slot would be busy with all of it; what was found and not begun is like all else."""
        unknown = 1.0 if forecast.usual is None else forecast.usual
        return sum(map(forecast.millis, self.returned)) + unknown * self.new_work


@dataclass
class WorkQueue:
    """Blocks in the order in which they are to be read, by the input that they wait for."""

    lines: dict[Address, InputQueue] = field(default_factory=dict)
    deferred: list[WorkItem] = field(default_factory=list)
    """What there is nothing to do of before it is due."""

    @classmethod
    def of(cls, blocks: Iterable[WorkItem]) -> "WorkQueue":
        queue = cls()
        queue.add(blocks)
        return queue

    def add(self, blocks: Iterable[WorkItem]) -> None:
        """Blocks that were found, at the end."""
        for each in blocks:
            if each.due is None:
                self._line(each.into).append(each)
            else:
                self.deferred.append(each)

    def put_back(self, blocks: Iterable[WorkItem], cuts: Container[ItemEnd] = ()) -> None:
        """What a window left, at the front: it waits longest. What has no end goes behind all others of its input.

        What had been cut apart for the window, and touches still, is one again.
        """
        returned = list(blocks)
        self.deferred += [each for each in returned if each.due is not None]
        returned = [each for each in returned if each.due is None]
        for into in {each.into for each in returned}:
            mine = sorted((each for each in returned if each.into == into), key=attrgetter("order"))
            line, ending = self._line(into), [each for each in mine if each.has_end]
            if ending and line.returned:  # it may have been left over when these were taken
                ending.append(line.pop())
            line.put_back(joined(ending, cuts))
            for each in mine:
                if not each.has_end:
                    self._line(into).append(each)

    def all(self) -> list[WorkItem]:
        return [each for line in self.lines.values() for each in line.all()] + self.deferred

    def wake(self, now: datetime, asks_again: Callable[[WorkItem], bool]) -> None:
        """What was deferred and is due waits no longer for that, if it is to be asked again."""
        awake = [each for each in self.deferred if each.due is not None and each.due <= now and asks_again(each)]
        self.deferred = [each for each in self.deferred if all(each is not other for other in awake)]
        self.put_back(each.model_copy(update={"due": None}) for each in awake)

    def replace(self, blocks: Iterable[WorkItem]) -> None:
        """These wait, and nothing else."""
        self.lines.clear()
        self.deferred.clear()
        self.add(blocks)

    def lengths(self) -> dict[Address, tuple[int, int]]:
        """How many blocks wait, and how long they are together, by the input that they wait for."""
        return {into: (len(line), line.positions) for into, line in self.lines.items()}

    def __len__(self) -> int:
        return sum(map(len, self.lines.values()))

    @property
    def positions(self) -> int:
        """How much there is to read; what has no end counts as one block's worth of nothing."""
        return sum(line.positions for line in self.lines.values())

    def millis(self, into: Address, forecast: CostEstimate) -> float:
        """How long one slot would be busy with all that waits for an input."""
        return self._line(into).millis(forecast)

    def take(
        self,
        slots: Mapping[Address, int],
        work_millis: Mapping[str, float],
        cutter: SplitPlanner,
        *,
        besides: float = 0.0,
    ) -> Allocation:
        """Deal out as much as each slot is to do, and at least one block to whoever can have one.

        Where whole blocks cannot be dealt evenly, and the cutter may, some are cut. What a slot is given `besides`, as
        a share of what it is to do, comes after that: for those whose work is less than was expected.
        """
        allocation: dict[Address, SlotWork] = {}
        for into, count in slots.items():
            todo = work_millis[into] * count
            allocation[into] = allocated(self._first(into, count, todo, cutter), count, cutter)
            more = self._first(into, 0, todo * besides, cutter)
            for hand, further in zip(allocation[into], allocated(more, count, cutter), strict=True):
                hand.extend(further)
        return allocation

    def take_these(
        self, promised: Mapping[Address, Sequence[Sequence[PromisedItem]]], slots: Mapping[Address, int]
    ) -> Allocation:
        """The very stretches, by number, start and end, that a window was promised; to the slots that there are now."""
        taken: dict[Address, SlotWork] = {}
        deferred, self.deferred = self.deferred, []
        for each in deferred:  # some of it may have been due
            self._line(each.into).append(each)
        for into, slot_work in promised.items():
            stretches = [(slot, n, start, end) for slot, hand in enumerate(slot_work) for n, start, end in hand]
            taken[into] = [[] for _ in range(slots[into])]
            for slot, each in self._stretches(into, stretches):
                taken[into][slot % slots[into]].append(each)
        if deferred:
            self.replace(self.all())
        return taken

    def _stretches(self, into: Address, wanted: Sequence[tuple[int, Number, int, int]]) -> list[tuple[int, WorkItem]]:
        """Stretches of what waits, as they were asked for; what stands before and after each waits still."""
        line, numbers = self._line(into), {number for _, number, _, _ in wanted}
        parts: dict[Number, list[list[WorkItem]]] = {}
        """What each element of a number was, and is, as the stretches are taken out of it one by one."""
        kept: list[tuple[bool, list[WorkItem]]] = []
        for is_new, work in ((False, line.returned), (True, line.new)):
            for each in work:
                kept.append((is_new, [each]))
                if each.number in numbers:
                    parts.setdefault(each.number, []).append(kept[-1][1])
        asked: list[tuple[int, WorkItem]] = []
        for slot, number, start, end in wanted:
            taken = _taken_out(parts.get(number, ()), start, end)
            assert taken is not None, f"{number} [{start}, {end}) was promised and does not wait for {into}"
            asked.append((slot, taken))
        line.returned, line.new, line.new_positions, line.new_work = deque(), deque(), 0, 0.0
        for is_new, work_now in kept:
            for each in work_now:
                line.append(each) if is_new else line.returned.append(each)
        return asked

    def _first(self, into: Address, slots: int, millis: float, cutter: SplitPlanner) -> list[WorkItem]:
        """The first blocks that take about so long together, and at least one for each slot.

        The last block of a line may be taken in part, so that others find something, too.
        """
        line, taken = self._line(into), list[WorkItem]()
        while len(line) and (len(taken) < slots or millis > 0):
            each = line.pop()
            takes = cutter.millis(each)
            if not len(line) and takes > WORTH_LEAVING * millis > 0:
                pieces = cutter.at(each, cutter.forecast.reached(each, millis), LATER)
                if pieces is not None:
                    line.put_back(pieces[1:])
                    return [*taken, pieces[0]]
            taken.append(each)
            millis -= takes
        return taken

    def _line(self, into: Address) -> InputQueue:
        return self.lines.setdefault(into, InputQueue())


def _taken_out(found: Sequence[list[WorkItem]], start: int, end: int) -> WorkItem | None:
    """A stretch of what waits, be it of one part or of several; what is before and after it stays in its place."""
    pieces = [(each, parts) for parts in found for each in parts]
    whole = [(each, parts) for each, parts in pieces if each.start <= start and end <= each.end][:1]
    over = whole or sorted(
        ((each, parts) for each, parts in pieces if each.start < end and start < each.end),
        key=lambda pair: pair[0].order,
    )
    reached = start
    for each, _ in over:
        if each.start > reached:
            return None
        reached = each.end
    if not over or reached < end:
        return None
    first, last = over[0][0], over[-1][0]
    before, after = first.part(first.start, start), last.part(end, last.end)
    for each, parts in over:
        at = next(index for index, part in enumerate(parts) if part is each)
        rest = [*([before] if each is first else []), *([after] if each is last else [])]
        parts[at : at + 1] = [part for part in rest if part.start < part.end]
    one = first if len(over) == 1 else first.model_copy(update={"end": last.end, "size": None})
    return one.part(start, end)
