"""Ranges of byte keys: the tables of the contract, and arithmetic to the base 256."""

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dagkit.ranges import (
    ByteKeyRange,
    ByteKeyRangeTracker,
    ClaimBackwards,
    ClaimBeforeStart,
    FractionInvalid,
    PositionOutside,
    PositionUnmeasured,
    RangeInvalid,
    Split,
    SplitPointMissing,
)
from tests.cases import cases
from tests.examples import examples

ALL = ByteKeyRange()
brief = settings(max_examples=examples(40))


@cases(
    "keys, key, fraction",
    ("half of all keys", ALL, b"\x80", 0.5),
    ("three quarters", ALL, b"\xc0", 0.75),
    ("seven eighths", ALL, b"\xe0", 0.875),
    ("half of the upper half", ByteKeyRange(b"\x80"), b"\xc0", 0.5),
    ("half of a range", ByteKeyRange(b"\x30", b"\x50"), b"\x40", 0.5),
    ("its start", ByteKeyRange(b"\x30", b"\x50"), b"\x30", 0.0),
    ("its stop", ByteKeyRange(b"\x30", b"\x50"), b"\x50", 1.0),
    ("a range that only NULs make", ByteKeyRange(b"\x30", b"\x30\0\0"), b"\x30\0", 0.0),
)
def test_a_key_is_a_fraction(keys, key, fraction):
    assert keys.estimate_fraction_for_key(key) == fraction


@pytest.mark.parametrize("key", [b"", b"\x2f", b"\x51", b"\x50\0"], ids=["none", "before", "beyond", "just beyond"])
def test_a_key_outside_has_no_fraction(key):
    with pytest.raises(PositionOutside, match="lies outside of"):
        ByteKeyRange(b"\x30", b"\x50").estimate_fraction_for_key(key)


@cases(
    "keys, fraction, key",
    ("half of all", ALL, 0.5, b"\x80"),
    ("a quarter of all", ALL, 0.25, b"\x40"),
    ("to fe", ByteKeyRange(b"", b"\xfe"), 0.5, b"\x7f"),
    ("30 to 50", ByteKeyRange(b"\x30", b"\x50"), 0.5, b"\x40"),
    ("ragged bounds", ByteKeyRange(b"\x30\x00\x01", b"\x4f\xff\xff\x00\x00"), 0.5, b"\x40"),
    ("nothing", ALL, 0.0, b""),
    ("keys beyond any float", ByteKeyRange(b"a" * 300, b"b" * 300), 0.0, b"a" * 300),
)
def test_a_fraction_is_a_key_up_to_trailing_nulls(keys, fraction, key):
    found = keys.interpolate_key(fraction)
    assert found != b""
    assert found.rstrip(b"\0") == key


@pytest.mark.parametrize("fraction", [-0.1, 1.0, 1.5, float("nan")])
def test_only_a_fraction_below_1_is_a_key_of_the_range(fraction):
    with pytest.raises(FractionInvalid, match="between 0 and 1"):
        ALL.interpolate_key(fraction)


def test_nothing_lies_between_keys_that_differ_by_trailing_nulls():
    with pytest.raises(PositionUnmeasured, match="trailing NULs only"):
        ByteKeyRange(b"a", b"a\0").interpolate_key(0.5)


@cases(
    "start, stop, words",
    ("backwards", b"b", b"a", "holds no key"),
    ("empty", b"a", b"a", "holds no key"),
    ("text", "a", "b", "keys are bytes"),
    ("no start", None, b"", "are bytes"),
)
def test_bounds_that_hold_no_key_are_refused(start, stop, words):
    with pytest.raises(RangeInvalid, match=words):
        ByteKeyRange(start, stop)


@cases(
    "keys, count, inner",
    ("one piece", ALL, 1, []),
    ("quarters of all", ALL, 4, [b"\x40", b"\x80", b"\xc0"]),
    ("halves", ByteKeyRange(b"\x30", b"\x50"), 2, [b"\x40"]),
    ("nothing between", ByteKeyRange(b"a", b"a\0"), 3, []),
)
def test_ranges_are_split_beforehand(keys, count, inner):
    pieces = list(keys.split(count))
    assert [p.start.rstrip(b"\0") for p in pieces[1:]] == inner
    assert (pieces[0].start, pieces[-1].stop) == (keys.start, keys.stop)
    assert all(left.stop == right.start for left, right in pairwise(pieces))


def test_pieces_are_counted_from_one():
    with pytest.raises(RangeInvalid, match="0 pieces cannot be cut"):
        list(ALL.split(0))


def tracker():
    return ByteKeyRangeTracker(ByteKeyRange(b"\x12", b"\x56"))


def test_claims_inside_are_granted_and_the_first_outside_is_refused():
    read = tracker()
    assert [read.try_claim(k) for k in (b"\x12", b"\x34", b"\x55\xff", b"\x56", b"\x57")] == [True] * 3 + [False] * 2
    assert not read.try_return_record_at(False, b"\x57")


def test_rows_that_share_a_key_each_claim_it_and_stay_together():
    read = tracker()
    assert [read.try_claim(k) for k in (b"\x34", b"\x34")] == [True, True]
    assert read.try_split_at_position(b"\x34") is None
    assert read.try_claim(b"\x34")


@pytest.mark.parametrize(
    ("records", "fault", "words"),
    [
        ([(False, b"\x34")], SplitPointMissing, "first record of a range must be a split point"),
        ([(True, b"\x11")], ClaimBeforeStart, "before the range's start"),
        ([(True, b"\x34"), (True, b"\x33")], ClaimBackwards, "claims go forward"),
        ([(True, b"\x34"), (False, b"\x33")], ClaimBackwards, "claims go forward"),
    ],
    ids=["the first record is no split point", "before the start", "backwards", "another record backwards"],
)
def test_a_reader_that_would_lose_or_double_records_is_stopped(records, fault, words):
    read = tracker()
    with pytest.raises(fault, match=words):  # noqa: PT012 - any of the claims may be the one
        for record in records:
            read.try_return_record_at(*record)


def test_splits_take_unconsumed_keys_only():
    read = tracker()
    assert read.try_split_at_position(b"\x34") is None
    assert read.try_claim(b"\x34")
    refused = [read.try_split_at_position(k) for k in (b"\x11", b"\x12", b"\x34", b"\x56", b"\x57")]
    assert refused == [None] * 5
    assert read.try_split_at_position(b"\x45") == Split(b"\x45", (0x45 - 0x12) / (0x56 - 0x12), b"\x56")
    assert (read.start_position(), read.stop_position()) == (b"\x12", b"\x45")
    assert not read.try_claim(b"\x45")


def test_the_fraction_consumed_follows_the_last_key_and_survives_the_end():
    read = ByteKeyRangeTracker(ALL)
    fractions = [read.fraction_consumed()]
    for key in (b"\x80", b"\xc0"):
        read.try_claim(key)
        fractions.append(read.fraction_consumed())
    assert fractions == [0.0, 0.5, 0.75]
    assert read.try_split_at_position(b"\xe0") == Split(b"\xe0", 0.875, b"")
    assert not read.try_claim(b"\xff")
    assert read.fraction_consumed() == 1.0


def test_a_record_beyond_the_stop_is_all_there_is():
    read = tracker()
    read.try_claim(b"\x34")
    read.try_return_record_at(False, b"\x99")
    assert read.fraction_consumed() == 1.0


def test_bounds_that_are_open_stay_empty_keys():
    read = ByteKeyRangeTracker(ALL)
    assert (read.start_position(), read.stop_position()) == (b"", b"")
    assert read.try_claim(b"")
    assert read.fraction_consumed() == 0.0
    assert (read.position_at_fraction(0.5).rstrip(b"\0"), read.position_at_fraction(1.0)) == (b"\x80", b"")


@brief
@given(st.binary(max_size=12), st.binary(max_size=12), st.floats(0, 1, exclude_max=True))
def test_a_key_at_a_fraction_lies_inside_and_reads_back(start, stop, fraction):
    assume(not stop or start.rstrip(b"\0") < stop.rstrip(b"\0"))
    keys = ByteKeyRange(start, stop)
    key = keys.interpolate_key(fraction)
    assert key in keys
    assert keys.estimate_fraction_for_key(key) == pytest.approx(fraction, abs=2**-50)


@brief
@given(st.binary(max_size=6), st.binary(max_size=6), st.integers(1, 40))
def test_pieces_cover_the_range(start, stop, count):
    assume(not stop or start < stop)
    pieces = list(ByteKeyRange(start, stop).split(count))
    assert (pieces[0].start, pieces[-1].stop) == (start, stop)
    assert all(left.stop == right.start for left, right in pairwise(pieces))
    assert len(pieces) in (1, count)
