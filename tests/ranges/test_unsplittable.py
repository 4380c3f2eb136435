"""Ranges that are read whole."""

import pytest

from dagkit.ranges import (
    ClaimBackwards,
    OffsetRange,
    OffsetRangeTracker,
    OffsetRestrictionTracker,
    Progress,
    SplitPoints,
    UnsplittableRangeTracker,
    UnsplittableRestrictionTracker,
    WorkUnclaimed,
)


def test_a_range_is_tracked_but_never_split():
    tracker = UnsplittableRangeTracker(OffsetRangeTracker(100, 200))
    tracker.set_split_points_unclaimed_callback(lambda stop: 7)
    assert tracker.try_claim(110)
    assert tracker.try_split_at_position(150) is None
    assert (tracker.start_position(), tracker.stop_position()) == (100, 200)
    assert tracker.fraction_consumed() == 0.1
    assert tracker.position_at_fraction(0.5) == 150
    assert tracker.try_return_record_at(False, 111)
    assert tracker.claim_many([150, 160, 210]) == 2
    assert tracker.split_points() == SplitPoints(0, 1)
    with pytest.raises(ClaimBackwards, match="150 after 210"):
        tracker.try_claim(150)


def test_a_restriction_is_tracked_but_never_split():
    tracker = UnsplittableRestrictionTracker(OffsetRestrictionTracker(OffsetRange(100, 200)))
    assert not tracker.is_started()
    assert tracker.try_claim(110)
    assert tracker.is_started()
    assert tracker.is_bounded()
    assert tracker.try_split(0.5) is None
    tracker.defer_remainder()
    assert tracker.deferred() is None
    assert tracker.current_restriction() == OffsetRange(100, 200)
    assert tracker.current_progress() == Progress(10, 90)
    with pytest.raises(WorkUnclaimed, match="111, 200"):
        tracker.check_done()
    assert tracker.claim_many([150, 210]) == 1
    tracker.check_done()


@pytest.mark.parametrize("kind", [UnsplittableRangeTracker, UnsplittableRestrictionTracker])
def test_only_a_tracker_is_tracked(kind):
    with pytest.raises(AssertionError, match="wraps a R"):
        kind(OffsetRange(100, 200))
