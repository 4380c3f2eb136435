"""Items that a function or a model refuses are rejected with their places, alike one by one and in batches."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, RootModel, TypeAdapter

from dagkit import Batch, Listed
from dagkit.engine.program.failures import OperatorFailed
from dagkit.errors import RUN_CODES
from dagkit.testing import Alone
from dagkit_operators import (
    FileSplitterInput,
    Filter,
    FlatMap,
    ItemRejected,
    LineReader,
    Map,
    PartWriter,
    Record,
    Rejected,
    Validate,
    value,
)
from tests.cases import cases
from tests.engine.cast import Desk
from tests.old_files import old_file
from tests.operators.ways import BOTH_WAYS, Named, alike, lines, lines_in, of_block, read_lines

TEXTS = ["1", "x", "22", "", "3"]
BAD = {"x": "invalid literal for int() with base 10: 'x'", "": "invalid literal for int() with base 10: ''"}
OPERATORS = [
    (Filter(lambda text: int(text) % 2 == 0), ["22"]),
    (Map(int), [1, 22, 3]),
    (FlatMap(lambda text: [int(text), int(text)]), [1, 1, 22, 22, 3, 3]),
]
EACH = pytest.mark.parametrize(("operator", "expected"), OPERATORS, ids=["filter", "map", "flat map"])


@EACH
def test_items_are_rejected_with_their_reason_one_by_one_and_in_batches(operator, expected):
    rejected = [Rejected("", None, text, reason, text) for text, reason in BAD.items()]
    assert alike(operator, TEXTS) == {"output": expected, "rejected": rejected}


def in_columns(operator, batch):
    alone = Alone(operator)
    alone.send_batch(batch)
    return {port: alone.sent(port) for port in alone.outputs}


@EACH
@pytest.mark.parametrize("column_of", [lines, read_lines], ids=["lines", "lines as they were read"])
def test_a_rejected_line_has_its_record_and_its_position(operator, expected, column_of):
    x, empty = (Rejected("", place, text, BAD[text], Record(7, text)) for place, text in ((102, "x"), (107, "")))
    assert in_columns(operator, of_block(column_of(*TEXTS, base=100))) == {
        "output": [Record(7, value) for value in expected],
        "rejected": [x, empty],
    }


@EACH
def test_an_item_without_a_position_has_that_of_its_part_of_the_file_and_its_block(operator, expected):
    sent = in_columns(operator, of_block(Listed(TEXTS, lambda: None, 100)))
    assert sent["output"] == [Record(7, value) for value in expected]
    assert [(one.start, one.text) for one in sent["rejected"]] == [(100, "x"), (100, "")]
    sent = in_columns(operator, Batch({"block_id": Listed([1, 2, 3]), "value": Listed(["22", "x", "4"])}, Record))
    assert {record.block_id for record in sent["output"]} == {1, 3}
    assert [one.item for one in sent["rejected"]] == [Record(2, "x")]


@EACH
@BOTH_WAYS
def test_without_a_stream_from_rejected_the_first_bad_item_fails(operator, expected, send):
    with pytest.raises(ItemRejected, match="the item 'x' is rejected: invalid literal") as raised:
        send(Alone(operator, connected=["output"]), "1", "x", "2")
    assert raised.value.code in RUN_CODES
    assert "rejected" in raised.value.help


@BOTH_WAYS
def test_what_raises_something_else_fails(send):
    with pytest.raises(KeyError):
        send(Alone(Map(lambda text: {}[text])), "1")


def test_a_function_of_a_column_is_not_called_again():
    calls = []

    def fail(column):
        calls.append(len(column))
        raise ValueError("no")

    for operator in (Map(batch=fail), Filter(batch=fail)):
        with pytest.raises(ValueError, match="no"):
            Alone(operator).operator.process_batch(Batch.of([1, 2]))
    assert calls == [2, 2]


def test_all_faults_that_pydantic_finds_are_one_line():
    alone = Alone(Map(TypeAdapter(dict[str, int]).validate_json))
    alone.send('{"n": "x", "m": 1.5}')
    (rejected,) = alone.sent("rejected")
    first, second = rejected.reason.split("; ")
    assert first == "n: Input should be a valid integer, unable to parse string as an integer"
    assert second.startswith("m: Input should be a valid integer")


FILES = {"a.txt": "1\nx\n22\n", "b.txt": "y\n3\n"}


def place(rejected: Rejected) -> str:
    return f"{Path(rejected.path).name} {rejected.start} {rejected.text}"


def rejecting(home, *chain, is_connected=True):
    def populate_dag(dag, conf):
        last = dag.add_operator("Find", FileSplitterInput(scanner={"files": [str(home / "in")]}))
        for number, operator in enumerate((LineReader(), *chain)):
            last = last >> dag.add_operator(f"Step {number}", operator.configured({}))
        if is_connected:
            last.rejected >> dag.add_operator("Write", PartWriter(file_path=str(home / "out"), format=place))

    return populate_dag


@pytest.fixture
def home(tmp_path):
    for name, content in FILES.items():
        old_file(tmp_path / "in" / name, content)
    return tmp_path


CHAINS = {
    "a map": (Map(int),),
    "a validation": (Validate(int),),
    "a filter": (Filter(lambda text: int(text) > 0),),
    "a filter before a map": (Filter(value != "22"), Map(int)),
    "a map before a map": (Map(lambda text: text.strip()), Map(int)),
}


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_rejected_item_names_its_file_and_byte(chain, home):
    Desk(home, rejecting(home, *chain)).run()
    assert lines_in(home / "out") == ["a.txt 2 x", "b.txt 0 y"]


@pytest.mark.slow
def test_a_run_that_fails_for_an_item_names_its_file(home):
    with pytest.raises(OperatorFailed, match=r"a\.txt, byte 2 .*the item 'x' of .*a\.txt is rejected"):
        Desk(home, rejecting(home, Map(int), is_connected=False)).run()


COLUMN = ["1", "x", "22", "", "1", "3", "y"]
EARLIER = {
    "a predicate": Filter(lambda text: text != "22"),
    "a predicate that raises for one": Filter(lambda text: text != "22" or bool(int("no"))),
    "an expression": Filter(value != "22"),
    "a test of beginnings": Filter(~value.starts_with("22")),
    "both": Filter(~value.starts_with("22") & (value != "1")),
    "a batch function": Filter(batch=lambda column: [text != "22" for text in column.values()]),
    "a map": Map(lambda text: text.strip()),
    "a map of a batch": Map(batch=lambda column: [text.strip() for text in column.values()]),
    "a map of which one fails": Map(lambda text: text if text != "22" else str(int("no"))),
    "a flat map": FlatMap(lambda text: [text] if text != "22" else [text, text]),
}


@pytest.mark.parametrize("as_records", [True, False], ids=["records", "texts"])
@pytest.mark.parametrize("column_of", [lines, read_lines])
@pytest.mark.parametrize("earlier", EARLIER.values(), ids=EARLIER)
def test_places_are_known_behind_an_operator_that_takes_batches(earlier, column_of, as_records):
    column, path = column_of(*COLUMN, base=100), "in/a" if as_records else ""
    last = Alone(Map(int))
    passed = Alone(earlier).operator.process_batch(of_block(column, path) if as_records else Batch.of_column(column))
    for part in [passed] if isinstance(passed, Batch) else passed:
        last.send_batch(part)
    places = [(rejected.text, rejected.path, rejected.start) for rejected in last.sent("rejected")]
    assert places == [("x", path, 102), ("", path, 107), ("y", path, 112)]


class Order(BaseModel):
    number: PositiveInt
    item: str


@dataclass(frozen=True)
class Message:
    topic: str
    body: Any


VALID, INVALID = '{"number": 1, "item": "pen"}', '{"number": 0}'
PEN = Order(number=1, item="pen")


def test_texts_are_parsed_as_json():
    reason = "number: Input should be greater than 0; item: Field required"
    for items in ([VALID, INVALID], [VALID.encode(), INVALID.encode()]):
        assert alike(Validate(Order), items) == {
            "output": [PEN],
            "rejected": [Rejected("", None, INVALID, reason, items[1])],
        }


def test_dicts_objects_and_a_field_are_validated_as_they_are():
    sent = alike(Validate(Named), [{"name": "a", "size": "2"}, Named("b", 4), {"name": "c"}])
    assert sent["output"] == [Named("a", 2), Named("b", 4)]
    assert [one.reason for one in sent["rejected"]] == ["size: Field required"]
    sent = alike(Validate(Order, on="body"), [Message("a", VALID), Message("b", INVALID)])
    assert sent["output"] == [Message("a", PEN)]


def test_a_line_that_is_no_json_or_no_text_is_rejected_with_its_position():
    alone = Alone(Validate(Order))
    alone.send_batch(of_block(lines("{", VALID, b"\xff", base=10)))
    assert alone.sent() == [Record(7, PEN)]
    places = [(one.start, one.item.block_id) for one in alone.sent("rejected")]
    assert places == [(10, 7), (12 + len(VALID) + 1, 7)]
    assert len(Alone(Validate(Order)).operator.process_batch(Batch.of([]))) == 0


@BOTH_WAYS
def test_without_a_stream_from_rejected_the_first_invalid_item_fails(send):
    with pytest.raises(ItemRejected, match="number: Input should be greater than 0"):
        send(Alone(Validate(Order), connected=["output"]), VALID, INVALID)


class Strict(Order):
    model_config = ConfigDict(extra="ignore")


class Pair(NamedTuple):
    number: int
    item: str


MORE = {"number": 1, "item": "pen", "color": "red", "size": None}


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "not compiled"])
@pytest.mark.parametrize(
    "items",
    [
        [json.dumps(MORE), INVALID, VALID, json.dumps(MORE)],
        [json.dumps(MORE).encode(), VALID.encode(), json.dumps(MORE, indent=1).encode()],
        [MORE, {"number": 0, "wrong": 1}, {"number": 1, "item": "pen", "color": {"number": 2}}],
        [PEN, dataclasses.make_dataclass("More", MORE)(**MORE), dataclasses.make_dataclass("More", MORE)(**MORE)],
    ],
    ids=["texts", "bytes", "dicts", "objects"],
)
def test_fields_that_the_model_does_not_name_are_counted_in_valid_items(items, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr("dagkit_operators.native.json_members.json_members", lambda: None)
    for send in (lambda alone: alone.send(*items), lambda alone: alone.send_batch(Batch.of(items))):
        alone = Alone(Validate(Order))
        send(alone)
        assert (alone.metrics["fields_ignored"], alone.metrics["names_ignored"]) == (2, "color")


def test_fields_of_lines_are_counted_where_they_lie():
    alone = Alone(Validate(Order))
    alone.send_batch(of_block(lines(json.dumps(MORE), VALID)))
    assert (alone.metrics["fields_ignored"], alone.metrics["names_ignored"]) == (1, "color")


@cases(
    "model, item",
    ("a model that ignores them", Strict, MORE),
    ("a dict", dict, MORE),
    ("a root model", RootModel[dict[str, Any]], json.dumps(MORE)),
    ("an array", Pair, '[1, "{\\"color\\": 1}"]'),
)
def test_fields_that_are_left_out_on_purpose_or_kept_are_not_counted(model, item):
    alone = Alone(Validate(model))
    alone.send(item)
    assert (len(alone.sent()), alone.metrics["fields_ignored"]) == (1, 0)


class Basket(BaseModel):
    order: Order
    more: list[Order] = Field(default=[], alias="other")


BASKET = {"order": MORE, "other": [MORE, {"number": 1, "item": "pen"}], "late": True}


@pytest.mark.parametrize("item", [BASKET, json.dumps(BASKET), json.dumps(BASKET, indent=1)])
def test_fields_of_models_within_a_model_are_counted_with_their_paths(item):
    alone = Alone(Validate(Basket))
    alone.send(item)
    names = {*alone.metrics["names_ignored"].split(", ")}
    assert (alone.metrics["fields_ignored"], names) == (3, {"late", "order.color", "more.color"})


def test_a_tuple_of_records_is_a_list_of_them_for_fields_that_no_type_names():
    class Customer(BaseModel):
        name: str

    class Order(BaseModel):
        customers: list[Customer]

    alone = Alone(Validate(model=Order))
    alone.send({"customers": ({"name": "Ada", "age": 36},)})
    assert (len(alone.sent()), alone.metrics["fields_ignored"]) == (1, 0)
