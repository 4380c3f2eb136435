"""Objects of columns: as their class makes them, but quicker."""

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, make_dataclass, replace
from typing import NamedTuple

import pytest

from dagkit.schema.objects import objects_of


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
