"""One receipt for each input file, after all of it is committed and its output is visible, whatever happens."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag
from dagkit.api.running import Until
from dagkit.engine.changes.requests import GiveUp, Retry, ask
from dagkit.engine.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import FileSplitterInput, LineReader, Map, PartWriter, RecordWriter
from tests.engine.cast import Desk, some_lines

NAMES = ["a.txt", "b.txt", "c.txt", "d.txt"]


def drawn(home: Path, *, parts: bool, texts: Callable[[str], str] = str) -> Any:
    """Lines of files in blocks, three blocks a window, written to files of blocks or to parts."""

    def draw(dag: Dag, conf: object) -> None:
        scanner = {"files": [str(home / "in")]}
        splitter = FileSplitterInput(
            scanner=scanner, block_size=64, blocks_threshold=3, receipts=str(home / "receipts")
        )
        splitter = dag.add_operator("splitter", splitter)
        reader = dag.add_operator("reader", LineReader(min_readers=2, max_readers=2, chunk_size=16))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        if parts:
            (
                reader
                >> dag.add_operator("texts", Map(texts))
                >> dag.add_operator("writer", PartWriter(file_path=str(home / "out"), max_count=4))
            )
        else:
            writer = dag.add_operator("writer", RecordWriter(file_path=str(home / "out")))
            dag.add_stream("lines", reader.messages, writer.input)

    return draw


def filled(home: Path) -> Path:
    (home / "in").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        (home / "in" / name).write_text(some_lines(4 + 3 * number, seed=number))
        os.utime(home / "in" / name, (1000 + number, 1000 + number))
    return home


def desk_at(home: Path, *, parts: bool = False, **given: Any) -> Desk:
    return Desk(home, drawn(home, parts=parts), **{"until": Until.IDLE, "clock": FakeClock(), **given})


def receipts(home: Path) -> dict[str, dict[str, Any]]:
    """The receipts in the folder, by the name of the input file."""
    found = [json.loads(path.read_text()) for path in sorted((home / "receipts").glob("*"))]
    assert len({receipt["path"] for receipt in found}) == len(found), "a file has one receipt"
    return {Path(receipt["path"]).name: receipt for receipt in found}


class Watching:
    """Checks at each point of a run that what has a receipt is complete; a sender that takes its receipts away."""

    def __init__(self, home: Path, crash: CrashAfter | None = None) -> None:
        self.home = home
        self.crash = crash
        self.taken: list[str] = []

    def __call__(self, point: Point, window_id: int) -> None:
        for path in sorted((self.home / "receipts").glob("*.json")):
            receipt = json.loads(path.read_text())
            lines = Path(receipt["path"]).read_text().splitlines()
            written = [line for file in receipt["outputs"] for line in Path(file).read_text().splitlines()]
            assert set(lines) <= set(written), f"{path.name} was written before its output"
            self.taken.append(path.name)
            Path(receipt["path"]).unlink()
            path.unlink()
        if self.crash is not None:
            self.crash(point, window_id)


@pytest.mark.parametrize("parts", [False, True], ids=["files of blocks", "parts"])
def test_a_receipt_says_what_was_read_and_where_it_is(parts, tmp_path):
    home = filled(tmp_path)
    desk = desk_at(home, parts=parts)
    desk.run()
    found = receipts(home)
    assert sorted(found) == NAMES
    chain = desk.ledger().chain(desk.loop().run_state.program.application)
    hashes = {record.hash for record in chain.records()}
    for name, receipt in found.items():
        content = (home / "in" / name).read_bytes()
        assert receipt["format"] == "dagkit.receipt/1"
        assert receipt["bytes"] == len(content)
        assert receipt["sha256"] == hashlib.sha256(content).hexdigest()
        assert receipt["rows"] == {"reader": len(content.splitlines())}
        assert receipt["ledger_hash"] in hashes
        first, last = receipt["windows"]
        assert 1 <= first <= last <= receipt["window"]
        written = b"".join(Path(file).read_bytes() for file in receipt["outputs"])
        assert set(content.splitlines()) <= set(written.splitlines())
    if not parts:  # a file of a block holds nothing of other files
        outputs = [file for receipt in found.values() for file in receipt["outputs"]]
        assert sorted(outputs) == sorted(str(home / "out" / name) for name in desk.outputs())


@pytest.mark.gate(1)
@pytest.mark.parametrize("decision", [Retry, GiveUp])
def test_a_file_with_a_record_that_is_set_aside_has_a_receipt_only_after_the_decision(decision, tmp_path):
    home = filled(tmp_path)
    (home / "in" / "b.txt").write_text("first\nbroken\nlast\n")

    def refuse(line: str) -> str:
        if line == "broken":
            raise RuntimeError(line)
        return line

    desk = Desk(home, drawn(home, parts=True, texts=refuse), conf={"dt.attr.ON_POISON": "SET_ASIDE"}, clock=FakeClock())
    desk.run()
    assert sorted(receipts(home)) == ["a.txt", "c.txt", "d.txt"], "its sender must keep it"
    ask(desk.ledger().store, decision(by="ada"), datetime.now(UTC))
    Desk(home, drawn(home, parts=True)).run()
    found = receipts(home)
    assert sorted(found) == NAMES
    assert found["b.txt"]["rows"] == {"reader": 3 if decision is Retry else 2}
    assert desk.faults() == []


@pytest.mark.gate(8)
@pytest.mark.slow
@pytest.mark.parametrize("parts", [False, True], ids=["files of blocks", "parts"])
@pytest.mark.parametrize("point", Point)
def test_a_crash_at_any_point_of_any_window_leaves_one_receipt_for_each_file(point, parts, tmp_path):
    expected = filled(tmp_path / "expected")
    last = desk_at(expected, parts=parts).run().checkpoint.window
    for window in range(1, last + 1):
        home = filled(tmp_path / str(window))
        desk = desk_at(home, parts=parts)
        desk.crash(CrashAfter(point, window))
        desk.run()
        found = receipts(home)
        assert sorted(found) == NAMES
        for name, receipt in found.items():
            assert receipt["rows"] == {"reader": len((home / "in" / name).read_text().splitlines())}
        assert desk.faults() == []


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("parts", [False, True], ids=["files of blocks", "parts"])
@pytest.mark.parametrize("point", Point)
def test_a_receipt_that_was_taken_away_is_not_written_again(point, parts, tmp_path):
    last = desk_at(filled(tmp_path / "expected"), parts=parts).run().checkpoint.window
    for window in range(1, last + 1):
        home = filled(tmp_path / str(window))
        desk = desk_at(home, parts=parts)
        watching = Watching(home, CrashAfter(point, window))
        for _ in range(3):
            _run_into(desk, watching)
        assert sorted(name.rsplit(".", 2)[0] for name in watching.taken) == NAMES


def _run_into(desk: Desk, watching: Watching) -> None:
    crash, watching.crash = watching.crash, None
    if crash is None:
        desk.run(probe=watching)
        watching(Point.FINISHED, 0)
    else:

        def probe(point: Point, window_id: int) -> None:
            watching(point, window_id)
            crash(point, window_id)

        desk.crash(probe)  # type: ignore[arg-type]


def test_a_file_that_changed_gets_another_receipt(tmp_path):
    home = filled(tmp_path)
    desk_at(home).run()
    before = {path.name for path in (home / "receipts").iterdir()}
    (home / "in" / "a.txt").write_text("changed\n")
    os.utime(home / "in" / "a.txt", (5000, 5000))
    desk_at(home).run()
    (new,) = {path.name for path in (home / "receipts").iterdir()} - before
    assert json.loads((home / "receipts" / new).read_text())["sha256"] == hashlib.sha256(b"changed\n").hexdigest()


def test_a_file_waits_for_its_receipt_until_its_output_is_complete(tmp_path):
    home = filled(tmp_path)
    desk = desk_at(home, parts=True)
    seen: Sequence[int] = []

    def probe(point: Point, window_id: int) -> None:
        if point is Point.FINISHED:
            seen.append(len(list((home / "receipts").glob("*"))))  # type: ignore[attr-defined]

    loop: Loop = desk.run(probe=probe)
    assert seen[-1] == len(NAMES)
    assert min(seen) < len(NAMES)
    assert loop.checkpoint.receipts == ()


def test_without_receipts_nothing_is_recorded_for_them(tmp_path):
    home = filled(tmp_path)

    def draw(dag: Dag, conf: object) -> None:
        splitter = dag.add_operator("splitter", FileSplitterInput(scanner={"files": [str(home / "in")]}))
        reader = dag.add_operator("reader", LineReader())
        writer = dag.add_operator("writer", RecordWriter(file_path=str(home / "out")))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, writer.input)

    desk = Desk(home, draw, clock=FakeClock())
    loop = desk.run()
    assert "receipts" not in loop.checkpoint.as_json()
    assert not (Path(desk.place) / "receipts").exists()
