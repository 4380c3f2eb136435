"""Valid items become typed ones; the others are rejected with all reasons, alike one by one and in batches."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, PositiveInt

from dagkit import Batch
from dagkit.testing import Alone
from dagkit_operators import ItemRejected, Record, Rejected, Validate
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


def test_dicts_and_objects_are_validated_as_they_are():
    sent = alike(Validate(Named), [{"name": "a", "size": "2"}, Named("b", 4), {"name": "c"}])
    assert sent["output"] == [Named("a", 2), Named("b", 4)]
    assert [one.reason for one in sent["rejected"]] == ["size: Field required"]


def test_a_line_that_is_no_json_or_no_text_is_rejected_with_its_position():
    alone = Alone(Validate(Order))
    alone.send_batch(of_block(lines("{", GOOD, b"\xff", base=10)))
    assert alone.sent() == [Record(7, PEN)]
    places = [(one.start, one.item.block_id) for one in alone.sent("rejected")]
    assert places == [(10, 7), (12 + len(GOOD) + 1, 7)]


def test_a_field_can_be_validated_instead():
    sent = alike(Validate(Order, on="body"), [Message("a", GOOD), Message("b", BAD)])
    assert sent["output"] == [Message("a", PEN)]


@BOTH_WAYS
def test_without_a_stream_from_rejected_the_first_invalid_item_fails(send):
    with pytest.raises(ItemRejected, match="number: Input should be greater than 0"):
        send(Alone(Validate(Order), connected=["output"]), GOOD, BAD)


def test_an_empty_batch_stays_empty():
    assert len(Alone(Validate(Order)).operator.process_batch(Batch.of([]))) == 0
