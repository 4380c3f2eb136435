"""Ranges of integers: the tables of the contract, and the arithmetic of fractions."""

import pytest

from dagkit.ranges import (
    OFFSET_INFINITY,
    ClaimBackwards,
    ClaimBeforeStart,
    FractionInvalid,
    OffsetRange,
    OffsetRangeTracker,
    PositionUnmeasured,
    RangeInvalid,
    Split,
    SplitPointMissing,
    SplitPoints,
)
from tests.cases import cases


def after(tracker, *claims):
    for claim in claims:
        assert tracker.try_claim(claim)
    return tracker


def test_claims_inside_are_granted_and_the_first_outside_is_refused():
    tracker = OffsetRangeTracker(100, 200)
    assert [tracker.try_claim(p) for p in (100, 150, 199, 200)] == [True, True, True, False]


def test_who_was_refused_stays_refused():
    tracker = after(OffsetRangeTracker(100, 200), 150)
    assert not tracker.try_claim(210)
    assert not tracker.try_claim(220)
    assert not tracker.try_return_record_at(False, 230)


def test_a_record_that_is_no_split_point_belongs_to_the_last_one_also_beyond_the_stop():
    tracker = OffsetRangeTracker(100, 200)
    records = [(True, 101), (False, 102), (False, 150), (True, 155), (False, 199), (False, 210), (True, 220)]
    assert [tracker.try_return_record_at(*r) for r in records] == [True, True, True, True, True, True, False]


def test_a_range_may_be_empty():
    tracker = OffsetRangeTracker(100, 100)
    assert tracker.fraction_consumed() == 0.0
    assert not tracker.try_claim(100)


@pytest.mark.parametrize(
    ("records", "fault", "words"),
    [
        ([(False, 120)], SplitPointMissing, "first record of a range must be a split point, but the one at 120 is not"),
        ([(True, 99)], ClaimBeforeStart, "claimed 99, before the range's start 100"),
        ([(True, 120), (True, 110)], ClaimBackwards, "claimed 110 after 120"),
        ([(True, 120), (False, 110)], ClaimBackwards, "claimed 110 after 120"),
        ([(True, 120), (True, 120)], ClaimBackwards, "claimed 120 twice"),
        ([(True, 120), (False, 120), (True, 120)], ClaimBackwards, "claimed 120 twice"),
        ([(True, 120), (False, 130), (True, 130), (True, 130)], ClaimBackwards, "claimed 130 twice"),
        ([(True, 120), (False, 130), (True, 130), (False, 130), (True, 130)], ClaimBackwards, "claimed 130 twice"),
        ([(True, 120), (False, 125), (True, 130), (False, 130), (True, 130)], ClaimBackwards, "claimed 130 twice"),
        ([(True, 240), (True, 150)], ClaimBackwards, "claimed 150 after 240"),
        ([(True, 240), (True, 240)], ClaimBackwards, "claimed 240 twice"),
        ([(True, 240), (False, 230)], ClaimBackwards, "claimed 230 after 240"),
    ],
    ids=[
        "the first record is no split point",
        "a claim before the start",
        "a split point backwards",
        "another record backwards",
        "a split point twice",
        "a split point twice with a record between",
        "a split point twice where a record stood first",
        "a split point twice between records that stand there too",
        "a split point twice after records without one",
        "behind a claim that was refused",
        "a refused claim again",
        "another record behind a claim that was refused",
    ],
)
def test_a_reader_that_would_lose_or_double_records_is_stopped(records, fault, words):
    tracker = OffsetRangeTracker(100, 200)
    with pytest.raises(fault, match=words):  # noqa: PT012 - any of the claims may be the one
        for record in records:
            tracker.try_return_record_at(*record)


def test_a_split_point_may_stand_where_the_record_before_it_stood():
    tracker = OffsetRangeTracker(100, 200)
    assert [tracker.try_return_record_at(*r) for r in [(True, 110), (False, 120), (False, 120), (True, 120)]] == [
        True
    ] * 4


def test_a_fault_changes_nothing():
    tracker = after(OffsetRangeTracker(100, 200), 120)
    with pytest.raises(ClaimBackwards, match="110 after 120"):
        tracker.try_claim(110)
    assert after(tracker, 130).try_split_at_position(131) == Split(131, 0.31, 200)


@cases(
    "claims, position, split",
    ("before the first claim", [], 150, None),
    ("at the start", [110], 100, None),
    ("at the last claim", [110], 110, None),
    ("right behind the last claim", [110], 111, Split(111, 0.11, 200)),
    ("in the middle", [110], 150, Split(150, 0.5, 200)),
    ("before the last offset", [110], 199, Split(199, 0.99, 200)),
    ("at the stop", [110], 200, None),
    ("beyond the stop", [110], 201, None),
    ("before the start", [110], 99, None),
)
def test_splits(claims, position, split):
    tracker = after(OffsetRangeTracker(100, 200), *claims)
    assert tracker.try_split_at_position(position) == split
    assert tracker.stop_position() == (position if split else 200)
    assert tracker.start_position() == 100


def test_after_a_split_the_rest_belongs_to_another():
    tracker = after(OffsetRangeTracker(100, 200), 110)
    assert tracker.try_split_at_position(150) == Split(150, 0.5, 200)
    assert tracker.try_split_at_position(150) is None
    assert tracker.try_split_at_position(120) == Split(120, 0.4, 150)
    assert not tracker.try_claim(120)


def test_records_beyond_the_stop_are_consumed():
    tracker = after(OffsetRangeTracker(100, 200), 150)
    assert tracker.try_return_record_at(False, 170)
    assert tracker.try_split_at_position(165) is None
    assert tracker.try_split_at_position(171) == Split(171, 0.71, 200)


def test_who_is_done_gives_nothing_away():
    tracker = after(OffsetRangeTracker(100, 200), 110)
    assert not tracker.try_claim(210)
    assert tracker.try_split_at_position(150) is None
    assert tracker.stop_position() == 200


def test_a_range_without_an_end_is_read_but_not_split():
    tracker = after(OffsetRangeTracker(100, OFFSET_INFINITY), 150, 2**40)
    assert tracker.fraction_consumed() == 0.0
    assert tracker.try_split_at_position(2**41) is None
    with pytest.raises(PositionUnmeasured, match="from 100 can be computed from a fraction: it has no end"):
        tracker.position_at_fraction(0.5)


@cases(
    "start, stop, words",
    ("backwards", 200, 100, "stops before it starts"),
    ("no start", None, 100, "offsets are integers"),
    ("no stop", 0, None, "offsets are integers; OFFSET_INFINITY is the stop"),
    ("half an offset", 0, 10.5, "offsets are integers"),
    ("a float's infinity", 0, float("inf"), "OFFSET_INFINITY is the stop of a range without an end"),
    ("an infinite start", OFFSET_INFINITY, OFFSET_INFINITY, "only a stop may be infinite"),
    ("too far", 0, OFFSET_INFINITY + 1, "end at OFFSET_INFINITY"),
)
@pytest.mark.parametrize("kind", [OffsetRange, OffsetRangeTracker])
def test_bounds_that_are_no_range_are_refused(kind, start, stop, words):
    with pytest.raises(RangeInvalid, match=words):
        kind(start, stop)


@pytest.mark.parametrize(
    ("start", "stop", "records", "fractions"),
    [
        (3, 6, [(True, 3), (True, 4), (True, 5), (False, 6), (False, 7)], [0.0, 1 / 3, 2 / 3, 1.0, 1.0]),
        (100, 200, [(True, 110), (True, 150), (True, 195), (True, 240)], [0.1, 0.5, 0.95, 1.0]),
    ],
    ids=["each offset, and records beyond the stop", "few offsets, and a refusal"],
)
def test_the_fraction_consumed_follows_the_last_record(start, stop, records, fractions):
    tracker = OffsetRangeTracker(start, stop)
    assert tracker.fraction_consumed() == 0.0
    found = []
    for record in records:
        tracker.try_return_record_at(*record)
        found.append(tracker.fraction_consumed())
    assert found == fractions


def test_the_fraction_consumed_is_of_what_a_split_left():
    tracker = after(OffsetRangeTracker(100, 200), 110)
    tracker.try_split_at_position(120)
    assert tracker.fraction_consumed() == 0.5


@pytest.mark.parametrize(
    ("fraction", "position"), [(0, 3), (1 / 6, 4), (0.333, 4), (0.334, 5), (0.666, 5), (0.667, 6), (1, 6)]
)
def test_a_position_at_a_fraction_is_rounded_up(fraction, position):
    assert OffsetRangeTracker(3, 6).position_at_fraction(fraction) == position


def test_fractions_of_huge_ranges_stay_inside():
    start, stop = 2**60 + 1, 2**62 - 1
    tracker = OffsetRangeTracker(start, stop)
    assert tracker.position_at_fraction(1.0) == stop
    assert OffsetRangeTracker(0, 2**60 + 1).position_at_fraction(1.0) == 2**60 + 1
    assert tracker.position_at_fraction(1.0 - 2**-53) <= stop
    assert OffsetRangeTracker(2**60 + 1, 2**60 + 4).position_at_fraction(0.334) == 2**60 + 3


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_lies_between_0_and_1(fraction):
    with pytest.raises(FractionInvalid, match="between 0 and 1"):
        OffsetRangeTracker(3, 6).position_at_fraction(fraction)


def test_split_points_are_counted_behind_the_current_one():
    tracker = OffsetRangeTracker(100, 400)
    tracker.set_split_points_unclaimed_callback(lambda stop: stop // 5)
    found = [tracker.split_points()]
    for claim in (120, 140):
        tracker.try_claim(claim)
        found.append(tracker.split_points())
    tracker.try_split_at_position(200)
    found.append(tracker.split_points())
    for claim in (150, 180, 210):
        tracker.try_claim(claim)
        found.append(tracker.split_points())
    assert found == [(0, 81), (0, 81), (1, 81), (1, 41), (2, 41), (3, 41), (3, 41)]


def test_split_points_left_are_unknown_unless_the_reader_says():
    tracker = after(OffsetRangeTracker(100, 400), 120, 140)
    assert tracker.split_points() == SplitPoints(1, None)
    tracker.set_split_points_unclaimed_callback(lambda stop: None)
    assert tracker.split_points() == SplitPoints(1, None)


def test_the_reader_may_ask_the_tracker_while_it_is_asked():
    tracker = after(OffsetRangeTracker(100, 400), 120)
    tracker.set_split_points_unclaimed_callback(lambda stop: stop - tracker.position_at_fraction(0.5))
    assert tracker.split_points() == SplitPoints(0, 151)


def bounds(pieces):
    return [(p.start, p.stop) for p in pieces]


@cases(
    "whole, desired, minimum, pieces",
    ("a tail of some size is a piece", (10, 100), 25, 1, [(10, 35), (35, 60), (60, 85), (85, 100)]),
    ("pieces are never below the least size", (10, 100), 5, 25, [(10, 35), (35, 60), (60, 100)]),
    ("a small tail stays with the last piece", (10, 90), 25, 1, [(10, 35), (35, 60), (60, 90)]),
    ("an odd offset is left over", (0, 7), 3, 1, [(0, 3), (3, 6), (6, 7)]),
    ("nothing has no pieces", (5, 5), 3, 1, []),
    ("an infinite size is one piece", (0, 7), float("inf"), 1, [(0, 7)]),
    ("half an offset is a whole one", (0, 7), 2.5, 1, [(0, 3), (3, 6), (6, 7)]),
    ("what has no end is one piece", (0, OFFSET_INFINITY), 64, 1, [(0, OFFSET_INFINITY)]),
    (
        "what nearly has no end has pieces",
        (0, OFFSET_INFINITY - 1),
        2**62,
        1,
        [(0, 2**62), (2**62, OFFSET_INFINITY - 1)],
    ),
)
def test_ranges_are_split_beforehand(whole, desired, minimum, pieces):
    assert bounds(OffsetRange(*whole).split(desired, minimum)) == pieces


def test_a_million_pieces_are_made_one_by_one():
    pieces = OffsetRange(0, 2**62).split(1)
    assert bounds([next(pieces), next(pieces)]) == [(0, 1), (1, 2)]


@pytest.mark.parametrize(("desired", "minimum"), [(0, 1), (-1, 1), (float("nan"), 1), (5, 0)])
def test_pieces_have_a_size(desired, minimum):
    with pytest.raises(RangeInvalid, match="can be cut"):
        list(OffsetRange(0, 10).split(desired, minimum))


@cases(
    "whole, end, kept",
    ("a range that ends is read to its end", OffsetRange(5, 10), None, OffsetRange(5, 10)),
    ("also if less is there", OffsetRange(5, 10), 7, OffsetRange(5, 10)),
    ("one without an end is let go", OffsetRange(5, OFFSET_INFINITY), None, None),
    ("or read up to the end it has by now", OffsetRange(5, OFFSET_INFINITY), 90, OffsetRange(5, 90)),
    ("which may be behind it", OffsetRange(5, OFFSET_INFINITY), 3, OffsetRange(5, 5)),
)
def test_draining(whole, end, kept):
    assert whole.truncate(end) == kept


def test_ranges_read_as_they_are_written():
    assert repr(OffsetRange(1, 2)) == "OffsetRange(1, 2)"
    assert repr(OffsetRange(1, OFFSET_INFINITY)) == "OffsetRange(1, OFFSET_INFINITY)"
    assert OffsetRange(1, 5).size == 4
    assert OffsetRange(1, 5).split_at(3) == (OffsetRange(1, 3), OffsetRange(3, 5))
