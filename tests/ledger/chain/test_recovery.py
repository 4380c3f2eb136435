"""What a crash, a full disk or a careless hand leaves behind is a clear error, or a repair that loses nothing."""

import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dagkit.clock import SystemClock
from dagkit.ledger import (
    ChainBroken,
    ChainNotFound,
    Ledger,
    LedgerError,
    StoreError,
    VersionUnreadable,
    checkpoint_of,
)
from dagkit.ledger.audit.orphans import Sweep, set_torn_aside, sweep
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.chain.contents import Objects
from dagkit.ledger.format.block import seal
from dagkit.ledger.stores import LocalStore, MemoryStore
from tests.ledger.desk import SPLITTER, STRANGER, Desk, code_of, remark
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


def code_of_opening(desk: Desk) -> tuple[str, int | None]:
    with pytest.raises(LedgerError) as caught:
        desk.reopened()
    return caught.value.code, caught.value.fault.block


def test_a_missing_head_is_found_again(here):
    head_note(here).unlink()
    assert here.reopened().root.standing == here.root.standing


def test_a_stale_head_is_caught_up(here):
    stale = head_note(here).read_bytes()
    here.discover((30, 40))
    head_note(here).write_bytes(stale)
    again = here.reopened()
    assert again.root.standing == here.root.standing
    again.discover((40, 50))
    hint = here.reopened().root.log.hint()
    assert hint is not None
    assert hint.pointer == again.root.head


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 1}', b"null", b"[]"], ids=str)
def test_a_torn_head_is_as_good_as_none(here, content):
    head_note(here).write_bytes(content)
    assert here.reopened().root.standing == here.root.standing


def test_a_head_that_names_another_block_is_noticed(here):
    here.root.log.set_hint(here.root.head.model_copy(update={"hash": STRANGER}))
    assert code_of_opening(here) == ("head-forged", 4)


def test_a_stale_head_that_names_another_block_is_noticed(here):
    here.root.log.set_hint(here.root.read(3).pointer.model_copy(update={"hash": STRANGER}))
    assert code_of_opening(here) == ("head-forged", 3)


def test_a_head_of_the_future_is_refused(here):
    head_note(here).write_bytes(head_note(here).read_bytes().replace(b"dagkit.head/1", b"dagkit.head/2"))
    with pytest.raises(VersionUnreadable, match="head/2"):
        here.reopened()


@pytest.mark.parametrize("link", [STRANGER, None], ids=["of another block", "missing"])
def test_a_last_block_that_was_edited_and_sealed_again_is_noticed(here, link):
    """The hint follows the forgery, so only the link to the block before shows it."""
    last = here.root.read(4)
    edited, line = seal(last.block.model_copy(update={"prev_block_hash": link}), last.carry, last.objects)
    here.store.replace(here.root.log.block_key(4), line)
    here.root.log.set_hint(edited.pointer)
    assert code_of_opening(here)[0] == "link-broken"


def test_a_chain_without_blocks_is_lost_even_if_its_head_is_torn(here):
    head_note(here).write_bytes(b"{")
    here.store.delete([here.root.log.block_key(seq) for seq in range(5)])
    assert code_of_opening(here) == ("chain-lost", None)
    assert code_of(lambda: here.reopened_ledger().root(SPLITTER)) == "chain-lost"


def test_a_head_that_an_earlier_writer_noted_in_the_chain_s_folder_is_a_witness_too(here):
    here.store.replace(here.root.log.hint_keys[1], head_note(here).read_bytes())
    head_note(here).unlink()
    assert here.reopened().root.standing == here.root.standing
    here.store.delete([here.root.log.block_key(4)])
    assert code_of_opening(here) == ("head-lost", 4)


def test_a_lost_last_block_is_not_silently_forgotten(here):
    here.store.delete([here.root.log.block_key(4)])
    assert code_of_opening(here) == ("head-lost", 4)


def test_a_ledger_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ChainNotFound) as caught:
        Ledger.open(tmp_path)
    assert (caught.value.code, caught.value.exit_code) == ("chain-missing", 6)


def test_a_chain_that_is_not_there_is_said(here):
    with pytest.raises(ChainNotFound, match="no such chain"):
        here.ledger.chain("Merger")


def test_a_ledger_of_the_future_says_who_can_read_it(here):
    marker = here.store.root / "ledger" / "ledger.json"
    marker.write_text('{"format": "dagkit.ledger/7", "readableBy": "dagkit 3.2 or later"}')
    with pytest.raises(VersionUnreadable, match=r"ledger/7.*\n.*use dagkit 3\.2 or later"):
        Ledger.open(here.store)


# ---- torn writes


def tear(desk: Desk, *, acknowledged: bool) -> None:
    """The next block's file is there, in half."""
    before = head_note(desk).read_bytes()
    desk.discover((30, 40))
    last = blocks(desk) / f"{desk.root.head.seq:020d}.json"
    last.write_bytes(last.read_bytes()[:100])
    if not acknowledged:
        head_note(desk).write_bytes(before)


def test_a_torn_last_write_is_named(here):
    tear(here, acknowledged=False)
    assert code_of_opening(here) == ("block-torn", 5)


def test_a_torn_write_that_was_never_acknowledged_is_set_aside(here):
    committed = here.root.standing
    tear(here, acknowledged=False)
    aside = set_torn_aside(here.ledger, SPLITTER)
    assert aside is not None
    assert len(here.store.get(aside)) == 100
    assert here.reopened().root.standing == committed


def test_a_torn_block_that_was_acknowledged_is_never_set_aside(here):
    tear(here, acknowledged=True)
    with pytest.raises(ChainBroken, match="shows that it was committed"):
        set_torn_aside(here.ledger, SPLITTER)
    assert code_of_opening(here) == ("block-torn", 5)


def test_a_good_last_block_is_not_set_aside(here):
    assert set_torn_aside(here.ledger, SPLITTER) is None
    assert here.reopened().root.standing == here.root.standing


def test_a_writer_killed_in_the_middle_leaves_only_a_temporary(here):
    (blocks(here) / ".tmp-1-2-3").write_bytes(b'{"block":')
    assert here.reopened().root.standing == here.root.standing
    here.clock.advance(seconds=10**9)
    swept = sweep(here.ledger, clock=here.clock).swept
    assert [s.what for s in swept] == ["temporary"]
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


def test_a_folder_that_is_a_file_is_said(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError) as caught:
        Ledger.create(tmp_path / "file")
    assert caught.value.code == "store-unreachable"


# ---- what a crash leaves between two writes


def test_a_crash_before_the_append_leaves_orphans_that_are_swept(here):
    large = b"x" * 10_000
    here.root.objects.put("data", large)
    young = sweep(here.ledger, grace=timedelta(days=10**4), clock=here.clock)
    assert young == Sweep()
    here.clock.advance(seconds=10**9)
    assert [s.what for s in sweep(here.ledger, pretend=True, clock=here.clock).swept] == ["slice"]
    assert [s.what for s in sweep(here.ledger, clock=here.clock).swept] == ["slice"]
    assert here.root.objects.names("data") == []
    assert verify(here.ledger).is_valid


def test_sweeping_touches_nothing_that_a_block_names(here):
    planned = here.root.plan_next()
    large = b"x" * 10_000
    here.root.append(planned.add_data(checkpoint=checkpoint_of(large)), [large], planned=planned)
    here.clock.advance(seconds=10**9)
    assert sweep(here.ledger, clock=here.clock) == Sweep()
    assert here.root.checkpoint() == large


def test_a_torn_content_is_rewritten(here):
    large = b"x" * 10_000
    here.root.objects.put("data", large)
    name = here.root.objects.names("data")[0]
    (here.store.root / here.root.objects.key("data", name)).write_bytes(large[:10])
    here.root.objects.put("data", large)
    assert here.store.get(here.root.objects.key("data", name)) == large


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_content_that_is_used_again_is_young_again(tmp_path, kind):
    desk = Desk(LocalStore(tmp_path) if kind == "local" else MemoryStore())
    large = b"x" * 10_000
    desk.root.objects.put("data", large)
    key = desk.root.objects.key("data", desk.root.objects.names("data")[0])
    if isinstance(desk.store, LocalStore):
        os.utime(desk.store.root / key, (0, 0))
    else:
        desk.store._modified[key] = datetime.fromtimestamp(0, UTC)
    assert [s.key for s in sweep(desk.ledger, pretend=True, clock=SystemClock()).swept] == [key]
    desk.root.objects.put("data", large)
    assert sweep(desk.ledger, clock=SystemClock()) == Sweep()
    assert desk.store.get(key) == large


def test_a_content_that_is_swept_while_it_is_used_again_is_there(here):
    class Swept(LocalStore):
        def get(self, key):
            self.delete([key])
            return super().get(key)

    large = b"x" * 10_000
    here.root.objects.put("data", large)
    Objects(Swept(here.store.root), here.root.log.folder, SPLITTER).put("data", large)
    assert len(here.root.objects.names("data")) == 1


def test_a_content_that_a_running_driver_names_meanwhile_stays(here):
    """The sweeper has read the chain to its end; then the driver appends what names the orphan."""
    large = b"x" * 10_000
    here.root.objects.put("checkpoints", large)
    sweeper = here.reopened()
    sweeper.ledger.chain(SPLITTER)
    planned = here.root.plan_next()
    here.root.append(planned.add_data(checkpoint=checkpoint_of(large)), [large], planned=planned)
    here.clock.advance(seconds=10**9)
    assert sweep(sweeper.ledger, clock=here.clock) == Sweep()
    assert here.reopened().root.checkpoint() == large
