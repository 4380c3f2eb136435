"""Claims in runs, and copies that go their own way."""

import copy
import pickle
from array import array

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
    UnsplittableRangeTracker,
    UnsplittableRestrictionTracker,
)
from tests.cases import cases

SHAPES = {
    "a list": list,
    "a tuple": tuple,
    "an array": lambda run: array("q", run),
    "numpy, signed": lambda run: np.array(list(run), dtype=np.int64),
    "numpy, unsigned": lambda run: np.array(list(run), dtype=np.uint64),
    "numpy, small": lambda run: np.array(list(run), dtype=np.uint8),
    "numpy, every second": lambda run: np.repeat(np.array(list(run)), 2)[::2],
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize(
    ("stop", "granted"),
    [(200, 4), (114, 4), (113, 3), (108, 2), (107, 1), (101, 1), (100, 0)],
    ids=["all", "all, just", "all but the last", "two", "the stop is not in", "one", "none"],
)
def test_a_run_is_granted_up_to_the_stop(shape, stop, granted):
    tracker = OffsetRangeTracker(100, stop)
    assert tracker.claim_many(shape([100, 107, 110, 113])) == granted


def test_a_run_of_numbers_need_not_be_made():
    tracker = OffsetRangeTracker(0, 10**12)
    assert tracker.claim_many(range(0, 10**13, 7)) == -(-(10**12) // 7)


def test_positions_of_64_bits_are_exact():
    top = 2**63 - 1
    for dtype in (np.int64, np.uint64):
        assert OffsetRangeTracker(0, top - 1).claim_many(np.array([top - 3, top - 2, top - 1], dtype=dtype)) == 2


def test_a_run_of_keys_is_granted_likewise():
    tracker = LexicographicKeyRangeTracker(b"a", b"c")
    assert tracker.claim_many([b"a", b"ab", b"ab", b"b", b"c", b"d"]) == 4


def test_an_empty_run_claims_nothing():
    tracker = OffsetRangeTracker(100, 200)
    assert tracker.claim_many([]) == 0
    assert not tracker.is_started()
    assert tracker.claim_many([100]) == 1


def test_who_got_less_than_it_asked_for_is_done():
    tracker = OffsetRangeTracker(100, 200)
    assert tracker.claim_many([150, 199, 230]) == 2
    assert tracker.try_split_at_position(199) is None
    assert tracker.fraction_consumed() == 1.0
    assert tracker.claim_many([240, 250]) == 0
    with pytest.raises(ClaimBackwards, match="199 after 240"):
        tracker.claim_many([199])


def test_a_split_takes_what_lies_behind_the_run():
    tracker = OffsetRangeTracker(100, 200)
    tracker.claim_many([100, 150])
    assert tracker.try_split_at_position(150) is None
    assert tracker.try_split_at_position(151)
    assert tracker.claim_many([160, 170]) == 0


def test_split_points_are_counted_one_by_one():
    tracker = OffsetRangeTracker(100, 200)
    tracker.claim_many(range(100, 150))
    assert tracker.split_points().consumed == 49
    tracker.claim_many(range(190, 210))
    assert tracker.split_points().consumed == 59


@cases(
    "runs, fault, words",
    ("before the start", [[99, 150]], ClaimBeforeStart, "claimed 99, before"),
    ("overlapping runs", [[100, 150], [150, 160]], ClaimBackwards, "claimed 150 twice"),
    ("a run backwards", [[100, 150], [140, 160]], ClaimBackwards, "claimed 140 after 150"),
    ("a run that falls", [[150, 140]], ClaimBackwards, "claimed 140 after 150"),
    ("a run that stands", [[150, 150]], ClaimBackwards, "claimed 150 twice"),
)
def test_a_run_that_would_lose_or_double_records_is_stopped(runs, fault, words):
    tracker = OffsetRangeTracker(100, 200)
    with pytest.raises(fault, match=words):  # noqa: PT012 - any of the claims may be the one
        for run in runs:
            tracker.claim_many(run)


def test_what_is_kept_of_an_array_is_plain():
    tracker = OffsetRangeTracker(100, 200)
    tracker.claim_many(np.array([100, 150], dtype=np.uint8))
    assert "at 150" in repr(tracker)
    tracker.claim_many(np.array([160, 240], dtype=np.uint8))
    assert type(tracker.__getstate__()["_last"]) is int


def test_floats_are_no_offsets():
    with pytest.raises(TypeError, match="integer"):
        OffsetRangeTracker(100, 200).claim_many(np.array([100.0, 150.5]))


def fixed_estimate():
    return 150


TRACKERS = {
    "offsets": (lambda: OffsetRangeTracker(100, 200), [110, 120]),
    "byte keys": (lambda: ByteKeyRangeTracker(ByteKeyRange(b"a")), [b"b", b"c"]),
    "groups": (GroupedShuffleRangeTracker, [b"b", b"c"]),
    "dictionary keys": (lambda: LexicographicKeyRangeTracker(b"a"), [b"b", b"c"]),
    "unsplittable": (lambda: UnsplittableRangeTracker(OffsetRangeTracker(100, 200)), [110, 120]),
    "a restriction": (lambda: OffsetRestrictionTracker(OffsetRange(100, 200)), [110, 120]),
    "a growing one": (
        lambda: GrowableOffsetRestrictionTracker(OffsetRange(100, OFFSET_INFINITY), fixed_estimate),
        [110, 120],
    ),
    "an unsplittable one": (
        lambda: UnsplittableRestrictionTracker(OffsetRestrictionTracker(OffsetRange(100, 200))),
        [110, 120],
    ),
}
COPIES = {"copied": copy.copy, "copied deeply": copy.deepcopy, "pickled": lambda t: pickle.loads(pickle.dumps(t))}  # noqa: S301 - made here


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize(("make", "positions"), TRACKERS.values(), ids=TRACKERS.keys())
def test_a_copy_goes_on_from_there_on_its_own(make, positions, copied):
    tracker = make()
    assert tracker.try_claim(positions[0])
    twin = copied(tracker)
    assert twin.try_claim(positions[1])
    assert tracker.try_claim(positions[1])
    with pytest.raises(ClaimBackwards, match=r"twice|go forward"):
        twin.try_claim(positions[0])


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_split_of_a_copy_leaves_the_original(copied):
    tracker = OffsetRangeTracker(100, 200)
    tracker.try_claim(110)
    twin = copied(tracker)
    twin.set_split_points_unclaimed_callback(lambda stop: 7)
    assert twin.try_split_at_position(150)
    assert (twin.stop_position(), tracker.stop_position()) == (150, 200)
    assert copied(twin).split_points() == (0, None)


def test_a_tracker_reports_where_it_is():
    tracker = OffsetRangeTracker(100, 200)
    told = [repr(tracker)]
    for claim in (110, 240):
        tracker.try_claim(claim)
        told.append(repr(tracker))
    assert told == [
        "<OffsetRangeTracker [100, 200) not started>",
        "<OffsetRangeTracker [100, 200) at 110>",
        "<OffsetRangeTracker [100, 200) done>",
    ]
