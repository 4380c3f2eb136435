"""The rows of docs/file-policy.md in whole launches, with the defaults.

No record is lost, and none is read twice, unless the launch reports it.
"""

import os
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dagkit import Operator, Until
from dagkit.engine.record.run_events import Measured, RunEvent, Waiting
from dagkit.testing import FakeClock
from dagkit_operators import FileSplitterBase, FileSplitterInput, Items, LineReader, MatchFiles, ReadFiles, TailFiles
from tests.engine.cast import Collect, Desk, arrived, chain

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Writer(FakeClock):
    """The clock of a launch. Whenever the launch waits, another process appends the next text to a file."""

    def __init__(self) -> None:
        super().__init__(NOON)
        self.path: Path | None = None
        self.texts: list[str] = []

    def wait(self, woken: threading.Event, until: datetime) -> None:
        super().wait(woken, min(until, self.now() + timedelta(seconds=1)))
        if self.texts:
            assert self.path is not None, "there is a file to write"
            with self.path.open("a") as file:
                file.write(self.texts.pop(0))
            self.touch(self.path, ago_millis=30)

    def touch(self, path: Path, *, ago_millis: int) -> Path:
        nanos = (int(self.now().timestamp() * 1000) - ago_millis) * 10**6
        os.utime(path, ns=(nanos, nanos))
        return path


def scan(folder: Path) -> dict[str, Operator]:
    return {"find": FileSplitterInput(folder), "read": LineReader()}


def matched(places: str) -> dict[str, Operator]:
    return {"patterns": Items([places]), "find": MatchFiles(continuously=True)}


def match(folder: Path) -> dict[str, Operator]:
    return {**matched(f"{folder}"), "read": ReadFiles()}


def match_and_divide(folder: Path) -> dict[str, Operator]:
    return {**matched(f"{folder}"), "split": FileSplitterBase(), "read": LineReader()}


def tail(folder: Path) -> dict[str, Operator]:
    return {**matched(f"{folder}/*.log"), "read": TailFiles()}


EACH = pytest.mark.parametrize("find", [scan, match, match_and_divide])


class Folder:
    def __init__(self, home: Path, find: Callable[[Path], dict[str, Operator]]) -> None:
        self.place = home / "in"
        self.place.mkdir()
        self.clock = Writer()
        self.waiting: list[str] = []
        """Why the last launch left input, as it reported last."""
        self.read_again = 0
        """How many files the last launch read again."""
        self.desk = Desk(home, chain(**find(self.place), collect=Collect()), clock=self.clock)

    def write(self, name: str, text: str, *, ago_millis: int = 60_000) -> Path:
        (path := self.place / name).write_text(text)
        return self.clock.touch(path, ago_millis=ago_millis)

    def grows(self, name: str, *texts: str) -> None:
        """Let another process append to a file while the launch waits; the first text is there now."""
        first, *later = texts
        self.clock.path, self.clock.texts = self.write(name, first, ago_millis=100), later

    def launch(self, until: Until = Until.ONCE, windows: int | None = None) -> list[str]:
        """All lines that this launch and earlier ones have read."""
        self.waiting, self.read_again = [], 0
        self.desk.until = until
        loop = self.desk.run(windows=windows, observers=[self._note])
        assert self.desk.faults() == []
        return sorted(line if isinstance(line, str) else line["~record"][1] for line in arrived(loop))

    def _note(self, event: RunEvent) -> None:
        if isinstance(event, Waiting):
            self.waiting = list(event.reasons)
        if isinstance(event, Measured):
            self.read_again += event.metrics.get("find", {}).get("files_read_again", 0)


@pytest.fixture
def folder(find, tmp_path):
    return Folder(tmp_path, find)


@EACH
def test_what_happens_to_files_between_launches(find, folder, tmp_path):
    """Each line names its file. What is read again is reported; with a splitter, also another file of a known name."""
    place, is_other = folder.place, int(find is scan)
    for name in ("moved.part", "gone", "copied", "rewritten", "grown"):
        folder.write(name, f"{name}\n")
    folder.write("future", "future\n", ago_millis=-(10**7))
    lines = ["copied", "future", "gone", "grown", "moved.part", "rewritten"]
    assert [folder.launch(), folder.launch(), folder.read_again] == [lines, lines, 0]
    (place / "moved.part").rename(place / "moved")
    folder.write("moved.part", "another\n")
    (place / "gone").rename(tmp_path / "away")
    shutil.copy2(place / "copied", place / "copy")
    folder.write("late", "late\n", ago_millis=10**9)
    folder.write("new", "new\n")
    lines = sorted([*lines, "another", "copied", "late", "new"])
    assert (folder.launch(), folder.read_again) == (lines, is_other)
    (tmp_path / "away").rename(place / "gone")
    folder.write("grown", "grown\nmore\n", ago_millis=30_000)
    folder.write("rewritten", "REWRITTEN\n", ago_millis=59_999)  # of the same length, in the same second
    lines = sorted([*lines, "grown", "more", "REWRITTEN"])
    assert (folder.launch(), folder.read_again) == (lines, 2)
    assert (folder.launch(), folder.read_again) == (lines, 0)


@EACH
def test_a_file_that_was_written_just_before_a_launch_is_waited_for(folder):
    folder.write("a.log", "one\n")
    folder.write("b.log", "two\n", ago_millis=100)
    assert (folder.launch(), folder.clock.now() - NOON) == (["one", "two"], timedelta(milliseconds=1900))
    assert folder.waiting == []


@EACH
@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE])
def test_a_file_that_is_written_during_a_launch_that_ends_by_itself_is_left_and_named(until, folder):
    lines = [f"{number:02}" for number in range(20)]
    folder.grows("a.log", *(f"{line}\n" for line in lines))
    folder.write("b.log", "before\n")
    assert folder.launch(until) == ["before"]
    (reason,) = folder.waiting
    written = datetime.fromtimestamp((folder.place / "a.log").stat().st_mtime).astimezone()
    assert reason == (
        f"find: pending files: 1; {folder.place}/a.log was changed less than 2 s ago, and may still be written; it can "
        f"be read from {written + timedelta(seconds=2):%H:%M:%S} on, if it is not changed again"
    )
    while folder.clock.texts:
        folder.clock.wait(threading.Event(), folder.clock.now() + timedelta(seconds=1))
    assert (folder.launch(until), folder.waiting, folder.read_again) == ([*lines, "before"], [], 0)


@EACH
def test_a_file_that_is_written_while_the_application_runs_is_read_once(find, folder):
    lines = [f"{number:02}" for number in range(20)]
    folder.grows("a.log", *(f"{line}\n" for line in lines))
    # with MatchFiles, the first window takes the patterns, and the second one records that they were scanned
    assert folder.launch(Until.STOPPED, windows=1 if find is scan else 3) == lines
    assert [folder.launch(), folder.read_again] == [lines, 0]


@EACH
def test_a_file_that_is_written_under_a_temporary_name_is_read_once(folder):
    folder.write("a.log.tmp", "one\n")
    assert folder.launch() == []
    folder.write("a.log.tmp", "one\ntwo\n").rename(folder.place / "a.log")
    assert [folder.launch(), folder.launch()] == [["one", "two"]] * 2


@EACH
@pytest.mark.parametrize("content", ["three\n", "4\n"], ids=["replaced", "truncated"])
@pytest.mark.parametrize("replace", [True, False], ids=["by renaming another", "in its place"])
def test_an_overwritten_file_is_read_and_reported_unless_it_is_another_one(content, replace, find, folder):
    folder.write("a.log", "one1\n")
    folder.launch()
    if replace:
        folder.write("b.tmp", content, ago_millis=30_000).rename(folder.place / "a.log")
    else:
        folder.write("a.log", content, ago_millis=30_000)
    is_other = replace and find is not scan  # MatchFiles knows a local file by its inode
    assert (folder.launch(), folder.read_again) == (sorted(["one1", content.strip()]), 0 if is_other else 1)
    assert (folder.launch(), folder.read_again) == (sorted(["one1", content.strip()]), 0)


@EACH
def test_a_file_that_grows_between_windows_is_read_again_as_a_whole_and_reported(find, folder):
    folder.write("a.log", "one\n")
    folder.clock.path, folder.clock.texts = folder.place / "a.log", ["two\n"]
    assert folder.launch(Until.STOPPED, windows=2) == ["one", "one", "two"]
    assert folder.read_again == 1
    assert folder.launch() == ["one", "one", "two"]


@pytest.mark.parametrize("find", [tail])
def test_a_tailed_file_is_not_waited_for_and_each_of_its_lines_is_read_once(folder):
    lines = [f"{number:02}" for number in range(6)]
    folder.grows("a.log", *(f"{line}\n" for line in lines))
    assert (folder.launch(), folder.clock.now(), folder.waiting) == (["00"], NOON, [])
    while folder.clock.texts:
        folder.clock.wait(threading.Event(), folder.clock.now() + timedelta(seconds=1))
        read = folder.launch()
    assert (read, folder.read_again) == (lines, 0)
