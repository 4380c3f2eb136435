"""Every operator that finds files can ask for receipts, also for empty files."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from dagkit.api.running import Until
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
)
from tests.engine.cast import Desk, Draw
from tests.engine.files.test_receipts import NAMES, assert_right, filled, receipts
from tests.engine.files.test_receipts import drawn as scanned
from tests.engine.parts.cast import chained
from tests.old_files import aged

FINDERS = ["match", "match and base", "base"]
SCANS = ["scan, to files of blocks", "scan, to parts"]


def drawn(home: Path, finder: str) -> Draw:
    """Lines of the files that a finder finds, written to parts."""
    if finder in SCANS:
        return scanned(home, parts=finder == "scan, to parts")
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


def desk_at(home: Path, finder: str) -> Desk:
    return Desk(home, drawn(home, finder), until=Until.IDLE, clock=FakeClock())


@pytest.mark.gate(8)
@pytest.mark.slow
@pytest.mark.parametrize("finder", [*FINDERS, *SCANS])
@pytest.mark.parametrize("point", Point)
def test_a_crash_anywhere_leaves_one_receipt_for_each_file(point, finder, tmp_path):
    home = filled(tmp_path / "expected")
    whole = desk_at(home, finder).run().checkpoint
    assert_right(home)
    assert whole.receipts == ()
    for window in range(1, whole.window + 1):
        home = filled(tmp_path / str(window))
        desk = desk_at(home, finder)
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

    desk_at(home, "match and base").run(probe=grow)
    receipt = receipts(home)["d.txt"]
    assert (receipt["bytes"], receipt["sha256"]) == (len(before), hashlib.sha256(before).hexdigest())
    assert receipt["rows"] == {"reader": len(before.splitlines())}


@pytest.mark.parametrize("finder", ["scan, to parts", "base"])
def test_an_empty_file_has_a_receipt(finder, tmp_path):
    home = filled(tmp_path)
    (home / "in" / "empty.txt").touch()
    aged(home / "in" / "empty.txt")
    desk = desk_at(home, finder)
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
