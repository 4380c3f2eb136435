"""A million blocks are a thousand files, and the append stays atomic while they are packed."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from obstore.store import MemoryStore as Bucket

from dagkit.ledger import ChainBroken, Ledger, SequenceTaken, VersionUnreadable
from dagkit.ledger.audit.orphans import sweep
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.chain.log import Listing, Log
from dagkit.ledger.format.faults import Fault, StoreError
from dagkit.ledger.format.segment import SEGMENT_SIZE
from dagkit.ledger.stores import LocalStore, MemoryStore
from dagkit.ledger.stores.bucket import BucketStore
from dagkit.runs.restarting import copy_chain
from tests.ledger.desk import SPLITTER, Desk, code_of, fault_of, faults_in, remark


def long_chain(blocks: int, store: MemoryStore | None = None) -> Desk:
    desk = Desk(store)
    while desk.root.standing.next_seq < blocks:
        desk.mark()
    return desk


@pytest.fixture(scope="module")
def packed():
    return long_chain(2 * SEGMENT_SIZE + 3).store


def copy(store: MemoryStore) -> MemoryStore:
    other = MemoryStore()
    for key, content in store._contents.items():
        other.create(key, content)
    return other


def segment(log: Log, first: int = 0) -> str:
    return f"{log.folder}/segments/{first:020d}.jsonl"


def opened(store: MemoryStore) -> Desk:
    fresh = Desk(store)
    fresh.clock.set_to(fresh.root.standing.system_time)
    return fresh


def test_full_runs_are_segments_the_head_is_a_file_and_every_block_is_read_wherever_it_lies(packed):
    log = opened(packed).root.log
    assert (log.sealed(), sorted(log.loose())) == ([0, SEGMENT_SIZE], [2000, 2001, 2002])
    assert [line for _, line in log.lines(0, 2002)] == [log.line(seq) for seq in range(2003)]
    assert [log.record(seq).seq for seq in range(0, 2003, 91)] == list(range(0, 2003, 91))


def beside(store: MemoryStore, numbers: Iterable[int]) -> Desk:
    """The segments, and beside them files of these blocks, which they hold."""
    desk = opened(store)
    for seq in numbers:
        store.create(desk.root.log.block_key(seq), desk.root.log.line(seq))
    return desk


def test_a_packer_that_was_killed_is_continued(packed):
    """It died between creating the segment and deleting the files, or in the middle of deleting."""
    store = copy(packed)
    desk = beside(store, (1003, 1500))
    again = opened(store)
    assert again.root.standing == desk.root.standing
    again.root.log.pack(1000)
    assert sorted(again.root.log.loose()) == [2000, 2001, 2002]


@pytest.mark.parametrize("numbers", [range(1000), range(400, 410)], ids=["all", "some"])
@pytest.mark.parametrize("cut", [0, 20_000, -1])
def test_a_damaged_segment_never_costs_the_files_beside_it(packed, numbers, cut):
    store = copy(packed)
    log = beside(store, numbers).root.log
    key = segment(log)
    store.replace(key, store.get(key)[:cut])
    try:
        codes = [fault.code for fault in sweep(opened(store).ledger).faults]
    except ChainBroken as error:  # opening may read that segment already
        codes = [error.code]
    assert codes == ["segment-damaged"]
    assert {*numbers} <= {*log.loose()}


def test_a_segment_unlike_a_file_beside_it_costs_no_file(packed):
    store = copy(packed)
    log = beside(store, range(10, 20)).root.log
    key = segment(log)
    line = log.line(15)
    store.replace(key, store.get(key).replace(line, line[:-3] + b" }\n"))
    assert fault_of(lambda: log.pack(0), ChainBroken) == ("segment-damaged", 15)
    assert {*range(10, 20)} <= {*log.loose()}


def test_files_beside_a_whole_segment_go(packed):
    store = copy(packed)
    log = beside(store, range(1000)).root.log
    sweep(opened(store).ledger)
    assert sorted(log.loose()) == [2000, 2001, 2002]


@pytest.mark.parametrize(
    "damage",
    [lambda line: line[:50], lambda line: line.replace(b"dagkit.block/1", b"dagkit.block/2")],
    ids=["torn", "of the future"],
)
def test_a_damaged_block_is_not_sealed_into_a_segment(damage):
    desk = opened(long_chain(SEGMENT_SIZE).store)  # its next append fills a run, of which it has appended nothing
    log = desk.root.log
    whole = log.line(500)
    desk.store.replace(log.block_key(500), damage(whole))
    desk.mark()
    assert (log.sealed(), len(log.loose())) == ([], 1001)
    desk.store.replace(log.block_key(500), whole)
    log.pack(0)
    assert (log.sealed(), log.loose(), log.line(500)) == ([0], [1000], whole)


@pytest.mark.parametrize("name", ["notes", "7", "-0000000000000000007", "²" * 20])
def test_files_with_other_names_are_left_alone(packed, name):
    store = copy(packed)
    log = opened(store).root.log
    for key in (f"{log.folder}/blocks/{name}.json", f"{log.folder}/segments/{name}.jsonl"):
        store.create(key, b"mine")
    assert (log.sealed(), sorted(log.loose())) == ([0, SEGMENT_SIZE], [2000, 2001, 2002])
    assert opened(store).root.head.seq == 2002


def test_a_missed_packing_is_made_up_for_at_the_next_thousand():
    class Full(MemoryStore):
        full = True

        def create(self, key, content):
            if self.full and "/segments/" in key:
                raise StoreError(Fault("store-full", "no room", "make room"))
            super().create(key, content)

        def names(self, folder):
            listed.append(folder)
            return super().names(folder)

    listed: list[str] = []
    store = Full()
    desk = long_chain(SEGMENT_SIZE + 1, store)
    assert (desk.root.log.sealed(), len(desk.root.log.loose())) == ([], 1001)
    store.full = False
    desk = opened(store)
    listed.clear()
    while desk.root.standing.next_seq <= 2 * SEGMENT_SIZE:
        desk.mark()
    assert len(listed) == 1, "the listing is paid once in a thousand appends"
    assert (desk.root.log.sealed(), desk.root.log.loose()) == ([0, SEGMENT_SIZE], [2000])


def test_a_writer_whose_number_is_packed_already_loses_unless_it_wrote_the_block(packed):
    """The file is gone, so creating it succeeds; only the segment shows that the number is taken."""
    store = copy(packed)
    log = opened(store).root.log
    assert fault_of(lambda: log.create(1500, b"mine\n"), SequenceTaken)[1] == 1500
    assert not store.exists(log.block_key(1500))
    log.create(1500, log.line(1500))
    assert not store.exists(log.block_key(1500))


def test_a_late_writer_learns_it_by_its_next_append():
    desk = long_chain(5)
    late = desk.reopened().root
    while desk.root.standing.next_seq < 1010:
        desk.mark()
    with pytest.raises(SequenceTaken):
        late.append(remark("late"))
    late.reopen()
    assert late.append(remark("again")).seq == 1010


def test_the_packed_chain_reads_one_index_entry_and_one_record(packed):
    class Counting(MemoryStore):
        asked = 0

        def get_range(self, key, start, end):
            Counting.asked += end - start
            return super().get_range(key, start, end)

    store = Counting()
    store._contents = packed._contents
    log = opened(store).root.log
    Counting.asked = 0
    assert len(log.line(1500)) + 26 == Counting.asked


def test_a_hole_is_named():
    desk = long_chain(10)
    desk.store.delete([desk.root.log.block_key(4), desk.root.log.block_key(5)])
    assert desk.root.log.find() == Listing(9, hole=4)
    with pytest.raises(ChainBroken, match=rf"{SPLITTER}: block 4: .*\[block-missing\]"):
        desk.reopened()


def test_a_lost_segment_and_a_lost_tail_are_named(packed):
    store = copy(packed)
    log = opened(store).root.log
    tail = [log.block_key(seq) for seq in (2000, 2001, 2002)]
    store.delete([segment(log, 1000)])
    assert log.find() == Listing(2002, hole=1000)
    store.create(segment(log, 1000), packed.get(segment(log, 1000)))
    store.delete(tail)
    assert log.find() == Listing(None, hole=2000)


def test_a_segment_of_the_future_is_refused(packed):
    store = copy(packed)
    log = opened(store).root.log
    key = segment(log)
    store.replace(key, store.get(key).replace(b"dagkit.segment/1", b"dagkit.segment/2", 1))
    with pytest.raises(VersionUnreadable, match="segment/2"):
        list(log.records(0, 10))


@pytest.mark.parametrize("cut", [10, 5000, 100_000], ids=["in the name", "in the index", "in a record"])
def test_a_cut_segment_is_noticed(packed, cut):
    store = copy(packed)
    log = opened(store).root.log
    key = segment(log)
    store.replace(key, store.get(key)[:cut])
    code = code_of(lambda: list(log.records(0, SEGMENT_SIZE - 1)), ChainBroken)
    assert code in ("segment-damaged", "block-torn")


# ---- a copy of the beginning of a chain


@pytest.mark.gate(3)
@pytest.mark.slow
@pytest.mark.parametrize("last", [0, 700, 999, 1000, 1003])
def test_a_copy_ends_within_packed_blocks_or_after_them(last):
    chain, store = long_chain(1004).root, MemoryStore()
    Ledger.create(store)
    copy_chain(chain, store, last)
    copy = Ledger.open(store).chain(chain.name)
    assert [record.hash for record in copy.records()] == [record.hash for record in chain.records(0, last)]
    assert bool(copy.log.sealed()) is (last >= 1000)
    assert copy.append(copy.plan_next().add_data(watermark=datetime(2100, 1, 1, tzinfo=UTC))).seq == last + 1


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
