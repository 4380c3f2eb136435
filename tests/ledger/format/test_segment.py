"""Segments that are not what they look like."""

import pytest
from obstore.store import MemoryStore as Bucket

from dagkit.ledger import ChainBroken, Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.format.segment import SEGMENT_SIZE
from dagkit.ledger.stores import LocalStore, MemoryStore
from dagkit.ledger.stores.bucket import BucketStore
from tests.ledger.chain.test_log import copy, long_chain
from tests.ledger.desk import SPLITTER, faults_in


@pytest.fixture(scope="module")
def packed():
    """A chain of one segment and a few blocks."""
    return long_chain(SEGMENT_SIZE + 3).store


def entry(place: int, text: str):
    """Puts another end for one record into the index of a segment."""

    def change(content: bytes) -> bytes:
        start = content.index(b"[") + 1 + place * 13
        return content[:start] + f"{text:>12}".encode() + content[start + 12 :]

    return change


FORGERIES = {
    "negative": entry(500, "-1"),
    "beyond all memory": entry(500, "999999999999"),
    "backwards": entry(500, "7"),
    "empty": entry(500, ""),
    "in another spelling": entry(500, "1_000"),
    "the first negative": entry(0, "-9"),
    "the first beyond all memory": entry(0, "999999999999"),
    "of fewer records": lambda content: content.replace(b'"count":%6d' % 1000, b'"count":%6d' % 5),
    "of other records": lambda content: content.replace(b'"first":%20d' % 0, b'"first":%20d' % 2000),
    "with something behind": lambda content: content + b"{}\n",
}


@pytest.mark.parametrize("kind", ["memory", "local", "bucket"])
@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_segment_with_a_forged_index_is_named(packed, tmp_path, forge, kind):
    local = LocalStore(tmp_path, durable=False)
    store = {"memory": MemoryStore(), "local": local, "bucket": BucketStore(Bucket())}[kind]
    for key, content in packed._contents.items():
        store.create(key, content)
    log = Ledger.open(store).chain(SPLITTER).log
    key = f"{log.folder}/segments/{0:020d}.jsonl"
    whole = store.get(key)
    store.replace(key, forge(whole))
    assert store.get(key) != whole
    assert {code for code, *_ in faults_in(Ledger.open(store), only=SPLITTER)} & {
        "segment-damaged",
        "block-torn",
        "block-damaged",
    }
    for seq in (0, 499, 500, 501, 999):
        try:
            assert log.record(seq).seq == seq
        except ChainBroken as error:  # or it is whole
            assert error.code in ("segment-damaged", "block-torn", "block-damaged", "block-misplaced")  # noqa: PT017


def test_verify_reports_a_file_that_differs_from_the_block_in_its_segment(packed):
    store = copy(packed)
    log = Ledger.open(store).chain(SPLITTER).log
    for seq, line in ((15, log.line(15)), (16, log.line(17))):
        store.create(log.block_key(seq), line)
    assert faults_in(Ledger.open(store), only=SPLITTER) == [("segment-damaged", SPLITTER, 16)]
    store.delete([log.block_key(16)])
    assert verify(Ledger.open(store), only=SPLITTER).is_valid, "one that says the same is only not tidied"
