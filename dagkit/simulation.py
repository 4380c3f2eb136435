"""Simulates windows and partitions on an imagined machine, with the engine's own scheduler and policies.

The scheduler allocates the work of a window, and a window ends with its slowest slot; a slot waits while no core is
free. The policies decide the number of partitions, and both receive what the engine would have measured. Only the
machine and the clock are imagined: nothing sleeps and nothing is read.
"""

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from statistics import median

from dagkit.api.stats import Backlog, Capacity
from dagkit.api.work import Block
from dagkit.engine.program.address import Address
from dagkit.engine.record.backlogs import Arrival, Recorded
from dagkit.engine.record.statistics import ReadingSpeed, WindowCosts, capacity_of
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.schedule import Scheduler, WindowSchedule, WindowSizer
from dagkit.engine.work.split import BacklogCount, CutNear, SlotResult, all_in, anywhere, backlog_of
from dagkit.engine.worker.protocol import Cores
from dagkit.scaling import Follower, ScalingSettings

INTO = Address("reader.blocks")
ARRIVED = "arrived"
"""The source of all arrivals."""
MOST_ITEMS = 500
"""The most items of one arrival. More blocks are grouped into items: they can be cut anywhere, so the allocation is the
same."""

Chooser = Callable[[int, float, Backlog, Capacity], tuple[int, str]]
"""Returns a number of partitions and the rule, from the current number, the time, the backlog and the capacity."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything that neither the scheduler nor a policy decides."""

    arrivals: Sequence[Arrival] = ()
    """In the order of time; their blocks are adjacent in one source."""
    cores: Sequence[tuple[float, int]] = ((0.0, 1),)
    """The number of cores from a time on. It only grows."""
    most_cores: int | None = None
    """The most cores that the cluster can have; None: the cores that it has."""
    per_milli: float = 100_000.0
    """Positions that a slot reads in a millisecond."""
    overlap: int = 2
    """Windows in flight: 2 for stateless operators, else 1."""
    window_millis: float = 40.0
    """The fixed cost of a window."""
    slot_millis: float = 10.0
    """The fixed cost of a slot."""
    change_millis: float = 100.0
    """The cost of a change of the number of partitions."""
    shortest_millis: float = 500.0
    """STREAMING_WINDOW_SIZE_MILLIS."""
    look_millis: float = 1000.0
    """The interval at which listeners are asked while idle."""
    ends_millis: float = inf
    """The end of the simulation; by default it ends when all work is done."""

    def cores_at(self, millis: float) -> int:
        return self.cores[max(0, bisect_right(self.cores, (millis, inf)) - 1)][1]


def world_of(recorded: Recorded) -> World:
    """The world of a recorded run: everything that no policy decided, as far as it was measured."""
    capacities = [inputs.capacity for inputs in recorded.inputs]
    rates = [capacity.positions_per_second for capacity in capacities if capacity.positions_per_second]
    cores: list[tuple[float, int]] = [(0.0, capacities[0].cores)]
    for inputs in recorded.inputs:
        if inputs.capacity.cores > cores[-1][1]:
            cores.append((inputs.at_millis - recorded.began.timestamp() * 1000, inputs.capacity.cores))
    return World(
        recorded.arrivals,
        cores=cores,
        most_cores=max(capacity.most_cores for capacity in capacities),
        per_milli=(median(rates) if rates else recorded.positions_per_second()) / 1000,
        window_millis=capacities[-1].window_millis,
        slot_millis=capacities[-1].slot_millis,
    )


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the number of partitions."""

    at_millis: float
    before: int
    after: int
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Course:
    """The result of a simulation."""

    changes: tuple[Change, ...]
    drained: tuple[float, ...]
    """The times at which the backlog became empty."""
    windows: int
    slot_millis: float
    """The time of all slots, busy or idle, as far as there are cores: the time that the cluster provided."""
    ended: float
    began_with: int


def following(settings: ScalingSettings) -> Chooser:
    """The number that a policy decides."""
    follower = Follower()

    def choose(before: int, at: float, backlog: Backlog, capacity: Capacity) -> tuple[int, str]:
        looked = follower.look(settings, before, round(at), backlog, capacity)
        return (before, "") if looked is None else (looked[1].after, looked[1].rule)

    return choose


@dataclass
class InFlight:
    """A running window."""

    schedule: WindowSchedule
    backlog: BacklogCount
    """The backlog of its work."""
    results: list[SlotResult]
    window_id: int
    began: float
    ends: float
    alone: bool


class Simulation:
    """One run. `bench.scaling.trials` overrides the work of its windows, to imagine other machines."""

    cuts: CutNear = staticmethod(anywhere)
    """Where waiting work can be cut."""

    def __init__(self, world: World, choose: Chooser, begins_with: int = 1) -> None:
        self.world = world
        self.choose = choose
        self.scheduler = Scheduler(WorkQueue(), WindowSizer(world.shortest_millis))
        self.arrivals = deque(world.arrivals)
        self.came = _Came()
        self.free = _cores_free_at(world)
        self.costs, self.speed = WindowCosts(), ReadingSpeed()
        self.in_flight: deque[InFlight] = deque()
        self.now = 0.0
        self.counted_up_to = 0.0
        """The time up to which the time of slots is counted."""
        self.count = self.wanted = self.began_with = begins_with
        self.rule = ""
        self.has_news = True
        """Whether work was found or committed since the policy was asked."""
        self.windows = 0
        self.slot_millis = 0.0
        self.changes: list[Change] = []
        self.drained: list[float] = []

    def run(self) -> Course:
        """Run until all work is done, or until the world ends."""
        while self.now < self.world.ends_millis and self.step():
            pass
        return self.course()

    def course(self) -> Course:
        """The course until now."""
        changes, drained = tuple(self.changes), tuple(self.drained)
        return Course(changes, drained, self.windows, self.slot_millis, self.now, self.began_with)

    def step(self) -> bool:
        """Do what the engine's loop would do next; False if nothing will ever be left to do."""
        self._arrive()
        waits = bool(len(self.scheduler.queue))
        if waits and self.has_news:
            self._look()
        if self.wanted != self.count:  # a change waits until nothing is in flight
            self.complete() if self.in_flight else self._change()
        elif waits and len(self.in_flight) < self.world.overlap:
            self.start()
        elif self.in_flight:
            self._await()
        else:
            return self._sleep()
        return True

    def _arrive(self) -> None:
        while self.arrivals and self.arrivals[0].at_millis <= self.now:
            queue = self.scheduler.queue
            queue.add(items_of(self.came.blocks(self.arrivals.popleft())))
            self.has_news = True

    def _look(self) -> None:
        """Ask the policy when listeners would be asked: before a window, and at intervals while idle."""
        self.has_news = False
        queue = self.scheduler.queue
        counts = [*queue.counts(INTO), *(window.backlog for window in self.in_flight)]
        backlog = self.came.counted(backlog_of(counts, self.cuts))
        cores = self.world.cores_at(self.now)
        available = Cores(cores, max(cores, self.world.most_cores or cores))
        capacity = capacity_of(available, self.speed, self.costs)
        self.wanted, self.rule = self.choose(self.count, self.now, backlog, capacity)

    def _change(self) -> None:
        self.changes.append(Change(self.now, self.count, self.wanted, self.rule))
        self.count = self.wanted
        self.now += self.world.change_millis

    def start(self) -> WindowSchedule:
        """Start a window, and return what was scheduled."""
        self.windows += 1
        overlaps = self.world.overlap > 1
        schedule = self.scheduler.next(self.windows, {INTO: self.count}, {INTO: self.cuts}, overlaps=overlaps)
        schedule, results, ends = self.work(schedule)
        ends += self.world.window_millis / 2
        backlog = BacklogCount.of(all_in(schedule.allocation))
        self.in_flight.append(InFlight(schedule, backlog, results, self.windows, self.now, ends, not self.in_flight))
        return schedule

    def work(self, schedule: WindowSchedule) -> tuple[WindowSchedule, list[SlotResult], float]:
        """The final allocation, the results of the slots, and when the last of them ends."""
        results, ends = [], self.now
        for slot, items in enumerate(schedule.allocation[INTO]):
            begins = self.begins()
            results.append(self.read(slot, items, schedule.lasts_millis))
            is_free = begins + results[-1].busy_millis + self.world.slot_millis
            heapq.heappush(self.free, is_free)
            ends = max(ends, is_free)
        return schedule, results, ends

    def begins(self) -> float:
        """When the next slot begins: once a core is free."""
        return max(heapq.heappop(self.free), self.now + self.world.window_millis / 2)

    def read(self, slot: int, items: Sequence[WorkItem], lasts: float) -> SlotResult:
        """The result of one slot: it reads its work in order, and splits the item that it reads at the deadline."""
        busy, positions, left = 0.0, 0, list[WorkItem]()
        # A slot begins its first item, and reads at least one position of it, however short the window is. Otherwise
        # windows could leave all work undone for ever.
        for number, item in enumerate(items):
            if number and busy >= lasts:
                left.append(item)
                continue
            done = min(item.length, int(max(0.0, lasts - busy) * self.world.per_milli) + 1)
            busy += (takes := done / self.world.per_milli)
            positions += done
            if done < item.length:
                left.append(item.part(item.start + done, item.end).measured(done, takes, 0))
        return SlotResult(0, slot, positions, busy, left)

    def _await(self) -> None:
        """Wait until the oldest window ends, or until work arrives for which another window may begin."""
        arrives = self.arrivals[0].at_millis if self.arrivals else inf
        if len(self.in_flight) < self.world.overlap and arrives < self.in_flight[0].ends:
            self.now = max(self.now, arrives)
        else:
            self.complete()

    def complete(self) -> InFlight:
        """End the oldest window: queue the work that it left, and record its figures."""
        # Counted before the window is removed: its slots occupied cores until now.
        at_once = len(self.in_flight) * self.count
        window = self.in_flight.popleft()
        self.now = max(self.now, window.ends)
        since = max(window.began, self.counted_up_to)
        self.slot_millis += (self.now - since) * min(at_once, self.world.cores_at(self.now))
        self.counted_up_to = self.now
        took, busy = self.now - window.began, [result.busy_millis for result in window.results]
        self.costs.committed(took, max(busy, default=0.0))
        self.speed.read(sum(result.work for result in window.results), sum(busy))
        # The slots of overlapping windows wait for each other's cores, so only a window that ran alone shows what one
        # costs.
        self.scheduler.over(window.schedule, window.results, took if window.alone else None)
        self.has_news = True
        if not self.in_flight and not len(self.scheduler.queue):
            self.drained.append(self.now)
        return window

    def _sleep(self) -> bool:
        """Wait until listeners are asked or work arrives. Return False if no work will ever arrive."""
        if not self.arrivals and self.world.ends_millis == inf:
            return False
        self._look()
        if self.wanted == self.count:
            arrives = self.arrivals[0].at_millis if self.arrivals else inf
            self.now = min(self.now + self.world.look_millis, arrives)
        return True


@dataclass
class _Came:
    """The arrivals so far: blocks of one source, which may be grouped into items."""

    number: int = 0
    end: int = 0
    block_length: float | None = None
    """The length of the newest blocks, if they are grouped."""

    def blocks(self, arrival: Arrival) -> list[Block]:
        """The blocks of one arrival; if they are many, fewer blocks over the same range."""
        together = ceil(arrival.blocks / MOST_ITEMS)
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


def items_of(blocks: Sequence[Block]) -> list[WorkItem]:
    """A work item for each block."""
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
