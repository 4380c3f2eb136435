"""`dagkit ledger`: text and JSON; exit code 0 only without errors."""

import json
import shutil
import threading

import pytest

from dagkit.ledger import Ledger
from dagkit.ledger.stores import LocalStore
from tests.cases import cases
from tests.ledger.desk import APPLICATION, SPLITTER, Desk
from tests.patience import join


@pytest.fixture
def here(tmp_path):
    """A ledger in a folder, with two windows committed and a third of work waiting."""
    desk = Desk(LocalStore(tmp_path / "app", durable=False))
    for start in (0, 10):
        desk.discover((start, start + 10), size=30)
        desk.window(5, consumed=[(start, start + 10)])
    desk.discover((20, 30), size=30)
    return desk


def test_ls_lists_the_chains(run):
    lines = [line.split() for line in run("ls", "PATH").stdout.splitlines()]
    assert lines[0] == ["chain", "kind", "blocks", "last", "offset", "watermark", "written"]
    assert [line[:5] for line in lines[1:]] == [
        [SPLITTER, "Root", "5", "2", "-"],
        ["Word", "count", "Derivative", "5", "9"],
    ]
    chains = json.loads(run("ls", "PATH", "--json").stdout)["chains"]
    listed = [(chain["chain"], chain["blocks"], chain["last_offset"]) for chain in chains]
    assert listed == [(SPLITTER, 5, 2), (APPLICATION, 5, 9)]


def test_ls_reports_a_broken_chain_and_lists_the_others(run, here):
    here.store.delete([here.root.log.block_key(4)])
    answer = run("ls", "PATH", code=1)
    assert APPLICATION in answer.stdout
    assert "[head-lost]" in answer.stderr


@pytest.mark.parametrize("verb", ["ls", "show", "verify", "gc"])
def test_a_folder_without_a_ledger_is_said(run, tmp_path, verb):
    told = run(verb, tmp_path, code=6).stderr
    assert "[chain-missing]" in told
    assert f"{tmp_path} holds no ledger" in told
    assert "LocalStore" not in told
    document = json.loads(run(verb, tmp_path, "--json", code=6).stdout)
    assert (document["exit_code"], document["faults"][0]["code"]) == (6, "chain-missing")


@pytest.mark.parametrize(
    ("consumed", "counted"),
    [
        ([(20, 30)], "10 positions, every one read once"),
        ([(20, 30), (25, 30)], "15 positions, not proven because of the faults"),
        ([(20, 25)], "5 positions, not proven because of the faults"),
    ],
    ids=["once", "twice", "not all of it"],
)
def test_positions_are_said_to_be_read_once_only_if_they_were(run, here, consumed, counted):
    ranges = [{"source": "a.txt", "start": start, "end": end} for start, end in consumed]
    work = {"input": "reader.blocks", "given": [{"source": "a.txt", "start": 20, "end": 30}], "consumed": ranges}
    here.keep(json.dumps({"work": {"inputs": [work]}}).encode())
    answer = run("verify", "PATH", code=0 if consumed == [(20, 30)] else 1)
    assert f"reader: 1 source, {counted}" in answer.stdout


def test_who_wants_it_quiet_gets_the_verdict_and_the_faults(run, here):
    assert run("verify", "PATH", "-q").stdout == run("verify", "PATH").stdout != ""
    here.store.delete([here.root.log.block_key(3)])
    assert run("verify", "PATH", "-q", code=1).stderr == run("verify", "PATH", code=1).stderr != ""


def test_show_shows_the_last_blocks_of_each_chain(run):
    told = run("show", "PATH", "--last", 1).stdout
    assert f"{SPLITTER} block 4: AddData" in told
    assert f"{APPLICATION} block 4: ExecuteTransform" in told


@pytest.mark.parametrize(
    ("asked", "shown"), [(("--last", 1), False), (("--last", 1, "-v"), True), (("--block", 4), True)]
)
def test_show_prints_all_fields_of_a_chosen_block_and_if_verbose(run, asked, shown):
    printed = run("show", "PATH", APPLICATION, *asked).stdout
    assert ("newData: " in printed, "hash: " in printed) == (shown, True)


@cases(
    "asked, block",
    ("by number", ["--block", 3], 3),
    ("by offset", ["--offset", 1], 3),
    ("by time", ["--at", "2024-01-01T00:00:02+00:00"], 2),
)
def test_show_finds_a_block(run, asked, block):
    document = json.loads(run("show", "PATH", SPLITTER, *asked, "--json").stdout)
    assert [b["content"]["sequenceNumber"] for b in document["blocks"]] == [block]


@pytest.mark.parametrize("verb", ["ls", "show", "heads", "verify"])
def test_a_ledger_without_a_chain_is_said_to_have_none(run, tmp_path, verb):
    Ledger.create(tmp_path / "new")
    assert run(verb, tmp_path / "new").stderr == "the ledger has no chain yet: no launch has begun to work\n"


@pytest.mark.parametrize("asked", [("--block", 99), ("--offset", 99), ("--at", "1999-01-01T00:00:00+00:00")])
def test_show_says_if_there_is_no_such_block(run, asked):
    answer = run("show", "PATH", SPLITTER, *asked, code=6)
    told = f"there is no such block [block-unknown]\n  help: there are the blocks of {SPLITTER} 0 to 4\n"
    assert (answer.stdout, answer.stderr) == ("", told)


def test_verify_reports_valid_chains_and_unread_bytes_unless_it_asks_for_every_byte(run, here):
    answer = run("verify", "PATH")
    assert f"{APPLICATION}: OK (5 blocks verified; some input is not read yet)" in answer.stdout
    assert "a.txt[20, 30) is not consumed yet [bytes-unread]" in answer.stderr
    run("verify", "PATH", "--complete", code=1)
    here.window(5, consumed=[(20, 30)])
    assert json.loads(run("verify", "PATH", "--complete", "--json").stdout)["complete"] is True


def test_verify_names_the_chain_and_the_block(run, here):
    path = here.store.root / here.root.log.block_key(2)
    path.write_bytes(path.read_bytes().replace(b"a.txt", b"b.txt"))
    assert f"{SPLITTER}: block 2:" in run("verify", "PATH", code=1).stderr
    document = json.loads(run("verify", "PATH", "--json", code=1).stdout)
    assert [(c["chain"], c["well"]) for c in document["chains"]] == [(SPLITTER, False), (APPLICATION, False)]
    assert document["chains"][0]["faults"][0]["block"] == 2


@pytest.mark.parametrize("only", [[], ["--chain", APPLICATION]], ids=["all chains", "the chain that reads it"])
@pytest.mark.parametrize("remembered", [True, False])
def test_verify_never_calls_a_ledger_complete_that_lacks_a_declared_chain(run, here, only, remembered):
    here.window(5, consumed=[(20, 30)])
    run("verify", "PATH", "--complete")
    shutil.rmtree(here.store.root / here.root.log.folder)
    if not remembered:
        shutil.rmtree(here.store.root / "heads")
    answer = run("verify", "PATH", "--complete", *only, code=1)
    assert f"{SPLITTER}: the chain is gone" in answer.stderr
    assert f"restore {here.root.log.folder} from a backup" in answer.stderr
    document = json.loads(run("verify", "PATH", *only, "--json", code=1).stdout)
    assert (document["well"], document["complete"]) == (False, False)
    assert (SPLITTER, False) in [(chain["chain"], chain["well"]) for chain in document["chains"]]


def test_verify_may_ask_one_chain_only(run):
    document = json.loads(run("verify", "PATH", "--chain", SPLITTER, "--no-contents", "--json").stdout)
    assert [c["chain"] for c in document["chains"]] == [SPLITTER]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_export_and_import_make_the_same_ledger_elsewhere_but_never_over_another(run, here, tmp_path, form):
    run("export", "PATH", tmp_path / "out", "--format", form)
    run("import", tmp_path / "copy", tmp_path / "out")
    run("verify", tmp_path / "copy")
    copy = Ledger.open(tmp_path / "copy")
    assert [copy.chain(n).head for n in copy.names()] == [here.root.head, here.app.head]
    assert "[chain-exists]" in run("import", "PATH", tmp_path / "out", code=1).stderr


def test_gc_takes_orphans_away_once_they_are_old(run, here):
    here.root.objects.put("data", b"x" * 10_000)
    assert "0 files" in run("gc", "PATH").stdout
    assert "1 file would be" in run("gc", "PATH", "--grace-minutes", 0, "--dry-run").stdout
    document = json.loads(run("gc", "PATH", "--grace-minutes", 0, "--json").stdout)
    assert [s["what"] for s in document["swept"]] == ["slice"]
    run("verify", "PATH")


def test_gc_repair_sets_a_torn_last_write_aside(run, here):
    path = here.store.root / f"{here.root.log.folder}/blocks/{5:020d}.json"
    path.write_bytes(b'{"block":')
    assert "[block-torn]" in run("ls", "PATH", code=1).stderr
    assert "set aside" in run("gc", "PATH", "--repair").stdout
    run("verify", "PATH")


@pytest.mark.trial
@pytest.mark.slow
def test_commands_work_on_a_chain_that_is_being_written(run, here):
    """A driver appends and packs while the ledger is listed, shown and verified; every result is correct."""
    stop = threading.Event()

    def drive() -> None:
        desk = Desk(LocalStore(here.store.root, durable=False), here.clock)
        start, pending = 30, [(20, 30)]
        while not stop.is_set() or desk.root.standing.next_seq < 1100:
            desk.discover((start, start + 10))
            desk.window(1, consumed=[*pending, (start, start + 10)])
            start, pending = start + 10, []

    driver = threading.Thread(target=drive)
    driver.start()
    try:
        for _ in range(5):
            run("ls", "PATH")
            run("show", "PATH")
            run("verify", "PATH")
    finally:
        stop.set()
        join(driver)
    assert here.reopened().root.log.sealed()[0] == 0, "it was packed meanwhile"
    run("verify", "PATH")
