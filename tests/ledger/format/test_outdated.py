"""A chain from before RFC-014 is refused in words that say so, and not as one of a later dagkit."""

import json
from typing import Any

import pytest
import yaml

from dagkit.ledger import Ledger, VersionUnreadable
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.format.block import unseal
from dagkit.ledger.format.hashing import canonical, hash_of
from dagkit.ledger.format.outdated import outdated
from tests.ledger.desk import SPLITTER, Desk, code_of

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
