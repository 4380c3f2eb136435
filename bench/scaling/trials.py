"""Trials on other imagined machines, with noise, uneven costs and handovers; the best fixed number of partitions."""

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, pairwise
from math import exp, inf, sqrt
from random import Random

from bench.scaling.together import SimulatedSlot, worked_together
from dagkit.api.work import Block
from dagkit.engine.program.facts import Split
from dagkit.engine.record.work_records import settle_handovers
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import SlotResult, anywhere, nowhere, split_at_the_end
from dagkit.engine.worker.protocol import Answer
from dagkit.scaling.policy import LONGEST_MILLIS
from dagkit.simulation import INTO, Chooser, Course, InFlight, Simulation, World, items_of

ALL_UP_TO = 64
"""Every number up to this one is tried."""
STEP = 0.1
"""Above it, each number tried is smaller than the one before by this part."""


@dataclass(frozen=True)
class Cost:
    """The cost of each position of a source, in milliseconds."""

    millis: Mapping[int, float]
    """Costs by the position from which they hold. Position 0 must have one."""
    _starts: Sequence[int] = field(init=False)
    _before: Sequence[float] = field(init=False)

    def __post_init__(self) -> None:
        starts = sorted(self.millis)
        assert starts[:1] == [0], "a cost is known from 0 on"
        spans = [self.millis[a] * (b - a) for a, b in pairwise(starts)]
        object.__setattr__(self, "_starts", starts)
        object.__setattr__(self, "_before", [0.0, *accumulate(spans)])

    def upto(self, position: int) -> float:
        """The cost of all positions before this one."""
        at = bisect_right(self._starts, position) - 1
        return self._before[at] + self.millis[self._starts[at]] * (position - self._starts[at])

    def between(self, start: int, end: int) -> float:
        return self.upto(end) - self.upto(start)

    def reached(self, start: int, millis: float) -> int:
        """The position reached in this time."""
        goal = self.upto(start) + millis
        at = bisect_right(self._before, goal) - 1
        rate = self.millis[self._starts[at]]
        return self._starts[at] + int((goal - self._before[at]) / rate) if rate else self._starts[at]


@dataclass(frozen=True, slots=True)
class Machine(World):
    """A world with work and costs that no ledger records."""

    blocks: Sequence[Block] = ()
    """Further blocks that wait at the start."""
    cost: Cost | None = None
    """The cost of positions, if it is not the same everywhere."""
    noise: float = 0.0
    """The spread of the speed: the deviation of its logarithm, from slot to slot and window to window."""
    seed: int = 0
    splits: bool = True
    """Whether work can be split while it is processed."""
    cuts: bool = True
    """Whether waiting work can be cut."""
    hands_over: bool = False
    """Whether slots hand work over while a window runs, if each of them has a core."""
    claim: int = 1
    """Positions of one claim: work is split between claims."""

    @property
    def costs(self) -> Cost:
        return self.cost or Cost({0: 1 / self.per_milli})

    @property
    def first_work_millis(self) -> float:
        """The time of one slot for all work that waits at the start, without the cost of windows."""
        cost = self.costs
        blocks = sum(cost.between(block.start, block.end) for block in self.blocks)
        length = sum(
            round(arrival.blocks * arrival.positions_each) for arrival in self.arrivals if arrival.at_millis <= 0
        )
        return blocks + (cost.upto(length) if length else 0.0)

    def soonest_millis(self, count: int) -> float:
        """A lower bound of the time in which this many partitions do the work that waits at the start, but for luck.

        Each of them has a slot in every window in flight. On average, noise speeds up more than it slows down.
        """
        return self._ends(self.first_work_millis, 0.0, count * self.overlap, exp(self.noise**2 / 2))

    def soonest_from(self, now: float, work_millis: float) -> float:
        """A lower bound of the time at which this much work of one slot is done, with every core busy from now on.

        The remaining windows may be lucky: the bound assumes a speed of four standard deviations above the average.
        """
        draws = max(1.0, work_millis / LONGEST_MILLIS)  # each slot has another speed in each window
        return self._ends(work_millis, now, inf, exp(self.noise**2 / 2) * (1 + 4 * self.noise / sqrt(draws)))

    def _ends(self, work_millis: float, now: float, most_slots: float, speed: float) -> float:
        """The time at which work is done by slots of this speed, of which each needs a core."""
        left = work_millis
        for (since, cores), (until, _) in pairwise([*self.cores, (inf, 0)]):
            begins, slots = max(since, now), min(most_slots, cores) * speed
            if left <= slots * (until - begins):
                return begins + left / slots
            left -= slots * max(0.0, until - begins)
        return inf


@dataclass(frozen=True, slots=True)
class Trial(Course):
    """The course of a trial."""

    splits: tuple[tuple[int, Split], ...] = ()
    """The splits, each with its window; empty unless the trial keeps them."""

    def drained_after(self, millis: float) -> float:
        """The first time after an instant at which the backlog became empty; infinite if there is none."""
        return next((at for at in self.drained if at > millis), inf)

    def turns(self, since: float, until: float = inf) -> int:
        """The number of changes from growing to shrinking, or back, between two instants."""
        grows = [change.after > change.before for change in self.changes if since <= change.at_millis < until]
        return sum(one != other for one, other in pairwise(grows))


def fixed(count: int) -> Chooser:
    """Always this number."""
    return lambda *_: (count, "")


def simulated(
    world: Machine,
    choose: Chooser,
    *,
    begins_with: int = 1,
    given_up_after: float = inf,
    most_windows: float = inf,
    keeps_splits: bool = False,
) -> Trial:
    """Simulate a run. More than `most_windows` windows are an error.

    Stop once the work that waits at the start cannot be done before `given_up_after`. The course has its splits only
    with `keeps_splits`: hundreds of thousands of them slow down the garbage collector.
    """
    trial = _Trial(world, choose, begins_with, keeps_splits=keeps_splits)
    first_work = world.first_work_millis if given_up_after < inf else 0.0
    while trial.now < world.ends_millis and trial.step():
        assert trial.windows <= most_windows, f"after {trial.windows} windows there was still work"
        left = max(0.0, first_work - trial.done_millis)
        if given_up_after < inf and world.soonest_from(trial.now, left) >= given_up_after:
            break
    course = trial.course()
    known = {each.name: getattr(course, each.name) for each in fields(course)}
    return Trial(**known, splits=tuple(trial.splits))


class _Trial(Simulation):
    def __init__(self, machine: Machine, choose: Chooser, begins_with: int, *, keeps_splits: bool) -> None:
        super().__init__(machine, choose, begins_with)
        self.machine = machine
        self.cost = machine.costs
        self.cuts = anywhere if machine.cuts else nowhere
        self.scheduler.queue.add(items_of(machine.blocks))
        self.random = Random(machine.seed)
        self.done_millis = 0.0
        """The time of all work that was begun, windows in flight included, at the speed without noise."""
        self.keeps_splits = keeps_splits
        self.splits: list[tuple[int, Split]] = []

    def start(self) -> WindowSchedule:
        schedule = super().start()
        if self.keeps_splits:
            self.splits += [(self.windows, split) for split in schedule.cuts]
        return schedule

    def work(self, schedule: WindowSchedule) -> tuple[WindowSchedule, list[SlotResult], float]:
        if not self.machine.hands_over or self.count > self.machine.cores_at(self.now):
            return super().work(schedule)
        slots = []
        for slot, items in enumerate(schedule.allocation[INTO]):
            begins, slower = self.begins(), self._slower()
            ends = begins + schedule.lasts_millis
            slots.append(SimulatedSlot(slot, begins, ends, deque(items), self.cost, slower, self.machine.claim))
        reports = worked_together(slots)
        self.done_millis += sum(one.busy_millis / one.slower for one in slots)
        is_free = max(one.now for one in slots) + self.machine.slot_millis
        for _ in slots:
            heapq.heappush(self.free, is_free)
        schedule, answer = settle_handovers(self.windows, schedule, Answer(tuple(reports)))
        return schedule, answer.results, is_free

    def read(self, slot: int, items: Sequence[WorkItem], lasts: float) -> SlotResult:
        machine, cost, slower = self.machine, self.cost, self._slower()
        busy, positions, left = 0.0, 0, list[WorkItem]()
        for number, item in enumerate(items):
            if number and busy >= lasts:
                left.append(item)
                continue
            end = item.end
            takes = cost.between(item.start, end) * slower
            if machine.splits and busy + takes > lasts:
                at = cost.reached(item.start, max(0.0, lasts - busy) / slower)
                claims = (at - item.start) // machine.claim + 1
                end = min(item.end, item.start + claims * machine.claim)
                takes = cost.between(item.start, end) * slower
            busy += takes
            positions += end - item.start
            if end < item.end:
                left.append(item.part(end, item.end).measured(end - item.start, takes, 0))
        self.done_millis += busy / slower
        return SlotResult(0, slot, positions, busy, left)

    def complete(self) -> InFlight:
        window = super().complete()
        if self.keeps_splits:
            splits = [*window.schedule.handed, *split_at_the_end(window.schedule.allocation, window.results)]
            self.splits += [(window.window_id, split) for split in splits]
        return window

    def _slower(self) -> float:
        return exp(self.machine.noise * self.random.gauss()) if self.machine.noise else 1.0


def best_fixed(world: Machine, most: int) -> tuple[int, float]:
    """The fixed number that drains the first backlog soonest, and the time that it takes.

    A number is not simulated, or not to its end, once its lower bound is no better than the best result.
    """
    arrivals = [arrival for arrival in world.arrivals if arrival.at_millis <= 0]
    alone = replace(world, arrivals=arrivals, ends_millis=inf)
    best = (1, inf)
    for count in _tried(most):
        if alone.soonest_millis(count) >= best[1]:
            continue
        soonest = simulated(alone, fixed(count), begins_with=count, given_up_after=best[1]).drained_after(0)
        if soonest < best[1]:
            best = (count, soonest)
    return best


def _tried(most: int) -> Iterator[int]:
    count = most
    while count > 0:
        yield count
        count = min(count - 1, round(count * (1 - STEP))) if count > ALL_UP_TO else count - 1
