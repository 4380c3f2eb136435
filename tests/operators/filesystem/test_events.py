"""Events of the filesystem start scans before they are due; without them, scans by time remain."""

import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dagkit import Until
from dagkit.engine.inputs.driver_input import Background
from dagkit.testing import Alone, FakeClock
from dagkit_operators import FileSplitterInput, looks
from dagkit_operators.looks import FileEvents, Looks

LONG_MILLIS = 60_000
"""Longer than any event takes."""


class Launched:
    """A splitter whose scans and waits run on other threads, as in a launch. Its clock stands still."""

    def __init__(self, *places: Path, until: Until = Until.STOPPED) -> None:
        self.woken = threading.Event()
        self.background = Background("test", self.woken.set)
        scanner = {"files": [str(place) for place in places], "events": True, "scan_interval_millis": LONG_MILLIS}
        self.alone = Alone(FileSplitterInput(scanner=scanner), now=FakeClock().now, until=until)
        operator = self.alone.operator
        operator._context = replace(operator._context, start=self.background.start)
        operator._looks = Looks(operator._context)

    def found(self) -> list[str]:
        """Look whenever work in the background has ended, and return the names of the files that are found first."""
        names: list[str] = []
        while not names:
            self.alone.look()
            names = [Path(block.path).name for block in self.alone.sent()]
            if not names:
                assert self.woken.wait(LONG_MILLIS / 1000), "the work in the background ends"
                self.woken.clear()
        return names


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    return tmp_path


@pytest.mark.slow
def test_a_file_that_comes_starts_a_scan_that_is_not_due(folder):
    pytest.importorskip("watchfiles")
    launched = Launched(folder)
    try:
        assert launched.found() == ["a.txt"]
        (folder / "sub").mkdir()
        (folder / "sub" / "b.txt").write_text("two\n")
        assert launched.found() == ["b.txt"]
    finally:
        launched.alone.operator.teardown()


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE])
def test_a_launch_that_ends_by_itself_waits_for_no_event(until, folder):
    launched = Launched(folder, until=until)
    assert launched.found() == ["a.txt"]
    assert launched.background.begun == 1


@pytest.mark.slow
def test_waiting_ends_when_it_is_stopped(folder):
    pytest.importorskip("watchfiles")
    stop = threading.Event()
    stop.set()
    watched = FileEvents.of([str(folder)], stop, recursive=True)
    assert not watched.wait(LONG_MILLIS)


def test_without_the_package_scans_by_time_remain(folder, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "watchfiles._rust_notify", None)
    looks._log_missing.cache_clear()
    launched = Launched(folder)
    assert launched.found() == ["a.txt"]
    assert launched.background.begun == 1
    assert "cause no scan" in caplog.text
    assert launched.alone.operator.looks_again_in_millis() == LONG_MILLIS


def test_remote_places_have_no_events():
    assert FileEvents.of(["s3://bucket/in"], threading.Event(), recursive=True) is None
