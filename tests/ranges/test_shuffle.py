"""Groups of a shuffle: a position for each group, and no distances."""

import pytest

from dagkit.ranges import (
    ClaimBackwards,
    ClaimBeforeStart,
    GroupedShuffleRangeTracker,
    PositionUnmeasured,
    RangeInvalid,
    Split,
    SplitPointMissing,
    SplitPoints,
)
from tests.cases import cases


def at(*digits):
    return bytes(digits)


def test_all_records_of_a_group_are_returned_also_after_its_split_point():
    tracker = GroupedShuffleRangeTracker(at(3), at(9))
    records = [(True, at(3)), (False, at(3)), (True, at(5)), (False, at(5)), (False, at(5)), (True, at(9))]
    assert [tracker.try_return_record_at(*r) for r in records] == [True] * 5 + [False]


@pytest.mark.parametrize("side", [None, b""])
def test_a_side_without_a_bound_is_open(side):
    tracker = GroupedShuffleRangeTracker(side, side)
    assert (tracker.start_position(), tracker.stop_position()) == (None, None)
    assert tracker.claim_many([at(0), at(5), at(255, 255)]) == 3


@cases(
    "records, fault, words",
    ("the first group has no split point", [(False, at(4))], SplitPointMissing, "first record of a range"),
    ("before the start", [(True, at(2))], ClaimBeforeStart, "before the range's start"),
    ("a group backwards", [(True, at(5)), (True, at(4))], ClaimBackwards, "claims go forward"),
    ("a record backwards", [(True, at(5)), (False, at(4))], ClaimBackwards, "claims go forward"),
    ("two groups at one position", [(True, at(5)), (True, at(5))], ClaimBackwards, "twice"),
    ("a record of no group", [(True, at(5)), (False, at(6))], SplitPointMissing, "must be in the group at"),
)
def test_a_reader_that_would_lose_or_double_records_is_stopped(records, fault, words):
    tracker = GroupedShuffleRangeTracker(at(3), at(9))
    with pytest.raises(fault, match=words):  # noqa: PT012 - any of the claims may be the one
        for record in records:
            tracker.try_return_record_at(*record)


def test_splits_take_unconsumed_positions_only_and_report_no_fraction():
    tracker = GroupedShuffleRangeTracker(at(3), at(9))
    assert tracker.try_split_at_position(at(6)) is None
    tracker.try_claim(at(5))
    refused = [tracker.try_split_at_position(p) for p in (at(2), at(3), at(5), at(9), at(10))]
    assert refused == [None] * 5
    assert tracker.try_split_at_position(at(5, 1)) == Split(at(5, 1), None, at(9))
    assert tracker.try_return_record_at(False, at(5))
    assert not tracker.try_claim(at(6))
    assert not tracker.try_return_record_at(False, at(6))


def test_an_open_range_is_split_anywhere_ahead():
    tracker = GroupedShuffleRangeTracker()
    assert tracker.try_split_at_position(at(200)) is None
    tracker.try_claim(at(5))
    assert tracker.try_split_at_position(at(200)) == Split(at(200), None, None)


def test_how_much_is_consumed_is_unknown():
    tracker = GroupedShuffleRangeTracker(at(3), at(9))
    assert tracker.fraction_consumed() == 0.0
    tracker.try_claim(at(5))
    assert tracker.fraction_consumed() is None
    assert tracker.split_points() == SplitPoints(0, None)
    with pytest.raises(PositionUnmeasured, match="have no distances"):
        tracker.position_at_fraction(0.5)
    tracker.try_claim(at(9))
    assert tracker.fraction_consumed() == 1.0


def test_bounds_go_forward():
    with pytest.raises(RangeInvalid, match="stops before it starts"):
        GroupedShuffleRangeTracker(at(9), at(3))
