"""What a simulation is given, and what came of it: work that arrives, a machine, and the course of a run."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import exp, inf

from dagkit.api.work import Block
from dagkit.engine.facts import Split
from dagkit.engine.history.backlogs import Arrival


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

    def between(self, start: int, end: int) -> float:
        return self.upto(end) - self.upto(start)

    def reached(self, start: int, millis: float) -> int:
        """The position that is come to in so much time."""
        goal = self.upto(start) + millis
        at = bisect_right(self._before, goal) - 1
        rate = self.millis[self._starts[at]]
        return self._starts[at] + int((goal - self._before[at]) / rate) if rate else self._starts[at]


@dataclass(frozen=True, slots=True)
class World:
    """All that neither the scheduler nor a policy decides."""

    arrivals: Sequence[Arrival] = ()
    """In the order of time; their blocks lie one behind the other in one source."""
    blocks: Sequence[Block] = ()
    """Blocks that are there at the beginning, besides."""
    cores: Sequence[tuple[float, int]] = ((0.0, 1),)
    """How many cores there are from an instant on; they only become more."""
    most_cores: int | None = None
    """What the cluster says it can have; None: what it has."""
    per_milli: float = 100_000.0
    """Positions that a slot reads in a millisecond, where no cost is given."""
    cost: Cost | Mapping[str, Cost] | None = None
    """What positions cost: those of every source, or by source."""
    noise: float = 0.0
    """The spread of the speed: the deviation of its logarithm, from slot to slot and window to window."""
    seed: int = 0
    splits: bool = True
    """Whether work can be split while it is worked on."""
    cuts: bool = True
    """Whether it can be cut before."""
    claim: int = 1
    """Positions that are claimed at once: work is split between claims."""
    overlap: int = 2
    """Windows in flight: 2 where no state goes from one to the next, else 1."""
    window_millis: float = 40.0
    """What a window costs besides its work."""
    slot_millis: float = 10.0
    """What a slot costs besides its work."""
    change_millis: float = 100.0
    """What a change of the number of partitions costs."""
    shortest_millis: float = 500.0
    """STREAMING_WINDOW_SIZE_MILLIS."""
    look_millis: float = 1000.0
    """How often listeners are asked while there is nothing to do."""
    ends_millis: float = inf
    """When it ends at last; else when all has been read."""

    def cores_at(self, millis: float) -> int:
        return self.cores[max(0, bisect_right(self.cores, (millis, inf)) - 1)][1]

    def cost_of(self, source: str) -> Cost:
        if self.cost is None:
            return Cost({0: 1 / self.per_milli})
        return self.cost if isinstance(self.cost, Cost) else self.cost[source]

    @property
    def first_work_millis(self) -> float:
        """What one slot would need for all that is there at the beginning, windows apart."""
        blocks = sum(self.cost_of(block.source).between(block.start, block.end) for block in self.blocks)
        length = sum(round(each.blocks * each.positions_each) for each in self.arrivals if each.at_millis <= 0)
        return blocks + (self.cost_of(ARRIVED).upto(length) if length else 0.0)

    def soonest_millis(self, count: int) -> float:
        """When so many partitions have done what is there at the beginning, at the soonest and but for luck.

        Each of them has a slot in every window in flight. In the mean, noise speeds up more than it slows down.
        """
        left, speed = self.first_work_millis, exp(self.noise**2 / 2)
        for (since, cores), (until, _) in pairwise([*self.cores, (inf, 0)]):
            slots = min(count * self.overlap, cores) * speed
            if left <= slots * (until - since):
                return since + left / slots
            left -= slots * (until - since)
        return inf


ARRIVED = "arrived"
"""The source of all that arrives."""


@dataclass(frozen=True, slots=True)
class Change:
    """Another number of partitions."""

    at_millis: float
    before: int
    after: int
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Course:
    """How it went."""

    changes: tuple[Change, ...]
    drained: tuple[float, ...]
    """When nothing waited any more, each time."""
    windows: int
    slot_millis: float
    """Time of slots, whether they had something to do or not, as far as there are cores: what the cluster gave."""
    ended: float
    began_with: int = 1
    splits: tuple[tuple[int, Split], ...] = ()
    """By the window that they were made in, or for."""

    def drained_after(self, millis: float) -> float:
        """When the first backlog ended that ended after an instant; never, if none did."""
        return next((at for at in self.drained if at > millis), inf)

    def turns(self, since: float, until: float = inf) -> int:
        """How often the number turned from growing to shrinking, or back, between two instants."""
        grows = [change.after > change.before for change in self.changes if since <= change.at_millis < until]
        return sum(one != other for one, other in pairwise(grows))
