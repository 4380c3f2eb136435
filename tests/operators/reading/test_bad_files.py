"""A file that cannot be read is set aside with its reason, and the others are read exactly once."""

import gzip
import os
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dagkit.engine.parts.requests import GiveUp, Retry, reply_to
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import newest_checkpoint
from dagkit.engine.record.work_history import aside_in, listed_work
from dagkit.errors import InputUnreadable
from dagkit.testing import Alone, FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import (
    CsvReader,
    FileChanged,
    FileSplitterBase,
    FileSplitterInput,
    Items,
    LineReader,
    MatchFiles,
    ReadFiles,
    RecordWriter,
)
from dagkit_operators.filesystem.access import is_bad_file
from tests.engine.cast import Collect, Desk, Hurried, arrived, chain, on_both
from tests.engine.poison_cast import aside, ask_of
from tests.operators.filesystem.test_access import without_rights

ZIPPED = gzip.compress(b"7\n8\n9\n", mtime=0)
DAMAGED = ZIPPED[:-8] + bytes(4) + ZIPPED[-4:]
"""With a wrong checksum behind its content: its records were read when that is noticed."""
PLACES = [CrashAfter(point) for point in Point]


class Values(Collect):
    def process(self, item: Any) -> None:
        self.arrived.append(item.value)


def put(home: Path, name: str, content: bytes, *, seconds: int = 1_000_000_000) -> Path:
    path = home / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (seconds, seconds))
    return path


def desk_of(home: Path, reader: Any, *, block_size: int = 1 << 20, **given: Any) -> Desk:
    splitter = FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=block_size)
    return Desk(home, chain(splitter=splitter, reader=reader, collect=Values()), clock=FakeClock(), **given)


def lines(home: Path, bad: bytes = DAMAGED, *, on_bad_file: str = "quarantine", **given: Any) -> Desk:
    """Two good files, and one that is damaged."""
    put(home, "a.txt", b"1\n2\n")
    put(home, "b.gz", bad)
    put(home, "c.txt", b"3\n4\n")
    return desk_of(home, LineReader(on_bad_file=on_bad_file), **given)


def values(loop: Any) -> list[Any]:
    return sorted(arrived(loop))


def places(desk: Desk) -> list[tuple[str, int, int]]:
    return sorted((Path(each.item.source or "").name, each.item.start, each.item.end) for each in aside(desk))


BAD = {
    "a damaged gzip file": (LineReader(), "b.gz", DAMAGED, b"1\n", "cannot be read as gzip"),
    "a line that is too long": (LineReader(longest_line=8), "b", b"1\n" + b"x" * 20, b"1\n", "longer than 8 bytes"),
    "a header with a column twice": (CsvReader(), "b", b"n,n\n1,2\n3,4\n", b"n\n1\n", "names the column 'n' twice"),
    "another encoding": (LineReader(undecodable="fail"), "b", b"1\n\xff\n", b"1\n", "is not utf-8"),
}


@on_both
@pytest.mark.parametrize("case", BAD)
def test_a_file_that_cannot_be_read_is_set_aside_whole_and_the_others_are_read(case, backend, tmp_path):
    reader, name, content, good, reason = BAD[case]
    put(tmp_path, "a", good)
    put(tmp_path, name, content)
    put(tmp_path, "c", good)
    reader = reader.configured({"on_bad_file": "quarantine"})
    desk = desk_of(tmp_path, reader, block_size=1 << 20 if name == "b.gz" else 4, backend=backend)
    read = arrived(desk.run())
    assert (len(read), read[0]) == (2, read[1]), "no record of the bad file arrives"
    assert {name for name, _, _ in places(desk)} == {name}
    assert all(reason in each.reason for each in aside(desk))
    assert desk.faults() == []
    blocks = desk.blocks()
    desk.run()
    assert desk.blocks() == blocks, "another launch does not try it again"


def test_by_default_a_bad_file_stops_the_run(tmp_path):
    desk = lines(tmp_path, on_bad_file="stop")
    for _ in range(2):
        with pytest.raises(OperatorFailed, match="cannot be read as gzip"):
            desk.run()


@on_both
@pytest.mark.parametrize(
    ("is_retried", "content", "read"),
    [(False, DAMAGED, []), (True, DAMAGED, []), (True, ZIPPED, ["7", "8", "9"])],
    ids=["found", "damaged when it is retried", "undamaged again"],
)
def test_a_bad_file_is_set_aside_or_read_once_wherever_the_driver_is_killed(
    is_retried, content, read, backend, tmp_path
):
    desk = lines(tmp_path, backend=backend)
    if is_retried:
        desk.run()
        put(tmp_path, "b.gz", content)
        ask_of(desk, Retry(by="ada"))
    assert desk.crash(*PLACES) >= 3
    assert values(desk.run()) == ["1", "2", "3", "4", *read]
    assert (places(desk), desk.faults()) == ([] if read else [("b.gz", 0, len(DAMAGED))], [])


def test_a_file_that_was_replaced_is_read_by_itself_and_a_retry_is_refused(tmp_path, caplog):
    desk = lines(tmp_path)
    desk.run()
    put(tmp_path, "b.gz", ZIPPED, seconds=1_000_000_100)
    asked = ask_of(desk, Retry(by="ada"))
    read = ["1", "2", "3", "4", "7", "8", "9"]
    assert values(desk.run()) == read
    assert "b.gz has changed since it was found" in str(reply_to(desk.ledger().store, asked).refused)
    assert re.search("a request is refused: .*b.gz has changed since it was found", caplog.text)
    ask_of(desk, GiveUp(by="ada"))
    assert values(desk.run()) == read
    assert (places(desk), desk.faults()) == ([], [])


def test_what_earlier_windows_read_of_a_bad_file_is_not_read_again_by_a_retry(tmp_path):
    reader = LineReader(on_bad_file="quarantine", longest_line=8, chunk_size=4)
    good = [f"{number}".encode() for number in range(100, 140)]
    put(tmp_path, "a", b"\n".join(good) + b"\n" + b"x" * 20 + b"\n5\n")
    desk = desk_of(tmp_path, reader, backend=Hurried)
    assert set(values(desk.run())) <= {line.decode() for line in good}
    ((_, start, _),) = places(desk)
    assert start > 0, "earlier windows read a part of it"
    put(tmp_path, "a", b"\n".join(good) + b"\n" + b"xxxx\n" * 4 + b"\n5\n")
    ask_of(desk, Retry(by="ada"))
    expected = [*(line.decode() for line in good), *["xxxx"] * 4, "", "5"]
    assert values(desk.run()) == sorted(expected)
    assert (places(desk), desk.faults()) == ([], [])


@on_both
def test_a_bad_file_that_was_found_in_the_same_window_is_set_aside(backend, tmp_path):
    desk = lines(tmp_path)
    patterns, read = Items(items=[str(tmp_path / "in" / "*")]), ReadFiles(on_bad_file="quarantine")
    desk = replace(
        desk, draw=chain(patterns=patterns, match=MatchFiles(), reader=read, collect=Collect()), backend=backend
    )
    assert desk.crash(*PLACES) >= 3
    assert sorted(arrived(desk.run())) == ["1", "2", "3", "4"]
    assert (len(aside(desk)), desk.faults()) == (1, [])
    put(tmp_path, "b.gz", ZIPPED, seconds=1_000_000_001)
    ask_of(desk, Retry(by="ada"))  # it is refused: the next launch finds the repaired file
    assert sorted(arrived(desk.run())) == ["1", "2", "3", "4", "7", "8", "9"]
    assert (len(aside(desk)), desk.faults()) == (1, [])


@on_both
def test_an_archive_is_set_aside_before_it_is_divided(backend, tmp_path):
    for name, content in (("a.txt", b"1\n"), ("b.zip", b"PK\x03\x04 and files"), ("c.br", b"brotli")):
        put(tmp_path, name, content)
    patterns, read = Items(items=[str(tmp_path / "in" / "*")]), ReadFiles(on_bad_file="quarantine")
    desk = Desk(tmp_path, chain(patterns=patterns, match=MatchFiles(), reader=read, collect=Collect()), backend=backend)
    assert arrived(desk.run()) == ["1"]
    assert sorted(each.reason.partition(" is a ")[2][:8] for each in aside(desk)) == ["brotli f", "zip file"]


def test_a_file_that_is_gone_is_set_aside(tmp_path):
    desk = lines(tmp_path)
    assert desk.crash(CrashAfter(Point.PLANNED)) == 1
    (tmp_path / "in" / "b.gz").unlink()
    assert values(desk.run()) == ["1", "2", "3", "4"]
    (each,) = [each for each in listed_work(desk.ledger()) if each.state == "set aside"]
    assert "b.gz is gone" in each.reason
    assert aside_in(newest_checkpoint(desk.ledger())).last_aside == each.reason, "the reason names the file"


def test_the_output_file_of_a_block_that_was_set_aside_is_written_by_a_retry(tmp_path):
    desk = lines(tmp_path)
    splitter = FileSplitterInput(scanner={"files": [str(tmp_path / "in")]})
    writer = RecordWriter(file_path=str(tmp_path / "out"))
    desk = replace(desk, draw=chain(splitter=splitter, reader=LineReader(on_bad_file="quarantine"), writer=writer))
    desk.run()
    assert sorted(desk.outputs().values()) == [b"1\n2\n", b"3\n4\n"]
    put(tmp_path, "b.gz", ZIPPED)
    ask_of(desk, Retry(by="ada"))
    assert desk.crash(*PLACES) >= 3
    desk.run()
    assert sorted(desk.outputs().values()) == [b"1\n2\n", b"3\n4\n", b"7\n8\n9\n"]
    assert desk.troubles() == []


@pytest.fixture
def shared_folder():
    """A folder that all users may write to, as those of pytest are not."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o777)
        yield path


def test_a_file_that_may_not_be_read_is_set_aside_and_retried_when_it_may(shared_folder):
    """Also if it is so long that the splitter would open it to see how it is compressed."""
    desk = desk_of(shared_folder, LineReader(on_bad_file="quarantine"), block_size=4)
    put(shared_folder, "a", b"1\n2\n")
    path = put(shared_folder, "b", b"3\n4\n5\n6\n")
    with without_rights(path):
        assert values(desk.run()) == ["1", "2"]
        assert places(desk) == [("b", 0, 8)]
        ask_of(desk, Retry(by="ada"))
    assert values(desk.run()) == ["1", "2", "3", "4", "5", "6"]
    assert (places(desk), desk.faults()) == ([], [])


@pytest.mark.parametrize(
    ("cause", "is_of_the_file"),
    [(PermissionError(13, "denied"), True), (OSError(5, "I/O"), True), (ConnectionError("reset"), False), (None, True)],
)
def test_a_file_that_may_not_be_read_is_bad_and_one_behind_a_lost_connection_is_not(cause, is_of_the_file):
    error = InputUnreadable("cannot read a: it is so")
    error.__cause__ = cause
    assert is_bad_file(error) is is_of_the_file


REPLACED = pytest.mark.parametrize("content", [b"5\n6\n7\n8\n", b"5\n6\n7\n8\n9\n"], ids=["as long", "longer"])


def replaced(home: Path, content: bytes, on_bad_file: str) -> Desk:
    """An application that has read half of a file, when another one takes its name."""
    put(home, "a", b"1\n2\n3\n4\n")
    splitter = FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=4, blocks_threshold=1)
    draw = chain(splitter=splitter, reader=LineReader(on_bad_file=on_bad_file), collect=Values())
    desk = Desk(home, draw, clock=FakeClock())
    assert values(desk.run(windows=1)) == ["1", "2"]
    put(home, "a", content, seconds=1_000_000_001)
    return desk


@REPLACED
def test_the_rest_of_a_file_that_was_replaced_is_set_aside_and_the_new_one_is_read_whole(content, tmp_path):
    desk = replaced(tmp_path, content, "quarantine")
    assert values(desk.run()) == sorted(["1", "2", *content.decode().split()])
    (work,) = [work for work in listed_work(desk.ledger()) if work.state == "set aside"]
    assert "in/a is another file than the one that was split" in work.reason
    assert (places(desk), desk.faults()) == ([("a", 4, 8)], [])


@REPLACED
def test_a_file_that_was_replaced_stops_the_run_until_its_rest_is_given_up(content, tmp_path):
    desk = replaced(tmp_path, content, "stop")
    with pytest.raises(OperatorFailed, match="in/a is another file than the one that was split"):
        desk.run()
    ask_of(desk, GiveUp(by="ada"))
    assert values(desk.run()) == sorted(["1", "2", *content.decode().split()])
    assert desk.faults() == []


def test_a_file_that_only_grew_is_read_to_its_old_end_and_again_as_a_whole(tmp_path):
    desk = replaced(tmp_path, b"1\n2\n3\n4\n5\n", "stop")
    assert values(desk.run()) == sorted("1234" + "12345")


def test_a_file_that_was_replaced_before_any_of_it_was_read_is_read_once_when_it_is_found(tmp_path, caplog):
    desk = lines(tmp_path)
    assert desk.crash(CrashAfter(Point.PLANNED)) == 1
    put(tmp_path, "a.txt", b"5\n6\n7\n", seconds=1_000_000_001)
    assert values(desk.run()) == ["3", "4", "5", "6", "7"]
    assert "in/a.txt was replaced before it was read; it is read when it is found again" in caplog.text
    assert desk.faults() == []


@pytest.mark.parametrize("draw", [ReadFiles, FileSplitterBase], ids=["read", "divided"])
def test_a_replaced_file_that_match_files_found_is_not_read_instead(draw, tmp_path):
    path = put(tmp_path, "a", b"1\n2\n")
    matching = Alone(MatchFiles())
    matching.work(str(path))
    (found,) = matching.sent()
    found = replace(found, is_found_again=False)
    reader, divider = Alone(ReadFiles() if draw is ReadFiles else LineReader()), Alone(FileSplitterBase())
    divider.work(found)
    (element,) = [found] if draw is ReadFiles else divider.sent()
    put(tmp_path, "a", b"5\n6\n7\n", seconds=1_000_000_001)
    with pytest.raises(FileChanged, match="is another file"):
        reader.work(element)
