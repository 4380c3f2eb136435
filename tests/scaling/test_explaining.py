"""Decisions as sentences."""

import pytest

from dagkit import Backlog, Capacity
from dagkit.scaling import ScalingInputs, ScalingSettings, decide
from dagkit.scaling.policy import amount, sentence

APEX, DRAIN = ScalingSettings(policy="apex"), ScalingSettings()
MEASURED = Capacity(cores=4, most_cores=4, positions_per_second=20e6)


MANY, SMALL, ENDLESS = Backlog(500, 2_000_000_000, 2000), Backlog(1, 3 << 20, 3), Backlog(2, 0, 2, endless=2)
NEW, SLOW = Capacity(cores=2, most_cores=8), Capacity(positions_per_second=1)


@pytest.mark.parametrize(
    ("settings", "before", "backlog", "capacity", "waits", "becomes"),
    [
        (
            *(DRAIN, 1, MANY, MEASURED),
            "500 blocks wait, 2G positions; 4 cores, each reads 20M per second; 100 s with 1 and 25 s with 4",
            "1 becomes 4: as many as can work at once",
        ),
        (
            *(DRAIN, 1, SMALL, NEW),
            "1 block waits, 3.15M positions; 2 cores of up to 8",
            "1 becomes 2: as many as can work at once, because no speed is measured yet",
        ),
        (
            *(DRAIN, 2, ENDLESS, SLOW),
            "2 blocks wait, 2 of them without an end, 0 positions; 1 core, each reads 1 per second",
            "2 stay: fewer would suffice, but not for long enough yet",
        ),
        (
            *(APEX, 1, Backlog(9), MEASURED),
            "9 blocks wait, 0 positions",
            "1 becomes 8: the largest power of two up to the number of blocks",
        ),
        (APEX, 1, Backlog(), MEASURED, "no block waits", "1 stays: fewer blocks than min_partitions"),
    ],
)
def test_what_is_reported_of_a_decision(*, settings, before, backlog, capacity, waits, becomes):
    inputs = ScalingInputs(settings=settings, before=before, at_millis=0, backlog=backlog, capacity=capacity)
    decision = decide(inputs)
    assert sentence(inputs, decision.after, decision.rule) == f"{waits}; {becomes}"


@pytest.mark.parametrize(
    ("number", "told"),
    [(0, "0"), (999, "999"), (999.6, "1k"), (1500, "1.5k"), (2_097_152, "2.1M"), (3.2e12, "3.2T"), (5e15, "5P")],
)
def test_amounts(number, told):
    assert amount(number) == told
