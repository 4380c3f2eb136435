"""An open chain: what it reads, what it remembers over a crash, and who may append."""

import multiprocessing
import os
import shutil
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from bench.ledger import SHAPES, TWO_INPUTS, measure, unsteady
from dagkit.ledger import BlockRefused, Chain, DatasetKind, Ledger, SequenceTaken, checkpoint_of, slice_of, transform_of
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.format.block import Record
from dagkit.ledger.format.events import DataSlice
from dagkit.ledger.format.recorded_work import PARTS_SCHEMA
from dagkit.ledger.stores import LocalStore, MemoryStore
from tests.ledger.desk import APPLICATION, SPLITTER, Desk, brings_input, code_of, new_offsets, remark
from tests.patience import join, within


@pytest.mark.trial
@pytest.mark.slow
def test_open_plan_and_append_read_the_same_few_blocks_at_every_length():
    found = measure([100, 1000, 3000], folder=None)
    assert unsteady(found) == []
    counts = {(m.shape, m.open.blocks_read, m.plan_next.blocks_read, m.append.blocks_read) for m in found}
    assert counts == {*((shape, 3, 0, 0) for shape in SHAPES), (TWO_INPUTS, 9, 0, 0)}


def test_a_reader_with_a_stale_hint_reads_one_block_more():
    desk = Desk()
    stale = desk.root.head
    desk.discover((0, 10))
    desk.root.log.set_hint(stale)
    assert desk.reopened().root.log.blocks_read <= 4  # the last, the one before it, the noted one, and a key block


def test_a_clock_that_goes_back_does_not_stop_the_application(desk):
    desk.discover((0, 10))
    before = desk.root.standing.system_time
    desk.clock.set_to(before - timedelta(days=1))
    planned = desk.root.plan_next()
    assert desk.root.append(planned.add_data(watermark=before), planned=planned).block.system_time == before


def test_the_next_transaction_starts_where_the_last_ended(desk):
    desk.discover((0, 10), (10, 20))
    desk.window(7, consumed=[(0, 20)])
    planned = desk.app.plan_next()
    assert (planned.next_offset, brings_input(planned)) == (7, False)
    assert desk.app.checkpoint() == desk.app.checkpoint_at(desk.app.read(desk.app.head.seq))


def test_what_is_declared_after_the_last_data_is_nothing_to_consume(desk):
    desk.discover((0, 10))
    desk.window()
    desk.root.append(remark("the splitter of the word count"))
    assert not brings_input(desk.app.plan_next())


def test_a_plan_may_stop_before_the_end_of_its_input(desk):
    """Consuming input is progress before any watermark, and offset 0 after none is new; others err."""
    first = desk.discover((0, 10))
    desk.discover((10, 20))
    planned = desk.app.plan_next(upto={desk.root.dataset_id: first.seq})
    assert (new_offsets(planned), brings_input(planned)) == ((None, 0), True)
    desk.app.append(planned.execute(), planned=planned)
    assert desk.app.standing.data.new_data is None
    assert new_offsets(desk.app.plan_next()) == (0, 1)


def test_a_carried_checkpoint_is_found_wherever_it_was_first_named(desk):
    desk.discover((0, 10))
    desk.window(consumed=[(0, 10)])
    state = desk.app.checkpoint()
    for start in (10, 20, 30):
        desk.discover((start, start + 10))
        desk.window(1)
    assert desk.reopened().app.checkpoint() == state


@pytest.mark.parametrize(
    "content",
    [b"x" * 10_000, b"\xff\xfe", b"{}", b'{"a":"' + b"x" * 5000 + b'"}\n'],
    ids=["large", "not text", "small", "large text"],
)
@pytest.mark.parametrize("more", [b" ", b""], ids=["apart", "the same content"])
def test_contents_come_back_wherever_they_are_kept(desk, content, more):
    planned = desk.root.plan_next()
    event = planned.add_data(slice_of(content, 0, 1), checkpoint_of(content + more))
    record = desk.root.append(event, list({content: 1, content + more: 1}), planned=planned)
    again = desk.reopened().root
    assert again.data(record) == content
    assert again.checkpoint() == again.checkpoint_at(record) == content + more


# ---- promises


def test_a_promised_window_comes_back_with_exactly_the_same_blocks(desk):
    desk.discover((0, 10))
    promised = desk.app.promise(desk.app.plan_next(), {"slots": [[0, 10]]})
    desk.discover((10, 20))
    again = desk.reopened().app.plan_next()
    assert again == promised
    assert (again.promised, again.notes) == (True, {"slots": [[0, 10]]})


def test_a_promise_outlives_a_declaration_and_is_forgotten_once_it_is_kept(desk):
    desk.discover((0, 10))
    promised = desk.app.promise(desk.app.plan_next())
    desk.app.append(remark("scaled", PARTS_SCHEMA))
    assert desk.app.plan_next() == promised
    desk.app.append(promised.execute(), planned=promised)
    assert desk.store.names(f"{desk.app.log.folder}/planned") == []
    assert not desk.app.plan_next().promised


def test_a_window_is_promised_once(desk):
    desk.discover((0, 10))
    planned = desk.app.plan_next()
    desk.app.promise(planned, {"slots": 1})
    desk.app.promise(planned, {"slots": 1})
    assert code_of(lambda: desk.reopened().app.promise(planned, {"slots": 2}), SequenceTaken) == "promise-taken"


def test_a_promise_over_other_inputs_is_let_go(desk):
    desk.discover((0, 10))
    desk.app.promise(desk.app.plan_next(), {"old": True})
    desk.ledger.root("Other-input")
    app = desk.ledger.application(APPLICATION, [SPLITTER, "Other-input"], transform_of("plan 2", "0.1.0"))
    planned = app.plan_next()
    assert (planned.promised, len(planned.inputs)) == (False, 2)
    assert app.promise(planned, {"new": True}).notes == {"new": True}
    assert app.plan_next().notes == {"new": True}


# ---- seeking


def new_data(record: Record) -> DataSlice | None:
    return getattr(record.block.event, "new_data", None)


def test_seeking_finds_what_walking_finds(desk):
    for start in range(0, 400, 10):
        if start % 30:
            desk.discover((start, start + 5), (start + 5, start + 10))
        else:
            desk.mark()
        if start % 70 == 0:
            desk.root.append(remark(str(start)))
    records = list(desk.root.records())
    offset = 0
    for record in records:
        while (found := new_data(record)) and offset <= found.offset_interval.end:
            assert desk.root.seek_offset(offset) == record
            offset += 1
        walked = [r for r in records if r.block.system_time <= record.block.system_time]
        assert desk.root.seek_time(record.block.system_time) == walked[-1]
    assert offset == desk.root.standing.offset + 1
    assert desk.root.seek_offset(offset) is None
    assert desk.root.seek_time(records[0].block.system_time - timedelta(seconds=1)) is None


@pytest.mark.parametrize("kind", ["AddData", "slice", "SetDataSchema", "Seed", "SetTransform"])
def test_the_last_block_of_a_kind_before_another_is_at_most_two_reads_away(desk, kind):
    for number in range(4):
        desk.discover((number, number + 1))
        desk.root.append(remark(str(number)))
        desk.mark()
    records = list(desk.root.records())
    for record in records:
        before = records[: record.seq]
        matching = [r for r in before if (new_data(r) if kind == "slice" else r.block.event.kind == kind)]
        read = desk.root.log.blocks_read
        assert desk.root.before(record, kind) == (matching[-1] if matching else None)
        assert desk.root.log.blocks_read - read <= 2


# ---- whose chain it is


def test_a_chain_is_created_once_and_a_root_is_not_opened_as_an_application(desk):
    root = Chain(desk.store, desk.root.log.folder, SPLITTER)
    assert code_of(lambda: root.create(DatasetKind.ROOT, "did:odf:a"), BlockRefused) == "chain-exists"
    transform = transform_of("p", "1")
    assert code_of(lambda: desk.ledger.application(SPLITTER, [], transform), BlockRefused) == "event-misplaced"


def test_declaring_the_same_again_appends_nothing_and_two_ledgers_never_share_an_identity(desk):
    before = desk.app.head
    assert Desk(desk.store, desk.clock).app.head == before
    assert Desk().root.dataset_id != desk.root.dataset_id


@pytest.mark.parametrize("name", ["file-block metadata", "a/b", "ü %", "x.y", "A" * 80])
def test_any_name_an_operator_may_have_names_a_chain(name):
    ledger = Ledger.create(MemoryStore())
    ledger.root(name)
    assert Ledger.open(ledger.store).names() == [name]


def test_a_chain_kept_elsewhere_can_still_be_an_input(desk):
    """Its blocks cannot be asked, so they are believed."""
    stranger = Desk()
    stranger.discover((0, 10))
    declared = desk.app.last("SetTransform").block.event
    elsewhere = {"dataset_ref": stranger.root.dataset_id, "alias": "elsewhere"}
    desk.app.append(declared.model_copy(update={"inputs": (declared.inputs[0].model_copy(update=elsewhere),)}))
    assert not brings_input(desk.app.plan_next())


def test_an_input_without_its_hint_is_still_an_input_and_one_that_is_not_there_is_none(desk):
    desk.discover((0, 10))
    desk.store.delete([desk.root.log.hint_keys[0]])
    assert brings_input(desk.reopened_ledger().chain(APPLICATION).plan_next())
    desk.store.delete([desk.root.log.block_key(seq) for seq in range(desk.root.standing.next_seq)])
    assert not brings_input(desk.reopened_ledger().chain(APPLICATION).plan_next())


# ---- a promise says its own hash


def promised(desk: Desk) -> str:
    desk.discover((20, 30))
    desk.app.promise(desk.app.plan_next(), {"slots": [[20, 30]]})
    folder = f"{desk.app.log.folder}/planned"
    return f"{folder}/{desk.store.names(folder)[0]}"


def test_every_flipped_bit_of_a_promise_is_noticed(desk):
    key = promised(desk)
    whole = desk.store.get(key)
    for place in range(len(whole)):
        forged = bytearray(whole)
        forged[place] ^= 1
        desk.store.replace(key, bytes(forged))
        assert code_of(desk.reopened().app.plan_next) in ("promise-damaged", "version-unreadable")
    for altered in (whole.replace(b"[[20,30]]", b"[[20,31]]"), whole.replace(b",", b", ", 1)):
        desk.store.replace(key, altered)
        assert code_of(desk.reopened().app.plan_next) == "promise-damaged"
    desk.store.delete([key])
    assert brings_input(desk.reopened().app.plan_next()), "it is planned again, and nothing is lost"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"[" * 100_000, b'{"format": NaN}'], ids=lambda c: c[:9]
)
def test_a_promise_that_is_none_is_named(desk, content):
    desk.store.replace(promised(desk), content)
    assert code_of(desk.reopened().app.plan_next) == "promise-damaged"


APPENDS = 2500
"""More than two segments, so that packing is raced too."""


def drive(place: str, driver: int, start: Barrier, answers) -> None:
    """Append until the chain is long enough; after each loss open it again."""
    start.wait(within(60))  # for the other driver
    chain = Ledger.open(LocalStore(place, durable=False)).chain(SPLITTER)
    won, lost = [], 0
    while chain.standing.next_seq < APPENDS:
        try:
            record = chain.append(remark(f"{driver} {len(won)}"))
        except SequenceTaken:
            lost += 1
            chain.reopen()
        else:
            won.append((record.seq, record.hash))
    answers.put((driver, won, lost))


@pytest.mark.trial
@pytest.mark.slow
def test_two_processes_never_win_the_same_number(tmp_path):
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path  # noqa: S108 - a folder of ours is made in it
    place = folder / f"racing-{os.getpid()}-{tmp_path.name}"
    try:
        Ledger.create(LocalStore(place, durable=False)).root(SPLITTER)
        context = multiprocessing.get_context("spawn")
        answers, start = context.Queue(), context.Barrier(2)
        drivers = [context.Process(target=drive, args=(str(place), n, start, answers)) for n in range(2)]
        for driver in drivers:
            driver.start()
        told = [answers.get(timeout=within(120)) for _ in drivers]
        for driver in drivers:
            join(driver)
        ledger = Ledger.open(LocalStore(place, durable=False))
        chain = ledger.chain(SPLITTER)
        won = sorted(win for _, wins, _ in told for win in wins)
        assert won == [(r.seq, r.hash) for r in chain.records(2)], "what a driver believes it won is what is there"
        assert [seq for seq, _ in won] == list(range(2, chain.standing.next_seq))
        assert all(wins for _, wins, _ in told), "both drivers took part"
        assert sum(lost for _, _, lost in told) > 0, "they did meet"
        assert verify(ledger).is_valid
        assert len(chain.log.loose()) <= 1000
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def drivers(store):
    """Two drivers that have opened the same chain."""
    return Ledger.create(store).root(SPLITTER), Ledger.open(store).chain(SPLITTER)


@pytest.mark.parametrize("other", ["same", "second"], ids=["the same event at the same instant", "another event"])
def test_of_two_appends_one_wins_and_the_loser_has_changed_nothing(store, drivers, other):
    """The winner is decided by the file, not by its content."""
    first, second = drivers
    first.append(remark("same"))
    before = {key: store.get(key) for key in store._contents}
    with pytest.raises(SequenceTaken, match="another writer has appended this block"):
        second.append(remark(other))
    assert {key: store.get(key) for key in store._contents} == before


def test_a_driver_that_was_overtaken_does_not_quietly_follow(drivers):
    """Two drivers that always plan afresh would otherwise take turns for ever, each believing that it runs alone."""
    first, second = drivers
    first.append(remark("first"))
    assert second.refresh(), "who has not appended yet may follow"
    second.append(remark("second"))
    for act in (first.plan_next, first.refresh, lambda: first.append(remark("third"))):
        with pytest.raises(SequenceTaken):
            act()
    first.reopen()
    assert first.standing == second.standing
