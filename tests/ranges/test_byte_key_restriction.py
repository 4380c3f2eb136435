"""Restrictions of byte keys: claims of rows, where work on them is split, and when it is done."""

import pytest

from dagkit.ranges import (
    NO_KEYS,
    ByteKeyRange,
    ByteKeyRestrictionTracker,
    FractionInvalid,
    UnsplittableRestrictionTracker,
    WorkUnclaimed,
)


def tracker(start=b"a", stop=b"m", *claims):
    made = ByteKeyRestrictionTracker(ByteKeyRange(start, stop))
    for claim in claims:
        made.try_claim(claim)
    return made


def test_rows_that_share_a_key_stay_together():
    reading = tracker(b"a", b"m", b"b", b"b")
    assert reading.try_split(0.0) == (ByteKeyRange(b"a", b"b\0"), ByteKeyRange(b"b\0", b"m"))
    assert reading.try_claim(b"b")
    reading.check_done()
    assert not reading.try_claim(b"b\0")


def test_a_checkpoint_before_the_first_claim_leaves_no_work_at_all():
    reading = tracker(b"a", b"m")
    assert reading.try_split(0.0) == (NO_KEYS, ByteKeyRange(b"a", b"m"))
    assert reading.current_restriction() == NO_KEYS
    assert not reading.try_claim(b"a")
    reading.check_done()
    assert reading.try_split(0.0) is None
    assert reading.current_progress().total == 0


@pytest.mark.parametrize(
    ("reading", "key", "residual"),
    [
        (tracker(), b"f", ByteKeyRange(b"f", b"m")),
        (tracker(), b"a", None),
        (tracker(), b"m", None),
        (tracker(), b"", None),
        (tracker(b"a", b"m", b"c"), b"c", None),
        (tracker(b"a", b"m", b"c"), b"c\0", ByteKeyRange(b"c\0", b"m")),
        (tracker(b"a", b"m", b"c", b"z"), b"d", None),
        (tracker(b"", b"", b"c"), b"z", ByteKeyRange(b"z", b"")),
    ],
)
def test_a_known_key_is_where_the_work_is_split(reading, key, residual):
    split = reading.try_split_at(key)
    assert (split and split.residual) == residual


@pytest.mark.parametrize(
    ("reading", "fraction", "at"),
    [
        (tracker(b"\0", b"\x80"), 0.5, b"\x40"),
        (tracker(b"", b"", b"\x80"), 0.5, b"\xc0"),
        (tracker(b"a", b"a\0\0", b"a"), 0.5, b"a\0"),
        (tracker(), 1.0, None),
        (tracker(b"a", b"a\0"), 0.5, None),
    ],
)
def test_shares_are_of_what_is_not_claimed(reading, fraction, at):
    split = reading.try_split(fraction)
    assert (split and split.residual.start.rstrip(b"\0")) == (at and at.rstrip(b"\0"))


def test_the_end_of_all_keys_is_claimed_and_refused():
    reading = tracker(b"a", b"", b"z")
    with pytest.raises(WorkUnclaimed, match="never claimed"):
        reading.check_done()
    assert not reading.try_claim(b"")
    reading.check_done()
    assert reading.try_split(0.0) is None
    assert reading.current_progress().fraction_completed == 1


def test_progress_is_a_share_of_all_keys():
    progress = tracker(b"", b"\x80", b"\x60").current_progress()
    assert (progress.completed, progress.remaining) == (0.375, 0.125)


def test_what_cannot_be_split_is_not_split_at_a_key_either():
    assert UnsplittableRestrictionTracker(tracker(b"a", b"m", b"b")).try_split_at(b"f") is None


@pytest.mark.parametrize("fraction", [-0.1, 1.1])
def test_a_fraction_lies_between_0_and_1(fraction):
    with pytest.raises(FractionInvalid):
        tracker().try_split(fraction)
