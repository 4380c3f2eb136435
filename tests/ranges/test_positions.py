"""Ranges as values: where their fractions lie, how they are split beforehand, and how one without an end is drained."""

import math
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dagkit.ranges import (
    OFFSET_INFINITY,
    ByteKeyRange,
    ByteKeyRestrictionTracker,
    FractionInvalid,
    GrowableOffsetRestrictionTracker,
    LexicographicKeyRangeTracker,
    OffsetRange,
    OffsetRangeTracker,
    OffsetRestrictionTracker,
    PositionOutside,
    PositionUnmeasured,
    Progress,
    RangeInvalid,
)
from tests.cases import cases
from tests.examples import examples

ALL, SOME = ByteKeyRange(), ByteKeyRange(b"\x30", b"\x50")
brief = settings(max_examples=examples(40))


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan])
@pytest.mark.parametrize(
    "use",
    [
        OffsetRangeTracker(3, 6).position_at_fraction,
        LexicographicKeyRangeTracker().position_at_fraction,
        OffsetRestrictionTracker(OffsetRange(3, 6)).try_split,
        ByteKeyRestrictionTracker(ALL).try_split,
        GrowableOffsetRestrictionTracker(OffsetRange(0, OFFSET_INFINITY), lambda: 100).try_split,
        ALL.interpolate_key,
        Progress.of_fraction,
        lambda fraction: Progress.of_remaining(1, fraction),
        lambda fraction: Progress.of_completed(1, fraction),
    ],
)
def test_a_fraction_lies_between_0_and_1(use, fraction):
    with pytest.raises(FractionInvalid, match=f"^{fraction} is not a fraction between 0 and 1"):
        use(fraction)


def test_what_cannot_be_measured_or_cut_is_refused():
    with pytest.raises(FractionInvalid, match="between 0 and 1"):
        ALL.interpolate_key(1.0)
    with pytest.raises(PositionUnmeasured, match="trailing NULs only"):
        ByteKeyRange(b"a", b"a\0").interpolate_key(0.5)
    with pytest.raises(RangeInvalid, match="0 pieces cannot be cut"):
        list(ALL.split(0))


@cases(
    "keys, key, fraction",
    ("half of all keys", ALL, b"\x80", 0.5),
    ("three quarters", ALL, b"\xc0", 0.75),
    ("seven eighths", ALL, b"\xe0", 0.875),
    ("half of the upper half", ByteKeyRange(b"\x80"), b"\xc0", 0.5),
    ("half of a range", SOME, b"\x40", 0.5),
    ("its start", SOME, b"\x30", 0.0),
    ("its stop", SOME, b"\x50", 1.0),
    ("a range that only NULs make", ByteKeyRange(b"\x30", b"\x30\0\0"), b"\x30\0", 0.0),
)
def test_a_byte_key_is_a_fraction(keys, key, fraction):
    assert keys.estimate_fraction_for_key(key) == fraction


@pytest.mark.parametrize("key", [b"", b"\x2f", b"\x51", b"\x50\0"], ids=["none", "before", "beyond", "just beyond"])
def test_a_key_outside_has_no_fraction(key):
    with pytest.raises(PositionOutside, match="lies outside of"):
        SOME.estimate_fraction_for_key(key)


@cases(
    "keys, fraction, key",
    ("half of all", ALL, 0.5, b"\x80"),
    ("a quarter of all", ALL, 0.25, b"\x40"),
    ("to fe", ByteKeyRange(b"", b"\xfe"), 0.5, b"\x7f"),
    ("30 to 50", SOME, 0.5, b"\x40"),
    ("ragged bounds", ByteKeyRange(b"\x30\x00\x01", b"\x4f\xff\xff\x00\x00"), 0.5, b"\x40"),
    ("nothing", ALL, 0.0, b""),
    ("keys beyond any float", ByteKeyRange(b"a" * 300, b"b" * 300), 0.0, b"a" * 300),
)
def test_a_fraction_is_a_byte_key_up_to_trailing_nulls(keys, fraction, key):
    found = keys.interpolate_key(fraction)
    assert found != b""
    assert found.rstrip(b"\0") == key


@cases(
    "bounds, fraction, key",
    ("a quarter of the way to eeeeee", (b"", b"eeeeee"), 0.25, b"\x19\x59\x59\x59\x59\x59\x40"),
    ("behind a shared prefix", (b"abc_abc", b"abc_xyz"), 1 / math.e, b"abc_i\xe0\xf4\x84\x86\x99\x96"),
    ("half of all keys", (b"", None), 0.5, b"\x80"),
    ("hardly any way", (b"", None), 2**-100, b"\0" * 12 + b"\x10"),
    ("among the last keys", (b"\xff\xff", None), 0.5, b"\xff\xff\x80"),
    ("a letter between two", (b"a", b"c"), 0.5, b"b"),
    ("0 is the start", (b"a", b"z"), 0.0, b"a"),
    ("1 is the stop", (b"a", b"z"), 1.0, b"z"),
    ("1 of an open range is no key", (b"a", None), 1.0, None),
    ("nothing lies before a trailing NUL", (b"a", b"a\0"), 0.5, b"a"),
    ("a stop that goes on with NULs", (b"a", b"a" + b"\0" * 10 + b"b"), 0.5, b"a" + b"\0" * 10 + b"\x31"),
    ("a start just before the stop", (b"a" + b"\xff" * 9, b"b"), 0.5, b"a" + b"\xff" * 9 + b"\x80"),
)
def test_a_fraction_is_a_key_in_the_order_of_a_dictionary(bounds, fraction, key):
    assert LexicographicKeyRangeTracker.fraction_to_position(fraction, *bounds) == key


@cases(
    "bounds, key, fraction",
    ("half of all keys", (None, None), b"\x80", 0.5),
    ("the first key", (None, None), b"", 0.0),
    ("a letter between two", (b"a", b"c"), b"b", 0.5),
    ("the start of an open range", (b"a", None), b"a", 0.0),
)
def test_a_key_in_the_order_of_a_dictionary_is_a_fraction(bounds, key, fraction):
    assert LexicographicKeyRangeTracker.position_to_fraction(key, *bounds) == fraction


@brief
@given(
    st.tuples(st.binary(max_size=12), st.none() | st.binary(min_size=1, max_size=12)),
    st.floats(0, 1, exclude_min=True, exclude_max=True, allow_subnormal=True),
)
@example((b"", None), 5e-324)
@example((b"", b"\x01"), 1 - 2**-53)
def test_a_key_at_a_fraction_lies_between_the_bounds_and_reads_back(keys, fraction):
    start, stop = keys
    assume(stop is None or start.rstrip(b"\0") < stop.rstrip(b"\0"))
    key = LexicographicKeyRangeTracker.fraction_to_position(fraction, start, stop)
    assert start < key
    assert stop is None or key < stop
    assert not key.endswith(b"\0")
    assert LexicographicKeyRangeTracker.position_to_fraction(key, start, stop) == pytest.approx(fraction, rel=2**-40)


@brief
@given(st.binary(max_size=12), st.binary(max_size=12), st.floats(0, 1, exclude_max=True))
def test_a_byte_key_at_a_fraction_lies_inside_and_reads_back(start, stop, fraction):
    assume(not stop or start.rstrip(b"\0") < stop.rstrip(b"\0"))
    keys = ByteKeyRange(start, stop)
    key = keys.interpolate_key(fraction)
    assert key in keys
    assert keys.estimate_fraction_for_key(key) == pytest.approx(fraction, abs=2**-50)


@brief
@given(st.integers(0, 2**62), st.integers(1, 2**61), st.floats(0, 1))
def test_an_offset_at_a_fraction_is_in_the_range_and_reads_back(start, size, fraction):
    position = OffsetRangeTracker(start, start + size).position_at_fraction(fraction)
    assert start <= position <= start + size
    assert OffsetRangeTracker.position_to_fraction(position, start, start + size) >= fraction - 2**-50
    assert (position - 1 - start) / size <= fraction + 2**-50


@cases(
    "keys, count, inner",
    ("one piece", ALL, 1, []),
    ("quarters of all", ALL, 4, [b"\x40", b"\x80", b"\xc0"]),
    ("halves", SOME, 2, [b"\x40"]),
    ("nothing between", ByteKeyRange(b"a", b"a\0"), 3, []),
)
def test_keys_are_split_beforehand(keys, count, inner):
    assert [piece.start.rstrip(b"\0") for piece in list(keys.split(count))[1:]] == inner


@brief
@given(st.binary(max_size=6), st.binary(max_size=6), st.integers(1, 40))
def test_pieces_cover_the_range(start, stop, count):
    assume(not stop or start < stop)
    pieces = list(ByteKeyRange(start, stop).split(count))
    assert (pieces[0].start, pieces[-1].stop) == (start, stop)
    assert all(left.stop == right.start for left, right in pairwise(pieces))
    assert len(pieces) in (1, count)


def bounds(pieces):
    return [(p.start, p.stop) for p in pieces]


ENDLESS = (0, OFFSET_INFINITY)


@cases(
    "whole, desired, minimum, pieces",
    ("a tail of some size is a piece", (10, 100), 25, 1, [(10, 35), (35, 60), (60, 85), (85, 100)]),
    ("pieces are never below the least size", (10, 100), 5, 25, [(10, 35), (35, 60), (60, 100)]),
    ("a small tail stays with the last piece", (10, 90), 25, 1, [(10, 35), (35, 60), (60, 90)]),
    ("an odd offset is left over", (0, 7), 3, 1, [(0, 3), (3, 6), (6, 7)]),
    ("nothing has no pieces", (5, 5), 3, 1, []),
    ("an infinite size is one piece", (0, 7), float("inf"), 1, [(0, 7)]),
    ("half an offset is a whole one", (0, 7), 2.5, 1, [(0, 3), (3, 6), (6, 7)]),
    ("what has no end is one piece", ENDLESS, 64, 1, [ENDLESS]),
    ("nearly no end", (0, OFFSET_INFINITY - 1), 2**62, 1, [(0, 2**62), (2**62, OFFSET_INFINITY - 1)]),
)
def test_offsets_are_split_beforehand(whole, desired, minimum, pieces):
    assert bounds(OffsetRange(*whole).split(desired, minimum)) == pieces


@brief
@given(st.integers(0, 60), st.integers(1, 60), st.floats(0.5, 90), st.integers(1, 20))
def test_pieces_add_up(start, size, desired, minimum):
    pieces = list(OffsetRange(start, start + size).split(desired, minimum))
    assert [o for p in pieces for o in range(p.start, p.stop)] == list(range(start, start + size))
    assert all(p.size >= min(minimum, size) for p in pieces)


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
