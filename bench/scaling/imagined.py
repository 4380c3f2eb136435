"""Simulates policies and all fixed numbers in larger systems: a thousand slots, a million blocks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from statistics import mean

from bench.scaling.trials import Machine, best_fixed, fixed, simulated
from dagkit.engine.record.backlogs import Arrival
from dagkit.scaling import ScalingSettings
from dagkit.simulation import following

MIB = 1 << 20
DRAWS = 3
"""Repetitions with different noise, for few slots, which do not average it out."""
POLICIES = {"drain": ScalingSettings(), "apex": ScalingSettings(policy="apex")}


@dataclass(frozen=True, slots=True)
class Imagined:
    """The results in one simulated system; times are means over several draws of the noise."""

    world: str
    most: int
    """The largest fixed number of partitions."""
    best_count: int
    best_seconds: float
    one_seconds: float
    drain_seconds: float
    drain_over_best: float
    drain_turns: int
    """Its changes of direction in the phase with the most of them."""
    apex_seconds: float
    apex_turns: int


def _phases(blocks: int, size: int, silence_millis: float, tick_millis: float) -> list[Arrival]:
    trickle = [Arrival(silence_millis + tick * tick_millis, 1, size) for tick in range(300)]
    return [Arrival(0, blocks, size), *trickle]


HOUR = 3_600_000.0
WORLDS: dict[str, tuple[Machine, int]] = {
    "2 cores, 500 blocks of 8 MiB": (
        Machine(_phases(500, 8 * MIB, 600_000, 500), cores=((0, 2),), noise=0.1, ends_millis=900_000),
        8,
    ),
    "1000 slots, a million blocks of 64 MiB, noisy": (
        Machine(_phases(10**6, 64 * MIB, HOUR, 1000), cores=((0, 1000),), noise=0.3, ends_millis=HOUR + 600_000),
        1000,
    ),
    "the same, slots come late: 10, 100 after 20 s, 1000 after 60 s": (
        Machine(
            _phases(10**6, 64 * MIB, HOUR, 1000),
            cores=((0, 10), (20_000, 100), (60_000, 1000)),
            most_cores=1000,
            noise=0.3,
            ends_millis=HOUR + 600_000,
        ),
        1000,
    ),
}


def imagined() -> Iterator[Imagined]:
    """Simulate every system in turn."""
    for name, (world, most) in WORLDS.items():
        draws = [replace(world, seed=seed) for seed in range(DRAWS if most < 100 else 1)]
        bests = [best_fixed(draw, most) for draw in draws]
        silence = world.arrivals[1].at_millis
        seconds, turns = {}, {}
        for policy, settings in POLICIES.items():
            whole = [replace(draw, ends_millis=draw.ends_millis if policy == "drain" else inf) for draw in draws]
            courses = [simulated(each, following(settings)) for each in whole]
            seconds[policy] = mean(course.drained_after(0) for course in courses) / 1000
            turns[policy] = max(max(course.turns(0, silence), course.turns(silence)) for course in courses)
        alone = replace(world, arrivals=world.arrivals[:1], noise=0.0, ends_millis=inf)
        best_seconds = mean(millis for _, millis in bests) / 1000
        yield Imagined(
            world=name,
            most=most,
            best_count=bests[0][0],
            best_seconds=best_seconds,
            one_seconds=simulated(alone, fixed(1)).drained_after(0) / 1000,
            drain_seconds=seconds["drain"],
            drain_over_best=seconds["drain"] / best_seconds,
            drain_turns=turns["drain"],
            apex_seconds=seconds["apex"],
            apex_turns=turns["apex"],
        )
