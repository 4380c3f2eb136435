"""The file with the snapshot of a run; of several launches at once, one runs, and the others are refused."""

import errno
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from dagkit.compiler import compile_application
from dagkit.engine.record.run_events import Ended, Resumed
from dagkit.engine.record.run_picture import RunPicture
from dagkit.engine.record.snapshot import bytes_of
from dagkit.engine.record.status_file import (
    RECENT,
    STATUS,
    LaunchMarker,
    StatusFile,
    presence,
    read_status,
    refuse_second,
    this_process,
)
from dagkit.engine.run.launch_record import claimed
from dagkit.errors import RunFailure
from dagkit.ledger.stores import MemoryStore
from dagkit.ledger.stores.store import refused
from tests.engine.cast import numbers_collected
from tests.engine.record.launches import NOON, SetClock, first_snapshot
from tests.patience import join, within
from tests.processes import limited, next_line


@pytest.fixture
def store():
    return MemoryStore()


def launch_on(store: MemoryStore, **given: float) -> StatusFile:
    plan = compile_application(numbers_collected(((3,),), readers=1)).plan
    return StatusFile(store, RunPicture(SetClock(), first_snapshot(), plan), **given)


@pytest.fixture
def launched(store):
    return lambda: launch_on(store)


def state_in(store: MemoryStore) -> str | None:
    found = read_status(store)
    return found.state if found else None


def test_the_file_shows_the_states_of_a_launch_and_keeps_the_last(store, launched):
    status = launched()
    with status.kept():
        assert state_in(store) == "starting"
        status(Resumed("App", 0, 0, promised=False))
        status.write()
        assert state_in(store) == "running"
        status(Ended(4))
    assert (state_in(store), read_status(store).window) == ("stopped", 4)


@pytest.mark.parametrize("message", ["seven", "no lines in in/a\udcff.txt"], ids=["text", "a name that is not UTF-8"])
def test_a_failure_is_written_with_its_message(store, launched, message):
    with pytest.raises(ValueError, match=re.escape(message)), launched().kept():
        raise ValueError(message)
    assert (state_in(store), read_status(store).error.message) == ("failed", f"ValueError: {message}")


def test_a_launch_that_another_one_took_over_writes_no_more(store, launched):
    first, second = launched(), launched()
    with first.kept():
        second.write()
        first(Ended(1))
    assert state_in(store) == "starting"


class Stalling(MemoryStore):
    """Storage that does not answer a request to write, after the first one, until it is released."""

    _has_written = False

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def replace(self, name: str, content: bytes) -> None:
        if self._has_written:
            self.released.wait(within(30))
        self._has_written = True
        super().replace(name, content)


def test_a_launch_ends_although_its_storage_does_not_answer(caplog):
    store = Stalling()
    status = launch_on(store, last_write_seconds=0.01)
    launch = threading.Thread(target=lambda: ended(status), daemon=True)
    launch.start()
    launch.join(within(20))
    assert not launch.is_alive()
    assert caplog.messages == ["status.json keeps an earlier state: its storage does not answer"]
    (writer,) = (thread for thread in threading.enumerate() if thread.name == "dagkit-status")
    store.released.set()
    join(writer)
    assert state_in(store) == "stopped"


def ended(status: StatusFile) -> None:
    with status.kept():
        status(Ended(1))


def test_a_second_launch_is_refused_while_the_first_runs(store, launched):
    first = launched()
    with first.kept(), pytest.raises(RunFailure, match=rf"App is already running: process {os.getpid()} of .* since"):
        refuse_second(store, NOON)
    ended(launched())
    refuse_second(store, NOON)


@pytest.mark.parametrize("content", [b'{"format": "dagkit.status/9"}', b"[" * 99999, b"\xff"])
def test_an_unreadable_file_refuses_nothing(store, content):
    store.replace(STATUS, content)
    refuse_second(store, NOON)
    assert read_status(store) is None


OVER = RECENT.total_seconds()


@pytest.mark.parametrize(
    ("driver", "state", "seconds", "found"),
    [
        ({}, "starting", 0, "here"),
        ({"began": "0"}, "starting", 0, "gone"),
        *(({"host": "elsewhere"}, "starting", seconds, "elsewhere") for seconds in (0, OVER, -OVER)),
        ({"host": "elsewhere"}, "starting", OVER + 1, "silent"),
        ({}, "stopped", 0, "over"),
        ({}, "failed", 0, "over"),
    ],
)
def test_a_driver_is_present(driver, state, seconds, found):
    snapshot = first_snapshot(**driver).model_copy(update={"state": state})
    assert presence(snapshot, NOON + timedelta(seconds=seconds)) == found


def test_a_killed_process_is_gone_also_before_its_parent_asks_for_it():
    program = "import sys; from dagkit.engine.record.status_file import this_process as t; "
    child = subprocess.Popen(  # noqa: S603 - this very Python
        [sys.executable, "-c", program + "print(t().began, flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with limited(child):
        snapshot = first_snapshot(pid=child.pid, began=next_line(child).strip())
        assert presence(snapshot, NOON) == "here"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert presence(snapshot, NOON) == "gone"
    assert presence(snapshot, NOON) == "gone"


def test_two_launches_of_one_process_differ():
    one, other = this_process(), this_process()
    assert (one.pid, one.began) == (other.pid, other.began)
    assert one.launch != other.launch


def test_a_process_has_a_beginning_also_without_a_proc_filesystem(monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda _: False)

    def missing(path: Path, **_: str) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", missing)
    assert this_process().began
    assert presence(first_snapshot(), NOON) == "here"


class Filling(MemoryStore):
    """Storage that other writers fill, but for what it holds already."""

    is_full = False

    def _put(self, key: str, content: bytes) -> None:
        held = sum(len(other) for name, other in self._contents.items() if name != key)
        if self.is_full and held + len(content) > self.room:
            raise refused("app", OSError(errno.ENOSPC, "No space left on device"))
        super()._put(key, content)

    def fill(self) -> None:
        self.is_full, self.room = True, sum(map(len, self._contents.values()))


def test_how_a_run_ended_is_written_also_on_a_disk_that_is_full(caplog):
    store = Filling()
    status, marker = launch_on(store), LaunchMarker(store)

    def run() -> None:
        marker.begin()
        store.fill()
        status(Resumed("App", 4_000_000, 0, promised=False))
        try:
            status.write()  # it is longer than the one before
            raise OSError(errno.ENOSPC, "x" * 4096)
        finally:
            marker.end()

    with pytest.raises(OSError, match="xxx"), status.kept():
        run()
    assert state_in(store) == "failed"
    assert "app is full" in caplog.text


def begun(store: MemoryStore) -> LaunchMarker:
    marker = LaunchMarker(store)
    marker.begin()
    return marker


def test_a_launch_after_one_that_ended_was_not_killed():
    store = MemoryStore()
    begun(store).end()
    assert not begun(store).was_killed


def test_a_killed_launch_is_known_also_after_a_launch_that_failed_before_it_began():
    store = MemoryStore()
    begun(store)
    LaunchMarker(store).end()
    assert begun(store).was_killed


LONG_ENOUGH = 0.05
"""Seconds in which a launch that does not wait would begin; one that waits passes however slow the machine is."""


def running(place: Path) -> None:
    """Write the status of a driver that runs: this process."""
    status = first_snapshot().model_copy(update={"application": "Sums", "application_path": str(place)})
    (place / STATUS).write_bytes(bytes_of(status))


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("other_fresh", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_launch_waits_until_the_one_before_has_written_its_status(tmp_path, fresh, other_fresh, is_there):
    place = tmp_path / "app"
    if is_there:
        (place / "ledger").mkdir(parents=True)
    with ThreadPoolExecutor() as pool:
        with claimed(str(place), take_over=False, fresh=fresh) as kept:
            assert (kept is not None) == (fresh and is_there)
            other = pool.submit(claim, place, other_fresh)
            assert not waited(other, LONG_ENOUGH), "the other launch began beside this one"
            running(place)
        with pytest.raises(RunFailure, match="Sums is already running"):
            other.result(within(30))
    assert (place / STATUS).exists()


def claim(place: Path, fresh: bool) -> None:
    with claimed(str(place), take_over=False, fresh=fresh):
        running(place)


def waited(future: "Future[None]", seconds: float) -> bool:
    """Whether it ended within this time."""
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    return ended.wait(seconds)


def test_of_many_fresh_launches_at_once_one_runs(tmp_path):
    (tmp_path / "app" / "ledger").mkdir(parents=True)
    with ThreadPoolExecutor(16) as pool:
        begun = [pool.submit(claim, tmp_path / "app", True) for _ in range(16)]
    refused = [one for one in begun if getattr(one.exception(), "code", None) == "driver-runs"]
    assert len(refused) == 15
    assert len(list(tmp_path.iterdir())) == 2, "the folder, and the one of the earlier run"


@pytest.mark.parametrize(("call", "raised"), [("mkdir", FileExistsError), ("open", FileNotFoundError)])
def test_a_launch_waits_also_if_the_folder_is_renamed_while_it_is_opened(tmp_path, monkeypatch, call, raised):
    place, make = tmp_path / "app", getattr(os, call)
    place.mkdir()

    def renamed_meanwhile(path, *given, **named):
        if Path(path) != place:
            return make(path, *given, **named)
        monkeypatch.setattr(os, call, make)
        place.rename(tmp_path / "earlier")
        raise raised(path)

    monkeypatch.setattr(os, call, renamed_meanwhile)
    with ThreadPoolExecutor() as pool:
        with claimed(str(place), take_over=False, fresh=False):
            other = pool.submit(claim, place, False)
            assert not waited(other, LONG_ENOUGH), "the other launch began beside this one"
            running(place)
        with pytest.raises(RunFailure, match="Sums is already running"):
            other.result(within(30))


def test_a_place_that_is_no_folder_is_left_to_the_ledger(tmp_path):
    (tmp_path / "app").touch()
    with claimed(str(tmp_path / "app"), take_over=False, fresh=False) as kept:
        assert kept is None
