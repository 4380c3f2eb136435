"""Values as plans hold them: plain JSON, equal for equal values, in every process; classes that moved as well."""

import datetime as dt
import decimal
import enum
import functools
import importlib
import json
import operator
import os
import re
import sys
import threading
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from dagkit.conf.values.classes import find_class
from dagkit.ground.moved_classes import _MOVED, recorded_module
from dagkit.plan import read_plan, write_plan
from dagkit.plan.fingerprint import canonical
from dagkit.plan.portable import portable, portable_properties
from tests.plan.plans import operator as operator_of
from tests.plan.plans import plan
from tests.processes import run_program


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


class Model(BaseModel):
    path: PurePosixPath
    secret: SecretStr = SecretStr("hush")


@dataclass
class Pair:
    left: int
    right: Any = None


@dataclass
class Login:
    user: str
    password: str


@dataclass(frozen=True, slots=True)
class FrozenLogin:
    user: str
    password: str


class Credentials(NamedTuple):
    user: str
    password: str


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


class Private:
    def __init__(self, value: Any) -> None:
        self._value = value


class Open(BaseModel, extra="allow"):
    pass


class Raising:
    """Whatever one asks it, it raises."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __repr__(self) -> str:
        raise RuntimeError

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError


class Refusing(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def double(self) -> int:
        return 2


def named(line: str) -> bool:
    return not line


HERE = __name__


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (True, True),
        (1, 1),
        (1.5, 1.5),
        ("text", "text"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (Colour.RED, "red"),
        (Size.BIG, 3),
        (SecretStr("hush"), "**********"),
        ({"sasl.password": "hush"}, {"sasl.password": "**********"}),
        ({"AWS_ACCESS_KEY": b"hush", "REGION": "eu"}, {"AWS_ACCESS_KEY": "**********", "REGION": "eu"}),
        ({"password": "", "tokens": 3}, {"password": "", "tokens": 3}),
        (Login("me", "hush"), {"class": f"{HERE}.Login", "user": "me", "password": "**********"}),
        (
            FrozenLogin("me", "hush"),
            {"class": f"{HERE}.FrozenLogin", "made": [[{"$class": f"{HERE}.FrozenLogin"}], ["me", "**********"]]},
        ),
        (Credentials("me", "hush"), ["me", "**********"]),
        (PurePosixPath("a/b"), "a/b"),
        (PurePosixPath("a/\udcff"), {"$text": "'a/\\udcff'"}),
        ("\ud800", {"$text": "'\\ud800'"}),
        (dt.timedelta(minutes=1), 60.0),
        (dt.date(2024, 2, 29), "2024-02-29"),
        (b"\x00\xff", {"$bytes": "AP8="}),
        (int, {"$class": "int"}),
        (Pair, {"$class": f"{HERE}.Pair"}),
        (named, {"$function": f"{HERE}:named"}),
        (len, {"$function": "builtins:len"}),
        (str.upper, {"$function": "builtins:str.upper"}),
        ((1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        ({"b": 1, "a": (2,)}, {"a": [2], "b": 1}),
        ({Colour.RED: 1}, {"red": 1}),
        ({1: "one"}, {"$map": [[1, "one"]]}),
        ({"1": "b", 1: "a"}, {"$map": [["1", "b"], [1, "a"]]}),
        (np.float64(1.5), 1.5),
        (json, {"$module": "json"}),
        (Raising(1), {"class": f"{HERE}.Raising", "value": 1}),
        ([Refusing(a=1), 2], [{"class": f"{HERE}.Refusing"}, 2]),
        (Model(path=PurePosixPath("a")), {"class": f"{HERE}.Model", "path": "a", "secret": "**********"}),
        (Pair(1, Size.BIG), {"class": f"{HERE}.Pair", "left": 1, "right": 3}),
        (Plain([1]), {"class": f"{HERE}.Plain", "value": [1]}),
    ],
    ids=lambda v: "raising" if isinstance(v, Raising) else ascii(v).partition(" at 0x")[0][:40],
)
def test_values_become_plain_data(value, data):
    assert portable(value) == data
    assert json.loads(canonical(portable(value))) == data


ONE_LINE: Callable[[str], bool] = lambda line: line.startswith("a")  # noqa: E731 - nameless on purpose


def _closed(limit: int) -> Callable[[int], bool]:
    return lambda n: n < limit


def _shortest(limit: int = 1) -> Callable[[int], int]:
    def inner(n: int, least: int = limit) -> int:
        return min(n, least)

    return inner


def _two_that_call_each_other() -> Callable[[int], bool]:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    return even


def _calls_what_comes_later() -> Callable[[], int]:
    def inner() -> int:
        return later

    if inner is None:
        later = 1
    return inner


class Ring:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(1, True, id="a number and a truth value"),
        pytest.param(1, 1.0, id="a whole number and a float"),
        pytest.param(decimal.Decimal("1.5"), decimal.Decimal("1.6"), id="decimals"),
        pytest.param(uuid.UUID(int=1), uuid.UUID(int=2), id="ids"),
        pytest.param(complex(1, 2), complex(2, 1), id="complex numbers"),
        pytest.param(range(3), range(4), id="ranges"),
        pytest.param(re.compile("a"), re.compile("b"), id="patterns"),
        pytest.param(re.compile("a"), re.compile("a", re.IGNORECASE), id="patterns by their flags"),
        (functools.partial(operator.add, 1), functools.partial(operator.add, 2)),
        (functools.partial(operator.add, 1), functools.partial(operator.sub, 1)),
        pytest.param(list[int], list[str], id="generics"),
        pytest.param(int | None, int | str, id="unions"),
        pytest.param(Slotted(1), Slotted(2), id="objects with slots"),
        pytest.param(Slotted(1).double, Slotted(2).double, id="methods by their object"),
        pytest.param(lambda x: x + 1, lambda x: x + 2, id="lambdas by a constant"),
        pytest.param(lambda x: x.upper(), lambda x: x.lower(), id="lambdas by a name"),
        pytest.param(lambda x: x in {"a", "b"}, lambda x: x in {"a", "c"}, id="lambdas by a set"),
        pytest.param(_closed(1), _closed(2), id="closures by what they close over"),
        pytest.param(_shortest(1), _shortest(2), id="functions by their defaults"),
        pytest.param(_two_that_call_each_other(), _closed(1), id="functions that call each other"),
        pytest.param({1: "a", "1": "b"}, {1: "b", "1": "a"}, id="keys of two kinds"),
        pytest.param({1: "a"}, {"1": "a"}, id="a number as a key and its text"),
        pytest.param(deque([1]), deque([2]), id="deques"),
        pytest.param(Private(1), Private(2), id="private state"),
        (Open.model_validate({"a": 1}), Open.model_validate({"a": 2})),
        pytest.param(np.int64(1), np.int64(2), id="numbers of numpy"),
        pytest.param(np.array([1]), np.array([2]), id="arrays"),
    ],
)
def test_unlike_values_give_unlike_data(one, other):
    assert canonical(portable(one)) != canonical(portable(other))


EQUALS = [
    lambda: decimal.Decimal("1.5"),
    lambda: uuid.UUID(int=1),
    lambda: re.compile("a"),
    lambda: functools.partial(operator.add, 1),
    lambda: Slotted((1, 2)),
    lambda: _closed(1),
    _two_that_call_each_other,
    _calls_what_comes_later,
    Ring,
    lambda: {"b": {1, 2}, "a": frozenset("xyz")},
    threading.Lock,
    lambda: list[int | None],
]


@pytest.mark.parametrize("make", EQUALS)
def test_equal_values_give_equal_data(make):
    assert canonical(portable(make())) == canonical(portable(make()))


def test_a_property_that_was_added_is_left_out_until_it_is_set():
    class Later(BaseModel):
        first: int = 1
        added: Annotated[int, Field(exclude_if=lambda added: added == 0)] = 0

    assert portable_properties(Later(), {}) == {"first": 1}
    assert portable_properties(Later(added=2), {}) == {"first": 1, "added": 2}


def test_what_is_private_is_reported_by_its_digest_alone():
    assert "hush" not in canonical(portable(Private("hush")))


def _nested(depth, width):
    value = []
    for _ in range(depth):
        value = [value] * width
    return value


@pytest.mark.parametrize("value", [_nested(50, 2), _nested(900, 1)], ids=["shared at every level", "nested deeply"])
def test_what_is_too_long_comes_to_an_end(value):
    said = plan(operators=(operator_of("read", properties={"value": portable(value)}), operator_of("keep")))
    assert read_plan(write_plan(said)) == said


PROGRAM = """
from dagkit.plan import read_plan, write_plan
from dagkit.plan.fingerprint import canonical
from dagkit.plan.portable import portable
def limit(n): return lambda line: line in {"a", "b", "c"} or n
print(canonical(portable([{"x", "y", "z"}, frozenset("abc"), limit(3), lambda w: w in ("p", {"q": 1})])))
"""


@pytest.mark.slow
def test_equal_values_give_equal_data_in_every_process():
    root = Path(__file__).parents[2]
    said = {
        run_program([sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed}, cwd=root).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@pytest.mark.slow
@given(JSON)
def test_whatever_is_plain_already_goes_to_json_and_comes_back(value):
    data = portable(value)
    assert json.loads(canonical(data)) == data
    assert portable(data) == data


MOVED = [(now, name, before) for now, classes in _MOVED.items() for name, before in classes.items()]


@pytest.mark.parametrize(("now", "name", "before"), MOVED, ids=[name for _, name, _ in MOVED])
def test_a_moved_class_is_recorded_under_its_first_module_and_found_under_both(now, name, before):
    cls = getattr(importlib.import_module(now), name)
    assert portable(cls) == {"$class": f"{before}.{name}"}
    assert {find_class(f"{module}:{name}", is_called=False) for module in (now, before)} == {cls}


def test_other_classes_are_recorded_under_their_own_module():
    assert recorded_module("app", "Watch") == "app"
