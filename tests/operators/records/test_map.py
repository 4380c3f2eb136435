"""Maps, filters and branches do the same for one item and for many at once, however their functions are written."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Batch, Constant, Lines, Listed, OutputPort
from dagkit.compiler import compile_application
from dagkit.errors import ApplicationFaults
from dagkit.testing import Alone
from dagkit_operators import Branch, BranchBy, Filter, FlatMap, ItemRejected, Items, Map, Record, value
from dagkit_operators.contexts.line_columns import ReadLines
from dagkit_operators.contexts.lines import chunks
from tests.cases import cases
from tests.engine.cast import chain
from tests.operators.ways import BOTH_WAYS, Named, alike, lines, of_block

MAPS = {
    "a lambda": Map(lambda text: text.strip().upper()),
    "an expression": Map(value.strip().upper()),
    "an array of Arrow": Map(batch=lambda column: pc.ascii_upper(pc.ascii_trim_whitespace(column.array()))),
    "a list": Map(batch=lambda column: [text.strip().upper() for text in column.values()]),
    "a column": Map(batch=lambda column: Listed([text.strip().upper() for text in column.values()])),
}


def records(*pairs: tuple[int, str]) -> list[Record[str]]:
    return [Record(*pair) for pair in pairs]


@pytest.mark.parametrize("operator", MAPS.values(), ids=MAPS)
def test_of_a_record_the_value_is_replaced_and_any_other_item_as_a_whole(operator):
    sent = alike(operator, records((7, " a"), (7, "b"), (7, "")), of_block(lines(" a", "b", "")))
    assert sent["output"] == records((7, "A"), (7, "B"), (7, ""))
    assert alike(operator, [" a", "b"], Batch({"item": Listed([" a", "b"])}))["output"] == ["A", "B"]


def test_a_field_can_be_replaced_instead_and_items_that_are_no_records_become_what_is_made_of_them():
    columns = Batch({"name": Listed(["a", "b"]), "size": Listed([1, 2])}, Named)
    sent = alike(Map(lambda size: -size, on="size"), [Named("a", 1), Named("b", 2)], columns)
    assert sent["output"] == [Named("a", -1), Named("b", -2)]
    items = ["a b", "", "c"]
    assert alike(FlatMap(str.split), items, Batch({"item": Listed(items)}))["output"] == list("abc")


@pytest.mark.parametrize("told", [{}, {"function": str.upper, "batch": lambda column: column}])
def test_its_function_is_given_in_one_way_and_every_value_becomes_one(told):
    assert [fault.message for fault in Map(**told).faults] == ["it needs a function, or batch, and not both"]
    with pytest.raises(ValueError, match="the batch function made 1 values of 2; one for each is needed"):
        Map(batch=lambda column: ["a"]).process_batch(of_block(lines("a", "b")))


def pairs(text: str) -> Iterator[str]:
    yield from (text[place : place + 2] for place in range(len(text) - 1))


@pytest.mark.parametrize("function", [pairs, lambda text: list(pairs(text)), lambda text: tuple(pairs(text))])
def test_everything_that_is_made_of_a_record_is_of_its_block(function):
    sent = alike(FlatMap(function), records((7, "abc"), (7, ""), (7, "xy")), of_block(lines("abc", "", "xy")))
    assert sent["output"] == records((7, "ab"), (7, "bc"), (7, "xy"))
    columns = Batch({"block_id": Listed([1, 2]), "value": Listed(["abc", "xy"])}, Record)
    sent = alike(FlatMap(function), records((1, "abc"), (2, "xy")), columns)
    assert sent["output"] == records((1, "ab"), (1, "bc"), (2, "xy"))


@BOTH_WAYS
def test_a_text_is_not_taken_for_its_letters(send):
    with pytest.raises(TypeError, match=r"the function made 'ABC', whose letters would be sent; give \[text\]"):
        send(Alone(FlatMap(str.upper)), "abc")


def test_an_empty_batch_stays_empty():
    for operator in (FlatMap(pairs), *MAPS.values()):
        assert [len(operator.process_batch(batch)) for batch in (Batch.of([]), of_block(lines()))] == [0, 0]


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
    [[Swapped(1, "a")], [Spelled(name="a", size=1)], [Named("a", 1), Priced("b", 2, 5)]],
    ids=["with an order of its own", "made by keywords", "of several classes"],
)
def test_a_field_is_replaced_in_whatever_has_it(items):
    types = [type(item) for item in items]
    assert [type(item) for item in alike(Map(lambda size: -size, on="size"), items)["output"]] == types
    sent = alike(FlatMap(lambda size: [size, -size], on="size"), items)["output"]
    assert [type(item) for item in sent[::2]] == types


def test_types_without_the_record_around_them_are_answered_with_the_record():
    with pytest.raises(ApplicationFaults) as raised:
        compile_application(chain(Lines=Items[Record[str]](items=()), Upper=Map[str, str](str.upper)))
    (fault,) = raised.value.diagnostics
    assert fault.code == "port-type-mismatch"
    first, last = fault.help.split(", or ")
    assert first.endswith("between them, such as Map[Record[str], str](lambda record: record.value)")
    assert last == "write Record[str] for str in Map[str, str], if Upper works on the value inside"


MISSING = "it is called with one value, but takes (one, other): missing a required argument: 'other'"


@cases(
    "told, words",
    ("none", lambda: True, "it is called with one value, but takes none"),
    ("two", lambda one, other: True, MISSING),
    ("of an expression", value.contains, "contains is a method of an expression, and no expression: call it"),
)
def test_a_function_that_cannot_be_given_one_value_is_a_fault(told, words):
    for operator in (Filter(told), Filter(batch=told), Map(told), FlatMap(told)):
        assert [fault.message for fault in operator.faults] == [words]


@pytest.mark.parametrize("told", [len, str.upper, int, print, lambda one, other=2: one, lambda *all_of_them: 1])
def test_a_function_without_a_signature_is_accepted(told):
    for operator in (Filter(told), Map(told), FlatMap(told)):
        assert not operator.faults


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


class BySize(BranchBy[Any]):
    kind = "branching.by-size/1"
    small = OutputPort[Any]()
    large = OutputPort[Any]()


@given(items=st.lists(st.integers(-200, 200), max_size=20))
def test_every_item_leaves_by_one_output_that_of_the_first_predicate_that_holds(items):
    assert alike(BySize(predicates={"small": value < 10, "large": lambda number: number > 100}), items) == {
        "small": [item for item in items if item < 10],
        "large": [item for item in items if item > 100],
        "otherwise": [item for item in items if 10 <= item <= 100],
        "rejected": [],
    }
    sent = alike(BySize(predicates={"large": value < 10, "small": value < 10}), [1])
    assert (sent["large"], sent["small"]) == ([1], [])


@pytest.mark.parametrize("starts", [value.starts_with("a"), lambda text: text[0] == "a"], ids=["expression", "lambda"])
def test_a_branch_has_two_outputs(starts):
    ab, b, ac = records = Record(7, "ab"), Record(7, "b"), Record(7, "ac")
    sent = alike(Branch(starts), records, of_block(lines("ab", "b", "ac")))
    assert sent == {"matched": [ab, ac], "unmatched": [b], "rejected": []}


def test_an_item_that_cannot_be_tested_is_rejected_and_an_empty_batch_goes_nowhere():
    sent = alike(Branch(lambda text: int(text) > 1), ["1", "x", "2"])
    assert (sent["matched"], sent["unmatched"]) == (["2"], ["1"])
    assert [rejected.item for rejected in sent["rejected"]] == ["x"]
    unconnected = Alone(Branch(lambda text: int(text) > 1), connected=["matched"])
    with pytest.raises(ItemRejected):
        unconnected.send_batch(["x"])
    alone = Alone(Branch(bool))
    alone.send_batch(Batch.of([]))
    assert [alone.batches(port) for port in alone.outputs] == [[], [], []]


@pytest.mark.parametrize("name", ["smal", "rejected"])
def test_a_predicate_of_no_output_is_a_fault(name):
    (fault,) = BySize(predicates={name: value < 10}).faults
    assert fault.message.startswith(f"BySize declares no output '{name}'")
    assert fault.message.endswith(": did you mean 'small'?") == (name == "smal")
