"""A change leads from one JSON value to another, exactly, and two changes are one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit.engine.program.differences import applied, composed, difference
from dagkit.ground.overlays import Overlay

LEAVES = st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from([0.0, -0.0, 1.0]) | st.text("ab", max_size=4)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
LISTS = st.lists(st.integers(0, 3) | st.just(True), max_size=12)


def changed(before: Any, after: Any) -> Any:
    """The value after the change between two values, as it is stored."""
    change = difference(before, after)
    return before if change is None else applied(before, json.loads(json.dumps(change)))


@pytest.mark.parametrize("kind", [OBJECTS, LISTS, VALUES], ids=["objects", "lists", "values"])
def test_a_change_leads_from_one_value_to_the_other(kind):
    @given(kind, kind)
    def leads(before: Any, after: Any) -> None:
        kept = json.dumps(before)
        assert json.dumps(changed(before, after)) == json.dumps(after)
        assert json.dumps(before) == kept

    leads()


@pytest.mark.parametrize("kind", [OBJECTS, LISTS], ids=["objects", "lists"])
def test_two_changes_as_one_have_the_effect_of_both_also_on_the_order_of_names(kind):
    @given(kind, kind, kind)
    def have(first: Any, second: Any, third: Any) -> None:
        one, other = difference(first, second), difference(second, third)
        if one is None or other is None:
            return
        middle = applied(first, one)
        kept = json.dumps([one, other])
        assert json.dumps(applied(first, composed(one, other))) == json.dumps(applied(middle, other))
        assert json.dumps([one, other]) == kept

    have()


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("ab", "abc", {"+": "c"}),
        ({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": 4}, {"-": ["c"], "*": {"b": {"=": 5}, "d": {"=": 4}}}),
        ({"a": 1, "b": 2, "c": 3}, {"b": 2, "c": 3, "a": 1}, {"-": ["a"], "*": {"a": {"=": 1}}}),
        ([*range(9)], [*range(9), 9], {"<": [[0, 9], {"=": [9]}]}),
        ([*range(9)], [-1, *range(2, 9)], {"<": [{"=": [-1]}, [2, 9]]}),
        ([*range(9)], [0, 1, 7, 2, 3, 5, 6, 7, 8], {"<": [[0, 2], {"=": [7]}, [2, 4], [5, 9]]}),
        ([1, 2], [True, 2], {"<": [{"=": [True]}, [1, 2]]}),
        ([1, 2], [3, 4], {"=": [3, 4]}),
    ],
    ids=[
        "text grew",
        "members",
        "member moved",
        "list grew",
        "queue moved",
        "in a list",
        "types differ",
        "nothing stayed",
    ],
)
def test_a_change_holds_what_changed(before, after, change):
    assert difference(before, after) == change


def test_a_change_of_a_long_list_is_short_wherever_it_is():
    before = [f"file {number}" for number in range(10_000)]
    after = [*before[:3000], "another", *before[3001:7000], *before[7001:], "new"]
    assert len(json.dumps(difference(before, after))) < 120
    assert changed(before, after) == after


def test_a_mapping_that_came_is_a_change():
    change = difference(None, Overlay.of({"a": 1}))
    assert change is not None
    assert dict(change["="]) == {"a": 1}
