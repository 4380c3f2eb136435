"""Each item leaves by exactly one output: that of the first predicate that holds, or the last one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Batch, OutputPort
from dagkit.testing import Alone
from dagkit_operators import Branch, BranchBy, ItemRejected, Record, value
from tests.operators.ways import alike, lines, of_block


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
