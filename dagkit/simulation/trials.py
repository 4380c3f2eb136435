"""Trials: the best fixed number of partitions in a world, and the world that a ledger recorded."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from statistics import median

from dagkit.engine.history.backlogs import Recorded
from dagkit.simulation.simulator import fixed, simulated
from dagkit.simulation.world import World

ALL_UP_TO = 64
"""Every number up to this one is tried."""
STEP = 0.1
"""Above it, each number tried is smaller than the one before by this part."""


def best_fixed(world: World, most: int) -> tuple[int, float]:
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
