"""Every key sees the value of a record, and any other item as a whole: a text, a function and an expression."""

from dataclasses import dataclass

import pytest

from dagkit import Batch, Constant, Listed
from dagkit.engine.program.program import Keying
from dagkit.schema.routing import routing_code
from dagkit_operators import Record, value
from dagkit_operators.values.keys import RoutingKey, key_of, keys_of


@dataclass(frozen=True)
class Order:
    number: int
    text: str


ORDERS = [Order(number, text) for number, text in [(1, "a"), (2, "b"), (1, "c")]]
DICTS = [vars(order) for order in ORDERS]
KEYS = ["number", lambda one: one["number"] if isinstance(one, dict) else one.number, value.field("number")]
WAYS = {
    "objects": Batch.of(ORDERS),
    "mappings": Batch.of(DICTS),
    "records": Batch.of([Record(0, order) for order in ORDERS]),
    "records of mappings": Batch.of([Record(0, each) for each in DICTS]),
    "columns": Batch({"number": Listed([1, 2, 1]), "text": Listed(["a", "b", "c"])}, Order),
    "columns of records": Batch({"block_id": Constant(0, 3), "value": Listed(ORDERS)}, Record),
}


@pytest.mark.parametrize("key", KEYS, ids=["a text", "a function", "an expression"])
@pytest.mark.parametrize("batch", WAYS.values(), ids=WAYS)
def test_every_kind_of_key_sees_the_same(key, batch):
    assert list(keys_of(key, batch)) == [key_of(key, item) for item in batch.items()] == [1, 2, 1]
    keying = Keying(None, RoutingKey(key))
    codes = [routing_code(number) for number in (1, 2, 1)]
    assert [keying.code(item) for item in batch.items()] == codes
    assert keying.codes(batch).tolist() == [code & 0xFFFFFFFF for code in codes]


def test_a_field_of_the_record_itself_is_no_key():
    with pytest.raises(AttributeError, match="'Order' object has no attribute 'block_id'"):
        key_of("block_id", Record(7, ORDERS[0]))
