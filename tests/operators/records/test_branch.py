"""Each item leaves by exactly one output: that of the first predicate that holds, or the last one."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Batch, Constant, Lines, OutputPort
from dagkit.testing import Alone
from dagkit_operators import Branch, BranchBy, ItemRejected, Record, value


class BySize(BranchBy[Any]):
    kind = "branching.by-size/1"
    small = OutputPort[Any]()
    large = OutputPort[Any]()


SIZES = BySize(predicates={"small": value < 10, "large": lambda number: number > 100})


@given(items=st.lists(st.integers(-200, 200), max_size=20))
def test_every_item_leaves_by_one_output(items):
    one_by_one, in_batches = Alone(SIZES), Alone(SIZES)
    one_by_one.send(*items)
    in_batches.send_batch(items)
    for alone in (one_by_one, in_batches):
        assert alone.sent("small") == [item for item in items if item < 10]
        assert alone.sent("large") == [item for item in items if item > 100]
        assert alone.sent("otherwise") == [item for item in items if 10 <= item <= 100]


def test_the_first_predicate_that_holds_decides():
    alone = Alone(BySize(predicates={"large": value < 10, "small": value < 10}))
    alone.send_batch([1])
    assert (alone.sent("large"), alone.sent("small")) == ([1], [])


@pytest.mark.parametrize(
    "predicate", [value.starts_with("a"), lambda text: text[0] == "a"], ids=["expression", "lambda"]
)
def test_a_branch_has_two_outputs(predicate):
    lines = Lines(pa.array([b"ab\n", b"b\n", b"ac\n"], pa.binary()))
    alone = Alone(Branch(predicate))
    alone.send_batch(Batch({"block_id": Constant(7, 3), "value": lines}, Record))
    alone.send(Record(8, "a"), Record(8, "c"))
    assert alone.sent("matched") == [Record(7, "ab"), Record(7, "ac"), Record(8, "a")]
    assert alone.sent("unmatched") == [Record(7, "b"), Record(8, "c")]


@pytest.mark.parametrize("send", ["send", "send_batch"])
def test_an_item_that_cannot_be_tested_is_rejected(send):
    alone = Alone(Branch(lambda text: int(text) > 1))
    alone.send("1", "x", "2") if send == "send" else alone.send_batch(["1", "x", "2"])
    assert (alone.sent("matched"), alone.sent("unmatched")) == (["2"], ["1"])
    assert [rejected.item for rejected in alone.sent("rejected")] == ["x"]
    unconnected = Alone(Branch(lambda text: int(text) > 1), connected=["matched"])
    with pytest.raises(ItemRejected):
        unconnected.send_batch(["x"])


def test_a_predicate_of_no_output_is_a_fault():
    (fault,) = BySize(predicates={"smal": value < 10}).faults
    assert fault.message == "BySize declares no output 'smal': did you mean 'small'?"
    (fault,) = BySize(predicates={"rejected": value < 10}).faults
    assert "BySize declares no output 'rejected'" in fault.message


def test_an_empty_batch_goes_nowhere():
    alone = Alone(SIZES)
    alone.send_batch([])
    assert [alone.batches(port) for port in ("small", "large", "otherwise")] == [[], [], []]
