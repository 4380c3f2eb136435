"""Windows simulated: how long work would take, dealt and split by the engine's own rules, on as many slots as you like.

Nothing sleeps and nothing is read: a cost says how long positions take, and windows end when their slots would. What
is decided is decided by the very code that runs (`dagkit.engine.work.schedule`).
"""

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from random import Random

from dagkit.api.work import Block
from dagkit.engine.address import Address
from dagkit.engine.facts import Split
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.schedule import Scheduler, WindowSchedule
from dagkit.engine.work.split import SlotResult, anywhere, nowhere, split_at_the_end
from dagkit.engine.work.window_size import WindowSizer

_INTO = Address("reader.blocks")


@dataclass(frozen=True)
class Cost:
    """What each position of a source costs: from each start on, so many milliseconds."""

    millis: Mapping[int, float]
    """By the position from which on it holds; from 0 on something must."""
    _starts: Sequence[int] = field(init=False)
    _before: Sequence[float] = field(init=False)

    def __post_init__(self) -> None:
        starts = sorted(self.millis)
        assert starts[:1] == [0], "a cost is known from 0 on"
        spans = [self.millis[a] * (b - a) for a, b in pairwise(starts)]
        object.__setattr__(self, "_starts", starts)
        object.__setattr__(self, "_before", [0.0, *accumulate(spans)])

    def upto(self, position: int) -> float:
        """What all positions before this one cost."""
        at = bisect_right(self._starts, position) - 1
        return self._before[at] + self.millis[self._starts[at]] * (position - self._starts[at])

    def reached(self, start: int, millis: float) -> int:
        """The position that is come to in so much time."""
        goal = self.upto(start) + millis
        at = bisect_right(self._before, goal) - 1
        rate = self.millis[self._starts[at]]
        return self._starts[at] + int((goal - self._before[at]) / rate) if rate else self._starts[at]


@dataclass(frozen=True)
class Simulated:
    """How it went."""

    millis: float
    ideal_millis: float
    """All work divided by the slots; or the longest piece of work that cannot be divided."""
    windows: int
    splits: Sequence[tuple[int, Split]]
    """By the window that they were made in, or for."""

    @property
    def ratio(self) -> float:
        """How much longer it took than it had to."""
        return self.millis / self.ideal_millis


@dataclass
class Simulation:
    """A machine: its slots, what its windows cost, and how its work is read."""

    slots: int
    overhead_millis: float = 100.0
    """What a window costs besides its work."""
    overlap: int = 2
    """Windows in flight: 2 where no state goes from one to the next, else 1."""
    claim: int = 1
    """Positions that are claimed at once: work is split between claims."""
    noise: float = 0.0
    """By how much of itself each slot is slower or faster in each window, at most."""
    splits: bool = True
    """Whether work can be split while it is worked on."""
    cuts: bool = True
    """Whether it can be cut before."""
    shortest_millis: float = 500.0
    seed: int = 0

    def run(self, blocks: Iterable[Block], cost: Mapping[str, Cost] | Cost, most_windows: int = 100_000) -> Simulated:
        """Work through the blocks; the cost is that of every source, or by source."""
        return _Run(self, list(blocks), (lambda _: cost) if isinstance(cost, Cost) else cost.__getitem__).run(
            most_windows
        )


@dataclass
class _Flight:
    given: WindowSchedule
    worked: list[SlotResult]
    began: float | None
    ends: float
    window_id: int


class _Run:
    def __init__(self, machine: Simulation, blocks: Sequence[Block], cost: Callable[[str], Cost]) -> None:
        self.machine = machine
        self.cost = cost
        waiting = [_item(block) for block in blocks]
        self.scheduler = Scheduler(WorkQueue.of(waiting), WindowSizer(machine.shortest_millis))
        self.near = {_INTO: anywhere if machine.cuts else nowhere}
        self.free = [0.0] * machine.slots
        """When each core has nothing more to do."""
        self.random = Random(machine.seed)  # noqa: S311 - it is noise
        whole = [self._between(block.path, block.start, block.end) for block in blocks]
        self.ideal = max(sum(whole) / machine.slots, 0.0 if machine.splits or machine.cuts else max(whole, default=0.0))
        self.splits: list[tuple[int, Split]] = []

    def run(self, most_windows: int) -> Simulated:
        now, window_id = 0.0, 0
        in_flight: deque[_Flight] = deque()
        while in_flight or len(self.scheduler.queue):
            if in_flight and (
                in_flight[0].ends <= now or len(in_flight) >= self.machine.overlap or not len(self.scheduler.queue)
            ):
                now = self._land(in_flight.popleft(), now)
                continue
            window_id += 1
            assert window_id <= most_windows, f"after {most_windows} windows there was still work"
            in_flight.append(self._start(window_id, now, alone=not in_flight))
        return Simulated(now, self.ideal, window_id, self.splits)

    def _start(self, window_id: int, now: float, *, alone: bool) -> _Flight:
        machine = self.machine
        given = self.scheduler.next(window_id, {_INTO: machine.slots}, self.near, overlaps=machine.overlap > 1)
        self.splits += [(window_id, split) for split in given.cuts]
        worked, ends = [], now
        for slot, hand in enumerate(given.allocation[_INTO]):
            begins = max(heapq.heappop(self.free), now + machine.overhead_millis / 2)
            one = self._work(slot, hand, given.lasts_millis)
            heapq.heappush(self.free, begins + one.busy_millis)
            ends = max(ends, begins + one.busy_millis)
            worked.append(one)
        return _Flight(given, worked, now if alone else None, ends + machine.overhead_millis / 2, window_id)

    def _land(self, flight: _Flight, now: float) -> float:
        now = max(now, flight.ends)
        took = None if flight.began is None else flight.ends - flight.began
        self.splits += [(flight.window_id, split) for split in split_at_the_end(flight.given.allocation, flight.worked)]
        self.scheduler.over(flight.given, flight.worked, took)
        return now

    def _work(self, slot: int, hand: Sequence[WorkItem], lasts: float) -> SlotResult:
        """One slot reads what it was dealt, as a slot does: what it has begun is split at the deadline."""
        machine = self.machine
        slower = 1.0 + machine.noise * (2 * self.random.random() - 1)
        busy, positions, left = 0.0, 0, list[WorkItem]()
        for number, each in enumerate(hand):
            if number and busy >= lasts:
                left.append(each)
                continue
            path, end = str(each.source), each.end
            takes = self._between(path, each.start, end) * slower
            if machine.splits and busy + takes > lasts:
                at = self.cost(path).reached(each.start, max(0.0, lasts - busy) / slower)
                claims = (at - each.start) // machine.claim + 1
                end = min(each.end, each.start + claims * machine.claim)
                takes = self._between(path, each.start, end) * slower
            busy += takes
            positions += end - each.start
            if end < each.end:
                done = {"done_positions": end - each.start, "done_millis": takes, "done_apart": 0}
                left.append(each.part(end, each.end).model_copy(update=done))
        return SlotResult(0, slot, positions, busy, left)

    def _between(self, path: str, start: int, end: int) -> float:
        cost = self.cost(path)
        return cost.upto(end) - cost.upto(start)


def _item(block: Block) -> WorkItem:
    return WorkItem(
        into=_INTO,
        number=(block.number,),
        element=None,
        start=block.start,
        end=block.end,
        source=block.source,
        element_id=block.number,
    )
