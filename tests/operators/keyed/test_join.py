"""Joins are those of SQL, however the input is divided into windows."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.errors import RunFailure
from dagkit.testing import Alone
from dagkit_operators import Join, LeftJoin, OuterJoin, Record
from tests.cases import cases

ITEM = st.tuples(st.sampled_from("abc"), st.integers(0, 9))
WINDOWS = st.lists(st.tuples(st.lists(ITEM, max_size=4), st.lists(ITEM, max_size=4), st.booleans()), max_size=4)


def unpaired(items, others):
    return [one for one in items if one[0] not in {other[0] for other in others}]


def expected(lefts, rights, kind):
    """A nested loop over both sides."""
    pairs = [(a, b) for a in lefts for b in rights if a[0] == b[0]]
    pairs += [(one, None) for one in unpaired(lefts, rights) if kind is not Join]
    pairs += [(None, one) for one in unpaired(rights, lefts) if kind is OuterJoin]
    return sorted(pairs, key=repr)


KINDS = pytest.mark.parametrize("kind", [Join, LeftJoin, OuterJoin])


@pytest.mark.gate(2)
@KINDS
@pytest.mark.slow
@given(windows=WINDOWS)
def test_pairs_are_those_of_a_nested_loop_over_all_windows(kind, windows):
    one_by_one, in_batches = Alone(kind()), Alone(kind())
    sent = []
    for number, (lefts, rights, restarts) in enumerate(windows, 1):
        if restarts:
            one_by_one, in_batches = one_by_one.restarted(), in_batches.restarted()
        is_last = number == len(windows)
        with one_by_one.window(last=is_last), in_batches.window(last=is_last):
            one_by_one.send(*rights, to="right")
            one_by_one.send(*lefts, to="left")
            in_batches.send_batch(lefts, to="left")
            in_batches.send_batch(rights, to="right")
        sent += (pairs := one_by_one.sent())
        assert in_batches.sent() == pairs
    every_left = [one for lefts, _, _ in windows for one in lefts]
    every_right = [one for _, rights, _ in windows for one in rights]
    assert sorted(sent, key=repr) == expected(every_left, every_right, kind)


@KINDS
@pytest.mark.slow
@given(windows=WINDOWS)
def test_a_join_of_one_window_joins_each_window_alone(kind, windows):
    join = Alone(kind(most_windows=1))
    for lefts, rights, _ in windows:
        with join.window():
            join.send_batch(lefts, to="left")
            join.send_batch(rights, to="right")
        assert sorted(join.sent(), key=repr) == expected(lefts, rights, kind)
    assert all(not kept for kept in join.state.values())


def test_an_item_waits_for_its_windows_and_no_longer():
    join = Alone(OuterJoin(most_windows=2))
    sent = []
    for lefts, rights in [("a", ""), ("", "a"), ("", "a"), ("", "")]:
        with join.window():
            join.send(*((key, 1) for key in lefts), to="left")
            join.send(*((key, 2) for key in rights), to="right")
        sent.append(join.sent())
    assert sent == [[], [(("a", 1), ("a", 2))], [], [(None, ("a", 2))]]


def test_forgotten_items_are_counted():
    join = Alone(Join(most_windows=1))
    with join.window():
        join.send(("a", 1), ("b", 1), to="left")
        join.send(("b", 2), ("c", 2), to="right")
    assert (join.metrics["unpaired_forgotten"], join.metrics["items_kept"]) == (2, 0)
    endless = Alone(Join())
    with endless.window(last=True):
        endless.send(("a", 1), to="left")
    assert (endless.metrics["unpaired_forgotten"], endless.metrics["items_kept"]) == (0, 1)


def test_an_item_that_was_sent_alone_is_not_paired_later():
    join = Alone(LeftJoin())
    with join.window(last=True):
        join.send(("a", 1), to="left")
    with join.window(last=True):
        join.send(("a", 2), to="right")
        join.send(("b", 1), to="left")
    assert join.sent() == [(("a", 1), None), (("b", 1), None)]


@dataclass(frozen=True)
class Person:
    name: str
    city: str


def test_keys_are_fields_or_functions():
    join = Alone(Join(left_key="city", right_key=lambda text: text.upper()))
    with join.window():
        join.send_batch([Person("Ann", "ROME"), Person("Bob", "OSLO")], to="left")
        join.send("Rome", to="right")
        with pytest.raises(RunFailure, match=r"holds .*Person.* cannot be saved"):
            assert join.state
    assert join.sent() == [(Person("Ann", "ROME"), "Rome")]


ANN = Person("Ann", "ROME")
first = itemgetter(0)


@cases(
    "kind, key, left",
    ("untyped", Join, first, Record(3, ("a", b"\xff"))),
    ("partly typed", Join[Record[Any], str], first, Record(3, ("a", b"\xff"))),
    ("text", Join[Record[str], str], first, Record(3, "abc")),
    ("records of a class", Join[Record[Person], str], "city", Record(3, ANN)),
    ("a class", Join[Person, str], "city", ANN),
)
def test_records_and_typed_items_wait_in_other_processes(kind, key, left):
    right = "ROME" if key == "city" else "a"
    waiting = Alone(kind(left_key=key, right_key=str))
    with waiting.window():
        waiting.send(left, to="left")
    later = waiting.restarted()
    with later.window():
        later.send(right, to="right")
    assert later.sent() == [(left, right)]
