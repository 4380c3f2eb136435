"""The inputs and results of a simulation: arriving work, a machine, and the course of a run."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import exp, inf, sqrt

from dagkit.api.work import Block
from dagkit.engine.facts import Split
from dagkit.engine.history.backlogs import Arrival
from dagkit.scaling.policy import LONGEST_MILLIS


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
class World:
    """Everything that neither the scheduler nor a policy decides."""

    arrivals: Sequence[Arrival] = ()
    """In the order of time; their blocks are adjacent in one source."""
    blocks: Sequence[Block] = ()
    """Further blocks that wait at the start."""
    cores: Sequence[tuple[float, int]] = ((0.0, 1),)
    """The number of cores from a time on. It only grows."""
    most_cores: int | None = None
    """The most cores that the cluster can have; None: the cores that it has."""
    per_milli: float = 100_000.0
    """Positions that a slot reads in a millisecond, unless `cost` is given."""
    cost: Cost | Mapping[str, Cost] | None = None
    """The cost of positions: one for all sources, or by source."""
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

    def cost_of(self, source: str) -> Cost:
        if self.cost is None:
            return Cost({0: 1 / self.per_milli})
        return self.cost if isinstance(self.cost, Cost) else self.cost[source]

    @property
    def first_work_millis(self) -> float:
        """The time of one slot for all work that waits at the start, without the cost of windows."""
        blocks = sum(self.cost_of(block.source).between(block.start, block.end) for block in self.blocks)
        length = sum(
            round(arrival.blocks * arrival.positions_each) for arrival in self.arrivals if arrival.at_millis <= 0
        )
        return blocks + (self.cost_of(ARRIVED).upto(length) if length else 0.0)

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


ARRIVED = "arrived"
"""The source of all arrivals."""


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
    began_with: int = 1
    splits: tuple[tuple[int, Split], ...] = ()
    """The splits, each with its window; empty unless the simulation keeps them."""

    def drained_after(self, millis: float) -> float:
        """The first time after an instant at which the backlog became empty; infinite if there is none."""
        return next((at for at in self.drained if at > millis), inf)

    def turns(self, since: float, until: float = inf) -> int:
        """The number of changes from growing to shrinking, or back, between two instants."""
        grows = [change.after > change.before for change in self.changes if since <= change.at_millis < until]
        return sum(one != other for one, other in pairwise(grows))
