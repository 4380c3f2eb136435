"""A record says its own hash, and is what was written or is not read at all."""

import json
import math
import pickle
import re
from datetime import UTC, datetime
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dagkit.ledger import (
    LEDGER_CODES,
    BlockNotFound,
    BlockRefused,
    ChainBroken,
    ChainNotFound,
    EmittedItem,
    Fault,
    Ledger,
    LedgerError,
    SequenceTaken,
    StoreError,
    VersionUnreadable,
    WorkBlock,
)
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.format.block import seal, unseal
from dagkit.ledger.format.events import AddData, ExecuteTransform, ExecuteTransformInput
from dagkit.ledger.format.hashing import canonical, hash_of
from dagkit.ledger.format.outdated import outdated
from dagkit.ledger.format.recorded_work import block_row
from tests.cases import cases
from tests.ledger.desk import APPLICATION, SPLITTER, STRANGER, Desk, code_of


def a_line() -> bytes:
    desk = Desk()
    desk.discover((0, 10))
    return desk.app.log.line(desk.window(3, consumed=[(0, 10)]).seq)


LINE = a_line()


def refused(line: bytes, seq: int = 3) -> str:
    return code_of(lambda: unseal(line, APPLICATION, seq), ChainBroken)


def test_a_record_comes_back_equal():
    record = unseal(LINE, APPLICATION, 3)
    assert seal(record.block, record.carry, record.objects) == (record, LINE)


def test_the_hash_is_over_the_block_and_what_it_carries():
    document = json.loads(LINE)
    body = {part: document[part] for part in ("block", "carry", "format")}
    assert document["hash"] == hash_of(canonical(body).encode())


@given(st.integers(0, len(LINE) - 1), st.integers(0, 7))
def test_a_flipped_bit_is_noticed_wherever_it_is(place, bit):
    forged = bytearray(LINE)
    forged[place] ^= 1 << bit
    with pytest.raises(LedgerError) as caught:
        unseal(bytes(forged), APPLICATION, 3)
    assert (caught.value.fault.chain, caught.value.fault.block) == (APPLICATION, 3)


@given(st.integers(0, len(LINE) - 1))
def test_a_record_that_ends_early_is_torn(size):
    assert refused(LINE[:size]) == "block-torn"


def test_a_record_under_another_number_is_misplaced_and_a_flipped_bit_in_a_name_is_no_field_of_the_future():
    assert refused(LINE, seq=4) == "block-misplaced"
    assert refused(LINE.replace(b'"newOffset"', b'"newOffsft"', 1)) == "block-damaged"


def test_a_later_version_is_refused_by_name():
    later = LINE.replace(b"dagkit.block/1", b"dagkit.block/2")
    with pytest.raises(VersionUnreadable, match=r"'dagkit\.block/2', but this dagkit reads 'dagkit\.block/1'"):
        unseal(later, APPLICATION, 3)


def resealed(document: dict) -> bytes:
    """The document with a matching hash, as an attacker would forge it."""
    body = {part: document[part] for part in ("block", "carry", "format")}
    return canonical({**document, "hash": hash_of(canonical(body).encode())}).encode() + b"\n"


@pytest.mark.parametrize("where", [(), ("block",), ("block", "event"), ("carry",), "kind"], ids="".join)
def test_a_field_and_an_event_of_the_future_are_refused_by_name(where):
    document = json.loads(LINE)
    if where == "kind":
        document["block"]["event"]["kind"] = "mood"
    else:
        reduce(getitem, where, document)["mood"] = 1
    with pytest.raises(VersionUnreadable, match=r"'block\.event'" if where == "kind" else "mood") as caught:
        unseal(resealed(document), APPLICATION, 3)
    assert caught.value.code == "field-unknown"


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["block"]["event"].update(newWatermark=None),
        lambda d: d["block"].update(systemTime=d["block"]["systemTime"].replace("Z", "+00:00")),
    ],
    ids=["a null", "a time spelled otherwise"],
)
def test_a_record_has_one_spelling(edit):
    document = json.loads(LINE)
    edit(document)
    assert refused(resealed(document)) == "block-damaged"


def test_an_object_that_is_not_what_its_name_says_is_noticed():
    document = json.loads(LINE)
    name = next(iter(document["objects"]))
    document["objects"][name] += " "
    with pytest.raises(ChainBroken, match="keeps an object"):
        unseal(resealed(document), APPLICATION, 3)


PAGE = Path(__file__).parents[3] / "docs" / "ledger.md"


def test_every_code_is_a_row_of_the_page_in_order_with_its_cause_and_its_repair():
    rows = re.findall(
        r"^\| `([a-z-]+)` \| \S.* \| \S.* \|$", PAGE.read_text("utf-8").partition("## Error codes")[2], re.MULTILINE
    )
    assert rows == list(LEDGER_CODES)


@pytest.mark.parametrize(
    ("code", "kinds"),
    [(1, (BlockRefused, SequenceTaken)), (5, (StoreError,)), (6, (VersionUnreadable, ChainNotFound, BlockNotFound))],
)
def test_an_error_travels_between_processes_and_owns_its_exit_code(code, kinds):
    for kind in kinds:
        error = kind(Fault("block-missing", "it is gone", "look", "c", 3), Fault("link-broken", "it lies", "look"))
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert (type(again), again.faults, str(again)) == (kind, error.faults, str(error))
        assert again.exit_code == code


def test_a_fault_says_where_what_and_what_to_do():
    fault = Fault("block-missing", "it is gone", "look for it", "c", 3)
    assert str(fault) == "c: block 3: it is gone [block-missing]\n  help: look for it"


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


HASH, SLICES = "f1620" + "0a" * 32, "f9680c00120" + "0b" * 32
DATASET = "did:odf:fed01816ef0a9abe93aba816ef0a9abe93aba90e6065747170300c0d3d30c2cd8d7a4"
SLICE = {"logicalHash": SLICES, "physicalHash": HASH, "offsetInterval": {"start": 10, "end": 19}, "size": 100}
BLOCKS = {"start": HASH, "end": HASH}
EVENTS: dict[str, dict[str, Any]] = {
    "data were added": {
        "kind": "AddData",
        "inputCheckpoint": HASH,
        "outputData": SLICE,
        "outputCheckpoint": {"physicalHash": HASH, "size": 10},
        "outputWatermark": "2023-12-31T00:00:00Z",
        "sourceState": {"sourceName": "src", "kind": "odf/etag", "value": "x"},
    },
    "a query was executed": {
        "kind": "ExecuteQuery",
        "inputSlices": [{"datasetId": DATASET, "blockInterval": BLOCKS, "offsetInterval": {"start": 10, "end": 20}}],
        "outputData": SLICE,
    },
    "a query had nothing to read": {"kind": "executeQuery", "inputSlices": [{"datasetId": DATASET}]},
    "a watermark alone was set": {"kind": "SetWatermark", "outputWatermark": "2023-12-31T03:00:00Z"},
}
EACH = pytest.mark.parametrize("event", EVENTS.values(), ids=list(EVENTS))


def block(event: dict[str, Any], seq: int = 2) -> dict[str, Any]:
    """A block as the schemas of version 0.33 have it."""
    return {"systemTime": "2023-12-31T04:00:00Z", "prevBlockHash": HASH, "sequenceNumber": seq, "event": event}


def record(event: dict[str, Any], seq: int) -> bytes:
    """The block as a record with a right hash of its own."""
    body = {"block": block(event, seq), "carry": {}, "format": "dagkit.block/1"}
    return canonical({**body, "hash": hash_of(canonical(body).encode())}).encode() + b"\n"


@EACH
def test_a_chain_that_ends_with_such_a_block_is_refused_in_words(event):
    desk = Desk()
    desk.discover((0, 10))
    desk.store.replace(desk.root.log.block_key(3), record(event, 3))
    with pytest.raises(VersionUnreadable, match=r"before RFC-014 .*[\s\S]*start in a new folder") as caught:
        desk.reopened_ledger().chain(SPLITTER)
    assert (caught.value.code, caught.value.fault.block) == ("version-outdated", 3)
    assert event["kind"] in str(caught.value) or "outputData" in str(caught.value)
    assert "version-outdated" in {fault.code for fault in verify(Ledger.open(desk.store)).faults}


@EACH
def test_a_block_that_another_tool_wrote_is_refused_in_words(event):
    for document in (block(event), {"kind": "MetadataBlock", "version": 1, "content": block(event)}):
        line = canonical(document).encode() + b"\n"
        assert code_of(lambda line=line: unseal(line, SPLITTER, 2), VersionUnreadable) == "version-outdated"


@EACH
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_an_import_of_such_manifests_is_refused_in_words(run, tmp_path, event, version, form):
    run("export", "PATH", tmp_path / "out", "--format", form)
    manifest = {"kind": "MetadataBlock", "version": version, "content": block(event)}
    file = tmp_path / "out" / "chains" / f"{SPLITTER}.{form}"
    kept = file.read_text(encoding="utf-8").splitlines(keepends=True)
    seed = kept[: next((n for n, line in enumerate(kept) if n and line == "---\n"), 1)]
    added = yaml.safe_dump(manifest, explicit_start=True) if form == "yaml" else json.dumps(manifest) + "\n"
    file.write_text("".join(seed) + added, encoding="utf-8")
    assert "[version-outdated]" in run("import", tmp_path / "other", tmp_path / "out", code=6).stderr


@pytest.mark.parametrize(
    "document", [None, [], {}, {"block": None}, {"content": []}, {"event": "ExecuteQuery"}], ids=str
)
def test_what_is_no_block_is_not_called_old(document):
    assert outdated(document) is None


def test_a_block_of_today_is_not_called_old(desk):
    desk.discover((0, 10))
    desk.window(1)
    for chain in (desk.root, desk.app):
        assert {outdated(json.loads(line)) for _, line in chain.log.lines(0, chain.head.seq)} == {None}
