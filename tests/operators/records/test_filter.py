"""A filter keeps the same items whether it takes one or many at once, and however its condition is written."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dagkit import Batch, Constant, Lines, Listed
from dagkit.testing import Alone
from dagkit_operators import Filter, Record, value
from dagkit_operators.contexts.line_columns import ReadLines
from dagkit_operators.contexts.lines import chunks
from tests.operators.ways import Named, alike, lines, of_block

TEXTS = [".a", "a", "", "b.", "..", "ä"]
KEPT = ["a", "", "b.", "ä"]
FILTERS = {
    "a lambda": Filter(lambda text: not text.startswith(".")),
    "a lambda that answers with something": Filter(lambda text: None if text[:1] == "." else text or "empty"),
    "an expression": Filter(~value.starts_with(".")),
    "a mask of Arrow": Filter(batch=lambda column: pc.invert(pc.starts_with(column.array(), "."))),
    "a mask of numpy": Filter(
        batch=lambda column: np.array([not text.startswith(".") for text in column.values()], bool)
    ),
    "a mask in a list": Filter(batch=lambda column: [not text.startswith(".") for text in column.values()]),
}


@pytest.mark.parametrize("keep", FILTERS.values(), ids=FILTERS)
def test_records_are_kept_by_their_values_and_other_items_by_what_they_are(keep):
    records = [Record(7, text) for text in TEXTS]
    assert alike(keep, records, of_block(lines(*TEXTS)))["output"] == [Record(7, text) for text in KEPT]
    assert alike(keep, TEXTS)["output"] == KEPT
    assert [len(keep.process_batch(batch)) for batch in (Batch.of([]), of_block(lines()))] == [0, 0]


def test_a_field_can_be_looked_at_instead():
    items = [Named("a", 1), Named("b", 2), Named("c", 3)]
    columns = Batch({"name": Listed(["a", "b", "c"]), "size": Listed([1, 2, 3])}, Named)
    for keep in (Filter(lambda size: size != 2, on="size"), Filter(value.field("size") != 2)):
        assert alike(keep, items, columns)["output"] == items[::2]
    one_size = Batch({"name": Listed(["a", "b"]), "size": Constant(1, 2)}, Named)
    for keep in (Filter(lambda name: name != "a", on="name"), Filter(lambda item: item.name != "a")):
        assert keep.process_batch(one_size).items() == [Named("b", 1)]
    assert Filter(lambda size: size > 1, on="size").process_batch(one_size).items() == []


@pytest.mark.parametrize("claim", [~value.starts_with("."), value.contains("b")], ids=["in one pass", "by a mask"])
def test_lines_that_an_expression_keeps_stay_lines(claim):
    expected = "".join(f"{text}\n" for text in TEXTS if claim(text)).encode()
    kept = Filter(claim).process_batch(Batch({"item": lines(*TEXTS)})).columns["item"]
    assert (type(kept), bytes(kept.content)) == (Lines, expected)
    of_records = Filter(claim).process_batch(of_block(lines(*TEXTS)))
    assert bytes(of_records.column("value").content) == expected
    assert isinstance(of_records.column("block_id"), Constant)


@pytest.mark.parametrize("keep", [lambda text: len(text) < 2, value.length() < 2], ids=["a lambda", "an expression"])
def test_lines_that_must_be_decoded_stay_decoded(keep):
    """What was decoded is written as fast as what would be found in its bytes again."""
    kept = Filter(keep).process_batch(of_block(lines(*TEXTS)))
    assert kept.column("value").values() == ["a", "", "ä"]
    assert [type(kept.column(name)) for name in ("value", "block_id")] == [Listed, Constant]


@pytest.mark.parametrize("decoded", [1, 2, 5, 8, 100])
@pytest.mark.parametrize("delimiter", [b"\n", b"\r\n"])
def test_lines_just_read_are_decoded_in_parts_and_none_is_lost(decoded, delimiter, monkeypatch):
    monkeypatch.setattr("dagkit_operators.contexts.line_columns.DECODED", decoded)
    for content in (delimiter.join([b"a", b"", b"bb", b".", b"c" * 12, b"", b"d"]), delimiter):
        (chunk,) = chunks(io.BytesIO(content), 0, None, delimiter)
        column = ReadLines(chunk)
        expected = [(number, text) for number, text in enumerate(column.values()) if text != "."]
        alone = Alone(Filter(lambda text: text != "."))
        alone.send_batch(of_block(column))
        assert alone.sent() == [Record(7, text) for _, text in expected]
        alone.send_batch(Batch({"block_id": Listed(range(len(column))), "value": column}, Record))
        assert alone.sent() == [Record(*each) for each in expected]


@pytest.mark.parametrize("told", [{}, {"predicate": value == "a", "batch": lambda column: column}])
def test_its_condition_is_given_in_one_way(told):
    assert [fault.message for fault in Filter(**told).faults] == ["it needs a predicate, or batch, and not both"]


def test_an_expression_is_a_condition_if_it_is_true_or_false():
    for told in (value.length(), value.strip(), value.field("name").upper()):
        words = f"{told!r} is no condition, and would keep what is not empty: compare it, as in {told!r} == …"
        assert [fault.message for fault in Filter(told).faults] == [words]
    for told in (value, value.field("real"), ~value.length()):
        assert not Filter(told).faults


def test_an_answer_that_is_no_mask_is_refused_and_null_masks_drop_items():
    for mask in (lambda column: [True], lambda column: pa.array([1] * len(column))):
        with pytest.raises(TypeError, match="one bool for each"):
            Filter(batch=mask).process_batch(of_block(lines(*TEXTS)))
    keep = Filter(batch=lambda column: pa.array([True, None, False]))
    assert keep.process_batch(Batch.of(["a", "b", "c"])).items() == ["a"]
