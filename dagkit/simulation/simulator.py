"""The simulator: the engine's scheduler and a policy on a clock that only counts.

The scheduler allocates the work of a window, and a window ends with its slowest slot. A slot waits while no core is
free. The engine's own code (`engine/reports/capacity.py`) computes the capacity that listeners receive.
"""

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, exp, inf
from random import Random

from dagkit.api.stats import Backlog, Capacity
from dagkit.api.work import Block
from dagkit.engine.address import Address
from dagkit.engine.facts import Split
from dagkit.engine.history.backlogs import Arrival
from dagkit.engine.reports.capacity import ReadingSpeed, WindowCosts, capacity_of
from dagkit.engine.run.handovers import settle_handovers
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.schedule import Scheduler, WindowSchedule
from dagkit.engine.work.split import BacklogCount, SlotResult, all_in, anywhere, backlog_of, nowhere, split_at_the_end
from dagkit.engine.work.window_size import WindowSizer
from dagkit.engine.worker.protocol import Answer, Cores
from dagkit.scaling import Follower, ScalingSettings
from dagkit.simulation.together import SimulatedSlot, worked_together
from dagkit.simulation.world import ARRIVED, Change, Course, World

INTO = Address("reader.blocks")
MOST_ITEMS = 500
"""The most items of one arrival. More blocks are grouped into items, if they can be cut anywhere: the allocation is the
same."""

Chooser = Callable[[int, float, Backlog, Capacity], tuple[int, str]]
"""Returns a number of partitions and the rule, from the current number, the time, the backlog and the capacity."""


def fixed(count: int) -> Chooser:
    """Always this number."""
    return lambda *_: (count, "")


def following(settings: ScalingSettings) -> Chooser:
    """The number that a policy decides."""
    follower = Follower()

    def choose(before: int, at: float, backlog: Backlog, capacity: Capacity) -> tuple[int, str]:
        looked = follower.look(settings, before, round(at), backlog, capacity)
        return (before, "") if looked is None else (looked[1].after, looked[1].rule)

    return choose


def simulated(
    world: World,
    choose: Chooser,
    *,
    begins_with: int = 1,
    given_up_after: float = inf,
    most_windows: float = inf,
    keeps_splits: bool = False,
) -> Course:
    """Simulate a run. More than `most_windows` windows are an error.

    Stop once the work that waits at the start cannot be done before `given_up_after`. The course has its splits only
    with `keeps_splits`: hundreds of thousands of them slow down the garbage collector.
    """
    simulation = _Simulation(world, choose, begins_with, keeps_splits=keeps_splits)
    return simulation.run(given_up_after, most_windows)


@dataclass
class _InFlight:
    """A running window."""

    given: WindowSchedule
    backlog: BacklogCount
    """The backlog of its work."""
    worked: list[SlotResult]
    window_id: int
    began: float
    ends: float
    alone: bool


class _Simulation:
    def __init__(self, world: World, choose: Chooser, begins_with: int, *, keeps_splits: bool) -> None:
        self.world = world
        self.choose = choose
        self.cost_of = cache(world.cost_of)
        self.scheduler = Scheduler(WorkQueue.of(_items(world.blocks)), WindowSizer(world.shortest_millis))
        self.near = {INTO: anywhere if world.cuts else nowhere}
        self.arrivals = deque(world.arrivals)
        self.came = _Came()
        self.free = _cores_free_at(world)
        self.random = Random(world.seed)  # noqa: S311 - it is noise
        self.costs, self.speed = WindowCosts(), ReadingSpeed()
        self.in_flight: deque[_InFlight] = deque()
        self.now = 0.0
        self.counted_up_to = 0.0
        """The time up to which the time of slots is counted."""
        self.count = self.wanted = begins_with
        self.began_with = begins_with
        self.rule = ""
        self.has_news = True
        """Whether work was found or committed since the policy was asked."""
        self.windows = 0
        self.slot_millis = 0.0
        self.done_millis = 0.0
        """The time of all work that was begun, windows in flight included, at the speed without noise."""
        self.changes: list[Change] = []
        self.drained: list[float] = []
        self.keeps_splits = keeps_splits
        self.splits: list[tuple[int, Split]] = []

    def run(self, given_up_after: float, most_windows: float) -> Course:
        first_work = self.world.first_work_millis if given_up_after < inf else 0.0
        while self.now < self.world.ends_millis and self._step():
            assert self.windows <= most_windows, f"after {self.windows} windows there was still work"
            left = max(0.0, first_work - self.done_millis)
            if given_up_after < inf and self.world.soonest_from(self.now, left) >= given_up_after:
                break
        return Course(
            tuple(self.changes),
            tuple(self.drained),
            self.windows,
            self.slot_millis,
            self.now,
            self.began_with,
            tuple(self.splits),
        )

    def _step(self) -> bool:
        """Do what the engine's loop would do next; False if nothing will ever be left to do."""
        self._arrive()
        waits = bool(len(self.scheduler.queue))
        if waits and self.has_news:
            self._look()
        if self.wanted != self.count:  # a change waits until nothing is in flight
            self._complete() if self.in_flight else self._change()
        elif waits and len(self.in_flight) < self.world.overlap:
            self._start()
        elif self.in_flight:
            self._await()
        else:
            return self._sleep()
        return True

    def _arrive(self) -> None:
        while self.arrivals and self.arrivals[0].at_millis <= self.now:
            self.scheduler.queue.add(_items(self.came.blocks(self.arrivals.popleft(), grouped=self.world.cuts)))
            self.has_news = True

    def _look(self) -> None:
        """Ask the policy when listeners would be asked: before a window, and at intervals while idle."""
        self.has_news = False
        counts = [*self.scheduler.queue.counts(INTO), *(window.backlog for window in self.in_flight)]
        backlog = self.came.counted(backlog_of(counts, self.near[INTO]))
        cores = self.world.cores_at(self.now)
        available = Cores(cores, max(cores, self.world.most_cores or cores))
        capacity = capacity_of(available, self.speed, self.costs)
        self.wanted, self.rule = self.choose(self.count, self.now, backlog, capacity)

    def _change(self) -> None:
        self.changes.append(Change(self.now, self.count, self.wanted, self.rule))
        self.count = self.wanted
        self.now += self.world.change_millis

    def _start(self) -> None:
        world, self.windows = self.world, self.windows + 1
        given = self.scheduler.next(self.windows, {INTO: self.count}, self.near, overlaps=world.overlap > 1)
        if self.keeps_splits:
            self.splits += [(self.windows, split) for split in given.cuts]
        if world.hands_over and self.count <= world.cores_at(self.now):
            given, worked, ends = self._work_together(given)
        else:
            worked, ends = self._work_alone(given)
        ends += world.window_millis / 2
        backlog = BacklogCount.of(all_in(given.allocation))
        self.in_flight.append(_InFlight(given, backlog, worked, self.windows, self.now, ends, not self.in_flight))

    def _work_alone(self, given: WindowSchedule) -> tuple[list[SlotResult], float]:
        """The results of slots that hand nothing over, and when the last of them ends."""
        worked, ends = [], self.now
        for slot, items in enumerate(given.allocation[INTO]):
            begins = self._begins()
            result = self._work(slot, items, given.lasts_millis)
            is_free = begins + result.busy_millis + self.world.slot_millis
            heapq.heappush(self.free, is_free)
            ends = max(ends, is_free)
            worked.append(result)
        return worked, ends

    def _work_together(self, given: WindowSchedule) -> tuple[WindowSchedule, list[SlotResult], float]:
        """The schedule after the handovers, the results of the slots, and when all of them end."""
        slots = []
        for slot, items in enumerate(given.allocation[INTO]):
            begins, slower = self._begins(), self._slower()
            ends = begins + given.lasts_millis
            slots.append(SimulatedSlot(slot, begins, ends, deque(items), self.cost_of, slower, self.world.claim))
        reports = worked_together(slots)
        self.done_millis += sum(one.busy_millis / one.slower for one in slots)
        is_free = max(one.now for one in slots) + self.world.slot_millis
        for _ in slots:
            heapq.heappush(self.free, is_free)
        after = settle_handovers(self.windows, given.allocation, Answer(tuple(reports)))
        given = replace(given, allocation=after.allocation, handed=after.splits)
        return given, after.answer.results, is_free

    def _begins(self) -> float:
        """When the next slot begins: once a core is free."""
        return max(heapq.heappop(self.free), self.now + self.world.window_millis / 2)

    def _slower(self) -> float:
        return exp(self.world.noise * self.random.gauss()) if self.world.noise else 1.0

    def _await(self) -> None:
        """Wait until the oldest window ends, or until work arrives for which another window may begin."""
        arrives = self.arrivals[0].at_millis if self.arrivals else inf
        if len(self.in_flight) < self.world.overlap and arrives < self.in_flight[0].ends:
            self.now = max(self.now, arrives)
        else:
            self._complete()

    def _complete(self) -> None:
        """End the oldest window: queue the work that it left, and record its figures."""
        at_once = len(self.in_flight) * self.count
        window = self.in_flight.popleft()
        self.now = max(self.now, window.ends)
        since = max(window.began, self.counted_up_to)
        self.slot_millis += (self.now - since) * min(at_once, self.world.cores_at(self.now))
        self.counted_up_to = self.now
        if self.keeps_splits:
            splits = [*window.given.handed, *split_at_the_end(window.given.allocation, window.worked)]
            self.splits += [(window.window_id, split) for split in splits]
        took, busy = self.now - window.began, [result.busy_millis for result in window.worked]
        self.costs.committed(took, max(busy, default=0.0))
        self.speed.read(sum(result.work for result in window.worked), sum(busy))
        self.scheduler.over(window.given, window.worked, took if window.alone else None)
        self.has_news = True
        if not self.in_flight and not len(self.scheduler.queue):
            self.drained.append(self.now)

    def _sleep(self) -> bool:
        """Wait until listeners are asked or work arrives. Return False if no work will ever arrive."""
        if not self.arrivals and self.world.ends_millis == inf:
            return False
        self._look()
        if self.wanted == self.count:
            arrives = self.arrivals[0].at_millis if self.arrivals else inf
            self.now = min(self.now + self.world.look_millis, arrives)
        return True

    def _work(self, slot: int, items: Sequence[WorkItem], lasts: float) -> SlotResult:
        """The result of one slot: it reads its work in order, and splits the item that it reads at the deadline."""
        world = self.world
        slower = self._slower()
        busy, positions, left = 0.0, 0, list[WorkItem]()
        for number, item in enumerate(items):
            if number and busy >= lasts:
                left.append(item)
                continue
            cost, end = self.cost_of(str(item.source)), item.end
            takes = cost.between(item.start, end) * slower
            if world.splits and busy + takes > lasts:
                at = cost.reached(item.start, max(0.0, lasts - busy) / slower)
                claims = (at - item.start) // world.claim + 1
                end = min(item.end, item.start + claims * world.claim)
                takes = cost.between(item.start, end) * slower
            busy += takes
            positions += end - item.start
            if end < item.end:
                left.append(item.part(end, item.end).measured(end - item.start, takes, 0))
        self.done_millis += busy / slower
        return SlotResult(0, slot, positions, busy, left)


@dataclass
class _Came:
    """The arrivals so far: blocks of one source, which may be grouped into items."""

    number: int = 0
    end: int = 0
    block_length: float | None = None
    """The length of the newest blocks, if they are grouped."""

    def blocks(self, arrival: Arrival, *, grouped: bool) -> list[Block]:
        """The blocks of one arrival; if they are grouped, fewer blocks over the same range."""
        together = ceil(arrival.blocks / MOST_ITEMS) if grouped else 1
        if together > 1:
            self.block_length = arrival.positions_each
        begins, found = self.end, list[Block]()
        for first in range(0, arrival.blocks, together):
            end = begins + round(min(first + together, arrival.blocks) * arrival.positions_each)
            found.append(Block(self.number, ARRIVED, self.end, end))
            self.number, self.end = self.number + 1, end
        return found

    def counted(self, backlog: Backlog) -> Backlog:
        """The backlog with the number of blocks before grouping."""
        if self.block_length is None:
            return backlog
        return replace(backlog, blocks=max(backlog.blocks, ceil(backlog.positions / self.block_length)))


def _items(blocks: Sequence[Block]) -> list[WorkItem]:
    return [
        WorkItem(
            into=INTO,
            number=(block.number,),
            element=None,
            start=block.start,
            end=block.end,
            source=block.source,
            element_id=block.number,
        )
        for block in blocks
    ]


def _cores_free_at(world: World) -> list[float]:
    """The time from which each core is free; a core that is added later is free from then on."""
    free: list[float] = []
    for since, cores in world.cores:
        free += [since] * (cores - len(free))
    return free
