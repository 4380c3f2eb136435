"""What partitions would do: windows on a clock that only counts, with slots that are not all equally fast. Pure.

A window is dealt as much as its slots can read in time, it ends with its slowest slot, and costs something besides. A
slot that finds no core free waits for one. So it is with a real one, as far as the number of partitions goes.
"""

import heapq
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, inf
from typing import TYPE_CHECKING

from dagkit.api.stats import Backlog, Capacity
from dagkit.scaling.follower import Follower
from dagkit.scaling.policy import LONGEST_MILLIS, PIECE, ScalingSettings

if TYPE_CHECKING:
    import numpy as np

FIRST_MILLIS = 2_500.0
"""Of a window before anything was measured."""
NEWEST = 0.5
"""How much the newest window counts in what was measured."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Blocks of one length that are found at one time."""

    at_millis: float
    blocks: int
    positions_each: float


@dataclass(frozen=True, slots=True)
class World:
    """All that is not decided."""

    arrivals: Sequence[Arrival]
    """In the order of time."""
    cores: Sequence[tuple[float, int]] = ((0.0, 1),)
    """How many cores there are from an instant on; they only become more."""
    most_cores: int | None = None
    """What the cluster says it can have; none: what it has."""
    per_milli: float = 100_000.0
    """Positions that a slot reads in a millisecond, in the middle."""
    noise: float = 0.0
    """The spread of that: the deviation of its logarithm, from slot to slot and window to window."""
    seed: int = 0
    cuttable: bool = True
    window_millis: float = 40.0
    """What a window costs besides its work."""
    slot_millis: float = 10.0
    """What a slot costs besides its work."""
    change_millis: float = 100.0
    """What a change of the number of partitions costs."""
    shortest_millis: float = 500.0
    look_millis: float = 1000.0
    """How often somebody looks when there is nothing to do."""
    ends_millis: float = inf
    """When it ends at last; else when all has been read."""

    def cores_at(self, millis: float) -> int:
        return self.cores[max(0, bisect_right(self.cores, (millis, inf)) - 1)][1]


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
    """Time of slots, whether they had something to do or not: what the cluster gave."""
    ended: float
    began_with: int = 1

    def drained_after(self, millis: float) -> float:
        """When the first backlog ended that ended after an instant; never, if none did."""
        return next((at for at in self.drained if at > millis), inf)

    def turns(self, since: float, until: float = inf) -> int:
        """How often the number turned from growing to shrinking, or back, between two instants."""
        grows = [change.after > change.before for change in self.changes if since <= change.at_millis < until]
        return sum(one != other for one, other in pairwise(grows))


Chooser = Callable[[int, float, Backlog, Capacity], tuple[int, str]]
"""How many partitions there are to be: given how many there are, when, and what there is to do with what."""


def fixed(count: int) -> Chooser:
    """Always as many."""
    return lambda *_: (count, "")


def following(settings: ScalingSettings) -> Chooser:
    """As many as a policy says."""
    follower = Follower()

    def choose(before: int, at: float, backlog: Backlog, capacity: Capacity) -> tuple[int, str]:
        looked = follower.look(settings, before, round(at), backlog, capacity)
        return (before, "") if looked is None else (looked[1].after, looked[1].rule)

    return choose


def simulated(world: World, choose: Chooser, *, begins_with: int = 1, given_up_after: float = inf) -> Course:
    """How it goes; somebody who is only as good as others may be given up after an instant."""
    return _Simulation(world, choose, begins_with).run(min(world.ends_millis, given_up_after))


@dataclass
class _Simulation:
    world: World
    choose: Chooser
    count: int
    now: float = 0.0
    waiting: float = 0.0
    each: float = PIECE
    """How long the blocks are that came last."""
    arrived: int = 0
    measured: float | None = None
    """Positions that a slot was seen to read in a millisecond."""
    changes: list[Change] = field(default_factory=list)
    drained: list[float] = field(default_factory=list)
    windows: int = 0
    slot_millis: float = 0.0

    def run(self, until: float) -> Course:
        import numpy as np  # noqa: PLC0415 - whoever only decides does not load it

        speeds, began_with = np.random.default_rng(self.world.seed), self.count
        while self.now < until:
            self._arrive()
            self._decide()
            if self.waiting >= 1:
                self._window(speeds)
            elif not self._sleep():
                break
        changes, drained = tuple(self.changes), tuple(self.drained)
        return Course(changes, drained, self.windows, self.slot_millis, self.now, began_with)

    def _arrive(self) -> None:
        arrivals = self.world.arrivals
        while self.arrived < len(arrivals) and arrivals[self.arrived].at_millis <= self.now:
            arrival = arrivals[self.arrived]
            self.waiting += arrival.blocks * arrival.positions_each
            self.each = arrival.positions_each
            self.arrived += 1

    def _sleep(self) -> bool:
        """Until somebody looks, or something arrives; False if nothing ever will."""
        left = self.world.arrivals[self.arrived :]
        if not left and self.world.ends_millis == inf:
            return False
        self.now = min(self.now + self.world.look_millis, left[0].at_millis if left else inf)
        return True

    def _decide(self) -> None:
        world, cores = self.world, self.world.cores_at(self.now)
        capacity = Capacity(
            cores=cores,
            most_cores=max(cores, world.most_cores or cores),
            positions_per_second=None if self.measured is None else self.measured * 1000,
            window_millis=world.window_millis,
            slot_millis=world.slot_millis,
        )
        waits = self.waiting >= 1
        blocks, pieces = (ceil(self.waiting / self.each), ceil(self.waiting / self._piece)) if waits else (0, 0)
        after, rule = self.choose(self.count, self.now, Backlog(blocks, round(self.waiting), pieces), capacity)
        if after != self.count:
            self.changes.append(Change(self.now, self.count, after, rule))
            self.count = after
            self.now += world.change_millis

    @property
    def _piece(self) -> float:
        return min(self.each, PIECE) if self.world.cuttable else self.each

    def _window(self, speeds: "np.random.Generator") -> None:
        import numpy as np  # noqa: PLC0415 - see above

        world, count = self.world, self.count
        lasts, allocated = FIRST_MILLIS, self.waiting
        if self.measured is not None:
            lasts = min(max(world.shortest_millis, self.waiting / (self.measured * count)), LONGEST_MILLIS)
            allocated = min(self.waiting, self.measured * lasts * 1.25 * count)
        pieces = ceil(allocated / self._piece)
        shares = np.full(count, pieces // count, float)
        shares[: pieces % count] += 1
        shares *= allocated / pieces
        rates = world.per_milli * speeds.lognormal(0.0, world.noise, count)
        busy = np.minimum(shares / rates, lasts)
        read = float(np.minimum(shares, rates * lasts).sum())
        ends = self._ends(busy + world.slot_millis)
        self.measured = _averaged(self.measured, read / float(busy.sum()))
        self.slot_millis += (ends - self.now) * count
        self.now = ends + world.window_millis
        self.waiting -= read
        self.windows += 1
        if self.waiting < 1:
            self.waiting = 0.0
            self.drained.append(self.now)

    def _ends(self, millis: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
        """When the last slot has ended; one that finds no core waits for the first that is free, or comes."""
        if len(millis) <= self.world.cores_at(self.now):
            return self.now + float(millis.max())
        free: list[float] = []
        for since, cores in self.world.cores:
            free += [max(self.now, since)] * (cores - len(free))
        heapq.heapify(free)
        last = self.now
        for needed in millis.tolist():
            ends = free[0] + needed
            last = max(last, ends)
            heapq.heapreplace(free, ends)
        return last


def _averaged(before: float | None, newest: float) -> float:
    return newest if before is None else NEWEST * newest + (1 - NEWEST) * before


def best_fixed(world: World, most: int) -> tuple[int, float]:
    """Which fixed number ends the first backlog soonest, and how long that takes: all are tried."""
    alone = replace(world, arrivals=[each for each in world.arrivals if each.at_millis <= 0], ends_millis=inf)
    best = (1, inf)
    for count in range(most, 0, -1):
        soonest = simulated(alone, fixed(count), begins_with=count, given_up_after=best[1]).drained_after(0)
        if soonest < best[1]:
            best = (count, soonest)
    return best
