"""Items for which a function raises ValueError are rejected, alike one by one and in batches; all others are sent."""

import pytest
from pydantic import TypeAdapter

from dagkit import Batch, Listed
from dagkit.errors import RUN_CODES
from dagkit.testing import Alone
from dagkit_operators import Filter, FlatMap, ItemRejected, Map, Record, Rejected
from tests.operators.ways import BOTH_WAYS, alike, lines, of_block, read_lines

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
