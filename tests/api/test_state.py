"""State is saved as JSON, and comes back as it was or is refused."""

import json
import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import InputPort, KeyedState, Operator, State
from dagkit.api.keyed import Keyed
from dagkit.api.tagged import tagged, untagged
from dagkit.engine.program.differences import difference
from dagkit.engine.worker.instances import live, saved
from dagkit.errors import RunFailure
from dagkit.ground.overlays import Overlay

K = TypeVar("K")


@dataclass(frozen=True)
class Place:
    x: int
    tags: tuple[str, ...] = ()


class Colour(StrEnum):
    RED = "red"


class Nameless:
    """Nothing that could be written."""


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
keys = st.recursive(scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
values = st.recursive(
    keys,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keys, inner, max_size=3)
        | st.dictionaries(st.sampled_from(["~tuple", "~bytes", "~", "a"]), inner, max_size=2)
    ),
    max_leaves=8,
)


def told(value):
    """The value with the types of all that it holds."""
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{told(key)}:{told(each)}" for key, each in value.items())) + "}"
    if isinstance(value, list | tuple):
        return type(value).__name__ + "(" + ",".join(map(told, value)) + ")"
    if isinstance(value, set | frozenset):
        return type(value).__name__ + "(" + ",".join(sorted(map(told, value))) + ")"
    return f"{type(value).__name__} {value!r}"


class Tallies(Operator):
    kind = "cast.tallies/1"
    items = State[list[int]]([])
    seen = KeyedState[Any, list[Any]](list)


def test_no_two_partitions_or_attempts_share_what_state_starts_with():
    for _ in range(2):
        operator = live(Tallies(), {})
        operator.items.append(1)
        assert saved(operator)["items"] == [1]


def again(operator):
    """The operator after its state was saved and restored."""
    return live(type(operator)(), json.loads(json.dumps(saved(operator))))


@given(values)
def test_what_has_no_declared_type_comes_back_as_it_was(value):
    text = json.dumps(tagged(value), allow_nan=False)
    assert told(untagged(json.loads(text))) == told(value)


KEYS = ["a", 1, -0.5, None, True, b"\xff", ("a", 1), ("a", (b"b", None)), math.inf]


@pytest.mark.parametrize(
    ("key", "equal"),
    [*((key, key) for key in KEYS), (float(2**60), 2**60), (2**60, float(2**60)), (-0.0, 0), (0, -0.0)],
)
def test_a_saved_key_of_any_type_is_found_by_an_equal_one(key, equal):
    first = live(Tallies(), {})
    first.seen.put(key, ["old"], 7)
    seen = again(first).seen
    seen.current_code = 7
    seen[equal].append("new")
    assert (dict(seen), seen.codes) == ({key: ["old", "new"]}, {key: 7})


@pytest.mark.parametrize(
    ("state", "value"),
    [
        (State[Any](None), ("a", 1)),
        (State(None), ("a", 1)),
        (State[list](list), [(b"a", 1)]),
        (State[list[Any]](list), [("a", 1), {1: "one"}]),
        (State[dict[str, Any]](dict), {"a": (1, 2)}),
        (State[bytes](b""), b"\xff\x00"),
        (State(0.0), math.nan),
        (State[dict[str, list[float]]](dict), {"a": [math.inf, 1.0]}),
        (State[list[str]](list), ["\udcff"]),
        (State[Place | None](None), Place(1, ("a",))),
        (State[dict[Place, int]](dict), {}),
        (State[Colour](Colour.RED), Colour.RED),
        (State[Counter[str]](Counter), Counter("abba")),
        (State(""), "\udcff"),
    ],
)
def test_a_value_comes_back_as_it_was(state, value):
    back = state.restored(json.loads(json.dumps(state.saved(value), allow_nan=False)))
    assert told(back) == told(value)


@pytest.mark.parametrize(
    ("state", "value"),
    [
        (State[Any](None), Place(1)),
        (State[list[Any]](list), [Place(1)]),
        (State(0), Nameless()),
        (State[list[int]](list), ["a"]),
        (State[Nameless](Nameless), Nameless()),
        (State[dict[str, Any]](dict), {"a": Colour.RED}),
    ],
)
def test_a_value_that_would_not_come_back_is_refused(state, value):
    holder = type("Holder", (Operator,), {"held": state})
    operator = live(holder(), {})
    operator.held = value
    with pytest.raises(
        RunFailure, match=r"Keeper \(Holder\)\.held holds .* cannot be saved as State\[.*\n  help: declare"
    ):
        saved(operator, "Keeper")


def test_a_variable_of_type_is_reported_by_its_values():
    class Tally(Operator, Generic[K]):
        seen = KeyedState[K, int](int)

    first = live(Tally(), {})
    first.seen.put((1, "a"), 2, 0)
    assert dict(again(first).seen) == {(1, "a"): 2}


def test_what_older_checkpoints_hold_is_read():
    assert State[tuple[Any, ...]](tuple).restored(["a", 1]) == ("a", 1)
    assert State[set[Any]](set).restored(["a"]) == {"a"}
    assert State[bytes](b"").restored("a") == b"a"
    operator = live(Tallies(), {"seen": [["b", [1], 7], ["a", [2], 8]]})
    assert dict(operator.seen) == {"b": [1], "a": [2]}
    assert operator.seen.codes == {"b": 7, "a": 8}


MIXED = ["a", "b", "", b"a", 0, 1, 2, True, 1.0, 2.0, -0.0, None, ("a", 1), ("a", True), frozenset("ab")]
STEPS = st.tuples(
    st.sampled_from(["read", "set", "delete", "has", "list", "clear", "put", "end", "due"]), st.sampled_from(MIXED)
)


@given(st.lists(STEPS, max_size=30))
def test_keyed_state_behaves_as_a_dict_however_often_it_is_saved(steps):
    operator, plain = live(Tallies(), {}), {}
    for number, (step, key) in enumerate(steps):
        seen = operator.seen
        seen.current_code = number
        if step == "read":
            seen[key].append(number)
            plain.setdefault(key, []).append(number)
        elif step == "set":
            seen[key] = plain[key] = [number]
        elif step == "put":
            seen.put(key, [number], 5)
            plain[key] = [number]
        elif step == "delete" and key in plain:
            del seen[key], plain[key]
        elif step == "clear":
            seen.clear()
            plain.clear()
        elif step == "list":
            assert told(list(seen.items())) == told(list(plain.items()))
        elif step == "due":
            due = seen.due(1, len)
            assert {key for key, value in plain.items() if len(value) <= 1} <= set(due) <= plain.keys()
            assert seen.total(len) == sum(map(len, plain.values()))
        elif step == "end":
            operator = again(operator)
        else:
            assert (key in seen, len(seen)) == (key in plain, len(plain))
    assert told(list(operator.seen.items())) == told(list(plain.items()))


def test_keyed_state_that_was_not_touched_is_neither_restored_nor_written_again():
    first = live(Tallies(), {})
    for key in ("a", "b", "c"):
        first.seen.put(key, [key], 1)
    before = saved(first)
    restored = live(Tallies(), before)
    assert saved(restored)["seen"] is before["seen"]
    assert restored.seen["b"] == ["b"]
    assert saved(restored)["seen"] is before["seen"]
    restored.seen["b"].append(1)
    del restored.seen["c"]
    after = saved(restored)["seen"]
    assert after == {'"a"': [["a"], 1], '"b"': [["b", 1], 1]}
    assert after['"a"'] is before["seen"]['"a"']


def test_keys_that_are_not_due_are_not_restored():
    first = live(Tallies(), {})
    for key in ("a", "b", "c", "d"):
        first.seen.put(key, [key] * (1 + (key == "b")), 1)
    restored = live(Tallies(), saved(first)).seen
    del restored["c"]
    restored["d"].append(1)
    assert restored.due(1, len) == ["d", "a"]
    assert restored._values.keys() == {"a", "d"}
    assert restored.total(len) == 5


def test_only_reading_with_brackets_makes_the_value_of_a_missing_key():
    counts = Keyed(int)
    counts.current_code = 0
    read = (counts.get("a"), counts.get("a", 5), counts.pop("a", 7), "a" in counts, len(counts))
    assert read == (None, 5, 7, False, 0)
    with pytest.raises(KeyError):
        counts.pop("a")
    assert (counts.setdefault("a", 3), counts.pop("a"), counts["b"], list(counts)) == (3, 3, 0, ["b"])


def test_what_makes_the_value_of_a_new_key_is_a_function():
    with pytest.raises(TypeError, match="takes a function that makes the value of a new key, such as int, not None"):
        KeyedState[str, int](None)  # as an author without mypy may write


@dataclass
class Box:
    inside: Any = None


def test_a_change_of_restored_state_does_not_change_what_was_saved():
    """A window that fails starts again from it, and a checkpoint is stored as what changed since."""

    class Boxes(Operator):
        one = State[Box](Box)
        many = KeyedState[str, Box](Box)

    before = {"one": {"inside": [[1]]}, "many": {'"a"': [{"inside": {"b": [1]}}, 0]}}
    kept, operator = json.dumps(before), live(Boxes(), before)
    operator.one.inside[0].append(2)
    operator.many["a"].inside["b"].append(2)
    assert json.dumps(before) == kept
    assert saved(operator) == {"one": {"inside": [[1, 2]]}, "many": {'"a"': [{"inside": {"b": [1, 2]}}, 0]}}
    worker = live(Boxes(), before, takes_saved=True)  # what Spark sent to it is a copy already
    assert worker.one.inside is before["one"]["inside"]


class NeverListed(dict[str, Any]):
    """Saved entries that can be looked up, and not listed or copied."""

    def keys(self):
        raise AssertionError("the entries were listed")

    __iter__ = items = values = keys


def test_a_window_looks_only_at_the_keys_that_it_touches():
    entries = {str(number): [number, 0] for number in range(5000)}
    before = Overlay.of(NeverListed(entries)).changed((), {"1": [10, 0]})
    operator = live(Numbered(), {"counts": before})
    operator.counts[1] += 1
    operator.counts[7] += 1
    del operator.counts[8]
    after = saved(operator)["counts"]
    assert difference(before, after) == {"-": ["8"], "*": {"1": {"=": [11, 0]}, "7": {"=": [8, 0]}}}
    assert len(after) == 4999


class Numbered(Operator):
    kind = "test.numbered/1"
    input = InputPort(int)
    counts = KeyedState[int, int](int)

    def process(self, item: int) -> None:
        self.counts[item] += 1
