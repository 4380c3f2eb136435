"""Ordered positions of any type, and byte strings in the order of a dictionary."""

import math

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dagkit.ranges import (
    ClaimBackwards,
    ClaimBeforeStart,
    FractionInvalid,
    LexicographicKeyRangeTracker,
    OrderedPositionRangeTracker,
    RangeInvalid,
    Split,
    SplitPoints,
)
from tests.cases import cases
from tests.examples import examples

brief = settings(max_examples=examples(40))


class FloatRangeTracker(OrderedPositionRangeTracker[float]):
    """Positions are floats, evenly spread."""

    @classmethod
    def position_to_fraction(cls, position, start, stop):
        return (position - start) / (stop - start)

    @classmethod
    def fraction_to_position(cls, fraction, start, stop):
        return start + (stop - start) * fraction


def test_claims_go_forward_or_stay():
    tracker = FloatRangeTracker(10, 20)
    assert [tracker.try_claim(p) for p in (10, 15.5, 15.5, 19.9, 20)] == [True, True, True, True, False]


@pytest.mark.parametrize(
    ("claims", "fault", "words"),
    [([5], ClaimBeforeStart, "claimed 5, before"), ([15, 14], ClaimBackwards, "14 after 15")],
    ids=["before the start", "backwards"],
)
def test_a_reader_that_would_lose_or_double_records_is_stopped(claims, fault, words):
    tracker = FloatRangeTracker(10, 20)
    with pytest.raises(fault, match=words):  # noqa: PT012 - any of the claims may be the one
        for claim in claims:
            tracker.try_claim(claim)


def test_splits_take_unconsumed_positions_only():
    tracker = FloatRangeTracker(10, 20)
    assert tracker.try_split_at_position(15) is None
    tracker.try_claim(12)
    assert [tracker.try_split_at_position(p) for p in (9, 10, 12, 20, 21)] == [None] * 5
    assert tracker.try_split_at_position(15) == Split(15, 0.5, 20)
    assert tracker.try_split_at_position(15) is None
    assert not tracker.try_claim(15)


def test_fractions_come_from_the_subclass():
    tracker = FloatRangeTracker(10, 20)
    assert tracker.position_at_fraction(0.25) == 12.5
    tracker.try_claim(15)
    assert tracker.fraction_consumed() == 0.5
    tracker.try_split_at_position(16)
    assert tracker.fraction_consumed() == pytest.approx(5 / 6)
    assert tracker.split_points() == SplitPoints(0, None)


def test_bounds_go_forward():
    with pytest.raises(RangeInvalid, match="stops before it starts"):
        FloatRangeTracker(20, 10)


def test_what_the_subclass_raises_leaves_the_range_as_it_was():
    class Broken(FloatRangeTracker):
        @classmethod
        def position_to_fraction(cls, position, start, stop):
            raise ArithmeticError("no idea")

    tracker = Broken(10, 20)
    tracker.try_claim(12)
    with pytest.raises(ArithmeticError, match="no idea"):
        tracker.try_split_at_position(15)
    assert tracker.stop_position() == 20
    assert tracker.try_claim(18)


@cases(
    "start, stop, fraction, key",
    ("a quarter of the way to eeeeee", b"", b"eeeeee", 0.25, b"\x19\x59\x59\x59\x59\x59\x40"),
    ("behind a shared prefix", b"abc_abc", b"abc_xyz", 1 / math.e, b"abc_i\xe0\xf4\x84\x86\x99\x96"),
    ("half of all keys", b"", None, 0.5, b"\x80"),
    ("hardly any way", b"", None, 2**-100, b"\0" * 12 + b"\x10"),
    ("among the last keys", b"\xff\xff", None, 0.5, b"\xff\xff\x80"),
    ("a letter between two", b"a", b"c", 0.5, b"b"),
    ("0 is the start", b"a", b"z", 0.0, b"a"),
    ("1 is the stop", b"a", b"z", 1.0, b"z"),
    ("1 of an open range is no key", b"a", None, 1.0, None),
    ("nothing lies before a trailing NUL", b"a", b"a\0", 0.5, b"a"),
    ("a stop that goes on with NULs", b"a", b"a\0\0\0\0\0\0\0\0\0\0b", 0.5, b"a\0\0\0\0\0\0\0\0\0\0\x31"),
    ("a start just before the stop", b"a" + b"\xff" * 9, b"b", 0.5, b"a" + b"\xff" * 9 + b"\x80"),
)
def test_a_fraction_is_a_key(start, stop, fraction, key):
    assert LexicographicKeyRangeTracker.fraction_to_position(fraction, start, stop) == key


@pytest.mark.parametrize(
    ("start", "stop", "key", "fraction"),
    [(None, None, b"\x80", 0.5), (None, None, b"", 0.0), (b"a", b"c", b"b", 0.5), (b"a", None, b"a", 0.0)],
    ids=["half of all keys", "the first key", "a letter between two", "the start of an open range"],
)
def test_a_key_is_a_fraction(start, stop, key, fraction):
    assert LexicographicKeyRangeTracker.position_to_fraction(key, start, stop) == fraction


bounds = st.tuples(st.binary(max_size=12), st.none() | st.binary(min_size=1, max_size=12))


@brief
@given(bounds, st.floats(0, 1, exclude_min=True, exclude_max=True, allow_subnormal=True))
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


def test_keys_are_tracked_in_the_order_of_a_dictionary():
    tracker = LexicographicKeyRangeTracker(b"a", b"c")
    assert tracker.try_claim(b"a")
    assert tracker.try_split_at_position(tracker.position_at_fraction(0.5)) == Split(b"b", 0.5, b"c")
    assert [tracker.try_claim(k) for k in (b"aardvark", b"aardvark", b"az", b"b")] == [True, True, True, False]


def test_an_open_range_is_split_like_any():
    tracker = LexicographicKeyRangeTracker()
    assert tracker.try_claim(b"\x40")
    assert tracker.fraction_consumed() == 0.25
    assert tracker.try_split_at_position(b"\x80") == Split(b"\x80", 0.5, None)


def test_a_fraction_lies_between_0_and_1():
    with pytest.raises(FractionInvalid, match=r"^1\.5 is not a fraction"):
        LexicographicKeyRangeTracker().position_at_fraction(1.5)
