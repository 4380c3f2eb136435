"""Torn, half-created, orphaned and active files are reported, and deleted only if nothing can be lost."""

import os

import pytest

from dagkit.ledger import ChainBroken, Ledger
from dagkit.ledger.audit.orphans import set_torn_aside
from dagkit.ledger.chain.chain import Chain
from dagkit.ledger.exchange.manifests import export, import_into
from dagkit.ledger.format.segment import SEGMENT_SIZE
from dagkit.ledger.stores import MemoryStore
from tests.ledger.chain.test_log import long_chain
from tests.ledger.desk import APPLICATION, SPLITTER, Desk, code_of

# ---- repairing what is torn


def cut_last(chain: Chain, upto: int = -9) -> None:
    """The last block of the chain is there in part."""
    key = chain.log.block_key(chain.head.seq)
    chain.log.store.replace(key, chain.log.store.get(key)[:upto])


def tear(desk: Desk) -> bytes:
    """The last block of the splitter is there in half; gives the head that was noted before it."""
    head = desk.store.get(desk.root.log.hint_keys[0])
    desk.discover((20, 30))
    cut_last(desk.root, 100)
    return head


@pytest.mark.parametrize("noted", [None, 2], ids=["no head", "a head that was not kept up"])
def test_a_torn_block_stays_where_no_head_shows_whether_it_was_committed(run, here, noted):
    older = here.root.read(2).pointer
    tear(here)
    here.store.delete([here.root.log.hint_keys[0]])
    if noted:
        here.root.log.set_hint(older)
    assert "[block-torn]" in run("gc", "PATH", "--repair", code=1).stderr
    assert here.store.exists(here.root.log.block_key(here.root.head.seq))


def test_a_torn_block_that_a_window_consumed_stays(here):
    head = here.store.get(here.root.log.hint_keys[0])
    here.discover((20, 30))
    here.window(1, consumed=[(20, 30)])
    cut_last(here.root, 100)
    here.store.replace(here.root.log.hint_keys[0], head)
    with pytest.raises(ChainBroken, match="has consumed it"):
        set_torn_aside(Ledger.open(here.store), SPLITTER)
    assert here.store.exists(here.root.log.block_key(here.root.head.seq))


# ---- creations that were killed


@pytest.fixture
def killed(here):
    """What the creation of a chain leaves that was killed while it wrote the Seed."""
    blocks = here.store.root / "ledger" / "chains" / "Merger" / "blocks"
    blocks.mkdir(parents=True)
    (blocks / ".tmp-1-2-3").write_bytes(b"half")
    os.utime(blocks / ".tmp-1-2-3", (0, 0))
    return blocks


@pytest.mark.parametrize("verb", ["ls", "show", "verify", "gc", "export"])
def test_a_chain_whose_creation_was_killed_is_reported_and_left_out(run, killed, tmp_path, verb):
    assert "Merger: no chain yet" in run(verb, "PATH", *([tmp_path / "out"] if verb == "export" else [])).stderr
    assert (killed / ".tmp-1-2-3").exists() == (verb != "gc")


def test_a_chain_whose_creation_was_killed_can_be_created(here, killed):
    assert killed.exists()
    assert here.ledger.root("Merger").standing.next_seq == 2
    assert "Merger" in Ledger.open(here.store).names()


def test_a_temporary_file_that_is_being_written_stays_whatever_grace_is_asked_for(run, here):
    young = here.store.root / here.root.log.folder / "blocks" / ".tmp-1-2-3"
    young.write_bytes(b"half")
    assert "0 files" in run("gc", "PATH", "--grace-minutes", 0).stdout
    assert young.exists()


# ---- others at work


@pytest.mark.parametrize("seen", [[], [990]], ids=["nothing", "one of them"])
def test_opening_while_a_driver_packs_reports_no_loss(seen):
    """The files go away while they are listed, and what comes after them came too late to be listed."""

    class Packing(MemoryStore):
        listings = 0

        def names(self, folder):
            if folder == f"{log.folder}/blocks":
                self.listings += 1
                if self.listings == 1:
                    return [f"{seq:020d}.json" for seq in seen]
            return super().names(folder)

    whole = long_chain(SEGMENT_SIZE + 3)
    log, store = whole.root.log, Packing()
    store._contents = whole.store._contents
    assert Ledger.open(store).chain(SPLITTER).head == whole.root.head


def test_one_faulty_chain_does_not_keep_the_others_from_being_tidied(run, here):
    here.app.objects.put("data", b"x" * 10_000)
    cut_last(here.root)
    answer = run("gc", "PATH", "--grace-minutes", 0, code=1)
    assert "[block-torn]" in answer.stderr
    assert "1 file deleted" in answer.stdout
    assert here.app.objects.names("data") == []


def test_one_chain_that_cannot_be_repaired_does_not_keep_the_others_from_it(run, here):
    here.store.replace(here.root.log.hint_keys[0], tear(here))
    cut_last(here.app)
    answer = run("gc", "PATH", "--repair", code=1)
    assert f"{APPLICATION}: block" in answer.stderr
    assert "set aside" in answer.stdout
    assert here.reopened_ledger().chain(SPLITTER).head == here.root.read(here.root.head.seq - 1).pointer


def test_a_block_that_was_named_far_too_high_is_reported_at_once(run, here):
    """The way down from it is not walked number by number."""
    here.store.create(f"{here.root.log.folder}/blocks/{10**20 - 1}.json", b"mine")
    answer = run("ls", "PATH", code=1)
    assert f"{SPLITTER}: block {here.root.standing.next_seq}: " in answer.stderr
    assert "[block-missing]" in answer.stderr


def test_nothing_is_imported_over_a_chain_that_lost_its_blocks(here, tmp_path):
    export(here.ledger, tmp_path / "out")
    for chain in (here.root, here.app):
        here.store.delete([chain.log.block_key(seq) for seq in range(chain.standing.next_seq)])
    assert code_of(lambda: import_into(Ledger.open(here.store), tmp_path / "out")) == "chain-exists"
    assert here.store.names(f"{here.root.log.folder}/blocks") == []
