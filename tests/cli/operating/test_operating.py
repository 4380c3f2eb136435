"""Commands on running applications: they read what the driver writes, and ask it through its folder."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from dagkit.cli import main
from dagkit.cli.group import ALIASES
from dagkit.compiler import compile_application
from dagkit.engine.changes.requests import StopRun, ask, reply_to
from dagkit.engine.history.history import history, newest_checkpoint
from dagkit.engine.reports.driver_process import RECENT
from dagkit.engine.reports.run_events import Working
from dagkit.engine.reports.run_picture import RunPicture
from dagkit.engine.reports.seen_run import SeenRun
from dagkit.engine.reports.snapshot import RunError
from dagkit.engine.reports.status_file import STATUS, read_status
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.stores import LocalStore
from dagkit.observers.run_text import picture
from tests.engine.cast import numbers_collected
from tests.engine.changes.test_requests import multiplied
from tests.engine.reports.launches import SetClock, first_snapshot
from tests.engine.reports.test_run_picture import AT_WORK, WINDOW
from tests.patience import LONG_WINDOWS, within
from tests.processes import limited, run_program

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Running:
    """An application that runs in a thread of this process, until it is asked to stop."""

    def __init__(self, folder: Path, looks: Sequence[tuple[int, ...]] = ((1,), (2,), (3,), (4,))) -> None:
        self.folder = folder
        self.looks = looks
        self.begun = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        launch(
            multiplied(self.looks),
            {"dt.attr.APPLICATION_NAME": "Times"},
            machine=Machine("reference"),
            path=self.folder,
            observers=[lambda _: self.begun.set()],
        )

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        store = LocalStore(self.folder)
        status = read_status(store)
        assert status is not None
        ask(store, StopRun(launch=status.driver.launch), datetime.now(UTC))
        self.thread.join(within(30))


@pytest.fixture
def running(tmp_path):
    yield from until_stopped(Running(tmp_path / "app"))


def until_stopped(run: Running) -> Iterator[Running]:
    """Start the application, yield it, and stop it."""
    run.thread.start()
    assert run.begun.wait(within(30))
    yield run
    if run.thread.is_alive():
        run.stop()


def test_a_running_application_is_stopped_and_the_command_waits_for_its_end(dagkit, running):
    answer = dagkit("stop", str(running.folder))
    running.thread.join(within(30))
    assert answer.out.startswith("Times stopped after window ")
    again = dagkit("stop", str(running.folder))
    assert (again.code, again.err.partition("\n")[0]) == (
        8,
        "Times is not running; its last launch: stopped [request-unanswered]",
    )


def test_the_status_names_the_process_and_the_state(dagkit, running):
    answer = dagkit("status", str(running.folder))
    assert answer.out.startswith("Times: ")
    assert f"; process {os.getpid()} of " in answer.out
    document = dagkit("status", str(running.folder), "--json").document
    assert (document["schema"], document["presence"]) == ("dagkit.status/1", "here")
    assert document["driver"]["pid"] == os.getpid()


def test_a_request_to_stop_is_not_for_a_later_launch(tmp_path):
    launch(multiplied(), until="once", machine=Machine("reference"), path=tmp_path / "app")
    store = Ledger.open(tmp_path / "app").store
    before = read_status(store)
    assert before is not None
    late = ask(store, StopRun(launch=before.driver.launch), datetime.now(UTC))
    launch(multiplied(), until="once", machine=Machine("reference"), path=tmp_path / "app")
    status, reply = read_status(store), reply_to(store, late)
    assert status is not None
    assert reply is not None
    assert (status.state, reply.done) == ("stopped", False)


def test_applications_are_listed_with_their_states(dagkit, folder):
    launch(multiplied(), {"dt.attr.APPLICATION_NAME": "Times"}, until="once", machine=Machine("reference"))
    Ledger.create(folder / ".dagkit" / "Old")
    (folder / ".dagkit" / "no application").mkdir()
    header, *rows = [line.split() for line in dagkit("ls").out.splitlines()]
    assert header == ["application", "state", "window", "pending", "since", "folder"]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("Old", "unknown", ".dagkit/Old"),
        ("Times", "stopped", ".dagkit/Times"),
    ]
    listed = dagkit("ls", "--json").document["applications"]
    assert [each["path"] for each in listed] == [".dagkit/Old", ".dagkit/Times"]
    assert dagkit("ls", ".dagkit/Times").out.splitlines()[1].split()[0] == "Times"


def test_without_a_status_the_command_says_what_to_do(dagkit, folder):
    Ledger.create(folder / "app")
    answer = dagkit("status", "app")
    assert (answer.code, answer.err.partition("\n")[0].rpartition("/")[2]) == (
        6,
        "app has no status: no launch has written one [application-missing]",
    )


def test_for_the_name_of_an_application_its_folder_is_suggested(dagkit, folder):
    Ledger.create(folder / ".dagkit" / "Times")
    answer = dagkit("status", "Times")
    assert (answer.code, answer.err) == (
        6,
        "there is no file or folder 'Times' [application-missing]\n  help: did you mean .dagkit/Times?\n",
    )


def test_an_application_that_was_launched_in_another_folder_is_suggested(dagkit, folder):
    dagkit("new", "words", "--launch")
    assert "words/.dagkit/Words" in dagkit("ls", "words").out
    assert "words/.dagkit/Words" in dagkit("ls", "words/.dagkit").out
    answer = dagkit("status", "words")
    assert answer.code == 6
    assert answer.err == (
        "Words was launched in another folder: .dagkit/Words does not exist here [application-missing]\n"
        "  help: did you mean words/.dagkit/Words?\n"
    )


def test_top_ends_with_the_application_and_prints_a_block_each_time(dagkit, folder):
    launch(multiplied(), {"dt.attr.APPLICATION_NAME": "Times"}, until="once", machine=Machine("reference"), path="app")
    assert dagkit("top", "app").out.count("Times: stopped; process ") == 1


def test_top_shows_the_figures_as_often_as_it_is_asked(dagkit, running):
    shown = dagkit("top", str(running.folder), "--count", "2", "--every", "0.2", "--json").out
    assert shown.count('"schema": "dagkit.status/1"') == 2


KILLED = """
import sys
from dagkit.launching import Machine, launch
from tests.engine.changes.test_requests import multiplied

launch(multiplied(), {"dt.attr.APPLICATION_NAME": "Times"}, machine=Machine("reference"), path="app",
       observers=[lambda event: print(type(event).__name__, flush=True)])
"""


@pytest.mark.slow
def test_a_killed_application_is_listed_as_killed_and_blocks_no_launch(dagkit, folder):
    path = os.pathsep.join(filter(None, sys.path))
    with limited(
        subprocess.Popen(  # noqa: S603 - this very Python
            [sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        ),
        50,
    ) as driver:
        assert driver.stdout is not None
        assert any(line.startswith("Committed") for line in driver.stdout)
        refused = dagkit("launch", "missing.py", "--reference")
        assert refused.code == 6
        answer = dagkit("kill", "app")
        assert answer.out.startswith(f"Times: process {driver.pid} was killed; the next launch resumes after window ")
    assert dagkit("status", "app").out.startswith("Times: killed; process ")
    assert dagkit("kill", "app").code == 8
    assert answer.out.endswith(f" window {newest_checkpoint(Ledger.open('app')).window}\n")
    launched = launch(
        multiplied(),
        {"dt.attr.APPLICATION_NAME": "Times"},
        until="once",
        machine=Machine("reference"),
        path="app",
    )
    assert dagkit("status", "app").out.startswith("Times: stopped; process ")
    assert launched.window_id >= 1


KILLS_ITSELF = KILLED.replace("import sys", "import os, signal").replace(
    "lambda event: print(type(event).__name__, flush=True)",
    "lambda event: getattr(event, 'window_id', 0) == 3 and os.kill(os.getpid(), signal.SIGKILL)",
)
"""The driver is killed at the start of the third window, before its next status."""


@pytest.mark.slow
def test_of_a_killed_driver_the_status_says_since_when_and_what_the_ledger_holds(dagkit, folder):
    path = os.pathsep.join(filter(None, sys.path))
    killed = run_program(
        [sys.executable, "-c", KILLS_ITSELF], check=False, env={**os.environ, "PYTHONPATH": path}, seconds=50
    )
    assert killed.returncode == -signal.SIGKILL
    (last,) = [entry for entry in history(Ledger.open("app")) if entry.checkpoint.window == 2]
    lines = dagkit("status", "app").out.splitlines()
    assert lines[1].startswith("window 2 committed ")
    assert lines[3].startswith("not running: its last sign of life is of ")
    assert lines[4:6] == [
        "its process ended without stopping; the next launch resumes after window 2, and no record is lost",
        f"help: launch it again; `dagkit logs {folder / 'app'}` prints what it logged last",
    ]
    document = dagkit("status", "app", "--json").document
    assert (document["presence"], document["shown_state"], document["last_window"]) == ("gone", "killed", 2)
    assert datetime.fromisoformat(document["last_sign"]) >= last.committed
    (listed,) = dagkit("ls", "app", "--json").document["applications"]
    assert listed["last_window"] == 2
    assert dagkit("ls", "app").out.splitlines()[1].split()[:3] == ["Times", "killed", "2"]


def test_of_a_silent_driver_the_status_says_where_to_look(dagkit, folder):
    store = Ledger.create(folder / "app").store
    store.replace(STATUS, first_snapshot(host="etl-1").model_dump_json().encode())
    lines = dagkit("status", "app").out.splitlines()
    pid = first_snapshot().driver.pid
    assert lines[3].startswith("not running: its last sign of life is of ")
    assert lines[4:6] == [
        f"process {pid} may be cut off from the folder, and still run on etl-1",
        "help: end it there if it runs, and launch again: the next launch begins again, and no record is lost",
    ]


def test_an_application_of_another_host_is_not_killed(dagkit, folder):
    store = Ledger.create(folder / "app").store
    elsewhere = first_snapshot(host="etl-1").model_copy(update={"at": datetime.now(UTC)})
    store.replace(STATUS, elsewhere.model_dump_json().encode())
    answer = dagkit("kill", "app")
    assert (answer.code, answer.err.startswith("App runs on etl-1, not on this host, ")) == (2, True)


def test_a_driver_of_another_host_that_fell_silent_is_shown_as_silent(folder):
    store = Ledger.create(folder / "app").store
    store.replace(STATUS, first_snapshot(host="etl-1").model_dump_json().encode())
    seen = SeenRun.of(store, NOON + 2 * RECENT)
    assert seen is not None
    assert (seen.state, seen.runs) == ("silent", False)


def test_the_figures_of_a_run_are_lines_and_a_table():
    plan = compile_application(numbers_collected(((3,),), readers=2)).plan
    run = RunPicture(SetClock(), first_snapshot(), plan)
    for event in (*WINDOW, Working([AT_WORK, replace(AT_WORK, slot=0, fraction=None)])):
        run(event)
    seen = SeenRun(run.snapshot(), "here", NOON + timedelta(seconds=75))
    lines = picture(seen).splitlines()
    assert lines[1:6] == [
        "window 3 committed 1 min 15 s ago (block 7 of the ledger)",
        "this launch: 1 window, 800 B read, 800 B/s, 80 B written to 1 file",
        "pending: 3 elements, 1.6 kB, about 2 s left",
        "at work: digits b 25% for 1 min 15 s, b for 1 min 15 s",
        "under way: digits a 40%",
    ]
    (row,) = [line.split() for line in lines if line.startswith("digits ")]
    assert row == ["digits", "2", "→", "4", "4.0", "40", "800", "B", "4", "40", "3", "50%"]


def test_of_an_error_of_several_lines_the_first_is_shown():
    error = RunError(at=NOON, window=1, message="Loud failed: IndexError\n  record: 'a'\nTraceback", again=False)
    seen = SeenRun(first_snapshot().model_copy(update={"error": error}), "here", NOON)
    (shown,) = [line for line in picture(seen).splitlines() if line.startswith("last error, ")]
    assert shown.endswith(" in window 1: Loud failed: IndexError; `dagkit logs` prints the rest")


@pytest.mark.parametrize(("alias", "command"), ALIASES.items())
def test_other_names_lead_to_the_same_command(alias, command):
    context = click.Context(main)
    assert main.get_command(context, alias) is main.get_command(context, command)


def test_other_names_are_not_in_the_list_of_commands():
    assert not ALIASES.keys() & set(main.list_commands(click.Context(main)))


@pytest.fixture
def launched(dagkit, folder):
    """A folder in which one application was launched, twice."""
    dagkit("new", "words", "--launch", **LONG_WINDOWS)
    with contextlib.chdir(folder / "words"):
        dagkit("launch", "app.py", "--once", "--reference", "--fresh", **LONG_WINDOWS)
        yield Path.cwd()


@pytest.mark.parametrize("command", ["status", "logs", "top --count 1"])
def test_the_only_application_need_not_be_named(dagkit, launched, command):
    assert len(list((launched / ".dagkit").iterdir())) == 2, "the earlier run is kept, and is no application"
    assert dagkit(*command.split()).out == dagkit(*command.split(), ".dagkit/Words").out != ""


def test_of_several_applications_one_is_to_be_named(dagkit, launched):
    dagkit("new", "more")
    dagkit("launch", "more", "--once", "--reference")
    answer = dagkit("status")
    assert (answer.code, "launched here: .dagkit/More, .dagkit/Words." in answer.err) == (2, True)
    assert dagkit("status", "more").out.startswith("More: ")


def test_without_an_application_one_is_to_be_named(dagkit, folder):
    answer = dagkit("status")
    assert answer.code == 2
    assert "Missing argument 'APP|PATH': no application was launched here, below .dagkit." in answer.err
