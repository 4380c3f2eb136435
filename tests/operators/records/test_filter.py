"""A filter keeps the same items whether it takes one or many at once, and however its condition is written."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dagkit import Batch, Column, Constant, Lines, Listed
from dagkit.testing import Alone
from dagkit_operators import Filter, FlatMap, Map, Record, value
from dagkit_operators.contexts.line_columns import ReadLines
from dagkit_operators.contexts.lines import chunks

TEXTS = [".a", "a", "", "b.", "..", "ä"]
KEPT = ["a", "", "b.", "ä"]


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Numbered:
    number: int
    value: str


PREDICATES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "a lambda": {"predicate": lambda text: not text.startswith(".")},
    "a lambda that answers with something": {"predicate": lambda text: None if text[:1] == "." else text or "empty"},
    "an expression": {"predicate": ~value.starts_with(".")},
    "a mask of Arrow": {"batch": lambda column: pc.invert(pc.starts_with(column.array(), "."))},
    "a mask of numpy": {"batch": lambda column: np.array([not text.startswith(".") for text in column.values()], bool)},
    "a mask in a list": {"batch": lambda column: [not text.startswith(".") for text in column.values()]},
}


def lines(texts: list[str]) -> Batch[Record[str]]:
    ended = pa.array([f"{text}\n".encode() for text in texts], pa.binary())
    return Batch({"block_id": Constant(7, len(texts)), "value": Lines(ended)}, Record)


@pytest.mark.parametrize("told", PREDICATES.values(), ids=PREDICATES.keys())
def test_records_are_kept_by_their_values(told):
    records = [Record(7, text) for text in TEXTS]
    expected = [Record(7, text) for text in KEPT]
    one_by_one, at_once, of_columns = (Alone(Filter(**told)) for _ in range(3))
    one_by_one.send(*records)
    at_once.send_batch(records)
    of_columns.send_batch(lines(TEXTS))
    assert one_by_one.sent() == at_once.sent() == of_columns.sent() == expected


@pytest.mark.parametrize("told", PREDICATES.values(), ids=PREDICATES.keys())
def test_other_items_are_kept_by_what_they_are(told):
    one_by_one, at_once = Alone(Filter(**told)), Alone(Filter(**told))
    one_by_one.send(*TEXTS)
    at_once.send_batch(TEXTS)
    assert one_by_one.sent() == at_once.sent() == KEPT


def test_a_field_can_be_looked_at_instead():
    items = [Named("a", 1), Named("b", 2)]
    for keep in (Filter(lambda size: size > 1, on="size"), Filter(value.field("size") > 1)):
        one_by_one, at_once, of_columns = (Alone(keep) for _ in range(3))
        one_by_one.send(*items)
        at_once.send_batch(items)
        of_columns.send_batch(Batch({"name": Listed(["a", "b"]), "size": Listed([1, 2])}, Named))
        assert one_by_one.sent() == at_once.sent() == of_columns.sent() == items[1:]


def test_lines_that_an_expression_keeps_stay_lines():
    kept = Filter(~value.starts_with(".")).process_batch(lines(TEXTS))
    assert bytes(kept.column("value").content) == "a\n\nb.\nä\n".encode()
    assert isinstance(kept.column("block_id"), Constant)


@pytest.mark.parametrize("told", [~value.starts_with("."), value.contains("b")], ids=["in one pass", "by a mask"])
def test_lines_that_are_no_records_stay_lines_too(told):
    plain: Batch[str] = Batch({"item": lines(TEXTS).column("value")})
    kept = Filter(told).process_batch(plain)
    assert isinstance(kept.columns["item"], Lines)
    assert list(kept.items()) == [text for text in TEXTS if told(text)]


@pytest.mark.parametrize("keep", [lambda text: len(text) < 2, value.length() < 2], ids=["a lambda", "an expression"])
def test_lines_that_must_be_decoded_stay_decoded(keep):
    """What was decoded is written as fast as what would be found in its bytes again."""
    kept = Filter(keep).process_batch(lines(TEXTS))
    assert kept.column("value").values() == ["a", "", "ä"]
    assert isinstance(kept.column("value"), Listed)
    assert isinstance(kept.column("block_id"), Constant)


@pytest.mark.parametrize("decoded", [1, 2, 5, 8, 100])
@pytest.mark.parametrize("delimiter", [b"\n", b"\r\n"])
def test_lines_just_read_are_decoded_in_parts_and_none_is_lost(decoded, delimiter, monkeypatch):
    monkeypatch.setattr("dagkit_operators.contexts.line_columns.DECODED", decoded)
    texts = ["a", "", "bb", ".", "c" * 12, "", "d"]
    for content in (delimiter.join(text.encode() for text in texts), delimiter):
        (chunk,) = chunks(io.BytesIO(content), 0, None, delimiter)
        lines = ReadLines(chunk)
        expected = [text for text in lines.values() if text != "."]
        batch = Batch({"block_id": Constant(7, len(lines)), "value": lines}, Record)
        alone = Alone(Filter(lambda text: text != ".", on="value"))
        alone.send_batch(batch)
        assert alone.sent() == [Record(7, text) for text in expected]
        several = Batch({"number": Listed(range(len(lines))), "value": lines}, Numbered)
        alone.send_batch(several)
        assert [item.number for item in alone.sent()] == [n for n, text in enumerate(lines.values()) if text != "."]


def test_items_of_several_fields_are_kept_whole():
    items = Batch({"name": Listed(["a", "b", "c"]), "size": Listed([1, 2, 3])}, Named)
    assert Filter(lambda size: size != 2, on="size").process_batch(items).items() == [Named("a", 1), Named("c", 3)]
    one_size = Batch({"name": Listed(["a", "b"]), "size": Constant(1, 2)}, Named)
    assert Filter(lambda name: name != "a", on="name").process_batch(one_size).items() == [Named("b", 1)]
    assert Filter(lambda item: item.name != "a").process_batch(one_size).items() == [Named("b", 1)]
    assert Filter(lambda size: size > 1, on="size").process_batch(one_size).items() == []


def test_an_empty_batch_stays_empty():
    for told in PREDICATES.values():
        assert len(Filter(**told).process_batch(Batch.of([]))) == 0
        assert len(Filter(**told).process_batch(lines([]))) == 0


@pytest.mark.parametrize("told", [{}, {"predicate": value == "a", "batch": lambda column: column}])
def test_its_condition_is_given_in_one_way(told):
    assert [fault.message for fault in Filter(**told).faults] == ["it needs a predicate, or batch, and not both"]


@pytest.mark.parametrize("told", [value.length(), value.strip(), value.field("name").upper()], ids=repr)
def test_an_expression_that_is_no_condition_is_a_fault(told):
    words = f"{told!r} is no condition, and would keep what is not empty: compare it, as in {told!r} == …"
    assert [fault.message for fault in Filter(told).faults] == [words]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (lambda: True, "it is called with one value, but takes none"),
        (
            lambda one, other: True,
            "it is called with one value, but takes (one, other): missing a required argument: 'other'",
        ),
        (value.contains, "contains is a method of an expression, and no expression: call it"),
    ],
    ids=["none", "two", "of an expression"],
)
def test_a_function_that_cannot_be_given_one_value_is_a_fault(told, words):
    for operator in (Filter(told), Filter(batch=told), Map(told), FlatMap(told)):
        assert [fault.message for fault in operator.faults] == [words]


@pytest.mark.parametrize("told", [len, str.upper, int, print, lambda one, other=2: one, lambda *all_of_them: 1])
def test_a_function_without_a_signature_is_accepted(told):
    for operator in (Filter(told), Map(told), FlatMap(told)):
        assert not operator.faults


def test_what_is_true_or_false_by_itself_is_a_condition():
    for keep in (Filter(value), Filter(value.field("real")), Filter(~value.length())):
        assert not keep.faults


def wrong_length(column: Column) -> list[bool]:
    return [True]


def wrong_type(column: Column) -> Any:
    return pa.array([1] * len(column))


@pytest.mark.parametrize("batch", [wrong_length, wrong_type])
def test_an_answer_that_is_no_mask_is_refused(batch):
    with pytest.raises(TypeError, match="one bool for each"):
        Filter(batch=batch).process_batch(lines(TEXTS))


def test_null_masks_drop_items():
    keep = Filter(batch=lambda column: pa.array([True, None, False]))
    assert keep.process_batch(Batch.of(["a", "b", "c"])).items() == ["a"]
