"""One receipt for each input file, after all of it is committed and its output is visible, whatever happens."""

import hashlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag
from dagkit.api.running import Until
from dagkit.engine.parts.requests import GiveUp, Retry, ask
from dagkit.engine.program.points import Point
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    FileInfo,
    FileSplitterBase,
    FileSplitterInput,
    Items,
    LineReader,
    Map,
    MatchFiles,
    ParquetReader,
    PartWriter,
    ReadFiles,
    RecordWriter,
)
from tests.engine.cast import Desk, Draw, some_lines
from tests.engine.parts.cast import chained
from tests.old_files import aged

NAMES = ["a.txt", "b.txt", "c.txt", "d.txt"]
PARTS = pytest.mark.parametrize("parts", [False, True], ids=["files of blocks", "parts"])


def drawn(home: Path, *, parts: bool, texts: Callable[[str], str] = str) -> Draw:
    """Lines of files in blocks, three blocks a window, written to files of blocks or to parts."""
    scanner = {"files": [str(home / "in")]}
    splitter = FileSplitterInput(scanner=scanner, block_size=64, blocks_threshold=3, receipts=str(home / "receipts"))
    chain = {"splitter": splitter, "reader": LineReader(min_readers=2, max_readers=2, chunk_size=16)}
    if parts:
        return chained({**chain, "texts": Map(texts), "writer": PartWriter(file_path=str(home / "out"), max_count=4)})
    return chained({**chain, "writer": RecordWriter(file_path=str(home / "out"))})


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


def assert_right(home: Path, names: list[str] = NAMES) -> None:
    """Assert that each of these files has one right receipt."""
    found = receipts(home)
    assert sorted(found) == names
    for name, receipt in found.items():
        content = (home / "in" / name).read_bytes()
        assert (receipt["bytes"], receipt["rows"]) == (len(content), {"reader": len(content.splitlines())})
        assert receipt["sha256"] == hashlib.sha256(content).hexdigest()
        written = b"".join(Path(file).read_bytes() for file in receipt["outputs"])
        assert set(content.splitlines()) <= set(written.splitlines())
        first, last = receipt["windows"]
        assert 1 <= first <= last <= receipt["window"]


@PARTS
def test_a_receipt_says_what_was_read_and_where_it_is(parts, tmp_path):
    home = filled(tmp_path)
    desk = desk_at(home, parts=parts)
    desk.run()
    assert_right(home)
    found = receipts(home).values()
    chain = desk.ledger().chain(desk.loop().run_state.program.application)
    assert {receipt["ledger_hash"] for receipt in found} <= {record.hash for record in chain.records()}
    assert {receipt["format"] for receipt in found} == {"dagkit.receipt/1"}
    if not parts:  # a file of a block holds nothing of other files
        outputs = [file for receipt in found for file in receipt["outputs"]]
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


@pytest.mark.gate(1)
@pytest.mark.slow
@PARTS
@pytest.mark.parametrize("point", Point)
def test_a_receipt_that_was_taken_away_is_not_written_again(point, parts, tmp_path):
    """At each point of a run, what has a receipt is complete; its sender takes both away, and the driver crashes."""
    last = desk_at(filled(tmp_path / "expected"), parts=parts).run().checkpoint.window
    for window in range(1, last + 1):
        home, taken = filled(tmp_path / str(window)), []
        desk, crash = desk_at(home, parts=parts), CrashAfter(point, window)

        def take(*_: object, home: Path = home, taken: list[str] = taken) -> None:
            for path in sorted((home / "receipts").glob("*.json")):
                receipt = json.loads(path.read_text())
                lines = Path(receipt["path"]).read_text().splitlines()
                written = [line for file in receipt["outputs"] for line in Path(file).read_text().splitlines()]
                assert set(lines) <= set(written), f"{path.name} was written before its output"
                taken.append(path.name.rsplit(".", 2)[0])
                Path(receipt["path"]).unlink()
                path.unlink()

        def probe(*at: Any, take: Any = take, crash: CrashAfter = crash) -> None:
            take()
            crash(*at)

        desk.crash(probe)
        for _ in range(2):
            desk.run(probe=take)
            take()
        assert sorted(taken) == NAMES


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
    home, seen = filled(tmp_path), []

    def probe(point: Point, window_id: int) -> None:
        if point is Point.FINISHED:
            seen.append(len(list((home / "receipts").glob("*"))))

    loop = desk_at(home, parts=True).run(probe=probe)
    assert (min(seen) < len(NAMES), seen[-1]) == (True, len(NAMES))
    assert loop.checkpoint.receipts == ()


def test_without_receipts_nothing_is_recorded_for_them(tmp_path):
    home = filled(tmp_path)
    splitter = FileSplitterInput(scanner={"files": [str(home / "in")]})
    writer = RecordWriter(file_path=str(home / "out"))
    draw = chained({"splitter": splitter, "reader": LineReader(), "writer": writer})
    desk = Desk(home, draw, clock=FakeClock())
    assert "receipts" not in desk.run().checkpoint.as_json()
    assert not (Path(desk.place) / "receipts").exists()


class Choosing(LineReader):
    """Rejects lines that begin with an exclamation mark, and drops empty ones."""

    def convert_to_record(self, content: bytes) -> str | None:
        if content.startswith(b"!"):
            raise ValueError("an exclamation mark")
        return content.decode() or None


def test_a_receipt_accounts_for_rows_that_were_sent_rejected_and_dropped(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one\n!two\n\nthree\n\n")

    def draw(dag: Dag, conf: object) -> None:
        scanner = {"files": [str(tmp_path / "in")]}
        splitter = FileSplitterInput(scanner=scanner, block_size=5, receipts=str(tmp_path / "receipts"))
        reader = dag.add_operator("reader", Choosing(min_readers=2, max_readers=2))
        dag.add_stream(
            "blocks", dag.add_operator("splitter", splitter).blocks_metadata_output, reader.blocks_metadata_input
        )
        dag.add_stream(
            "lines", reader.messages, dag.add_operator("lines", PartWriter(file_path=str(tmp_path / "out"))).input
        )
        rejected = PartWriter(file_path=str(tmp_path / "rejected"), format=str)
        dag.add_stream("rejected", reader.rejected, dag.add_operator("rejected", rejected).input)

    Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock()).run()
    (receipt,) = receipts(tmp_path).values()
    accounts = [receipt[name] for name in ("rows", "rejected", "dropped")]
    assert accounts == [{"reader": 2}, {"reader": 1}, {"reader": 2}]


FINDERS = ["match", "match and base", "base"]
SCANS = ["scan, to files of blocks", "scan, to parts"]


def found_by(home: Path, finder: str) -> Draw:
    """Lines of the files that a finder finds, written to parts."""
    if finder in SCANS:
        return drawn(home, parts=finder == "scan, to parts")
    folder, chain = str(home / "receipts"), dict[str, Any]()
    if finder == "base":
        chain["found"] = Items[FileInfo](items=[FileInfo(str(path)) for path in sorted((home / "in").iterdir())])
    else:
        chain["patterns"] = Items[str](items=[str(home / "in")])
        chain["match"] = MatchFiles(receipts=folder)
    if finder == "match":
        chain["reader"] = ReadFiles(part_size=64)
    else:
        asked = folder if finder == "base" else None
        chain["splitter"] = FileSplitterBase(block_size=64, blocks_threshold=3, receipts=asked)
        chain["reader"] = LineReader(min_readers=2, max_readers=2, chunk_size=16)
    writer = PartWriter(file_path=str(home / "out"), max_count=4)
    return chained({**chain, "texts": Map(lambda line: line), "writer": writer})


def finding(home: Path, finder: str) -> Desk:
    return Desk(home, found_by(home, finder), until=Until.IDLE, clock=FakeClock())


@pytest.mark.gate(8)
@pytest.mark.slow
@pytest.mark.parametrize("finder", [*FINDERS, *SCANS])
@pytest.mark.parametrize("point", Point)
def test_a_crash_anywhere_leaves_one_receipt_for_each_file(point, finder, tmp_path):
    home = filled(tmp_path / "expected")
    whole = finding(home, finder).run().checkpoint
    assert_right(home)
    assert whole.receipts == ()
    for window in range(1, whole.window + 1):
        home = filled(tmp_path / str(window))
        desk = finding(home, finder)
        desk.crash(CrashAfter(point, window))
        desk.run()
        assert_right(home)
        assert desk.faults() == []


def test_a_file_that_grew_before_it_was_divided_has_a_receipt_for_what_was_read(tmp_path):
    home = filled(tmp_path)
    file = home / "in" / "d.txt"
    before = file.read_bytes()

    def grow(point: Point, window: int) -> None:
        if window == 1 and point is Point.FINISHED:
            file.write_bytes(before + b"more\n")

    finding(home, "match and base").run(probe=grow)
    receipt = receipts(home)["d.txt"]
    assert (receipt["bytes"], receipt["sha256"]) == (len(before), hashlib.sha256(before).hexdigest())
    assert receipt["rows"] == {"reader": len(before.splitlines())}


@pytest.mark.parametrize("finder", ["scan, to parts", "base"])
def test_an_empty_file_has_a_receipt(finder, tmp_path):
    home = filled(tmp_path)
    (home / "in" / "empty.txt").touch()
    aged(home / "in" / "empty.txt")
    desk = finding(home, finder)
    desk.run()
    assert_right(home, [*NAMES, "empty.txt"])
    assert desk.faults() == []


def test_a_reader_whose_format_has_no_empty_files_does_not_open_one(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "empty.parquet").touch()
    aged(tmp_path / "in" / "empty.parquet")
    splitter = FileSplitterInput(scanner={"files": [str(tmp_path / "in")]}, receipts=str(tmp_path / "receipts"))
    writer = PartWriter(file_path=str(tmp_path / "out"))
    draw = chained({"splitter": splitter, "reader": ParquetReader(), "writer": writer})
    Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock()).run()
    assert receipts(tmp_path)["empty.parquet"]["rows"] == {"reader": 0}
