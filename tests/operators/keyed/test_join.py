"""Joins are those of SQL, within a window: inner, left and outer."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.testing import Alone
from dagkit_operators import Join, LeftJoin, OuterJoin

SIDE = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=6)


def expected(lefts: list[Any], rights: list[Any], *, left: bool, right: bool) -> list[Any]:
    """A nested loop over both sides, grouped by key."""
    pairs = [(a, b) for a in lefts for b in rights if a[0] == b[0]]
    pairs += [(a, None) for a in lefts if left and a[0] not in {b[0] for b in rights}]
    pairs += [(None, b) for b in rights if right and b[0] not in {a[0] for a in lefts}]
    return sorted(pairs, key=lambda pair: (pair[0] or pair[1])[0])


@pytest.mark.parametrize("kind", [Join, LeftJoin, OuterJoin])
@pytest.mark.slow
@given(lefts=SIDE, rights=SIDE, restarts=st.booleans())
def test_pairs_are_those_of_a_nested_loop(kind: Any, lefts: list[Any], rights: list[Any], restarts: bool) -> None:
    one_by_one, in_batches = Alone(kind()), Alone(kind())
    one_by_one.send(*rights, to="right")
    one_by_one.send(*lefts, to="left")
    in_batches.send_batch(lefts, to="left")
    if restarts:  # a window of the operator may last several streaming windows
        one_by_one, in_batches = one_by_one.restarted(), in_batches.restarted()
    in_batches.send_batch(rights, to="right")
    one_by_one.operator.end_window()
    in_batches.operator.end_window()
    assert (
        one_by_one.sent()
        == in_batches.sent()
        == expected(lefts, rights, left=kind is not Join, right=kind is OuterJoin)
    )


def test_items_of_different_windows_are_not_joined() -> None:
    alone = Alone(OuterJoin())
    for port, pair in [("left", (("a", 1), None)), ("right", (None, ("a", 1)))]:
        with alone.window():
            alone.send(("a", 1), to=port)
        assert alone.sent() == [pair]
    with alone.window():
        pass
    assert alone.batches() == []


@dataclass(frozen=True)
class Person:
    name: str
    city: str


def test_keys_are_fields_or_functions() -> None:
    alone = Alone(Join(left_key="city", right_key=lambda text: text.upper()))
    with alone.window():
        alone.send_batch([Person("Ann", "ROME"), Person("Bob", "OSLO")], to="left")
        alone.send("Rome", to="right")
    assert alone.sent() == [(Person("Ann", "ROME"), "Rome")]
