"""Items as JSON and back: the same item, or an error that says which."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from dagkit.api.adapters import is_same
from dagkit.api.work import Block
from dagkit.engine.program.codec import ItemUnwritable, JsonCodec
from dagkit.engine.program.differences import applied, composed, difference
from dagkit.ground.overlays import Overlay
from dagkit.ledger.format.hashing import canonical


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.0


class Model(BaseModel):
    name: str
    at: datetime


class Opaque:
    """A class whose content no codec knows."""


@pytest.mark.parametrize(
    ("payload", "item"),
    [
        pytest.param(int, 5, id="a number"),
        pytest.param(str, "\u00e9\udcff", id="text of bytes that are no UTF-8"),
        pytest.param(Any, [1, {"a": None}], id="lists and mappings of anything"),
        pytest.param(tuple[int, str], (1, "a"), id="a tuple that was declared"),
        pytest.param(Point, Point(1, 2.5), id="a dataclass"),
        pytest.param(Model, Model(name="a", at=datetime(2024, 1, 1, tzinfo=UTC)), id="a model"),
        pytest.param(Block, Block(1, "a", 0, 9, facts={"length": 9}), id="a block"),
        pytest.param(Block, Block(2, "a", 9, 12, previous_block_id=1), id="a block that follows another"),
        pytest.param(Path, Path("/a"), id="a path"),
        pytest.param(bytes, b"abc", id="bytes that are text"),
        pytest.param(set[int], {3, 1}, id="a set"),
        pytest.param(int | None, None, id="nothing, where nothing is allowed"),
        pytest.param(Opaque | int, 3, id="what a type without JSON leaves"),
        pytest.param(Any, (1, (2, b"a")), id="a tuple that was not declared"),
        pytest.param(int, "5", id="text in the place of a number"),
        pytest.param(int, True, id="true in the place of one"),
        pytest.param(float, 1, id="a whole number in the place of a broken one"),
        pytest.param(bytes, b"\xff", id="bytes that are no text"),
        pytest.param(float, math.nan, id="what is not equal to itself"),
    ],
)
def test_an_item_comes_back_as_it_was(payload, item):
    written = JsonCodec("a.out", payload)
    assert is_same(written.back(written.of(item)), item)


@pytest.mark.parametrize(
    ("payload", "item"),
    [
        pytest.param(Any, Point(1), id="a dataclass would be a mapping"),
        pytest.param(Any, Opaque(), id="something without JSON"),
        pytest.param(Opaque, Opaque(), id="a payload without JSON"),
        pytest.param(Point, Model(name="a", at=datetime(2024, 1, 1, tzinfo=UTC)), id="another type"),
        pytest.param(dict[str, int], {1: 1}, id="keys would be text"),
    ],
)
def test_an_item_that_would_not_is_refused(payload, item):
    with pytest.raises(ItemUnwritable, match=r"a\.out emitted .*, which cannot be kept as"):
        JsonCodec("a.out", payload).of(item)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
@example({"zeta": 1, "alpha": [({"b": {}, "a": 2.5},)]})
@example({"~ordered": [["b", 1], ["a", 2]]})
@example({"~tuple": [1], "a": {"~ordered": {"b": 1, "a": 2}}})
def test_whatever_is_json_comes_back_from_the_ledger_as_it_was_also_in_the_order_of_keys(item):
    written = JsonCodec("a.out", Any)
    assert repr(written.back(json.loads(canonical(written.of(item))))) == repr(item)


def test_the_keys_of_a_dict_with_a_declared_type_keep_their_order():
    written = JsonCodec("a.out", dict[str, int])
    assert list(written.back(json.loads(canonical(written.of({"b": 1, "a": 2}))))) == ["b", "a"]
    assert written.of({"a": 1, "b": 2}) == {"a": 1, "b": 2}


@given(st.builds(Point, st.integers(), st.floats(allow_nan=False)) | st.integers() | st.text() | st.floats())
def test_an_item_is_the_same_or_refused(item):
    written = JsonCodec("a.out", Point)
    try:
        data = written.of(item)
    except ItemUnwritable:
        return
    assert repr(written.back(data)) == repr(item)


def test_what_is_written_has_a_place_in_the_ledger():
    assert canonical({"item": JsonCodec("a.out", Point).of(Point(1, 2.0))}) == '{"item":{"x":1,"y":2.0}}'


def test_a_block_without_a_previous_one_is_written_as_before():
    """Ledgers that were written before blocks had this field hold the same text, and are read."""
    written = JsonCodec("a.out", Block)
    before = {"block_id": 1, "path": "a", "start": 0, "end": 9, "last": False, "version": "", "facts": None}
    assert written.of(Block(1, "a", 0, 9)) == before
    assert written.back(before) == Block(1, "a", 0, 9)


def test_only_the_part_that_begins_with_its_block_follows_the_previous_block():
    block = Block(2, "a", 9, 12, previous_block_id=1)
    assert [block.part(9, 10).previous_block_id, block.part(10, 12).previous_block_id] == [1, None]


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
