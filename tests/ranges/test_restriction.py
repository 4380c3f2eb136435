"""Restrictions of integers: claims, splits by fractions, what is left, and work put off."""

import pickle
from datetime import UTC, datetime, timedelta

import pytest

from dagkit.ranges import (
    OFFSET_INFINITY,
    ClaimBackwards,
    ClaimBeforeStart,
    Deferred,
    DelayInvalid,
    FractionInvalid,
    OffsetRange,
    OffsetRestrictionTracker,
    Progress,
    WorkUnclaimed,
    claimed_runs,
    split_near,
)
from tests.cases import cases

WHOLE = OffsetRange(100, 200)


def tracker(start=100, stop=200, *claims):
    made = OffsetRestrictionTracker(OffsetRange(start, stop))
    for claim in claims:
        made.try_claim(claim)
    return made


def test_claims_inside_are_granted_and_the_first_outside_is_refused():
    work = tracker()
    assert [work.try_claim(p) for p in (100, 150, 199, 200, 205)] == [True, True, True, False, False]


@cases(
    "claims, fault, words",
    ("before the start", [90], ClaimBeforeStart, "claimed 90, before"),
    ("backwards", [110, 109], ClaimBackwards, "claimed 109 after 110"),
    ("twice", [110, 110], ClaimBackwards, "claimed 110 twice"),
    ("behind a claim that was refused", [220, 150], ClaimBackwards, "claimed 150 after 220"),
)
def test_a_function_that_would_lose_or_double_work_is_stopped(claims, fault, words):
    with pytest.raises(fault, match=words):
        tracker(100, 200, *claims)


@cases(
    "whole, claims, fraction, split",
    ("a checkpoint before the first claim gives all away", (100, 200), [], 0, ((100, 100), (100, 200))),
    ("a checkpoint keeps what is claimed", (100, 200), [100], 0, ((100, 101), (101, 200))),
    ("a checkpoint keeps what was claimed last", (100, 200), [105, 110], 0, ((100, 111), (111, 200))),
    ("most of what is left is kept", (100, 200), [130], 0.7, ((100, 179), (179, 200))),
    ("nothing is left to checkpoint", (100, 200), [199], 0, None),
    ("nothing is left to share", (100, 200), [199], 0.5, None),
    ("who was refused has nothing to checkpoint", (100, 200), [240], 0, None),
    ("who was refused has nothing to share", (100, 200), [240], 0.5, None),
    ("all of what is left is kept", (100, 200), [], 1, None),
    ("nearly all is kept", (0, 10), [], 0.999, ((0, 9), (9, 10))),
    ("one offset at least is kept", (0, 10), [4], 0.01, ((0, 5), (5, 10))),
    ("one offset has no half", (0, 1), [], 0.5, None),
    ("a share that keeps nothing is none", (0, 10), [], 0.01, None),
    ("nothing is no work", (5, 5), [], 0, None),
    ("work without an end can be checkpointed", (100, OFFSET_INFINITY), [120], 0, ((100, 121), (121, OFFSET_INFINITY))),
    ("work without an end has no half", (100, OFFSET_INFINITY), [120], 0.5, None),
)
def test_splits(whole, claims, fraction, split):
    work = tracker(*whole, *claims)
    expected = None if split is None else tuple(OffsetRange(*part) for part in split)
    assert work.try_split(fraction) == expected
    assert work.current_restriction() == (expected[0] if expected else OffsetRange(*whole))


def test_a_checkpoint_leaves_nothing_to_split():
    work = tracker(100, 200, 110)
    assert work.try_split(0)
    assert [work.try_split(f) for f in (0, 0.5, 1)] == [None] * 3
    assert not work.try_claim(111)
    work.check_done()


def test_a_checkpoint_before_the_first_claim_leaves_no_work_at_all():
    work = tracker()
    assert work.try_split(0)
    assert work.try_split(0) is None
    work.check_done()
    assert not work.try_claim(100)


def test_residuals_are_split_again():
    work = tracker(0, 128)
    kept = []
    while split := work.try_split(0.5):
        kept.append(split.primary.size)
        work = OffsetRestrictionTracker(split.residual)
    assert sum(kept) + work.current_restriction().size == 128


@pytest.mark.parametrize("fraction", [-0.5, 1.5, float("nan")])
def test_a_fraction_lies_between_0_and_1(fraction):
    with pytest.raises(FractionInvalid, match="between 0 and 1"):
        tracker().try_split(fraction)


@pytest.mark.parametrize(
    ("whole", "claims"),
    [((100, 100), []), ((100, 200), [150, 199]), ((100, 200), [150, 200]), ((100, 200), [240])],
    ids=["nothing to do", "the last offset claimed", "the stop refused", "a claim far out refused"],
)
def test_work_that_is_done(whole, claims):
    tracker(*whole, *claims).check_done()


@pytest.mark.parametrize(
    ("claims", "words"),
    [([], r"\[100, 200\) was never claimed"), ([150, 198], r"\[199, 200\) was never claimed")],
    ids=["nothing claimed", "all but one offset claimed"],
)
def test_work_that_is_not_done(claims, words):
    with pytest.raises(WorkUnclaimed, match=words):
        tracker(100, 200, *claims).check_done()


def test_a_run_is_claimed_at_once():
    work = tracker()
    assert work.claim_many(range(100, 300, 30)) == 4
    work.check_done()


@cases(
    "whole, claims, progress",
    ("not started", (100, 200), [], Progress(0, 100)),
    ("at the start", (100, 200), [100], Progress(0, 100)),
    ("underway", (100, 200), [130], Progress(30, 70)),
    ("done", (100, 200), [240], Progress(100, 0)),
    ("nothing to do", (5, 5), [], Progress(0, 0)),
    ("no end", (100, OFFSET_INFINITY), [130], Progress(30, float("inf"))),
)
def test_progress_is_counted_to_the_last_claim(whole, claims, progress):
    assert tracker(*whole, *claims).current_progress() == progress


def test_bounds():
    assert tracker().is_bounded()
    assert not tracker(100, OFFSET_INFINITY).is_bounded()


def test_a_tracker_knows_whether_it_was_started():
    assert not tracker().is_started()
    assert not tracker(100, 200, 240).is_started()
    assert tracker(100, 200, 100).is_started()


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("delay", "due"),
    [(None, NOON), (timedelta(seconds=5), NOON + timedelta(seconds=5)), (datetime(2025, 1, 1, tzinfo=UTC),) * 2],
    ids=["at once", "after a time", "at an instant"],
)
def test_the_rest_is_put_off(delay, due):
    work = tracker(100, OFFSET_INFINITY, 110)
    work.defer_remainder(delay)
    put_off = work.deferred()
    assert put_off.residual == OffsetRange(111, OFFSET_INFINITY)
    assert put_off.due(NOON) == due
    assert work.current_restriction() == OffsetRange(100, 111)
    work.check_done()
    assert pickle.loads(pickle.dumps(work)).deferred() == put_off  # noqa: S301 - made here


def test_where_nothing_is_left_nothing_is_put_off():
    work = tracker(100, 200, 199)
    work.defer_remainder(timedelta(seconds=1))
    assert work.deferred() is None


def test_deferring_twice_keeps_the_first():
    work = tracker(100, 200, 110)
    work.defer_remainder(timedelta(seconds=1))
    work.defer_remainder(timedelta(seconds=9))
    assert work.deferred() == Deferred(OffsetRange(111, 200), timedelta(seconds=1))


@pytest.mark.parametrize("delay", [5, "soon", datetime(2024, 5, 1)], ids=["a number", "a word", "a naive instant"])  # noqa: DTZ001
def test_a_delay_is_a_time(delay):
    work = tracker(100, 200, 110)
    with pytest.raises(DelayInvalid, match="by a timedelta or until an aware datetime"):
        work.defer_remainder(delay)
    assert work.current_restriction() == OffsetRange(100, 200)


def test_runs_are_claimed_one_after_the_other_up_to_the_stop():
    work = OffsetRestrictionTracker(OffsetRange(3, 12))
    assert list(claimed_runs(work, 4)) == [range(3, 7), range(7, 11), range(11, 12)]
    work.check_done()


def test_a_restriction_that_is_a_multiple_of_its_runs_is_done_too():
    work = OffsetRestrictionTracker(OffsetRange(0, 8))
    assert list(claimed_runs(work, 4)) == [range(4), range(4, 8)]
    work.check_done()


def test_runs_end_where_another_begins():
    work = OffsetRestrictionTracker(OffsetRange(0, OFFSET_INFINITY))
    runs = claimed_runs(work, 4)
    assert [next(runs), next(runs)] == [range(4), range(4, 8)]
    assert work.try_split(0.0) == (OffsetRange(0, 8), OffsetRange(8, OFFSET_INFINITY))
    assert list(runs) == []
    work.check_done()


@pytest.mark.parametrize(
    ("whole", "claims", "position", "split"),
    [
        (WHOLE, [], 150, (150, 200)),
        (WHOLE, [], 100, None),
        (WHOLE, [], 99, None),
        (WHOLE, [130], 130, None),
        (WHOLE, [130], 131, (131, 200)),
        (WHOLE, [130], 199, (199, 200)),
        (WHOLE, [130], 200, None),
        (WHOLE, [130, 240], 150, None),
        (OffsetRange(100, OFFSET_INFINITY), [130], 150, (150, OFFSET_INFINITY)),
    ],
)
def test_a_known_position_is_where_the_work_is_split(whole, claims, position, split):
    tracker = OffsetRestrictionTracker(whole)
    for claim in claims:
        tracker.try_claim(claim)
    expected = None if split is None else (OffsetRange(100, position), OffsetRange(*split))
    assert tracker.try_split_at(position) == expected
    assert tracker.current_restriction() == (whole if expected is None else expected[0])


class SharesOnly(OffsetRestrictionTracker):
    """Says how work is split by share, and nothing of positions."""

    def try_split(self, fraction_of_remainder):
        return super().try_split(fraction_of_remainder)


@pytest.mark.parametrize(("kind", "at"), [(OffsetRestrictionTracker, 170), (SharesOnly, 149)])
def test_where_a_tracker_knows_no_positions_it_is_split_by_share(kind, at):
    assert split_near(kind(WHOLE), 170, 0.5) == (OffsetRange(100, at), OffsetRange(at, 200))
