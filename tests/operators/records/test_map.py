"""A map makes the same of items whether it is handed one, or many at once."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.compute as pc
import pytest

from dagkit import Batch, Listed
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit.testing import Alone
from dagkit_operators import Filter, FlatMap, Items, Map, Record, value
from tests.cases import cases
from tests.operators.ways import BOTH_WAYS, Named, alike, chain, lines, of_block

MAPS = {
    "a lambda": Map(lambda text: text.strip().upper()),
    "an expression": Map(value.strip().upper()),
    "an array of Arrow": Map(batch=lambda column: pc.ascii_upper(pc.ascii_trim_whitespace(column.array()))),
    "a list": Map(batch=lambda column: [text.strip().upper() for text in column.values()]),
    "a column": Map(batch=lambda column: Listed([text.strip().upper() for text in column.values()])),
}


def records(*pairs: tuple[int, str]) -> list[Record[str]]:
    return [Record(*pair) for pair in pairs]


@pytest.mark.parametrize("operator", MAPS.values(), ids=MAPS)
def test_of_a_record_the_value_is_replaced_and_any_other_item_as_a_whole(operator):
    sent = alike(operator, records((7, " a"), (7, "b"), (7, "")), of_block(lines(" a", "b", "")))
    assert sent["output"] == records((7, "A"), (7, "B"), (7, ""))
    assert alike(operator, [" a", "b"], Batch({"item": Listed([" a", "b"])}))["output"] == ["A", "B"]


def test_a_field_can_be_replaced_instead_and_items_that_are_no_records_become_what_is_made_of_them():
    columns = Batch({"name": Listed(["a", "b"]), "size": Listed([1, 2])}, Named)
    sent = alike(Map(lambda size: -size, on="size"), [Named("a", 1), Named("b", 2)], columns)
    assert sent["output"] == [Named("a", -1), Named("b", -2)]
    items = ["a b", "", "c"]
    assert alike(FlatMap(str.split), items, Batch({"item": Listed(items)}))["output"] == list("abc")


@pytest.mark.parametrize("told", [{}, {"function": str.upper, "batch": lambda column: column}])
def test_its_function_is_given_in_one_way_and_every_value_becomes_one(told):
    assert [fault.message for fault in Map(**told).faults] == ["it needs a function, or batch, and not both"]
    with pytest.raises(ValueError, match="the batch function made 1 values of 2; one for each is needed"):
        Map(batch=lambda column: ["a"]).process_batch(of_block(lines("a", "b")))


def pairs(text: str) -> Iterator[str]:
    yield from (text[place : place + 2] for place in range(len(text) - 1))


@pytest.mark.parametrize("function", [pairs, lambda text: list(pairs(text)), lambda text: tuple(pairs(text))])
def test_everything_that_is_made_of_a_record_is_of_its_block(function):
    sent = alike(FlatMap(function), records((7, "abc"), (7, ""), (7, "xy")), of_block(lines("abc", "", "xy")))
    assert sent["output"] == records((7, "ab"), (7, "bc"), (7, "xy"))
    columns = Batch({"block_id": Listed([1, 2]), "value": Listed(["abc", "xy"])}, Record)
    sent = alike(FlatMap(function), records((1, "abc"), (2, "xy")), columns)
    assert sent["output"] == records((1, "ab"), (1, "bc"), (2, "xy"))


@BOTH_WAYS
def test_a_text_is_not_taken_for_its_letters(send):
    with pytest.raises(TypeError, match=r"the function made 'ABC', whose letters would be sent; give \[text\]"):
        send(Alone(FlatMap(str.upper)), "abc")


def test_an_empty_batch_stays_empty():
    for operator in (FlatMap(pairs), *MAPS.values()):
        assert [len(operator.process_batch(batch)) for batch in (Batch.of([]), of_block(lines()))] == [0, 0]


@dataclass(frozen=True)
class Swapped:
    """Takes its fields the other way round."""

    name: str
    size: int

    def __init__(self, size: int, name: str) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "size", size)


@dataclass(frozen=True, kw_only=True)
class Spelled:
    name: str
    size: int


@dataclass(frozen=True)
class Priced(Named):
    price: int = 0


@pytest.mark.parametrize(
    "items",
    [[Swapped(1, "a")], [Spelled(name="a", size=1)], [Named("a", 1), Priced("b", 2, 5)]],
    ids=["with an order of its own", "made by keywords", "of several classes"],
)
def test_a_field_is_replaced_in_whatever_has_it(items):
    types = [type(item) for item in items]
    assert [type(item) for item in alike(Map(lambda size: -size, on="size"), items)["output"]] == types
    sent = alike(FlatMap(lambda size: [size, -size], on="size"), items)["output"]
    assert [type(item) for item in sent[::2]] == types


def test_types_without_the_record_around_them_are_answered_with_the_record():
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(chain(Lines=Items[Record[str]](items=()), Upper=Map[str, str](str.upper)))
    (fault,) = raised.value.diagnostics
    assert fault.code == "port-type-mismatch"
    assert fault.help.endswith("or write Record[str] for str in Map[str, str], if Upper works on the value inside")


MISSING = "it is called with one value, but takes (one, other): missing a required argument: 'other'"


@cases(
    "told, words",
    ("none", lambda: True, "it is called with one value, but takes none"),
    ("two", lambda one, other: True, MISSING),
    ("of an expression", value.contains, "contains is a method of an expression, and no expression: call it"),
)
def test_a_function_that_cannot_be_given_one_value_is_a_fault(told, words):
    for operator in (Filter(told), Filter(batch=told), Map(told), FlatMap(told)):
        assert [fault.message for fault in operator.faults] == [words]


@pytest.mark.parametrize("told", [len, str.upper, int, print, lambda one, other=2: one, lambda *all_of_them: 1])
def test_a_function_without_a_signature_is_accepted(told):
    for operator in (Filter(told), Map(told), FlatMap(told)):
        assert not operator.faults
