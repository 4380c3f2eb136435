"""Restrictions: claims, splits by fractions and at known positions, what is left, and deferred work."""

import pickle
from datetime import UTC, datetime, timedelta

import pytest

from dagkit.ranges import (
    NO_KEYS,
    OFFSET_INFINITY,
    ByteKeyRange,
    ByteKeyRestrictionTracker,
    Deferred,
    DelayInvalid,
    GrowableOffsetRestrictionTracker,
    OffsetRange,
    OffsetRestrictionTracker,
    Progress,
    UnsplittableRestrictionTracker,
    WorkUnclaimed,
    claimed_runs,
    split_near,
)
from tests.cases import cases

WHOLE, ENDLESS = OffsetRange(100, 200), OffsetRange(100, OFFSET_INFINITY)


def tracker(whole=WHOLE, *claims):
    made = OffsetRestrictionTracker(OffsetRange(*whole) if isinstance(whole, tuple) else whole)
    for claim in claims:
        made.try_claim(claim)
    return made


def keys(start=b"a", stop=b"m", *claims):
    made = ByteKeyRestrictionTracker(ByteKeyRange(start, stop))
    for claim in claims:
        made.try_claim(claim)
    return made


class Log:
    """Grows on request, and counts how often it was asked for its end."""

    def __init__(self, end):
        self.end = end
        self.asked = 0

    def estimate_end(self):
        self.asked += 1
        return self.end


def tail(log, *claims, stop=OFFSET_INFINITY):
    made = GrowableOffsetRestrictionTracker(OffsetRange(0, stop), log.estimate_end)
    for claim in claims:
        assert made.try_claim(claim)
    return made


@cases(
    "whole, claims, fraction, at",
    ("a checkpoint before the first claim gives all away", WHOLE, [], 0, 100),
    ("a checkpoint keeps what is claimed", WHOLE, [100], 0, 101),
    ("a checkpoint keeps what was claimed last", WHOLE, [105, 110], 0, 111),
    ("most of what is left is kept", WHOLE, [130], 0.7, 179),
    ("nothing is left to checkpoint", WHOLE, [199], 0, None),
    ("nothing is left to share", WHOLE, [199], 0.5, None),
    ("a reader that was refused has nothing to checkpoint", WHOLE, [240], 0, None),
    ("a reader that was refused has nothing to share", WHOLE, [240], 0.5, None),
    ("all of what is left is kept", WHOLE, [], 1, None),
    ("nearly all is kept", OffsetRange(0, 10), [], 0.999, 9),
    ("one offset at least is kept", OffsetRange(0, 10), [4], 0.01, 5),
    ("one offset has no half", OffsetRange(0, 1), [], 0.5, None),
    ("a share that keeps nothing is none", OffsetRange(0, 10), [], 0.01, None),
    ("nothing is no work", OffsetRange(5, 5), [], 0, None),
    ("work without an end can be checkpointed", ENDLESS, [120], 0, 121),
    ("work without an end has no half", ENDLESS, [120], 0.5, None),
)
def test_splits(whole, claims, fraction, at):
    work = tracker(whole, *claims)
    expected = None if at is None else (OffsetRange(whole.start, at), OffsetRange(at, whole.stop))
    assert work.try_split(fraction) == expected
    assert work.current_restriction() == (expected[0] if expected else whole)


def test_a_checkpoint_before_the_first_claim_leaves_no_work_at_all():
    for work, first in ((tracker(), 100), (keys(), b"a")):
        whole = work.current_restriction()
        nothing, residual = work.try_split(0.0)
        assert (nothing, residual) == (NO_KEYS if first == b"a" else OffsetRange(100, 100), whole)
        assert work.current_restriction() == nothing
        assert work.try_split(0.0) is None
        assert work.current_progress().total == 0
        work.check_done()
        assert not work.try_claim(first)


@cases(
    "whole, claims, left",
    ("nothing to do", OffsetRange(100, 100), [], None),
    ("the last offset claimed", WHOLE, [150, 199], None),
    ("the stop refused", WHOLE, [150, 200], None),
    ("a claim far out refused", WHOLE, [240], None),
    ("nothing claimed", WHOLE, [], r"\[100, 200\) was never claimed"),
    ("all but one offset claimed", WHOLE, [150, 198], r"\[199, 200\) was never claimed"),
)
def test_work_that_is_done_or_not(whole, claims, left):
    if left is None:
        tracker(whole, *claims).check_done()
    else:
        with pytest.raises(WorkUnclaimed, match=left):
            tracker(whole, *claims).check_done()


@cases(
    "work, progress",
    ("not started", tracker(), Progress(0, 100)),
    ("at the start", tracker(WHOLE, 100), Progress(0, 100)),
    ("underway", tracker(WHOLE, 130), Progress(30, 70)),
    ("done", tracker(WHOLE, 240), Progress(100, 0)),
    ("nothing to do", tracker((5, 5)), Progress(0, 0)),
    ("no end", tracker(ENDLESS, 130), Progress(30, float("inf"))),
    ("a share of all keys", keys(b"", b"\x80", b"\x60"), Progress(0.375, 0.125)),
    ("a log, not started", tail(Log(100)), Progress(0, 100)),
    ("a log, underway", tail(Log(100), 30), Progress(30, 70)),
    ("a log, ahead of the estimate", tail(Log(20), 30), Progress(30, 0)),
)
def test_progress_is_counted_to_the_last_claim(work, progress):
    assert work.current_progress() == progress


def test_a_tracker_knows_whether_it_was_started_and_whether_it_ends():
    assert [t.is_started() for t in (tracker(), tracker(WHOLE, 240), tracker(WHOLE, 100))] == [False, False, True]
    assert (tracker().is_bounded(), tracker(ENDLESS).is_bounded()) == (True, False)


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@cases(
    "delay, due",
    ("at once", None, NOON),
    ("after a time", timedelta(seconds=5), NOON + timedelta(seconds=5)),
    ("at an instant", datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)),
)
def test_the_rest_is_deferred(delay, due):
    work = tracker(ENDLESS, 110)
    work.defer_remainder(delay)
    deferred = work.deferred()
    assert (deferred.residual, deferred.due(NOON)) == (OffsetRange(111, OFFSET_INFINITY), due)
    assert work.current_restriction() == OffsetRange(100, 111)
    work.check_done()
    assert pickle.loads(pickle.dumps(work)).deferred() == deferred  # noqa: S301 - made here


def test_deferring_twice_keeps_the_first_and_where_nothing_is_left_nothing_is_deferred():
    for claimed, deferred in ((110, Deferred(OffsetRange(111, 200), timedelta(seconds=1))), (199, None)):
        work = tracker(WHOLE, claimed)
        work.defer_remainder(timedelta(seconds=1))
        work.defer_remainder(timedelta(seconds=9))
        assert work.deferred() == deferred


@pytest.mark.parametrize("delay", [5, "soon", datetime(2024, 5, 1)], ids=["a number", "a word", "a naive instant"])  # noqa: DTZ001
def test_a_delay_is_a_time(delay):
    work = tracker(WHOLE, 110)
    with pytest.raises(DelayInvalid, match="by a timedelta or until an aware datetime"):
        work.defer_remainder(delay)
    assert work.current_restriction() == WHOLE


@cases(
    "whole, runs",
    ("the last run is shorter", (3, 12), [range(3, 7), range(7, 11), range(11, 12)]),
    ("a multiple of its runs", (0, 8), [range(4), range(4, 8)]),
)
def test_runs_are_claimed_one_after_the_other_up_to_the_stop(whole, runs):
    work = tracker(whole)
    assert list(claimed_runs(work, 4)) == runs
    work.check_done()


def test_runs_end_where_another_begins():
    work = tracker((0, OFFSET_INFINITY))
    runs = claimed_runs(work, 4)
    assert [next(runs), next(runs)] == [range(4), range(4, 8)]
    assert work.try_split(0.0) == (OffsetRange(0, 8), OffsetRange(8, OFFSET_INFINITY))
    assert list(runs) == []
    work.check_done()


class SharesOnly(OffsetRestrictionTracker):
    """Says how work is split by share, and nothing of positions."""

    def try_split(self, fraction_of_remainder):
        return super().try_split(fraction_of_remainder)


@pytest.mark.parametrize(("kind", "at"), [(OffsetRestrictionTracker, 170), (SharesOnly, 149)])
def test_where_a_tracker_knows_no_positions_it_is_split_by_share(kind, at):
    assert split_near(kind(WHOLE), 170, 0.5) == (OffsetRange(100, at), OffsetRange(at, 200))


@pytest.mark.parametrize(
    ("reading", "key", "residual"),
    [
        (keys(), b"f", ByteKeyRange(b"f", b"m")),
        (keys(), b"a", None),
        (keys(), b"m", None),
        (keys(), b"", None),
        (keys(b"a", b"m", b"c"), b"c", None),
        (keys(b"a", b"m", b"c"), b"c\0", ByteKeyRange(b"c\0", b"m")),
        (keys(b"a", b"m", b"c", b"z"), b"d", None),
        (keys(b"", b"", b"c"), b"z", ByteKeyRange(b"z", b"")),
    ],
)
def test_a_known_key_is_where_the_work_is_split(reading, key, residual):
    split = reading.try_split_at(key)
    assert (split and split.residual) == residual


@pytest.mark.parametrize(
    ("reading", "fraction", "at"),
    [
        (keys(b"\0", b"\x80"), 0.5, b"\x40"),
        (keys(b"", b"", b"\x80"), 0.5, b"\xc0"),
        (keys(b"a", b"a\0\0", b"a"), 0.5, b"a\0"),
        (keys(), 1.0, None),
        (keys(b"a", b"a\0"), 0.5, None),
    ],
)
def test_shares_are_of_the_keys_that_are_not_claimed(reading, fraction, at):
    split = reading.try_split(fraction)
    assert (split and split.residual.start.rstrip(b"\0")) == (at and at.rstrip(b"\0"))


def test_the_end_of_all_keys_is_claimed_and_refused():
    reading = keys(b"a", b"", b"z")
    with pytest.raises(WorkUnclaimed, match="never claimed"):
        reading.check_done()
    assert not reading.try_claim(b"")
    reading.check_done()
    assert reading.try_split(0.0) is None
    assert reading.current_progress().fraction_completed == 1


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
    assert tail(Log(end), *claims).try_split(fraction) == (OffsetRange(0, at), OffsetRange(at, OFFSET_INFINITY))


def test_what_grows_meanwhile_is_shared_too_and_the_estimator_travels_with_the_tracker():
    log = Log(10)
    growing = tail(log, 9)
    log.end = 110
    assert growing.try_split(0.5).primary == OffsetRange(0, 59)
    twin = pickle.loads(pickle.dumps(tail(Log(100), 10)))  # noqa: S301 - made here
    assert twin.try_split(0.5).primary == OffsetRange(0, 55)


def test_once_split_it_is_a_range_like_any_and_needs_no_estimate_as_a_bounded_range_never_does():
    log = Log(100)
    growing = tail(log, 10)
    assert not growing.is_bounded()
    assert growing.try_split(0.5)
    assert growing.is_bounded()
    asked = log.asked
    assert growing.try_split(0.5) == (OffsetRange(0, 32), OffsetRange(32, 55))
    assert growing.current_progress() == Progress(10, 22)
    assert log.asked == asked
    log = Log(100)
    bounded = tail(log, 10, stop=50)
    assert bounded.is_bounded()
    assert bounded.try_split(0).residual == OffsetRange(11, 50)
    assert log.asked == 0


def test_at_the_end_of_what_is_there_the_rest_is_deferred_and_tailing_ends_by_claiming_infinity():
    growing = tail(Log(100), 99)
    growing.defer_remainder()
    assert growing.deferred().residual == OffsetRange(100, OFFSET_INFINITY)
    growing.check_done()
    growing = tail(Log(100), 99)
    with pytest.raises(WorkUnclaimed, match=r"\[100, "):
        growing.check_done()
    assert not growing.try_claim(OFFSET_INFINITY)
    growing.check_done()
    assert growing.is_bounded()
    assert growing.try_split(0) is None


def test_a_split_while_the_end_is_estimated_wins():
    class Rival(Log):
        def estimate_end(self):
            if not self.asked:
                self.asked += 1
                assert growing.try_split(0.1).primary == OffsetRange(0, 19)
            return 100

    growing = tail(Rival(100), 10)
    assert growing.try_split(0.5).residual == OffsetRange(14, 19)


def test_what_the_estimator_raises_leaves_the_range_as_it_was():
    def estimate():
        raise OSError("the log is gone")

    growing = GrowableOffsetRestrictionTracker(OffsetRange(0, OFFSET_INFINITY), estimate)
    assert growing.try_claim(10)
    with pytest.raises(OSError, match="the log is gone"):
        growing.try_split(0.5)
    assert growing.try_claim(11)
    assert growing.try_split(0).primary == OffsetRange(0, 12), "taking back all the rest asks for no estimate"
    growing = GrowableOffsetRestrictionTracker(OffsetRange(0, OFFSET_INFINITY), estimate)
    assert growing.try_split_at(7) == (OffsetRange(0, 7), OffsetRange(7, OFFSET_INFINITY)), "nor does a known position"
    assert growing.is_bounded()


def test_an_unsplittable_restriction_is_tracked_and_never_split():
    work = UnsplittableRestrictionTracker(tracker())
    assert not work.is_started()
    assert work.try_claim(110)
    assert (work.is_started(), work.is_bounded()) == (True, True)
    assert work.try_split(0.5) is None
    work.defer_remainder()
    assert work.deferred() is None
    assert work.current_restriction() == WHOLE
    assert work.current_progress() == Progress(10, 90)
    with pytest.raises(WorkUnclaimed, match="111, 200"):
        work.check_done()
    assert work.claim_many([150, 210]) == 1
    work.check_done()
    assert UnsplittableRestrictionTracker(keys(b"a", b"m", b"b")).try_split_at(b"f") is None
    with pytest.raises(AssertionError, match="wraps a R"):
        UnsplittableRestrictionTracker(WHOLE)
