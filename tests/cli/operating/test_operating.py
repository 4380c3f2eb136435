"""Commands on running applications: they read what the driver writes, and ask it through its folder."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from dagkit.cli import main
from dagkit.cli.group import ALIASES
from dagkit.compiler import compile_application
from dagkit.engine.parts.requests import StopRun, ask, reply_to
from dagkit.engine.record.history import history, newest_checkpoint
from dagkit.engine.record.run_events import Started, Working
from dagkit.engine.record.run_picture import RunPicture
from dagkit.engine.record.snapshot import RunError
from dagkit.engine.record.status_file import RECENT, STATUS, SeenRun, read_status
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.stores import LocalStore
from dagkit.observers.run_text import picture
from tests.engine.cast import numbers_collected
from tests.engine.parts.test_requests import multiplied
from tests.engine.record.launches import SetClock, first_snapshot
from tests.engine.record.test_run_picture import AT_WORK, MEASURED, STATS, WINDOW
from tests.patience import LONG_WINDOWS, join, within
from tests.processes import limited, run_program

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def run_times(looks=((1,), (2,), (3,), (4,)), **options):
    launch(multiplied(looks), {"dt.attr.APPLICATION_NAME": "Times"}, machine=Machine("reference"), **options)


class Running:
    """An application that runs in a thread of this process, until it is asked to stop."""

    def __init__(self, folder, looks=((1,), (2,), (3,), (4,))):
        self.folder, self.begun = folder, threading.Event()
        options = {"path": folder, "observers": [lambda _: self.begun.set()]}
        self.thread = threading.Thread(target=run_times, args=(looks,), kwargs=options, daemon=True)

    def stop(self):
        """Ask it to stop, and wait until it has."""
        store = LocalStore(self.folder)
        ask(store, StopRun(launch=read_status(store).driver.launch), datetime.now(UTC))
        self.thread.join(within(30))


@pytest.fixture
def running(tmp_path):
    yield from until_stopped(Running(tmp_path / "app"))


def until_stopped(run):
    """Start the application, yield it, and stop it."""
    run.thread.start()
    assert run.begun.wait(within(30))
    yield run
    if run.thread.is_alive():
        run.stop()


def test_a_running_application_is_shown_and_stopped_and_the_command_waits_for_its_end(dagkit, running):
    place = str(running.folder)
    answer, document = dagkit("status", place), dagkit("status", place, "--json").document
    assert (answer.out[:7], f"; process {os.getpid()} of " in answer.out) == ("Times: ", True)
    assert (document["schema"], document["presence"]) == ("dagkit.status/1", "here")
    assert document["driver"]["pid"] == os.getpid()
    shown = dagkit("top", place, "--count", "2", "--every", "0.2", "--json").out
    assert shown.count('"schema": "dagkit.status/1"') == 2
    dagkit("kill", place).fails(2, "the application runs in this very process")
    answer = dagkit("stop", place)
    running.thread.join(within(30))
    assert answer.out.startswith("Times stopped after window ")
    dagkit("stop", place).fails(8, "Times is not running; its last launch: stopped [request-unanswered]")
    assert dagkit("top", place).out.count("Times: stopped; process ") == 1


def test_a_request_to_stop_is_not_for_a_later_launch(tmp_path):
    run_times(until="once", path=tmp_path / "app")
    store = Ledger.open(tmp_path / "app").store
    late = ask(store, StopRun(launch=read_status(store).driver.launch), datetime.now(UTC))
    run_times(until="once", path=tmp_path / "app")
    assert (read_status(store).state, reply_to(store, late).done) == ("stopped", False)


def test_applications_are_listed_with_their_states(dagkit, folder):
    run_times(until="once")
    Ledger.create(folder / ".dagkit" / "Old")
    (folder / ".dagkit" / "no application").mkdir()
    header, *rows = [line.split() for line in dagkit("ls").out.splitlines()]
    assert header == ["application", "state", "window", "pending", "since", "folder"]
    listed = [("Old", "unknown", ".dagkit/Old"), ("Times", "stopped", ".dagkit/Times")]
    assert [(row[0], row[1], row[-1]) for row in rows] == listed
    assert [each["path"] for each in dagkit("ls", "--json").document["applications"]] == [
        place for _, _, place in listed
    ]
    assert dagkit("ls", ".dagkit/Times").out.splitlines()[1].split()[0] == "Times"
    assert "File name too long" in dagkit("ls", "x" * 300).err


def test_an_application_whose_ledger_is_damaged_hides_no_other(dagkit, folder):
    run_times(until="once")
    for name in ("A", "B"):
        Ledger.create(folder / ".dagkit" / name)
        (folder / ".dagkit" / name / "ledger" / "ledger.json").write_text("")
    answer = dagkit("ls")
    assert [line.split()[:2] for line in answer.out.splitlines()[1:]] == [
        ["A", "unknown"],
        ["B", "unknown"],
        ["Times", "stopped"],
    ]
    assert answer.code == 1
    assert "ledger.json is not JSON, in .dagkit/A [manifest-unreadable]" in answer.err
    assert "ledger.json is not JSON, in .dagkit/B [manifest-unreadable]" in answer.err


def test_without_a_status_the_command_says_what_to_do_or_which_folder_is_meant(dagkit, folder):
    Ledger.create(folder / "app")
    dagkit("status", "app").fails(6, "app has no status: no launch has written one [application-missing]")
    Ledger.create(folder / ".dagkit" / "Times")
    missing = "there is no file or folder 'Times' [application-missing]\n  help: did you mean .dagkit/Times?\n"
    dagkit("status", "Times").fails(6, missing)
    dagkit("new", "words", "--launch")
    for place in ("words", "words/.dagkit"):
        assert "words/.dagkit/Words" in dagkit("ls", place).out
    elsewhere = "Words was launched in another folder: .dagkit/Words does not exist here [application-missing]\n"
    dagkit("status", "words").fails(6, f"{elsewhere}  help: did you mean words/.dagkit/Words?\n")


KILLED = """
import sys
from dagkit.launching import Machine, launch
from tests.engine.parts.test_requests import multiplied

launch(multiplied(), {"dt.attr.APPLICATION_NAME": "Times"}, machine=Machine("reference"), path="app",
       observers=[lambda event: print(type(event).__name__, flush=True)])
"""


@pytest.mark.slow
def test_a_killed_application_is_listed_as_killed_and_blocks_no_launch(dagkit, folder):
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with limited(
        subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, env=own),  # noqa: S603
        50,
    ) as driver:
        assert any(line.startswith("Committed") for line in driver.stdout)
        answer = dagkit("kill", "app")
        assert answer.out.startswith(f"Times: process {driver.pid} was killed; the next launch resumes after window ")
    assert dagkit("status", "app").out.startswith("Times: killed; process ")
    assert dagkit("kill", "app").code == 8
    assert answer.out.endswith(f" window {newest_checkpoint(Ledger.open('app')).window}\n")
    run_times(until="once", path="app")
    assert dagkit("status", "app").out.startswith("Times: stopped; process ")


KILLS_ITSELF = KILLED.replace("import sys", "import os, signal").replace(
    "lambda event: print(type(event).__name__, flush=True)",
    "lambda event: getattr(event, 'window_id', 0) == 3 and os.kill(os.getpid(), signal.SIGKILL)",
)
"""The driver is killed at the start of the third window, before its next status."""


@pytest.mark.slow
def test_of_a_killed_driver_the_status_says_since_when_and_what_the_ledger_holds(dagkit, folder):
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    killed = run_program([sys.executable, "-c", KILLS_ITSELF], check=False, env=own, seconds=50)
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
    assert [listed["last_window"] for listed in dagkit("ls", "app", "--json").document["applications"]] == [2]
    assert dagkit("ls", "app").out.splitlines()[1].split()[:3] == ["Times", "killed", "2"]


def test_a_driver_of_another_host_is_not_killed_and_shown_as_silent_if_it_fell_silent(dagkit, folder):
    store, elsewhere = Ledger.create(folder / "app").store, first_snapshot(host="etl-1")
    store.replace(STATUS, elsewhere.model_dump_json().encode())
    seen = SeenRun.of(store, NOON + 2 * RECENT)
    assert (seen.state, seen.runs) == ("silent", False)
    lines = dagkit("status", "app").out.splitlines()
    assert lines[3].startswith("not running: its last sign of life is of ")
    assert lines[4:6] == [
        f"process {elsewhere.driver.pid} may be cut off from the folder, and still run on etl-1",
        "help: end it there if it runs, and launch again: the next launch begins again, and no record is lost",
    ]
    store.replace(STATUS, elsewhere.model_copy(update={"at": datetime.now(UTC)}).model_dump_json().encode())
    dagkit("kill", "app").fails(2, "App runs on etl-1, not on this host, ")


@pytest.mark.parametrize("done", [1592, 1600], ids=["nearly all is read", "all is read"])
def test_a_run_whose_slots_still_work_is_not_done(done):
    run = RunPicture(SetClock(), first_snapshot(), compile_application(numbers_collected(((3,),), readers=2)).plan)
    working = Working([replace(AT_WORK, fraction=done / 1600)], {4: {"byte": done}})
    for event in (*WINDOW, Started(4, 1, None, {"byte": 1600}), working):
        run(event)
    lines = picture(SeenRun(run.snapshot(), "here", NOON)).splitlines()
    assert {"reading: 2.4 kB of 2.4 kB (99%)", "at work: digits b 99% for 0 s"} <= set(lines)


def test_of_several_units_no_common_share_is_shown():
    run = RunPicture(SetClock(), first_snapshot(), compile_application(numbers_collected(((3,),), readers=2)).plan)
    working = Working([AT_WORK], {4: {"byte": 800, "row": 1}})
    for event in (*WINDOW, Started(4, 1, None, {"byte": 1600, "row": 3}), working):
        run(event)
    assert (
        "reading: 1.6 kB and 1 row of 2.4 kB and 3 rows" in picture(SeenRun(run.snapshot(), "here", NOON)).splitlines()
    )


def test_a_process_of_another_user_is_not_killed(dagkit, folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    Ledger.create(folder / "app")
    seen = SeenRun(first_snapshot(pid=1, user="etl"), "here", NOON)
    monkeypatch.setattr("dagkit.cli.operating.kill.running_at", lambda _: seen)
    monkeypatch.setattr(os, "kill", refuse)
    dagkit("kill", "app").fails(2, "process 1 belongs to etl, and only that user or root can kill it")


def test_the_figures_of_a_run_are_lines_and_a_table():
    plan = compile_application(numbers_collected(((3,),), readers=2)).plan
    run = RunPicture(SetClock(), first_snapshot(), plan)
    working = Working([AT_WORK, replace(AT_WORK, slot=0, fraction=None)], {4: {"byte": 800}})
    for event in (*WINDOW, Started(4, 1, None, {"byte": 1600}), working):
        run(event)
    lines = picture(SeenRun(run.snapshot(), "here", NOON + timedelta(seconds=75))).splitlines()
    assert lines[1:7] == [
        "window 3 committed 1 min 15 s ago (block 7 of the ledger); window 4 runs for 1 min 15 s",
        "this launch: 1 window, 800 B read, 800 B/s, 80 B written to 1 file",
        "reading: 1.6 kB of 2.4 kB (67%)",
        "at work: digits b 25% for 1 min 15 s, b for 1 min 15 s",
        "busiest: digits 50%",
        "the next file becomes visible with the next window",
    ]
    (row,) = [line.split() for line in lines if line.startswith("digits ")]
    assert row == ["digits", "2", "→", "4", "4.0", "40", "800", "B", "4", "40", "3", "50%", "1.0", "(0)"]


def test_the_busiest_operator_and_its_busiest_partition_are_named_and_partitions_are_listed_if_asked():
    plan = compile_application(numbers_collected(((3,),), readers=2)).plan
    run = RunPicture(SetClock(), first_snapshot(), plan)
    more = replace(STATS, busy_millis=900, positions=1200)
    for event in (*WINDOW[:-1], replace(MEASURED, operators={"digits": [STATS, more]}), Started(4, 1, None)):
        run(event)
    seen = SeenRun(run.snapshot(), "here", NOON)
    lines = picture(seen, partitions=True).splitlines()
    assert "busiest: digits 70%, partition 1 for 1.3 times the mean" in lines
    assert [line.split() for line in lines[-2:]] == [["digits", "1", "64%", "75%"], ["digits", "0", "36%", "25%"]]
    assert picture(seen).splitlines() == lines[:-4]


def test_the_last_error_names_its_window_once_and_the_line_of_the_author_and_of_several_lines_the_first_is_shown():
    def shown(state):
        seen = SeenRun(first_snapshot().model_copy(update={"error": state}), "here", NOON)
        (line,) = [line for line in picture(seen).splitlines() if line.startswith("last error, ")]
        return line.partition(": ")[2]

    message = "Loud failed in window 1, slot 0 at a.txt, byte 4: IndexError"
    error = RunError(at=NOON, window=1, message=message, raised_at="app.py:7", again=False)
    assert shown(error) == f"{message}, raised at app.py:7"
    assert shown(error.model_copy(update={"raised_at": ""})) == message
    long = error.model_copy(update={"raised_at": "", "message": "Loud failed: IndexError\n  record: 'a'\nTraceback"})
    assert shown(long) == "Loud failed: IndexError; `dagkit logs` prints the rest"


def test_other_names_lead_to_the_same_command_and_are_not_in_the_list_of_commands():
    context = click.Context(main)
    for alias, command in ALIASES.items():
        assert main.get_command(context, alias) is main.get_command(context, command)
    assert not ALIASES.keys() & set(main.list_commands(context))


def test_the_only_application_need_not_be_named_and_of_several_and_of_none_one_is_to_be_named(
    dagkit, folder, monkeypatch
):
    none = "Missing argument 'APP|PATH': no application was launched here, below .dagkit."
    assert (dagkit("status").code, none in dagkit("status").err) == (2, True)
    dagkit("new", "words", "--launch", **LONG_WINDOWS)
    monkeypatch.chdir(folder / "words")
    dagkit("launch", "app.py", "--once", "--reference", "--fresh", **LONG_WINDOWS)
    assert len(list(Path(".dagkit").iterdir())) == 2, "the earlier run is kept, and is no application"
    for command in ("status", "logs", "top --count 1", "ledger ls", "ledger show", "ledger verify"):
        assert dagkit(*command.split()).out == dagkit(*command.split(), ".dagkit/Words").out != ""
    shutil.copytree(".dagkit/Words", ".dagkit/Words.restarting")
    assert dagkit("status").code == 0, "what a killed restart left behind is no application"
    dagkit("new", "more")
    dagkit("launch", "more", "--once", "--reference")
    answer = dagkit("status")
    assert (answer.code, "launched here: .dagkit/More, .dagkit/Words." in answer.err) == (2, True)
    assert dagkit("status", "more").out.startswith("More: ")


# ---- `dagkit tap`


@pytest.fixture
def ticking(tmp_path):
    """An application that sends a number each second, for longer than any test takes."""
    yield from until_stopped(Running(tmp_path / "app", [(number,) for number in range(3600)]))


@pytest.mark.slow
def test_items_are_shown_until_the_limit_and_none_of_an_application_that_does_not_run(dagkit, ticking):
    place = str(ticking.folder)
    answer = dagkit("tap", place, "script", "--limit", "1")
    assert (answer.code, answer.err, answer.out[:7]) == (0, "", "window ")
    assert answer.out.rstrip().partition(": ")[2].isdecimal()
    document = json.loads(dagkit("tap", place, "times", "--limit", "1", "--json").out)
    assert document["window"] > 0
    assert [one["operator"] for one in document["items"]] == ["times"]
    dagkit("tap", place, "tims").fails(3, "there is no stream 'tims' [request-refused]")
    dagkit("stop", place)
    ticking.thread.join(within(30))
    assert dagkit("tap", place, "times").code == 8


@pytest.mark.trial
@pytest.mark.slow
def test_items_are_shown_until_the_application_ends(dagkit, ticking):
    stopping = threading.Timer(2, ticking.stop)
    stopping.start()
    answer = dagkit("tap", str(ticking.folder), "times")
    join(stopping, seconds=50)
    assert (answer.code, answer.err) == (0, "the application has ended\n")
    assert answer.out.startswith("window ")
