"""What a crash, a full disk or a careless hand leaves behind is a clear error, or a repair that loses nothing."""

import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dagkit.ledger import ChainBroken, ChainNotFound, Ledger, LedgerError, VersionUnreadable, checkpoint_of
from dagkit.ledger.audit.orphans import Sweep, set_torn_aside, sweep
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.chain.contents import Objects
from dagkit.ledger.format.block import seal
from dagkit.ledger.stores import LocalStore, MemoryStore
from tests.ledger.desk import SPLITTER, STRANGER, Desk, code_of, fault_of, remark
from tests.patience import join, within


@pytest.fixture
def here(tmp_path):
    """A ledger in a folder, with three blocks of work."""
    desk = Desk(LocalStore(tmp_path, durable=False))
    for start in (0, 10, 20):
        desk.discover((start, start + 10))
    return desk


def blocks(desk: Desk) -> Path:
    return desk.store.root / desk.root.log.folder / "blocks"


def head_note(desk: Desk) -> Path:
    return desk.store.root / desk.root.log.hint_keys[0]


def test_a_stale_head_is_caught_up(here):
    stale = head_note(here).read_bytes()
    here.discover((30, 40))
    head_note(here).write_bytes(stale)
    again = here.reopened()
    assert again.root.standing == here.root.standing
    again.discover((40, 50))
    assert here.reopened().root.log.hint().pointer == again.root.head


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"format": 1}', b"null", b"[]"], ids=str)
def test_a_head_that_is_torn_or_missing_is_found_again(here, content):
    head_note(here).unlink()
    if content is not None:
        head_note(here).write_bytes(content)
    assert here.reopened().root.standing == here.root.standing


@pytest.mark.parametrize("seq", [4, 3], ids=["the last", "stale"])
def test_a_head_that_names_another_block_is_noticed(here, seq):
    here.root.log.set_hint(here.root.read(seq).pointer.model_copy(update={"hash": STRANGER}))
    assert fault_of(here.reopened) == ("head-forged", seq)


def test_a_head_or_a_ledger_of_the_future_is_refused_and_says_who_can_read_it(here):
    head_note(here).write_bytes(head_note(here).read_bytes().replace(b"dagkit.head/1", b"dagkit.head/2"))
    with pytest.raises(VersionUnreadable, match="head/2"):
        here.reopened()
    marker = here.store.root / "ledger" / "ledger.json"
    marker.write_text('{"format": "dagkit.ledger/7", "readableBy": "dagkit 3.2 or later"}')
    with pytest.raises(VersionUnreadable, match=r"ledger/7.*\n.*use dagkit 3\.2 or later"):
        Ledger.open(here.store)


@pytest.mark.parametrize("link", [STRANGER, None], ids=["of another block", "missing"])
def test_a_last_block_that_was_edited_and_sealed_again_is_noticed(here, link):
    """The hint follows the forgery, so only the link to the block before shows it."""
    last = here.root.read(4)
    edited, line = seal(last.block.model_copy(update={"prev_block_hash": link}), last.carry, last.objects)
    here.store.replace(here.root.log.block_key(4), line)
    here.root.log.set_hint(edited.pointer)
    assert fault_of(here.reopened)[0] == "link-broken"


@pytest.mark.parametrize("torn", [False, True])
def test_a_chain_without_blocks_is_lost_even_if_its_head_is_torn(here, torn):
    if torn:
        head_note(here).write_bytes(b"{")
    here.store.delete([here.root.log.block_key(seq) for seq in range(5)])
    assert fault_of(here.reopened) == ("chain-lost", None)
    assert code_of(lambda: here.reopened_ledger().root(SPLITTER)) == "chain-lost"


@pytest.mark.parametrize("earlier", [False, True], ids=["as today", "by an earlier writer, in the chain's folder"])
def test_a_lost_last_block_is_not_forgotten_while_a_head_was_noted(here, earlier):
    if earlier:
        here.store.replace(here.root.log.hint_keys[1], head_note(here).read_bytes())
        head_note(here).unlink()
        assert here.reopened().root.standing == here.root.standing
    here.store.delete([here.root.log.block_key(4)])
    assert fault_of(here.reopened) == ("head-lost", 4)


def test_a_ledger_or_a_chain_that_is_not_there_is_said(here, tmp_path):
    with pytest.raises(ChainNotFound) as caught:
        Ledger.open(tmp_path / "nowhere")
    assert (caught.value.code, caught.value.exit_code) == ("chain-missing", 6)
    with pytest.raises(ChainNotFound, match="no such chain"):
        here.ledger.chain("Merger")


# ---- torn writes


def test_a_torn_block_that_was_acknowledged_is_never_set_aside(here):
    here.discover((30, 40))
    last = blocks(here) / f"{here.root.head.seq:020d}.json"
    last.write_bytes(last.read_bytes()[:100])
    with pytest.raises(ChainBroken, match="shows that it was committed"):
        set_torn_aside(here.ledger, SPLITTER)
    assert fault_of(here.reopened) == ("block-torn", 5)


def test_a_good_last_block_is_not_set_aside(here):
    assert set_torn_aside(here.ledger, SPLITTER) is None
    assert here.reopened().root.standing == here.root.standing


def test_a_writer_killed_in_the_middle_leaves_only_a_temporary(here):
    (blocks(here) / ".tmp-1-2-3").write_bytes(b'{"block":')
    assert here.reopened().root.standing == here.root.standing
    here.clock.advance(seconds=10**9)
    assert swept(here.ledger) == ["temporary"]
    assert not (blocks(here) / ".tmp-1-2-3").exists()


# ---- full and read-only disks, asked of a real kernel


def in_a_child(act) -> str:
    """What the act says, done by another process whose limits and rights may be cut."""
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=lambda: writer.send(act()))
    child.start()
    assert reader.poll(within(30)), "the act ends"
    answer = reader.recv()
    join(child)
    return answer


def appended(desk: Desk) -> str:
    try:
        desk.root.append(remark("x" * 3000))
    except LedgerError as error:
        return error.code
    return "appended"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_full_disk_is_said_and_changes_nothing(here):
    committed = here.root.standing
    files = sorted(path.name for path in blocks(here).iterdir())

    def starved() -> str:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        return appended(here)

    assert in_a_child(starved) == "store-full"
    assert sorted(path.name for path in blocks(here).iterdir()) == files
    assert here.reopened().root.standing == committed
    assert appended(here.reopened()) == "appended"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_read_only_folder_is_said_and_changes_nothing():
    place = Path(tempfile.mkdtemp())
    try:
        desk = Desk(LocalStore(place))
        desk.discover((0, 10))
        for folder, _, _ in os.walk(place):
            Path(folder).chmod(0o555)

        def unprivileged() -> str:
            if os.getuid() == 0:
                os.setuid(65534)
            return appended(desk)

        assert in_a_child(unprivileged) == "store-readonly"
        assert desk.reopened().root.standing == desk.root.standing
    finally:
        for folder, _, _ in os.walk(place):
            Path(folder).chmod(0o755)
        shutil.rmtree(place)


# ---- what a crash leaves between two writes

LARGE = b"x" * 10_000


def swept(ledger: Ledger, **given: Any) -> list[str]:
    return [each.what for each in sweep(ledger, **given).swept]


def test_a_crash_before_the_append_leaves_orphans_that_are_swept(here):
    here.root.objects.put("data", LARGE)
    assert sweep(here.ledger, grace=timedelta(days=10**4)) == Sweep()
    here.clock.advance(seconds=10**9)
    assert swept(here.ledger, pretend=True) == ["slice"]
    assert swept(here.ledger) == ["slice"]
    assert here.root.objects.names("data") == []
    assert verify(here.ledger).is_valid


def test_a_torn_content_is_rewritten(here):
    here.root.objects.put("data", LARGE)
    key = here.root.objects.key("data", here.root.objects.names("data")[0])
    (here.store.root / key).write_bytes(LARGE[:10])
    here.root.objects.put("data", LARGE)
    assert here.store.get(key) == LARGE


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_content_that_is_used_again_is_young_again(tmp_path, kind):
    desk = Desk(LocalStore(tmp_path) if kind == "local" else MemoryStore())
    desk.root.objects.put("data", LARGE)
    key = desk.root.objects.key("data", desk.root.objects.names("data")[0])
    if isinstance(desk.store, LocalStore):
        os.utime(desk.store.root / key, (0, 0))
    else:
        desk.store._modified[key] = datetime.fromtimestamp(0, UTC)
    today = Ledger.open(desk.store)
    assert swept(today, pretend=True) == ["slice"]
    desk.root.objects.put("data", LARGE)
    assert sweep(today) == Sweep()
    assert desk.store.get(key) == LARGE


def test_a_content_that_is_swept_while_it_is_used_again_is_there(here):
    class Swept(LocalStore):
        def get(self, key):
            self.delete([key])
            return super().get(key)

    here.root.objects.put("data", LARGE)
    Objects(Swept(here.store.root), here.root.log.folder, SPLITTER).put("data", LARGE)
    assert len(here.root.objects.names("data")) == 1


@pytest.mark.parametrize("running", [False, True], ids=["before", "by a running driver, after the chain was read"])
def test_a_content_that_a_block_names_stays(here, running):
    here.root.objects.put("checkpoints", LARGE)
    sweeper = here.reopened()
    if running:
        sweeper.ledger.chain(SPLITTER)
    planned = here.root.plan_next()
    here.root.append(planned.add_data(checkpoint=checkpoint_of(LARGE)), [LARGE], planned=planned)
    here.clock.advance(seconds=10**9)
    assert sweep(sweeper.ledger) == Sweep()
    assert here.reopened().root.checkpoint() == LARGE
