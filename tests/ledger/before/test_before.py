"""Ledgers that an earlier dagkit wrote (format `dagkit.memory/1`, 2026-11): they open, resume and verify.

`ledgers.tar.xz` holds the folders of the applications of `applications.py`, some stopped in the middle: a block read in
part, a window promised and staged, half of the files in place, items held by a delay, elements of a root and of the
middle of a graph waiting. Beside each `app` lies `out`, the files that were in place by then. In `rounds-open` the
first thousand blocks of the application's chain are packed in a segment.
"""

import json
import shutil
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import fsspec
import pytest

from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.format.segment import SEGMENT_SIZE
from tests.engine.cast import Desk
from tests.ledger.before import applications, november
from tests.ledger.before.applications import APPLICATIONS, ROUNDS, outputs, write_inputs

KEPT = Path(__file__).with_name("ledgers.tar.xz")
STOPPED = ["lines-open", "lines-half-finished", "counts-open"]
DONE = ["lines-done", "counts-done"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(KEPT) as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.fixture(autouse=True)
def memory():
    """The files that the applications read, in memory; nothing of them is left."""
    write_inputs()
    yield
    fsspec.filesystem("memory").rm("/before", recursive=True)


def desk(kept: Path, name: str, home: Path) -> Desk:
    """A kept folder, copied, and its application."""
    shutil.copytree(kept / name / "app", home / "app")
    for file in sorted((kept / name).glob("out/*")):
        fsspec.filesystem("memory").pipe(f"/before/out/{file.name}", file.read_bytes())
    return Desk(home, APPLICATIONS[name.partition("-")[0]])


def made(desk: Desk) -> Any:
    """What an application made: its files, and what its operators remember, whatever the order."""
    state = desk.loop().state
    return outputs(), {name: Counter(n for one in states for n in one["kept"]) for name, states in state.items()}


def checkpoint(desk: Desk) -> Checkpoint:
    return Checkpoint.model_validate(json.loads(desk.ledger().chain(applications.__name__).checkpoint()))


def test_the_kept_ledgers_hold_what_they_are_kept_for(kept, tmp_path):
    lines, counts = (checkpoint(desk(kept, name, tmp_path / name)) for name in ("lines-open", "counts-open"))
    begun = next(each for each in lines.queue if each.element["block_id"] == 0)
    assert (begun.start, begun.end) == (1, 400)
    assert [part.file for part in lines.files] == [f"{applications.OUT}/0"]
    assert counts.held
    assert {each.into for each in counts.queue} == {"plain.names", "numbered.names"}


@pytest.mark.slow
@pytest.mark.parametrize("name", STOPPED)
def test_what_was_stopped_resumes_to_the_output_of_an_uninterrupted_run(name, kept, tmp_path):
    whole = Desk(tmp_path / "whole", APPLICATIONS[name.partition("-")[0]])
    whole.run()
    expected = made(whole)
    write_inputs()
    stopped = desk(kept, name, tmp_path / "stopped")
    stopped.run()
    assert made(stopped) == expected
    assert stopped.faults() == []


@pytest.mark.parametrize("name", DONE)
def test_what_was_done_verifies_and_has_nothing_to_do(name, kept, tmp_path):
    done = desk(kept, name, tmp_path)
    before = checkpoint(done), made(done)
    assert done.faults() == []
    done.run()
    assert (checkpoint(done), made(done)) == before


def test_what_earlier_windows_recorded_is_complete_and_what_they_did_not_is_named(kept, tmp_path):
    lines, counts = (verify(desk(kept, name, tmp_path / name).ledger()) for name in ("lines-done", "counts-done"))
    assert lines.is_complete
    assert (counts.is_valid, counts.is_complete) == (True, False)
    assert counts.unproven == ("names: 8 items, from which earlier windows may have read without a record of it",)


@pytest.mark.slow
def test_an_old_segment_opens_resumes_and_verifies(kept, tmp_path):
    stopped = desk(kept, "rounds-open", tmp_path)
    before, log = checkpoint(stopped), stopped.ledger().chain(applications.__name__).log
    assert (before.window, log.sealed()) == (ROUNDS - 5, [0])
    assert [seq for seq, _ in log.lines(0, SEGMENT_SIZE)] == list(range(SEGMENT_SIZE + 1))
    assert stopped.faults() == []
    loop = stopped.run()
    assert loop.checkpoint.window == ROUNDS
    assert loop.checkpoint.state == {"countdown": ({"total": sum(range(ROUNDS + 1))},)}
    verdict = verify(stopped.ledger())
    assert verdict.faults == ()
    assert verdict.unproven == ("start: 1 item, from which earlier windows may have read without a record of it",)


@pytest.fixture(scope="module")
def kept_in_november(tmp_path_factory):
    folder = tmp_path_factory.mktemp("november")
    with tarfile.open(november.KEPT) as packed:
        packed.extractall(folder, filter="data")
    return folder


def made_in_november(desk: Desk) -> Any:
    """What an application has made: files, receipts, entries by window, and what its operators remember."""
    states = desk.loop().state
    kept = sorted(item for one in states.get("keep", ()) for item in one["kept"])
    files = {path: content for path, content in november.outputs().items() if "/receipts/" not in path}
    entered = [entries for _, _, entries in november.SENT]
    return files, november.rows_of_receipts(), entered, kept, {n: one for n, one in states.items() if n != "keep"}


@pytest.mark.slow
@pytest.mark.parametrize("name", november.APPLICATIONS)
def test_each_kind_of_state_resumes_to_the_output_of_an_uninterrupted_run(name, kept_in_november, tmp_path):
    november.write_inputs()
    november.prepare(name, tmp_path / "whole")
    whole = november.desk(name, tmp_path / "whole")
    whole.run()
    expected = made_in_november(whole)
    november.write_inputs()
    kept = json.loads((kept_in_november / name / "kept.json").read_text())
    for path, content in kept["outputs"].items():
        fsspec.filesystem("memory").pipe(path, bytes.fromhex(content))
    november.SENT.extend(kept["sent"])
    shutil.copytree(kept_in_november / name / "app", tmp_path / "stopped" / "app")
    stopped = november.desk(name, tmp_path / "stopped")
    assert november.plan(name) == kept["plan"], "the fingerprint of a plan stays"
    before = stopped.loop().checkpoint.window
    assert stopped.run().checkpoint.window > before
    assert made_in_november(stopped) == expected
    assert stopped.faults() == []
