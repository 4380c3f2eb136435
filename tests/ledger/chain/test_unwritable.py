"""Text that is none, nesting without end, and names that make no folder are clear faults."""

import os
import pickle

import pytest

from dagkit.ledger import Ledger, LedgerError, lines_of
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.exchange.manifests import export, import_into
from dagkit.ledger.format.block import unseal
from dagkit.ledger.format.events import DatasetKind
from tests.cases import cases
from tests.ledger.desk import APPLICATION, SPLITTER, STRANGER, code_of, fault_of, faults_in, is_complete

DEEP = 100_000


# ---- text that is none, and nesting without end


def resealed(document: str) -> bytes:
    """A record in this spelling, under whatever hash."""
    return f'{{"block":{document},"carry":{{}},"format":"dagkit.block/1","hash":"{STRANGER}"}}\n'.encode()


@cases(
    "line",
    ("deep", b"[" * DEEP + b"]" * DEEP + b"\n"),
    ("deep block", resealed('{"a":' * DEEP + "1" + "}" * DEEP)),
    ("rather deep", resealed("[" * 900 + "]" * 900)),
    ("NaN", resealed("NaN")),
    ("infinite", resealed('{"a":-Infinity}')),
    ("half a character", resealed('"\\ud800"')),
    ("half a name", resealed('{"\\ud800":1}')),
    ("bytes", b"\xff\n"),
    ("long", b"1" * 5000 + b"\n"),
)
def test_a_record_that_has_no_canonical_text_is_damaged(line):
    assert fault_of(lambda: unseal(line, APPLICATION, 3)) == ("block-damaged", 3)


def deep() -> list:
    found: list = []
    for _ in range(5000):
        found = [found]
    return found


@pytest.mark.parametrize(
    "value",
    [float("nan"), "\udcff.txt", {"\udcff.txt": 1}, deep()],
    ids=["NaN", "half a character", "half a name", "deep"],
)
def test_a_value_that_has_no_json_is_refused_and_nothing_is_written(desk, value):
    before = desk.app.standing
    planned = desk.app.plan_next()
    for act in (lambda: lines_of([{"source": value}]), lambda: desk.app.promise(planned, {"odd": value})):
        assert code_of(act) == "value-unwritable"
    desk.discover((0, 10))
    desk.window(1)
    assert (before.next_seq + 1, verify(desk.reopened_ledger()).is_valid) == (desk.app.standing.next_seq, True)


@pytest.mark.parametrize("value", [float("nan"), "\ud800"], ids=["NaN", "half a character"])
def test_an_event_that_has_no_json_is_refused_and_the_chain_goes_on(desk, value):
    planned = desk.root.plan_next()
    event = planned.add_data(watermark=desk.clock.now(), extra={"dagkit.dev/x": value})
    assert code_of(lambda: desk.root.append(event, planned=planned)) == "value-unwritable"
    desk.discover((0, 10))
    assert desk.reopened().root.standing == desk.root.standing


def test_the_refusal_travels_between_processes():
    with pytest.raises(LedgerError) as caught:
        lines_of([float("inf")])
    assert pickle.loads(pickle.dumps(caught.value)).faults == caught.value.faults  # noqa: S301 - our own bytes


NESTED = b'{"work":{"consumed":[],"pending":[]},"state":' + b"[" * DEEP + b"]" * DEEP + b"}"


@cases(
    "act, place",
    ("a deep row", lambda desk: desk.emit(b'{"a":' * DEEP), (SPLITTER, 3)),
    ("NaN in a row", lambda desk: desk.emit(b'{"source":"a","start":NaN}'), (SPLITTER, 3)),
    ("a name said twice in a row", lambda desk: desk.emit(b'{"source":"a","start":0,"start":1}'), (SPLITTER, 3)),
    ("a deep checkpoint", lambda desk: desk.keep(NESTED), (APPLICATION, 3)),
)
def test_work_that_is_no_json_is_named_and_does_not_pass_for_consumed(desk, act, place):
    desk.discover((0, 10))
    act(desk)
    assert [fault for fault in faults_in(desk) if fault[0] != "bytes-unread"] == [("work-unreadable", *place)]


def test_a_checkpoint_may_keep_a_number_that_is_none_beside_its_work(desk):
    desk.discover((0, 10))
    desk.keep(b'{"state":NaN,"work":{"consumed":[{"end":10,"source":"a.txt","start":0}],"pending":[]}}')
    assert is_complete(desk)


@pytest.mark.parametrize("content", [b"[" * DEEP, b"\xff", b'{"format":NaN}'], ids=["deep", "bytes", "NaN"])
def test_a_marker_or_a_head_that_is_no_json_is_reported_or_skipped(run, here, content):
    (here.store.root / here.root.log.hint_keys[0]).write_bytes(content)
    run("verify", "PATH")
    (here.store.root / "ledger" / "ledger.json").write_bytes(content)
    assert "[manifest-unreadable]" in run("ls", "PATH", code=1).stderr


# ---- names


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "x" * 300, "é" * 50, "\udcff"], ids=["none", ".", "..", "dot", "long", "é", "bytes"]
)
def test_a_name_that_makes_no_folder_is_refused(here, run, name):
    assert code_of(lambda: here.ledger.root(name)) == "chain-name-malformed"
    assert code_of(lambda: here.ledger.create_chain(name, DatasetKind.ROOT)) == "chain-name-malformed"
    assert "[chain-name-malformed]" in run("show", "PATH", name, code=1).stderr


def test_the_longest_name_can_be_exported(here, tmp_path):
    name = "x" * 240
    here.ledger.root(name)
    export(here.ledger, tmp_path / "out")
    other = Ledger.create(tmp_path / "copy")
    import_into(other, tmp_path / "out")
    assert name in other.names()


def test_folders_that_no_chain_has_are_left_alone(run, here):
    chains = os.fsencode(here.store.root / "ledger" / "chains")
    for name in (b"\xff", b"a b", b"lost+found", b"%2Ex"):
        os.mkdir(chains + b"/" + name)  # noqa: PTH102 - a path of bytes
    for verb in ("ls", "show", "verify", "gc"):
        run(verb, "PATH")
    assert Ledger.open(here.store).names() == [SPLITTER, APPLICATION]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        *((("ls", place), 5, "[store-unreachable]") for place in ("foo://x", "s3://", "az://x", "gs:///x")),
        *((("gc", "PATH", "--grace-minutes", minutes), 2, "") for minutes in ("nan", "1e30", "-5", "x")),
        (("verify", "PATH", "--chain", "Merger"), 6, "[chain-missing]"),
    ],
    ids=lambda words: words[-1] if isinstance(words, tuple) else "",
)
def test_a_url_that_leads_nowhere_a_grace_that_is_none_and_a_chain_that_is_not_there_are_said(run, words, code, told):
    assert told in run(*words, code=code).stderr
