"""Valid items become typed ones; the others are rejected with all reasons, alike one by one and in batches."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, RootModel

from dagkit import Batch
from dagkit.testing import Alone
from dagkit_operators import ItemRejected, Record, Rejected, Validate
from tests.cases import cases
from tests.operators.ways import BOTH_WAYS, Named, alike, lines, of_block


class Order(BaseModel):
    number: PositiveInt
    item: str


@dataclass(frozen=True)
class Message:
    topic: str
    body: Any


GOOD, BAD = '{"number": 1, "item": "pen"}', '{"number": 0}'
PEN = Order(number=1, item="pen")


def test_texts_are_parsed_as_json():
    reason = "number: Input should be greater than 0; item: Field required"
    for items in ([GOOD, BAD], [GOOD.encode(), BAD.encode()]):
        assert alike(Validate(Order), items) == {
            "output": [PEN],
            "rejected": [Rejected("", None, BAD, reason, items[1])],
        }


def test_dicts_objects_and_a_field_are_validated_as_they_are():
    sent = alike(Validate(Named), [{"name": "a", "size": "2"}, Named("b", 4), {"name": "c"}])
    assert sent["output"] == [Named("a", 2), Named("b", 4)]
    assert [one.reason for one in sent["rejected"]] == ["size: Field required"]
    sent = alike(Validate(Order, on="body"), [Message("a", GOOD), Message("b", BAD)])
    assert sent["output"] == [Message("a", PEN)]


def test_a_line_that_is_no_json_or_no_text_is_rejected_with_its_position():
    alone = Alone(Validate(Order))
    alone.send_batch(of_block(lines("{", GOOD, b"\xff", base=10)))
    assert alone.sent() == [Record(7, PEN)]
    places = [(one.start, one.item.block_id) for one in alone.sent("rejected")]
    assert places == [(10, 7), (12 + len(GOOD) + 1, 7)]
    assert len(Alone(Validate(Order)).operator.process_batch(Batch.of([]))) == 0


@BOTH_WAYS
def test_without_a_stream_from_rejected_the_first_invalid_item_fails(send):
    with pytest.raises(ItemRejected, match="number: Input should be greater than 0"):
        send(Alone(Validate(Order), connected=["output"]), GOOD, BAD)


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
        [json.dumps(MORE), BAD, GOOD, json.dumps(MORE)],
        [json.dumps(MORE).encode(), GOOD.encode(), json.dumps(MORE, indent=1).encode()],
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
    alone.send_batch(of_block(lines(json.dumps(MORE), GOOD)))
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
