"""Ranges that grow while they are read."""

import pickle

import pytest

from dagkit.ranges import (
    OFFSET_INFINITY,
    FractionInvalid,
    GrowableOffsetRestrictionTracker,
    OffsetRange,
    Progress,
    SplitRestriction,
    WorkUnclaimed,
)
from tests.cases import cases


class Log:
    """Grows on request, and counts how often it was asked for its end."""

    def __init__(self, end):
        self.end = end
        self.asked = 0

    def estimate_end(self):
        self.asked += 1
        return self.end


def tail(log, *claims, start=0, stop=OFFSET_INFINITY):
    tracker = GrowableOffsetRestrictionTracker(OffsetRange(start, stop), log.estimate_end)
    for claim in claims:
        assert tracker.try_claim(claim)
    return tracker


@cases(
    "end, claims, fraction, at",
    ("a checkpoint before the first claim", 100, [], 0, 0),
    ("half of what is there, before the first claim", 100, [], 0.5, 49),
    ("a checkpoint keeps what is claimed", 100, [10], 0, 11),
    ("half of what is there", 100, [10], 0.5, 55),
    ("all of what is there", 100, [10], 1, 100),
    ("the last offset is claimed already", 100, [99], 0.5, 100),
    ("a checkpoint at the end", 100, [99], 0, 100),
    ("the estimate lags behind", 50, [99], 0.5, 100),
    ("the estimate lags behind, and all is kept", 50, [99], 1, 100),
    ("an end at the end of all offsets", OFFSET_INFINITY - 1, [10], 1, OFFSET_INFINITY - 1),
)
def test_what_is_there_by_now_is_shared_and_the_residual_goes_on_for_ever(end, claims, fraction, at):
    split = tail(Log(end), *claims).try_split(fraction)
    assert split == SplitRestriction(OffsetRange(0, at), OffsetRange(at, OFFSET_INFINITY))


def test_what_grows_meanwhile_is_shared_too():
    log = Log(10)
    tracker = tail(log, 9)
    log.end = 110
    assert tracker.try_split(0.5).primary == OffsetRange(0, 59)


def test_once_split_it_is_a_range_like_any_and_needs_no_estimate():
    log = Log(100)
    tracker = tail(log, 10)
    assert not tracker.is_bounded()
    assert tracker.try_split(0.5)
    assert tracker.is_bounded()
    asked = log.asked
    assert tracker.try_split(0.5) == (OffsetRange(0, 32), OffsetRange(32, 55))
    assert tracker.current_progress() == Progress(10, 22)
    assert log.asked == asked


def test_a_bounded_range_never_asks():
    log = Log(100)
    tracker = tail(log, 10, stop=50)
    assert tracker.is_bounded()
    assert tracker.try_split(0).residual == OffsetRange(11, 50)
    assert log.asked == 0


def test_tailing_ends_by_claiming_infinity():
    tracker = tail(Log(100), 99)
    with pytest.raises(WorkUnclaimed, match=r"\[100, "):
        tracker.check_done()
    assert not tracker.try_claim(OFFSET_INFINITY)
    tracker.check_done()
    assert tracker.is_bounded()
    assert tracker.try_split(0) is None


def test_at_the_end_of_what_is_there_the_rest_is_put_off():
    tracker = tail(Log(100), 99)
    tracker.defer_remainder()
    assert tracker.deferred().residual == OffsetRange(100, OFFSET_INFINITY)
    tracker.check_done()


@pytest.mark.parametrize(
    ("end", "claims", "progress"),
    [(100, [], Progress(0, 100)), (100, [30], Progress(30, 70)), (20, [30], Progress(30, 0))],
    ids=["not started", "underway", "ahead of the estimate"],
)
def test_progress_is_counted_towards_the_estimate(end, claims, progress):
    assert tail(Log(end), *claims).current_progress() == progress


def test_a_split_while_the_end_is_estimated_wins():
    class Rival(Log):
        def estimate_end(self):
            if not self.asked:
                self.asked += 1
                assert tracker.try_split(0.1).primary == OffsetRange(0, 19)
            return 100

    rival = Rival(100)
    tracker = tail(rival, 10)
    assert tracker.try_split(0.5).residual == OffsetRange(14, 19)


def test_what_the_estimator_raises_leaves_the_range_as_it_was():
    class Lost(Log):
        def estimate_end(self):
            raise OSError("the log is gone")

    tracker = tail(Lost(0), 10)
    with pytest.raises(OSError, match="the log is gone"):
        tracker.try_split(0.5)
    assert tracker.try_claim(11)
    assert tracker.try_split(0).primary == OffsetRange(0, 12)  # taking back all the rest asks for no estimate


def test_the_estimator_travels_with_the_tracker():
    twin = pickle.loads(pickle.dumps(tail(Log(100), 10)))  # noqa: S301 - made here
    assert twin.try_split(0.5).primary == OffsetRange(0, 55)


def test_a_fraction_lies_between_0_and_1():
    with pytest.raises(FractionInvalid, match=r"^2 is not a fraction"):
        tail(Log(100)).try_split(2)


def test_a_known_position_needs_no_estimate():
    def estimate():
        raise OSError("gone")

    reading = GrowableOffsetRestrictionTracker(OffsetRange(0, OFFSET_INFINITY), estimate)
    assert reading.try_split_at(7) == (OffsetRange(0, 7), OffsetRange(7, OFFSET_INFINITY))
    assert reading.is_bounded()
