"""Rows of root chains."""

import math

import pytest
from pydantic import ValidationError

from dagkit.ledger import EmittedItem, WorkBlock
from dagkit.ledger.format.recorded_work import block_row


def test_values_of_an_author_stay_as_they_are_in_a_row():
    value = {"element": {"infinite": math.inf, "none": None, "surrogate": "\udc80", "list": [None, {"snake_case": 1}]}}
    assert WorkBlock(source="a", start=0, end=1, extra=value).as_json()["extra"] == value
    assert EmittedItem(offset=0, port="out", item=value).as_json()["item"] == value
    assert "extra" not in WorkBlock(source="a", start=0, end=1).as_json()


@pytest.mark.parametrize(("end", "size"), [(7, 9), (None, None), (7, None), (None, 9), (3, 3)], ids=str)
def test_the_row_of_a_range_is_that_of_its_block(end, size):
    extra = {"port": "blocks", "element": {"path": "a", "facts": None}}
    assert (
        block_row("a", 3, end, size, extra) == WorkBlock(source="a", start=3, end=end, size=size, extra=extra).as_json()
    )


@pytest.mark.parametrize(
    ("start", "end", "size"), [(3, 2, None), (-1, 2, None), (0, 2, -1)], ids=["backwards", "before 0", "less than none"]
)
def test_the_row_of_an_impossible_range_is_refused(start, end, size):
    with pytest.raises(ValidationError, match="WorkBlock"):
        block_row("a", start, end, size, {})
