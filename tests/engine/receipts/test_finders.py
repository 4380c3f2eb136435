"""Every operator that finds files can ask for receipts, also for empty files."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from dagkit import Dag
from dagkit.api.running import Until
from dagkit.engine.points import Point
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
)
from tests.engine.cast import Desk
from tests.engine.receipts.test_receipts import NAMES, filled, receipts

FINDERS = ["match", "match and base", "base"]


def drawn(home: Path, finder: str) -> Any:
    """Lines of the files that a finder finds, written to parts."""
    folder = str(home / "receipts")

    def draw(dag: Dag, conf: object) -> None:
        reader: Any = LineReader(min_readers=2, max_readers=2, chunk_size=16)
        if finder == "base":
            paths = [
                FileInfo(str(home / "in" / name)) for name in sorted(file.name for file in (home / "in").iterdir())
            ]
            found: Any = dag.add_operator("found", Items[FileInfo](items=paths))
        else:
            patterns = dag.add_operator("patterns", Items[str](items=[str(home / "in")]))
            found = patterns >> dag.add_operator("match", MatchFiles(receipts=folder))
        if finder == "match":
            reader = dag.add_operator("reader", ReadFiles(part_size=64))
        else:
            asked = folder if finder == "base" else None
            splitter = FileSplitterBase(block_size=64, blocks_threshold=3, receipts=asked)
            found = found >> dag.add_operator("splitter", splitter)
            reader = dag.add_operator("reader", reader)
        lines = found >> reader
        writer = dag.add_operator("writer", PartWriter(file_path=str(home / "out"), max_count=4))
        lines >> dag.add_operator("texts", Map(lambda line: line)) >> writer

    return draw


def desk_at(home: Path, finder: str) -> Desk:
    return Desk(home, drawn(home, finder), until=Until.IDLE, clock=FakeClock())


def assert_right(home: Path, names: list[str]) -> None:
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


@pytest.mark.parametrize("finder", FINDERS)
def test_each_finder_can_ask_for_receipts(finder, tmp_path):
    home = filled(tmp_path)
    loop = desk_at(home, finder).run()
    assert_right(home, NAMES)
    assert loop.checkpoint.receipts == ()


@pytest.mark.gate(2)
@pytest.mark.slow
@pytest.mark.parametrize("finder", FINDERS)
@pytest.mark.parametrize("point", Point)
def test_a_crash_anywhere_leaves_one_receipt_for_each_file(point, finder, tmp_path):
    last = desk_at(filled(tmp_path / "expected"), finder).run().checkpoint.window
    for window in range(1, last + 1):
        home = filled(tmp_path / str(window))
        desk = desk_at(home, finder)
        desk.crash(CrashAfter(point, window))
        desk.run()
        assert_right(home, NAMES)
        assert desk.faults() == []


def test_a_file_that_grew_before_it_was_divided_has_a_receipt_for_what_was_read(tmp_path):
    home = filled(tmp_path)
    desk = desk_at(home, "match and base")
    file = home / "in" / "d.txt"
    before = file.read_bytes()

    def grow(point: Point, window: int) -> None:
        if window == 1 and point is Point.FINISHED:
            file.write_bytes(before + b"more\n")

    desk.run(probe=grow)
    receipt = receipts(home)["d.txt"]
    assert (receipt["bytes"], receipt["sha256"]) == (len(before), hashlib.sha256(before).hexdigest())
    assert receipt["rows"] == {"reader": len(before.splitlines())}


@pytest.mark.parametrize("finder", ["scan", "base"])
def test_an_empty_file_has_a_receipt(finder, tmp_path):
    home = filled(tmp_path)
    (home / "in" / "empty.txt").touch()

    def scan(dag: Dag, conf: object) -> None:
        splitter = FileSplitterInput(scanner={"files": [str(home / "in")]}, receipts=str(home / "receipts"))
        lines = dag.add_operator("splitter", splitter) >> dag.add_operator("reader", LineReader())
        texts = lines >> dag.add_operator("texts", Map(lambda line: line))
        texts >> dag.add_operator("writer", PartWriter(file_path=str(home / "out")))

    desk = Desk(home, scan if finder == "scan" else drawn(home, finder), until=Until.IDLE, clock=FakeClock())
    desk.run()
    assert_right(home, [*NAMES, "empty.txt"])
    assert desk.faults() == []


def test_a_reader_whose_format_has_no_empty_files_does_not_open_one(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "empty.parquet").touch()

    def draw(dag: Dag, conf: object) -> None:
        splitter = FileSplitterInput(scanner={"files": [str(tmp_path / "in")]}, receipts=str(tmp_path / "receipts"))
        rows = dag.add_operator("splitter", splitter) >> dag.add_operator("reader", ParquetReader())
        rows >> dag.add_operator("writer", PartWriter(file_path=str(tmp_path / "out")))

    Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock()).run()
    assert receipts(tmp_path)["empty.parquet"]["rows"] == {"reader": 0}
