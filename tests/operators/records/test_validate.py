"""Valid items become typed ones; the others are rejected with all reasons, alike one by one and in batches."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pydantic import BaseModel, PositiveInt

from dagkit import Batch, Constant, Lines
from dagkit.testing import Alone
from dagkit_operators import ItemRejected, Record, Rejected, Validate


class Order(BaseModel):
    number: PositiveInt
    item: str


@dataclass(frozen=True)
class Point:
    x: int
    y: int


GOOD, BAD = '{"number": 1, "item": "pen"}', '{"number": 0}'
REASON = "number: Input should be greater than 0; item: Field required"


def in_both_ways(operator: Any, items: list[Any]) -> tuple[list[Any], list[Any]]:
    one_by_one, in_batches = Alone(operator), Alone(operator)
    one_by_one.send(*items)
    in_batches.send_batch(items)
    sent = one_by_one.sent(), one_by_one.sent("rejected")
    assert (in_batches.sent(), in_batches.sent("rejected")) == sent
    return sent


def test_texts_are_parsed_as_json():
    for items in ([GOOD, BAD], [GOOD.encode(), BAD.encode()]):
        valid, rejected = in_both_ways(Validate(Order), items)
        assert valid == [Order(number=1, item="pen")]
        assert rejected == [Rejected("", None, BAD, REASON, items[1])]


def test_dicts_and_objects_are_validated_as_they_are():
    valid, rejected = in_both_ways(Validate(Point), [{"x": 1, "y": "2"}, Point(3, 4), {"x": 1}])
    assert valid == [Point(1, 2), Point(3, 4)]
    assert [one.reason for one in rejected] == ["y: Field required"]


def test_a_line_that_is_no_json_or_no_text_is_rejected_with_its_position():
    lines = Lines(pa.array([b"{\n", GOOD.encode() + b"\n", b"\xff\n"], pa.binary()), base=10)
    alone = Alone(Validate(Order))
    alone.send_batch(Batch({"block_id": Constant(7, 3), "value": lines}, Record))
    assert alone.sent() == [Record(7, Order(number=1, item="pen"))]
    places = [(one.start, one.item.block_id) for one in alone.sent("rejected")]
    assert places == [(10, 7), (12 + len(GOOD) + 1, 7)]


def test_a_field_can_be_validated_instead():
    @dataclass(frozen=True)
    class Message:
        topic: str
        body: Any

    valid, _ = in_both_ways(Validate(Order, on="body"), [Message("a", GOOD), Message("b", BAD)])
    assert valid == [Message("a", Order(number=1, item="pen"))]


def test_without_a_stream_from_rejected_the_first_invalid_item_fails():
    for send in ("send", "send_batch"):
        alone = Alone(Validate(Order), connected=["output"])
        with pytest.raises(ItemRejected, match="number: Input should be greater than 0"):
            alone.send(BAD) if send == "send" else alone.send_batch([GOOD, BAD])


def test_an_empty_batch_stays_empty():
    assert len(Alone(Validate(Order)).operator.process_batch(Batch.of([]))) == 0
