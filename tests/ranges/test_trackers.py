"""Trackers of ranges: which records are granted, which readers are stopped, and where a range is split."""

import copy
import pickle
from array import array
from functools import partial

import numpy as np
import pytest

from dagkit.ranges import (
    OFFSET_INFINITY,
    ByteKeyRange,
    ByteKeyRangeTracker,
    ClaimBackwards,
    ClaimBeforeStart,
    GroupedShuffleRangeTracker,
    GrowableOffsetRestrictionTracker,
    LexicographicKeyRangeTracker,
    OffsetRange,
    OffsetRangeTracker,
    OffsetRestrictionTracker,
    OrderedPositionRangeTracker,
    PositionUnmeasured,
    RangeInvalid,
    Split,
    SplitPointMissing,
    SplitPoints,
    UnsplittableRangeTracker,
    UnsplittableRestrictionTracker,
)
from tests.cases import cases


class FloatRangeTracker(OrderedPositionRangeTracker[float]):
    """Positions are floats, evenly spread."""

    @classmethod
    def position_to_fraction(cls, position, start, stop):
        return (position - start) / (stop - start)

    @classmethod
    def fraction_to_position(cls, fraction, start, stop):
        return start + (stop - start) * fraction


OFFSETS = partial(OffsetRangeTracker, 100, 200)
ENDLESS = partial(OffsetRangeTracker, 100, OFFSET_INFINITY)
KEYS = partial(ByteKeyRangeTracker, ByteKeyRange(b"\x12", b"\x56"))
ALL_KEYS = partial(ByteKeyRangeTracker, ByteKeyRange())
WORDS = partial(LexicographicKeyRangeTracker, b"a", b"c")
FLOATS = partial(FloatRangeTracker, 10, 20)
GROUPS = partial(GroupedShuffleRangeTracker, b"\3", b"\t")


def other(position):
    """A record that is no split point."""
    return (position,)


def ask(tracker, *records):
    """The answers of a tracker; a bare position is one of a split point."""
    return [tracker.try_return_record_at(*((False, *r) if isinstance(r, tuple) else (True, r))) for r in records]


def after(tracker, *records):
    assert all(ask(tracker, *records))
    return tracker


@cases(
    "make, records, granted",
    ("offsets, and a reader that was refused stays refused", OFFSETS, [100, 150, 199, 200, 210, other(230)], 3),
    ("the others of a split point", OFFSETS, [101, other(102), 155, other(199), other(210), other(210), 220], 6),
    ("a split point where another record stood", OFFSETS, [110, other(120), other(120), 120], 4),
    ("an empty range", partial(OffsetRangeTracker, 100, 100), [100], 0),
    ("byte keys", KEYS, [b"\x12", b"\x34", b"\x55\xff", b"\x56", b"\x57", other(b"\x57")], 3),
    ("rows that share a key", KEYS, [b"\x34", b"\x34"], 2),
    ("open byte keys", ALL_KEYS, [b"", b"\xff"], 2),
    ("keys in the order of a dictionary", WORDS, [b"a", b"aardvark", b"aardvark", b"az", b"c"], 4),
    ("positions of another type", FLOATS, [10, 15.5, 15.5, 19.9, 20], 4),
    ("groups", GROUPS, [b"\3", other(b"\3"), b"\5", other(b"\5"), other(b"\5"), b"\t"], 5),
)
def test_records_inside_are_granted_and_the_first_outside_is_refused(make, records, granted):
    assert ask(make(), *records) == [True] * granted + [False] * (len(records) - granted)


FIRST = "first record of a range must be a split point"


@cases(
    "make, records, fault, words",
    ("the first", OFFSETS, [other(120)], SplitPointMissing, f"{FIRST}, but the one at 120 is not"),
    ("a claim before the start", OFFSETS, [99], ClaimBeforeStart, "claimed 99, before the range's start 100"),
    ("a split point backwards", OFFSETS, [120, 110], ClaimBackwards, "claimed 110 after 120"),
    ("another record backwards", OFFSETS, [120, other(110)], ClaimBackwards, "claimed 110 after 120"),
    ("a split point twice", OFFSETS, [120, 120], ClaimBackwards, "claimed 120 twice"),
    ("twice with a record between", OFFSETS, [120, other(120), 120], ClaimBackwards, "claimed 120 twice"),
    ("twice where a record stood first", OFFSETS, [120, other(130), 130, 130], ClaimBackwards, "claimed 130 twice"),
    ("between others", OFFSETS, [120, other(130), 130, other(130), 130], ClaimBackwards, "claimed 130 twice"),
    ("after others", OFFSETS, [120, other(125), 130, other(130), 130], ClaimBackwards, "claimed 130 twice"),
    ("behind a refused claim", OFFSETS, [240, 150], ClaimBackwards, "claimed 150 after 240"),
    ("a refused claim again", OFFSETS, [240, 240], ClaimBackwards, "claimed 240 twice"),
    ("another behind a refused claim", OFFSETS, [240, other(230)], ClaimBackwards, "claimed 230 after 240"),
    ("keys: the first", KEYS, [other(b"\x34")], SplitPointMissing, FIRST),
    ("keys: before the start", KEYS, [b"\x11"], ClaimBeforeStart, "before the range's start"),
    ("keys: backwards", KEYS, [b"\x34", b"\x33"], ClaimBackwards, "claims go forward"),
    ("keys: another backwards", KEYS, [b"\x34", other(b"\x33")], ClaimBackwards, "claims go forward"),
    ("floats: before the start", FLOATS, [5], ClaimBeforeStart, "claimed 5, before"),
    ("floats: backwards", FLOATS, [15, 14], ClaimBackwards, "14 after 15"),
    ("groups: the first", GROUPS, [other(b"\4")], SplitPointMissing, "first record of a range"),
    ("groups: before the start", GROUPS, [b"\2"], ClaimBeforeStart, "before the range's start"),
    ("groups: backwards", GROUPS, [b"\5", b"\4"], ClaimBackwards, "claims go forward"),
    ("groups: another backwards", GROUPS, [b"\5", other(b"\4")], ClaimBackwards, "claims go forward"),
    ("groups: two at one position", GROUPS, [b"\5", b"\5"], ClaimBackwards, "twice"),
    ("groups: a record of none", GROUPS, [b"\5", other(b"\6")], SplitPointMissing, "must be in the group at"),
)
def test_a_reader_that_would_lose_or_double_records_is_stopped(make, records, fault, words):
    with pytest.raises(fault, match=words):
        ask(make(), *records)


KEY = Split(b"\x45", (0x45 - 0x12) / (0x56 - 0x12), b"\x56")
OUTSIDE = [b"\x11", b"\x12", b"\x34", b"\x56", b"\x57"]


@cases(
    "make, records, refused, split",
    ("right behind the last claim", OFFSETS, [110], [99, 100, 110, 200, 201], Split(111, 0.11, 200)),
    ("in the middle", OFFSETS, [110], [], Split(150, 0.5, 200)),
    ("before the last offset", OFFSETS, [110], [], Split(199, 0.99, 200)),
    ("behind records beyond the stop", OFFSETS, [150, other(170)], [165], Split(171, 0.71, 200)),
    ("not where a reader is done", OFFSETS, [110, 210], [150], None),
    ("not without an end", ENDLESS, [150, 2**40], [2**41], None),
    ("byte keys", KEYS, [b"\x34"], OUTSIDE, KEY),
    ("all byte keys", ALL_KEYS, [b"\xc0"], [], Split(b"\xe0", 0.875, b"")),
    ("rows that share a key stay together", KEYS, [b"\x34", b"\x34"], [b"\x34"], None),
    ("keys in the order of a dictionary", WORDS, [b"a"], [b"a", b"c"], Split(b"b", 0.5, b"c")),
    ("an open range of them", LexicographicKeyRangeTracker, [b"\x40"], [], Split(b"\x80", 0.5, None)),
    ("positions of another type", FLOATS, [12], [9, 10, 12, 20, 21], Split(15, 0.5, 20)),
    ("groups", GROUPS, [b"\5"], [b"\2", b"\3", b"\5", b"\t", b"\n"], Split(b"\5\1", None, b"\t")),
    ("open groups", GroupedShuffleRangeTracker, [b"\5"], [], Split(b"\xc8", None, None)),
)
def test_splits_take_unconsumed_positions_only_and_the_rest_belongs_to_another(make, records, refused, split):
    tracker = make()
    ask(tracker, *records)
    bounds = tracker.start_position(), tracker.stop_position()
    assert [tracker.try_split_at_position(position) for position in refused] == [None] * len(refused)
    assert (tracker.start_position(), tracker.stop_position()) == bounds
    if split:
        assert make().try_split_at_position(split.position) is None, "nothing is claimed yet"
        assert tracker.try_split_at_position(split.position) == split
        assert tracker.try_split_at_position(split.position) is None
        assert (tracker.start_position(), tracker.stop_position()) == (bounds[0], split.position)
        assert not tracker.try_claim(split.position)


@cases(
    "make, records, fractions",
    ("each offset, and beyond the stop", partial(OffsetRangeTracker, 3, 6), [3, 4, 5, other(6)], [0, 1 / 3, 2 / 3, 1]),
    ("few offsets, and a refusal", OFFSETS, [110, 150, 195, 240], [0.1, 0.5, 0.95, 1]),
    ("no end", ENDLESS, [150, 2**40], [0, 0]),
    ("byte keys", ALL_KEYS, [b"", b"\x80", b"\xc0"], [0, 0.5, 0.75]),
    ("beyond the stop", KEYS, [b"\x34", other(b"\x99")], [0.5, 1]),
    ("an open range of keys", LexicographicKeyRangeTracker, [b"\x40"], [0.25]),
    ("positions of another type", FLOATS, [15], [0.5]),
    ("groups have no distances", GROUPS, [b"\5", b"\t"], [None, 1]),
)
def test_the_fraction_consumed_follows_the_last_record(make, records, fractions):
    tracker = make()
    assert tracker.fraction_consumed() == 0.0
    assert [(ask(tracker, record), tracker.fraction_consumed())[1] for record in records] == fractions


def test_the_fraction_consumed_is_of_what_splits_left():
    tracker = after(OFFSETS(), 110)
    assert tracker.try_split_at_position(150)
    assert tracker.try_split_at_position(120) == Split(120, 0.4, 150)
    assert tracker.fraction_consumed() == 0.5


@cases(
    "make, positions",
    ("offsets", partial(OffsetRangeTracker, 3, 6), {0: 3, 1 / 6: 4, 0.333: 4, 0.334: 5, 0.666: 5, 0.667: 6, 1: 6}),
    ("offsets of a huge range", partial(OffsetRangeTracker, 2**60 + 1, 2**62 - 1), {1.0: 2**62 - 1}),
    ("an odd one", partial(OffsetRangeTracker, 2**60 + 1, 2**60 + 4), {0.334: 2**60 + 3}),
    ("byte keys", ALL_KEYS, {0.5: b"\x80", 1.0: b""}),
    ("positions of another type", FLOATS, {0.25: 12.5}),
)
def test_a_position_at_a_fraction_is_rounded_up(make, positions):
    for fraction, position in positions.items():
        found = make().position_at_fraction(fraction)
        assert (found.rstrip(b"\0") if isinstance(found, bytes) else found) == position


@cases(
    "make, words",
    ("no end", ENDLESS, "from 100 can be computed from a fraction: it has no end"),
    ("groups", GROUPS, "have no distances"),
)
def test_some_ranges_have_no_position_at_a_fraction(make, words):
    with pytest.raises(PositionUnmeasured, match=words):
        make().position_at_fraction(0.5)


@pytest.mark.parametrize("side", [None, b""])
def test_a_side_of_groups_without_a_bound_is_open(side):
    tracker = GroupedShuffleRangeTracker(side, side)
    assert (tracker.start_position(), tracker.stop_position()) == (None, None)
    assert tracker.claim_many([b"\0", b"\5", b"\xff\xff"]) == 3
    assert (ALL_KEYS().start_position(), ALL_KEYS().stop_position()) == (b"", b"")


FLOAT = "OFFSET_INFINITY is the stop of a range without an end"


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((200, 100), "stops before it starts"),
        ((None, 100), "offsets are integers"),
        ((0, None), "offsets are integers; OFFSET_INFINITY is the stop"),
        ((0, 10.5), "offsets are integers"),
        ((0, float("inf")), FLOAT),
        ((OFFSET_INFINITY, OFFSET_INFINITY), "only a stop may be infinite"),
        ((0, OFFSET_INFINITY + 1), "end at OFFSET_INFINITY"),
    ],
)
@pytest.mark.parametrize("kind", [OffsetRange, OffsetRangeTracker])
def test_bounds_that_are_no_range_of_offsets_are_refused(kind, bounds, words):
    with pytest.raises(RangeInvalid, match=words):
        kind(*bounds)


@pytest.mark.parametrize(
    ("kind", "bounds", "words"),
    [
        (ByteKeyRange, (b"b", b"a"), "holds no key"),
        (ByteKeyRange, (b"a", b"a"), "holds no key"),
        (ByteKeyRange, ("a", "b"), "keys are bytes"),
        (ByteKeyRange, (None, b""), "are bytes"),
        (FloatRangeTracker, (20, 10), "stops before it starts"),
        (GroupedShuffleRangeTracker, (b"\t", b"\3"), "stops before it starts"),
    ],
)
def test_bounds_that_are_no_range_are_refused(kind, bounds, words):
    with pytest.raises(RangeInvalid, match=words):
        kind(*bounds)


def test_what_a_subclass_raises_leaves_the_range_as_it_was():
    class Broken(FloatRangeTracker):
        @classmethod
        def position_to_fraction(cls, position, start, stop):
            raise ArithmeticError("no idea")

    tracker = after(Broken(10, 20), 12)
    with pytest.raises(ArithmeticError, match="no idea"):
        tracker.try_split_at_position(15)
    assert tracker.stop_position() == 20
    assert tracker.try_claim(18)


def test_split_points_are_counted_behind_the_current_one():
    tracker = OffsetRangeTracker(100, 400)
    tracker.set_split_points_unclaimed_callback(lambda stop: stop // 5)
    found = [tracker.split_points()]
    for position in (120, 140, -200, 150, 180, 210):
        tracker.try_claim(position) if position > 0 else tracker.try_split_at_position(-position)
        found.append(tracker.split_points())
    assert found == [(0, 81), (0, 81), (1, 81), (1, 41), (2, 41), (3, 41), (3, 41)]


def test_split_points_left_are_unknown_unless_the_reader_says_who_may_ask_the_tracker_meanwhile():
    tracker = after(OffsetRangeTracker(100, 400), 120, 140)
    assert tracker.split_points() == SplitPoints(1, None)
    tracker.set_split_points_unclaimed_callback(lambda stop: None)
    assert tracker.split_points() == SplitPoints(1, None)
    assert (after(FLOATS(), 12).split_points(), after(GROUPS(), b"\5").split_points()) == (SplitPoints(0, None),) * 2
    tracker = after(OffsetRangeTracker(100, 400), 120)
    tracker.set_split_points_unclaimed_callback(lambda stop: stop - tracker.position_at_fraction(0.5))
    assert tracker.split_points() == SplitPoints(0, 151)


SHAPES = {
    "a list": list,
    "a tuple": tuple,
    "an array": lambda run: array("q", run),
    "numpy, signed": lambda run: np.array(list(run), dtype=np.int64),
    "numpy, unsigned": lambda run: np.array(list(run), dtype=np.uint64),
    "numpy, small": lambda run: np.array(list(run), dtype=np.uint8),
    "numpy, every second": lambda run: np.repeat(np.array(list(run)), 2)[::2],
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(("stop", "granted"), [(200, 4), (114, 4), (113, 3), (108, 2), (107, 1), (101, 1), (100, 0)])
def test_a_run_is_granted_up_to_the_stop(shape, stop, granted):
    assert OffsetRangeTracker(100, stop).claim_many(shape([100, 107, 110, 113])) == granted


def test_runs_of_keys_and_of_numbers_that_need_not_be_made_are_granted_likewise():
    assert WORDS().claim_many([b"a", b"ab", b"ab", b"b", b"c", b"d"]) == 4
    assert OffsetRangeTracker(0, 10**12).claim_many(range(0, 10**13, 7)) == -(-(10**12) // 7)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_positions_of_64_bits_are_exact(dtype):
    top = 2**63 - 1
    assert OffsetRangeTracker(0, top - 1).claim_many(np.array([top - 3, top - 2, top - 1], dtype=dtype)) == 2


def test_an_empty_run_claims_nothing_and_who_got_less_than_it_asked_for_is_done():
    tracker = OFFSETS()
    assert (tracker.claim_many([]), tracker.is_started(), tracker.claim_many([100])) == (0, False, 1)
    tracker = OFFSETS()
    assert tracker.claim_many([150, 199, 230]) == 2
    assert (tracker.try_split_at_position(199), tracker.fraction_consumed()) == (None, 1.0)
    assert tracker.claim_many([240, 250]) == 0
    with pytest.raises(ClaimBackwards, match="199 after 240"):
        tracker.claim_many([199])


@pytest.mark.parametrize("run", [[150, 140], [150, 150]], ids=["falls", "stands"])
def test_a_run_that_does_not_rise_is_refused(run):
    with pytest.raises(ClaimBackwards, match="claimed 1"):
        OFFSETS().claim_many(run)


def test_what_is_kept_of_an_array_is_plain_and_floats_are_no_offsets():
    tracker = OFFSETS()
    tracker.claim_many(np.array([100, 150], dtype=np.uint8))
    assert "at 150" in repr(tracker)
    tracker.claim_many(np.array([160, 240], dtype=np.uint8))
    assert type(tracker.__getstate__()["_last"]) is int
    with pytest.raises(TypeError, match="integer"):
        OFFSETS().claim_many(np.array([100.0, 150.5]))


def fixed_estimate():
    return 150


def restriction():
    return OffsetRestrictionTracker(OffsetRange(100, 200))


def growing():
    return GrowableOffsetRestrictionTracker(OffsetRange(100, OFFSET_INFINITY), fixed_estimate)


COPIES = {"copied": copy.copy, "copied deeply": copy.deepcopy, "pickled": lambda t: pickle.loads(pickle.dumps(t))}  # noqa: S301 - made here


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@cases(
    "make, first, second",
    ("offsets", OFFSETS, 110, 120),
    ("byte keys", ALL_KEYS, b"b", b"c"),
    ("groups", GroupedShuffleRangeTracker, b"b", b"c"),
    ("dictionary keys", LexicographicKeyRangeTracker, b"b", b"c"),
    ("unsplittable", lambda: UnsplittableRangeTracker(OFFSETS()), 110, 120),
    ("a restriction", restriction, 110, 120),
    ("a growing one", growing, 110, 120),
    ("an unsplittable one", lambda: UnsplittableRestrictionTracker(restriction()), 110, 120),
)
def test_a_copy_goes_on_from_there_on_its_own(make, first, second, copied):
    tracker = make()
    assert tracker.try_claim(first)
    twin = copied(tracker)
    assert twin.try_claim(second)
    assert tracker.try_claim(second)
    with pytest.raises(ClaimBackwards, match=r"twice|go forward"):
        twin.try_claim(first)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_split_of_a_copy_leaves_the_original(copied):
    tracker = after(OFFSETS(), 110)
    twin = copied(tracker)
    twin.set_split_points_unclaimed_callback(lambda stop: 7)
    assert twin.try_split_at_position(150)
    assert (twin.stop_position(), tracker.stop_position()) == (150, 200)
    assert copied(twin).split_points() == (0, None)


def test_a_tracker_reports_where_it_is():
    tracker = OFFSETS()
    assert repr(tracker) == "<OffsetRangeTracker [100, 200) not started>"
    assert repr(after(tracker, 110)) == "<OffsetRangeTracker [100, 200) at 110>"
    assert not tracker.try_claim(240)
    assert repr(tracker) == "<OffsetRangeTracker [100, 200) done>"


def test_an_unsplittable_range_is_tracked_and_never_split():
    tracker = UnsplittableRangeTracker(OFFSETS())
    tracker.set_split_points_unclaimed_callback(lambda stop: 7)
    assert tracker.try_claim(110)
    assert tracker.try_split_at_position(150) is None
    assert (tracker.start_position(), tracker.stop_position()) == (100, 200)
    assert (tracker.fraction_consumed(), tracker.position_at_fraction(0.5)) == (0.1, 150)
    assert tracker.try_return_record_at(False, 111)
    assert tracker.claim_many([150, 160, 210]) == 2
    assert tracker.split_points() == SplitPoints(0, 1)
    with pytest.raises(ClaimBackwards, match="150 after 210"):
        tracker.try_claim(150)
    with pytest.raises(AssertionError, match="wraps a R"):
        UnsplittableRangeTracker(OffsetRange(100, 200))
