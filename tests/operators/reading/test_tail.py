"""A growing file is read continuously: each line once, when it is ended; and changes of the file are reported."""

import io
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import Dag
from dagkit.api.running import Until
from dagkit.engine.program.failures import OperatorFailed
from dagkit.ranges import OFFSET_INFINITY, Deferred, OffsetRange
from dagkit.testing import Alone, FakeClock, Rehearsal, check_every_split_of
from dagkit_operators import FileChanged, FileInfo, Filter, Items, Lost, Map, MatchFiles, TailFiles
from dagkit_operators.reading.tail import RENAMED_MILLIS
from tests.engine.cast import Collect, Desk, arrived, chain
from tests.examples import examples
from tests.operators.reading.cast import found, written

MANY = "first\n" * 60


class Log:
    def __init__(self, folder: Path, content: str = "first\n", **properties: object) -> None:
        self.path = written(folder, content, "app.log")
        self.file: FileInfo = found(self.path)
        self.clock = FakeClock(datetime.now(UTC))
        self.alone = Alone(TailFiles(**properties), now=self.clock.now)
        self.left: OffsetRange | None = self.alone.operator.initial_restriction(self.file)

    def write(self, content: str, path: Path | None = None) -> None:
        with (path or self.path).open("a") as file:
            file.write(content)

    def read(self) -> Sequence[Any]:
        """What a further look gives; nothing is kept but what was put off."""
        assert self.left is not None, "it is not done with"
        self.alone = self.alone.restarted()
        self.alone.work(self.file, self.left)
        self.left = None if self.alone.deferred is None else self.alone.deferred.residual
        return list(self.alone.sent())

    def rename(self) -> Path:
        return self.path.rename(self.path.with_suffix(".log.1"))


def idle(path: Path) -> None:
    """As if the file had not been written to for an hour."""
    now = path.stat().st_mtime
    os.utime(path, (now - 3600, now - 3600))


def test_what_is_appended_is_read_when_it_is_looked_for(tmp_path):
    log = Log(tmp_path, interval_millis=250)
    assert log.read() == ["first"]
    assert log.read() == []
    log.write("second\nthird\n")
    assert log.read() == ["second", "third"]
    log.write("\n")
    assert log.read() == [""]
    assert log.alone.deferred == Deferred(OffsetRange(20, OFFSET_INFINITY), timedelta(seconds=0.25))


def test_a_line_that_cannot_be_parsed_is_rejected_with_its_position(tmp_path):
    log = Log(tmp_path, "1\nfirst\n", parse=int)
    assert log.read() == [1]
    assert [(one.path, one.start, one.text) for one in log.alone.sent("rejected")] == [(str(log.path), 2, "first")]
    log.write("second\n3\n")
    assert log.read() == [3]
    assert [(one.start, one.text) for one in log.alone.sent("rejected")] == [(8, "second")]


@pytest.mark.parametrize(
    ("properties", "steps"),
    [
        ({}, [("first\nsec", ["first"]), ("ond", []), ("\nthird\nfour", ["second", "third"]), ("th\n", ["fourth"])]),
        ({}, [("fir", []), ("st\n", ["first"])]),
        ({"delimiter": "|;"}, [("a|", []), (";b|", ["a"]), (";", ["b"])]),
        ({"by_file": {"*.log": {"delimiter": "|;"}}}, [("a|", []), (";b|", ["a"]), (";", ["b"])]),
        ({"escape": "\\"}, [("a\\\n", []), ("b\nc\\\n", ["a\\\nb"]), ("d\n", ["c\\\nd"])]),
        ({"skip_header_lines": 2}, [("head", []), ("er\nunits\n1\n", ["1"]), ("2\n", ["2"])]),
    ],
    ids=[
        "the last line",
        "the first line",
        "half a delimiter",
        "half that of some files",
        "an escaped end is none",
        "a header",
    ],
)
def test_a_line_that_is_not_ended_waits(properties, steps, tmp_path):
    (first, lines), *further = steps
    log = Log(tmp_path, first, **properties)
    assert log.read() == lines
    for content, lines in further:
        log.write(content)
        assert log.read() == lines


@settings(max_examples=examples(80))
@given(
    writes=st.lists(st.text("ab\n", max_size=9), max_size=12),
    chunk_size=st.integers(1, 12),
    splits=st.lists(st.none() | st.integers(1, 3), min_size=12, max_size=12),
)
def test_however_it_is_written_and_left_each_line_comes_once(writes, chunk_size, splits, tmp_path_factory):
    log = Log(tmp_path_factory.mktemp("log"), chunk_size=chunk_size)
    lines: list[str] = []
    for content, split_after in zip(writes, splits, strict=False):
        log.write(content)
        left = log.left
        while left is not None:
            residual = log.alone.work(log.file, left, split_after=split_after)
            assert residual is None or isinstance(residual, OffsetRange)
            left = residual
        assert log.alone.deferred is not None
        log.left = log.alone.deferred.residual
        lines += log.alone.sent()
    lines += log.read()
    whole, _, _ = log.path.read_text().rpartition("\n")
    assert lines == whole.split("\n")


@pytest.mark.slow
@pytest.mark.parametrize("chunk_size", [2, 8])
def test_no_split_loses_or_doubles_a_line(chunk_size, tmp_path):
    log = Log(tmp_path, "aa\nb\n\nccc\nd\n")
    length = log.path.stat().st_size
    assert check_every_split_of(TailFiles(chunk_size=chunk_size), log.file, OffsetRange(0, length)).granted


def test_what_is_there_is_allocated_in_parts_and_the_last_has_no_end(tmp_path):
    log = Log(tmp_path, "12345\n" * 10, part_size=20)
    parts = list(log.alone.operator.split(log.file, OffsetRange(0, OFFSET_INFINITY)))
    assert parts == [OffsetRange(0, 20), OffsetRange(20, 40), OffsetRange(40, OFFSET_INFINITY)]
    log.write("12345\n")
    for part in parts:
        log.alone.work(log.file, part)
    assert log.alone.sent() == ["12345"] * 11


def tailing(home: Path, tail: TailFiles[Any]) -> Desk:
    """An application that reads a growing file."""
    draw = chain(patterns=Items([f"{home}/app.log"]), match=MatchFiles(), tail=tail, collect=Collect())
    return Desk(home, draw, clock=FakeClock())


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE, Until.DRAINED])
def test_a_launch_does_not_wait_for_the_end_of_a_line_however_the_parts_lie(tmp_path, until):
    (tmp_path / "app.log").write_text("12345\n1234567890")

    desk = tailing(tmp_path, TailFiles(part_size=4))
    loop = desk.run(windows=9)
    assert loop.checkpoint.window < 9
    tailed = [(part.start, part.end) for part in loop.checkpoint.queue if part.into.operator == "tail"]
    assert tailed == [(4, OFFSET_INFINITY)]
    assert replace(desk, until=until).run(windows=9).checkpoint.window < 9
    with (tmp_path / "app.log").open("a") as file:
        file.write("1\n")
    assert arrived(desk.run()) == ["12345", "12345678901"]


def test_a_part_whose_last_line_lost_its_end_is_lost_from_the_start_of_that_line(tmp_path):
    log = Log(tmp_path, "one\n12345678")
    log.left = OffsetRange(0, 8)
    assert log.read() == ["one"]
    assert log.alone.sent("lost") == [Lost(log.file.path, 4, "was rewritten: no line ends at byte 8 or later")]
    assert log.left is None


class Rewritten(TailFiles[str]):
    """A tail whose file loses its first line end after it was divided into parts."""

    kind = "test.rewritten/1"

    def process(self, element: FileInfo, tracker: Any) -> Iterator[Any]:
        path = Path(element.path)
        path.write_bytes(path.read_bytes().replace(b"\n", b"z"))
        yield from super().process(element, tracker)


def test_a_launch_ends_at_a_part_whose_last_line_lost_its_end(tmp_path):
    written(tmp_path, "x" * 600 + "\n" + "y" * 300, "app.log")
    with pytest.raises(OperatorFailed, match="was rewritten: no line ends at byte 400 or later") as raised:
        tailing(tmp_path, Rewritten(part_size=400)).run(windows=9)
    assert isinstance(raised.value.__cause__, FileChanged)


def test_a_part_in_which_no_line_starts_is_done(tmp_path):
    log = Log(tmp_path, "12345678\n")
    log.left = OffsetRange(2, 6)
    assert (log.read(), log.left) == ([], None)


def test_how_far_there_is_to_go_is_estimated_from_the_file(tmp_path):
    log = Log(tmp_path)
    tracker = log.alone.operator.tracker(log.file, OffsetRange(0, OFFSET_INFINITY))
    tracker.try_claim(0)
    assert tracker.current_progress().remaining == 6
    log.write("second\n")
    assert tracker.current_progress().remaining == 13
    assert tracker.try_split(0.5) == (OffsetRange(0, 6), OffsetRange(6, OFFSET_INFINITY))


def test_what_is_there_when_the_file_is_opened_is_seen(tmp_path):
    log = Log(tmp_path, MANY)
    tracker = log.alone.operator.tracker(log.file, OffsetRange(0, OFFSET_INFINITY))
    next(log.alone.operator.process(log.file, tracker))
    assert tracker.seen_end() == len(MANY)


def test_when_the_application_drains_what_is_there_is_read(tmp_path):
    """A file that is gone is left to a later launch."""
    log, endless = Log(tmp_path), OffsetRange(2, OFFSET_INFINITY)
    assert log.alone.operator.truncate(log.file, endless) == OffsetRange(2, 6)
    log.write("more\nles")
    assert log.alone.operator.truncate(log.file, endless) == OffsetRange(2, 11)
    assert log.alone.operator.truncate(log.file, OffsetRange(12, OFFSET_INFINITY)) is None
    log.left = OffsetRange(2, 11)
    assert (log.read(), log.left) == (["more"], None)
    log.path.unlink()
    assert log.alone.operator.truncate(log.file, endless) is None


@pytest.mark.parametrize("chunk_size", [1, 3, 100])
@pytest.mark.parametrize("escape", ["", "\\"])
def test_the_last_end_is_found_from_the_end(chunk_size, escape, tmp_path):
    content = "a\n\\\n\\\\\nbcd\n\\\nef" + "x" * 30
    context = TailFiles(delimiter="\n", escape=escape, chunk_size=chunk_size).reader_context
    ends = [
        place + 1
        for place, letter in enumerate(content)
        if letter == "\n" and not (escape and (len(content[:place]) - len(content[:place].rstrip("\\"))) % 2)
    ]
    for start in range(len(content)):
        expected = max((end for end in ends if end >= start), default=None)
        assert context.last_end(io.BytesIO(content.encode()), start, len(content)) == (expected if start else ends[-1])


def test_a_file_that_was_renamed_is_read_on_and_then_done_with(tmp_path):
    log = Log(tmp_path)
    assert log.read() == ["first"]
    log.write("second\n")
    renamed = log.rename()
    log.path.write_text("another file\n")
    assert log.read() == ["second"]
    log.write("late\nlast", renamed)
    assert log.read() == ["late"]
    log.clock.advance(seconds=61)
    assert (log.read(), log.left) == (["last"], None)


def test_a_file_that_was_renamed_long_after_its_last_line_may_still_be_written_to(tmp_path):
    """Programs that rotate logs rename them, and only then ask the writer to open another one."""
    log = Log(tmp_path, "first\nsec")
    idle(log.path)
    assert log.read() == ["first"]
    renamed = log.rename()
    assert log.read() == []
    log.write("ond\nlast\n", renamed)
    assert log.read() == ["second", "last"]


def test_a_renamed_file_may_still_be_written_to(tmp_path):
    log = Log(tmp_path)
    renamed = log.rename()
    now = renamed.stat().st_mtime
    os.utime(renamed, (now, now - RENAMED_MILLIS / 1000 + 20))
    assert log.read() == ["first"]
    assert log.left is not None


def test_a_file_may_be_over_when_it_did_not_change_for_long(tmp_path):
    log = Log(tmp_path, "first\nsec", ends_after_millis=3_600_000 - 60_000)
    assert log.read() == ["first"]
    idle(log.path)
    assert (log.read(), log.left) == (["sec"], None)


def cut(log: Log) -> None:
    os.truncate(log.path, 300)


HAPPENS = {
    "rewritten": lambda log: log.path.write_text("another\nfile\n"),
    "cut": cut,
    "gone": lambda log: log.path.unlink(),
    "another file with its number and header": lambda log: log.rename().write_text(
        MANY.replace("first\nfirst\n", "first\nother\n") + "more\n"
    ),
}


@pytest.mark.parametrize("happens", HAPPENS.values(), ids=HAPPENS.keys())
def test_what_cannot_be_read_further_is_reported_and_done_with(happens, tmp_path):
    """Without a receiver of lost files, it is an error."""
    log = Log(tmp_path, MANY)
    log.read()
    happens(log)
    with pytest.raises(FileChanged, match=r"after it was read to byte 355: (.|\n)* connect the output `lost`"):
        Alone(TailFiles(), connected=["messages"]).work(log.file, log.left)
    assert (log.read(), log.left) == ([], None)
    reason = "is gone, or was cut or rewritten, or another file has its name"
    assert log.alone.sent("lost") == [Lost(log.file.path, 355, reason)]


def test_a_compressed_file_is_no_file_that_grows(tmp_path):
    with pytest.raises(ValueError, match="let ReadFiles read it"):
        Alone(TailFiles()).work(found(written(tmp_path, "x\n", "app.log.gz")))


def test_a_file_that_was_cut_only_below_where_it_was_read_is_reported_by_its_length(tmp_path):
    log = Log(tmp_path, "first\n")
    log.write(MANY)
    log.read()
    cut(log)
    log.read()
    assert log.alone.sent("lost") == [Lost(log.file.path, 361, "was cut to 300 bytes")]
    log.left = OffsetRange(0, 310)
    log.read()
    assert log.alone.sent("lost") == [Lost(log.file.path, 0, "was cut to 300 bytes")]


def test_another_file_that_begins_alike_is_no_more_read_than_any_other(tmp_path):
    log = Log(tmp_path, "first\n")
    log.read()
    keeper = tmp_path / "keeps the number"
    os.link(log.path, keeper)
    log.path.unlink()
    log.path.write_text("first\nsecond\n")
    keeper.rename(tmp_path / "app.log.1")
    assert log.read() == []
    assert log.left is not None
    log.write("really second\n", tmp_path / "app.log.1")
    assert log.read() == ["really second"]


@pytest.mark.parametrize("is_filtered", [False, True])
@pytest.mark.parametrize("place", ["here", "remote"])
def test_a_file_that_match_files_scans_again_is_followed_and_not_read_again(place, is_filtered, tmp_path, caplog):
    files = fsspec.filesystem("file" if place == "here" else "memory")
    folder = str(tmp_path) if place == "here" else f"memory:/{tmp_path}"

    finders = {"patterns": Items([f"{folder}/*.log"]), "match": MatchFiles(continuously=True, interval_millis=0)}
    more = {"all": Filter[FileInfo](predicate=lambda _: True)} if is_filtered else {}
    rehearsal = Rehearsal(chain(**finders, **more, tail=TailFiles(interval_millis=0), collect=Collect()))
    content = b""
    for number in range(3):
        content += b"%d\n" % number
        files.pipe(f"{tmp_path}/a.log", content)
        rehearsal.run()
    assert arrived(rehearsal.loop) == ["0", "1", "2"]
    assert caplog.records == []


def test_a_deleted_file_that_is_brought_back_as_a_copy_is_lost_and_read_as_another_one(tmp_path):
    def draw(dag: Dag, conf: object) -> None:
        found = dag.add_operator("match", MatchFiles(continuously=True, interval_millis=0))
        dag.add_operator("patterns", Items(items=(f"{tmp_path}/*.log",))) >> found
        tail = found >> dag.add_operator("tail", TailFiles(interval_millis=0))
        dag.add_stream("lines", tail.messages, dag.add_operator("collect", Collect()).input)
        tail.lost >> dag.add_operator("paths", Map(lambda lost: lost.path)) >> dag.add_operator("lost", Collect())

    rehearsal = Rehearsal(draw)
    path = written(tmp_path, "one\n", "app.log")
    rehearsal.run()
    path.rename(tmp_path / "gone")
    shutil.copy2(tmp_path / "gone", path)
    (tmp_path / "gone").unlink()
    rehearsal.run()
    assert arrived(rehearsal.loop, "collect") == ["one", "one"]
    assert arrived(rehearsal.loop, "lost") == [str(path)]
