"""Items for which a function raises ValueError are rejected, alike one by one and in batches; all others are sent."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dagkit import Batch, Constant, Lines, Listed
from dagkit.errors import RUN_CODES
from dagkit.testing import Alone
from dagkit_operators import Filter, FlatMap, ItemRejected, Map, Record, Rejected
from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.line_columns import ReadLines

TEXTS = ["1", "x", "22", "", "3"]
BAD = {"x": "invalid literal for int() with base 10: 'x'", "": "invalid literal for int() with base 10: ''"}


def is_even(text: str) -> bool:
    return int(text) % 2 == 0


def digits(text: str) -> list[int]:
    return [int(text), int(text)]


OPERATORS: list[tuple[Any, list[Any]]] = [
    (Filter(is_even), ["22"]),
    (Map(int), [1, 22, 3]),
    (FlatMap(digits), [1, 1, 22, 22, 3, 3]),
]


def as_records(values: list[Any]) -> list[Any]:
    return [Record(7, value) for value in values]


def lines(texts: list[str]) -> Batch[Any]:
    column = Lines(pa.array([f"{text}\n".encode() for text in texts], pa.binary()), base=100)
    return Batch({"block_id": Constant(7, len(texts)), "value": column}, Record)


def read_lines(texts: list[str]) -> Batch[Any]:
    content = "".join(f"{text}\n" for text in texts).encode()
    column = ReadLines(Chunk(np.frombuffer(content, np.uint8), 100, b"\n"))
    return Batch({"block_id": Constant(7, len(texts)), "value": column}, Record)


@pytest.mark.parametrize(("operator", "expected"), OPERATORS, ids=["filter", "map", "flat map"])
def test_items_are_rejected_with_their_reason_one_by_one_and_in_batches(operator, expected):
    one_by_one, in_batches = Alone(operator), Alone(operator)
    one_by_one.send(*TEXTS)
    in_batches.send_batch(TEXTS)
    rejected = [Rejected("", None, text, reason, text) for text, reason in BAD.items()]
    for alone in (one_by_one, in_batches):
        assert (alone.sent(), alone.sent("rejected")) == (expected, rejected)


@pytest.mark.parametrize(("operator", "expected"), OPERATORS, ids=["filter", "map", "flat map"])
@pytest.mark.parametrize("batch_of", [lines, read_lines], ids=["lines", "lines as they were read"])
def test_a_rejected_line_has_its_record_and_its_position(operator, expected, batch_of):
    alone = Alone(operator)
    alone.send_batch(batch_of(TEXTS))
    assert alone.sent() == as_records(expected)
    assert alone.sent("rejected") == [
        Rejected("", 102, "x", BAD["x"], Record(7, "x")),
        Rejected("", 107, "", BAD[""], Record(7, "")),
    ]


@pytest.mark.parametrize(("operator", "expected"), OPERATORS, ids=["filter", "map", "flat map"])
def test_an_item_without_a_position_has_that_of_its_part_of_the_file(operator, expected):
    alone = Alone(operator)
    column = Listed(TEXTS, lambda: None, 100)
    alone.send_batch(Batch({"block_id": Constant(7, len(TEXTS)), "value": column}, Record))
    assert alone.sent() == as_records(expected)
    assert [(one.start, one.text) for one in alone.sent("rejected")] == [(100, "x"), (100, "")]


@pytest.mark.parametrize(("operator", "expected"), OPERATORS, ids=["filter", "map", "flat map"])
def test_records_of_several_blocks_are_rejected_too(operator, expected):
    alone = Alone(operator)
    alone.send_batch(Batch({"block_id": Listed([1, 2, 3]), "value": Listed(["22", "x", "4"])}, Record))
    assert {record.block_id for record in alone.sent()} == {1, 3}
    assert [one.item for one in alone.sent("rejected")] == [Record(2, "x")]


@pytest.mark.parametrize(("operator", "expected"), OPERATORS, ids=["filter", "map", "flat map"])
@pytest.mark.parametrize("send", ["send", "send_batch"])
def test_without_a_stream_from_rejected_the_first_bad_item_fails(operator, expected, send):
    alone = Alone(operator, connected=["output"])
    with pytest.raises(ItemRejected, match="the item 'x' is rejected: invalid literal") as raised:
        alone.send("1", "x", "2") if send == "send" else alone.send_batch(["1", "x", "2"])
    assert raised.value.code in RUN_CODES
    assert "rejected" in raised.value.help


def test_what_raises_something_else_fails():
    alone = Alone(Map(lambda text: {}[text]))
    with pytest.raises(KeyError):
        alone.send_batch(["1"])
    with pytest.raises(KeyError):
        alone.send("1")


def test_a_function_of_a_column_is_not_called_again():
    calls = []

    def fail(column: Any) -> Any:
        calls.append(len(column))
        raise ValueError("no")

    for operator in (Map(batch=fail), Filter(batch=fail)):
        with pytest.raises(ValueError, match="no"):
            Alone(operator).operator.process_batch(Batch.of([1, 2]))
    assert calls == [2, 2]
