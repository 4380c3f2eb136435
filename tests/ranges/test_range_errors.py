"""Faults name their positions, and travel from a worker to their reader."""

import inspect
import pickle

import pytest

import dagkit.ranges
from dagkit.errors import RunFailure
from dagkit.ranges import range_errors
from dagkit.ranges.range_errors import (
    ClaimBackwards,
    ClaimBeforeStart,
    DelayInvalid,
    FractionInvalid,
    PositionOutside,
    PositionUnmeasured,
    ProgressInvalid,
    RangeFault,
    RangeInvalid,
    SplitPointMissing,
    WatermarkInvalid,
    WorkUnclaimed,
)

SAMPLES = [
    (RangeInvalid(9, 3, "it stops before it starts"), "[9, 3) is not a range: it stops before it starts"),
    (FractionInvalid(1.5), "1.5 is not a fraction between 0 and 1"),
    (
        PositionUnmeasured(b"a", "it has no end"),
        "no position in the range from b'a' can be computed from a fraction: it has no end",
    ),
    (PositionOutside(b"z", b"a", b"c"), "position b'z' lies outside of [b'a', b'c')"),
    (ClaimBeforeStart(5, 100), "claimed 5, before the range's start 100"),
    (ClaimBackwards(5, 9), "claimed 5 after 9"),
    (ClaimBackwards(9, 9), "claimed 9 twice"),
    (SplitPointMissing(5), "the first record of a range must be a split point, but the one at 5 is not"),
    (SplitPointMissing(5, 3), "the record at 5 is not a split point, so it must be in the group at 3"),
    (WorkUnclaimed(5, 9), "[5, 9) was never claimed"),
    (
        ProgressInvalid(-1, 2, "work is counted from 0"),
        "-1 done and 2 left is not valid progress: work is counted from 0",
    ),
    (DelayInvalid(5), "a remainder is deferred by a timedelta or until an aware datetime, not 5"),
    (WatermarkInvalid(5, "it is not a datetime"), "5 is not a valid watermark: it is not a datetime"),
]


@pytest.mark.parametrize(("fault", "words"), SAMPLES, ids=[type(fault).__name__ for fault, _ in SAMPLES])
def test_a_fault_says_what_disagrees_also_after_a_journey(fault, words):
    travelled = pickle.loads(pickle.dumps(fault))  # noqa: S301 - made here
    assert fault.problem == words
    assert str(fault) == str(travelled) == f"{words} [{fault.code}]\n  help: {fault.help}"
    assert fault.help
    assert vars(fault) == vars(travelled)


def test_every_fault_is_one_family_and_has_a_sample_here():
    family = {
        kind
        for _, kind in inspect.getmembers(range_errors, inspect.isclass)
        if kind.__module__ == range_errors.__name__
    }
    assert family - {RangeFault} == {type(fault) for fault, _ in SAMPLES}
    assert all(issubclass(kind, RangeFault) for kind in family)
    assert issubclass(RangeFault, RunFailure)


def test_what_is_public_is_listed_and_there():
    public = {
        name for name, value in vars(dagkit.ranges).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(dagkit.ranges.__all__)
