"""A map makes the same of items whether it is handed one, or many at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dagkit import Batch, Config, Constant, Dag, Lines, Listed
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit.testing import Alone
from dagkit_operators import FlatMap, Items, Map, Record, value

FUNCTIONS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "a lambda": {"function": lambda text: text.strip().upper()},
    "an expression": {"function": value.strip().upper()},
    "an array of Arrow": {"batch": lambda column: pc.ascii_upper(pc.ascii_trim_whitespace(column.array()))},
    "a list": {"batch": lambda column: [text.strip().upper() for text in column.values()]},
    "a column": {"batch": lambda column: Listed([text.strip().upper() for text in column.values()])},
}


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    size: int


def in_three_ways(operator: Any, items: list[Any], columns: Batch[Any]) -> Any:
    """What it sends, if that is the same in each way."""
    one_by_one, at_once, of_columns = (Alone(operator) for _ in range(3))
    one_by_one.send(*items)
    at_once.send_batch(items)
    of_columns.send_batch(columns)
    sent = [one_by_one.sent(), at_once.sent(), of_columns.sent()]
    assert sent[0] == sent[1] == sent[2]
    return sent[0]


def lines(*texts: str) -> Batch[Record[str]]:
    ended = pa.array([f"{text}\n".encode() for text in texts], pa.binary())
    return Batch({"block_id": Constant(7, len(texts)), "value": Lines(ended)}, Record)


@pytest.mark.parametrize("told", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_of_a_record_the_value_is_replaced(told):
    items = [Record(7, " a"), Record(7, "b"), Record(7, "")]
    assert in_three_ways(Map(**told), items, lines(" a", "b", "")) == [Record(7, "A"), Record(7, "B"), Record(7, "")]


@pytest.mark.parametrize("told", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_any_other_item_is_replaced(told):
    assert in_three_ways(Map(**told), [" a", "b"], Batch({"item": Listed([" a", "b"])})) == ["A", "B"]


def test_a_field_can_be_replaced_instead():
    columns = Batch({"name": Listed(["a", "b"]), "size": Listed([1, 2])}, Named)
    made = in_three_ways(Map(lambda size: -size, on="size"), [Named("a", 1), Named("b", 2)], columns)
    assert made == [Named("a", -1), Named("b", -2)]


def test_every_value_becomes_one():
    with pytest.raises(ValueError, match="the batch function made 1 values of 2; one for each is needed"):
        Map(batch=lambda column: ["a"]).process_batch(lines("a", "b"))


@pytest.mark.parametrize("told", [{}, {"function": str.upper, "batch": lambda column: column}])
def test_its_function_is_given_in_one_way(told):
    assert [fault.message for fault in Map(**told).faults] == ["it needs a function, or batch, and not both"]


def pairs(text: str) -> Iterator[str]:
    yield from (text[place : place + 2] for place in range(len(text) - 1))


@pytest.mark.parametrize("function", [pairs, lambda text: list(pairs(text)), lambda text: tuple(pairs(text))])
def test_everything_that_is_made_of_a_record_is_of_its_block(function):
    items = [Record(7, "abc"), Record(7, ""), Record(7, "xy")]
    assert in_three_ways(FlatMap(function), items, lines("abc", "", "xy")) == [
        Record(7, "ab"),
        Record(7, "bc"),
        Record(7, "xy"),
    ]


def test_blocks_are_distinguished_in_one_batch():
    items = [Record(1, "abc"), Record(2, "xy")]
    columns = Batch({"block_id": Listed([1, 2]), "value": Listed(["abc", "xy"])}, Record)
    assert in_three_ways(FlatMap(pairs), items, columns) == [Record(1, "ab"), Record(1, "bc"), Record(2, "xy")]


def test_items_that_are_no_records_become_what_is_made_of_them():
    assert in_three_ways(FlatMap(str.split), ["a b", "", "c"], Batch({"item": Listed(["a b", "", "c"])})) == list("abc")


@pytest.mark.parametrize("send", ["send", "send_batch"])
def test_a_text_is_not_taken_for_its_letters(send):
    at_work = Alone(FlatMap(str.upper))
    with pytest.raises(TypeError, match=r"the function made 'ABC', whose letters would be sent; give \[text\]"):
        at_work.send("abc") if send == "send" else at_work.send_batch(["abc"])


def test_an_empty_batch_stays_empty():
    for operator in (FlatMap(pairs), *(Map(**told) for told in FUNCTIONS.values())):
        assert len(operator.process_batch(Batch.of([]))) == 0
        assert len(operator.process_batch(lines())) == 0


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
    [
        pytest.param([Swapped(1, "a")], id="with an order of its own"),
        pytest.param([Spelled(name="a", size=1)], id="made by keywords"),
        pytest.param([Named("a", 1), Priced("b", 2, 5)], id="of several classes"),
    ],
)
@pytest.mark.parametrize(
    "operator", [Map(lambda size: -size, on="size"), FlatMap(lambda size: [size, -size], on="size")]
)
def test_a_field_is_replaced_in_whatever_has_it(operator, items):
    one_by_one, at_once = Alone(operator), Alone(operator)
    one_by_one.send(*items)
    at_once.send_batch(items)
    sent = at_once.sent()
    assert sent == one_by_one.sent()
    assert [type(item) for item in sent[:: len(sent) // len(items)]] == [type(item) for item in items]


def test_types_without_the_record_around_them_are_answered_with_the_record():
    def populate_dag(dag: Dag, conf: Config) -> None:
        lines = dag.add_operator("Lines", Items[Record[str]](items=()))
        lines >> dag.add_operator("Upper", Map[str, str](str.upper))

    with pytest.raises(ApplicationFaults) as raised:
        compile_application(populate_dag)
    (fault,) = raised.value.diagnostics
    assert fault.code == "port-type-mismatch"
    assert fault.help.endswith("or write Record[str] for str in Map[str, str], if Upper works on the value inside")
