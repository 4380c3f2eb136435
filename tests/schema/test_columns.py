"""Columns: equal keys have equal codes, and objects are as their class makes them."""

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, make_dataclass, replace
from enum import IntEnum, StrEnum
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Arrowed
from dagkit.schema.columns import Lines, Listed
from dagkit.schema.objects import objects_of
from dagkit.schema.routing import column_codes, routing_code
from tests.cases import cases


class Size(IntEnum):
    LARGE = 3


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Line:
    text: str
    place: int = field(default=0, compare=False)


scalars = (
    st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from([0.0, -0.0, 1e300, 2.0**70, True, False, "", b"", None])
)
keys = st.recursive(scalars, lambda inner: st.tuples(inner, inner), max_leaves=4)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0, -0.0),
        (0.0, False),
        (2**70, 2.0**70),
        (-5, -5.0),
        (3, Size.LARGE),
        ("red", Colour.RED),
        (b"a", bytearray(b"a")),
        ((1, ("a", 2)), (1.0, ("a", 2.0))),
        (Line("a", 1), Line("a", 2)),
    ],
    ids=repr,
)
def test_equal_keys_have_equal_codes(one, other):
    assert one == other
    assert routing_code(one) == routing_code(other)


@given(keys, keys)
def test_no_two_equal_keys_differ_in_their_codes(one, other):
    assert one != other or routing_code(one) == routing_code(other)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, -2, None, 2**40]),
        pa.array([1.0, -0.0, -2.5, 2.0**40, 1e300]),
        pa.array([True, False]),
        pa.array([1, 2**63], pa.uint64()),
        pa.array(["a", "", "é"]),
        pa.array([b"a", b"\xff"]),
    ],
    ids=lambda array: str(array.type),
)
def test_a_column_has_the_codes_of_its_values(array):
    wanted = [routing_code(value) & 0xFFFFFFFF for value in array.to_pylist()]
    assert column_codes(Arrowed(array)).tolist() == wanted
    assert column_codes(Listed(array.to_pylist())).tolist() == wanted


@pytest.mark.parametrize("delimiter", [b"\n", b"\r\n"], ids=repr)
@cases(
    "lines",
    ("none", []),
    ("an empty one", [b""]),
    ("empty ones", [b"", b"one", b"", b"two"]),
    ("letters", ["é".encode(), b"plain"]),
    ("no text", [b"\xff is no text", b"plain"]),
    ("long ones", [b"x" * (600 << 10), b"y", b"\xff" * (300 << 10), b"z"]),
    ("very many", [b"%d" % number for number in range(100_000)]),
)
def test_lines_have_the_codes_of_their_texts(lines, delimiter):
    column = Lines(pa.array([line + delimiter for line in lines], pa.binary()), delimiter)
    assert column_codes(column).tolist() == [routing_code(text) & 0xFFFFFFFF for text in column.values()]
    assert len(column_codes(column)) == len(lines)


def test_what_has_no_fraction_is_no_other_number():
    assert routing_code(0.5) != routing_code(0)
    assert isinstance(routing_code(float("inf")), int)
    assert isinstance(routing_code(float("nan")), int)


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: str = "a"


@dataclass(frozen=True, slots=True)
class Longer(Point):
    z: float = 0.5


FIELDS = [("x", int), ("y", str)]
WithDict = make_dataclass("WithDict", FIELDS, frozen=True)
Referenced = make_dataclass("Referenced", FIELDS, frozen=True, slots=True, weakref_slot=True)
Mutable = make_dataclass("Mutable", FIELDS, slots=True)


@dataclass(frozen=True, slots=True)
class Checked:
    x: int
    y: str

    def __post_init__(self):
        object.__setattr__(self, "y", self.y.upper())


@dataclass(frozen=True, slots=True)
class Mangled:
    __x: int
    y: str


@dataclass(frozen=True, slots=True)
class Reordered:
    x: int
    computed: int = field(init=False, default=3)
    y: str = "a"


class Pair(NamedTuple):
    x: int
    y: str


def pair(x, y):
    return [x, y]


KINDS = [Point, WithDict, Referenced, Mutable, Checked, Mangled, Reordered, Pair, pair]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_objects_are_as_their_class_makes_them(kind):
    made, expected = objects_of(kind, [[1, 2], ["b", "c"]]), [kind(1, "b"), kind(2, "c")]
    assert made == expected
    assert [type(one) for one in made] == [type(one) for one in expected]
    assert repr(made) == repr(expected)


def test_objects_of_a_subclass_are_as_it_makes_them():
    assert objects_of(Longer, [[1], ["b"], [2.5]]) == [Longer(1, "b", 2.5)]
    assert objects_of(Longer, [[1], ["b"]]) == [Longer(1, "b")], "without the last field, it gets its default"


def test_a_frozen_object_stays_frozen_hashable_and_picklable():
    (point,) = objects_of(Point, [[1], ["b"]])
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    assert {point: 1} == {Point(1, "b"): 1}
    assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301 - written above
    assert replace(point, x=3) == Point(3, "b")


def test_a_frozen_class_is_not_called_for_each_object(monkeypatch):
    assert objects_of(Point, [[1], ["b"]]) == [Point(1, "b")]
    monkeypatch.setattr(Point, "__init__", None)
    (point,) = objects_of(Point, [[2], ["c"]])
    assert (point.x, point.y) == (2, "c")
