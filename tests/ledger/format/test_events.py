"""Events are written as the fabric's RFC-014 writes them: half-open what was read, closed what was added."""

import math
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from dagkit.ledger import EmittedItem, WorkBlock
from dagkit.ledger.format.events import AddData, ExecuteTransform, ExecuteTransformInput
from dagkit.ledger.format.recorded_work import block_row
from tests.cases import cases
from tests.ledger.desk import STRANGER

AT_MIDNIGHT = datetime(2023, 12, 31, tzinfo=UTC)


def a_slice(start: int, end: int) -> dict:
    interval = {"start": start, "end": end}
    return {"logicalHash": STRANGER, "physicalHash": STRANGER, "offsetInterval": interval, "size": 100}


UNHASHED = {name: value for name, value in a_slice(0, 9).items() if name != "logicalHash"}
FIRST = {"kind": "AddData", "newData": a_slice(0, 9), "newWatermark": "2023-12-31T00:00:00Z"}
NEXT = {"kind": "AddData", "prevOffset": 9, "newData": a_slice(10, 19), "newWatermark": "2023-12-31T01:00:00Z"}
WATERMARK_ONLY = {"kind": "AddData", "prevOffset": 19, "newWatermark": "2023-12-31T03:00:00Z"}


@pytest.mark.parametrize(
    ("written", "last"),
    [(FIRST, 9), (NEXT, 19), (WATERMARK_ONLY, 19)],
    ids=["first", "next with data", "watermark only"],
)
def test_the_rfcs_examples_come_back_as_they_are_and_know_their_last_offset(written, last):
    event = AddData.model_validate(written)
    assert (event.as_json(), event.last_offset) == (written, last)


def test_absent_is_left_out_and_never_null():
    event = ExecuteTransform(query_inputs=(ExecuteTransformInput(dataset_id="did:odf:a"),), new_watermark=AT_MIDNIGHT)
    assert event.as_json() == {
        "kind": "ExecuteTransform",
        "queryInputs": [{"datasetId": "did:odf:a"}],
        "newWatermark": "2023-12-31T00:00:00Z",
    }
    given = {"dataset_id": "did:odf:a", "prev_block_hash": STRANGER, "new_block_hash": STRANGER, "prev_offset": 109}
    quiet = ExecuteTransformInput(**given)
    assert (quiet.last_offset, "newOffset" in quiet.as_json()) == (109, False)


@cases(
    "changes",
    ("a time without a zone", {"newWatermark": "2023-12-31T00:00:00"}),
    ("a negative offset", {"prevOffset": -1}),
    ("an offset beyond 64 bits", {"prevOffset": 2**64}),
    ("a hash that is none", {"prevCheckpoint": "deadbeef"}),
    ("a hash of a kind that dagkit does not make", {"prevCheckpoint": "f9680c00120" + "ab" * 32}),
    ("an unknown field", {"surprise": 1}),
    ("an unknown field deep inside", {"newData": {**a_slice(0, 9), "surprise": 1}}),
    ("a slice without its logical hash", {"newData": UNHASHED}),
    ("an attribute without a domain", {"extra": {"no-domain": 1}}),
)
def test_what_the_fabric_does_not_know_is_refused(changes):
    with pytest.raises(ValidationError, match="validation error"):
        AddData.model_validate({**FIRST, **changes})


def test_another_zone_is_the_same_instant_and_microseconds_are_kept():
    event = AddData.model_validate({"newWatermark": "2023-12-31T02:00:00+02:00"})
    assert event.as_json()["newWatermark"] == "2023-12-31T00:00:00Z"
    assert AddData(new_watermark=AT_MIDNIGHT.replace(microsecond=7)).as_json()["newWatermark"].endswith("00.000007Z")


# ---- rows of root chains


def test_values_of_an_author_stay_as_they_are_in_a_row():
    value = {"element": {"infinite": math.inf, "none": None, "surrogate": "\udc80", "list": [None, {"snake_case": 1}]}}
    assert WorkBlock(source="a", start=0, end=1, extra=value).as_json()["extra"] == value
    assert "extra" not in WorkBlock(source="a", start=0, end=1).as_json()
    for item in (value, None):
        row = EmittedItem(offset=0, port="out", item=item).as_json()
        assert row == {"offset": 0, "port": "out", "item": item}
        assert EmittedItem.model_validate(row).as_json() == row


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
