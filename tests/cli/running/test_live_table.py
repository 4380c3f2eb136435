"""`dagkit launch` on a terminal shows the figures of the run below its messages, and renews them in place."""

import os
import re
import signal
import socket
import subprocess
import sys
from datetime import timedelta
from urllib.request import urlopen

import pytest

from dagkit.cli.running import launch_progress
from dagkit.cli.running.launch_progress import Progress
from dagkit.cli.terminal.output import Output
from dagkit.compiler import compile_application
from dagkit.engine.record.run_events import Draining, Starting
from dagkit.engine.record.run_picture import RunPicture
from dagkit.observers.run_text import own_picture
from tests.cases import rows
from tests.cli.conftest import ROOT, on_terminal
from tests.engine.cast import numbers_collected
from tests.engine.record.launches import SetClock, first_snapshot
from tests.engine.record.test_run_picture import WINDOW
from tests.patience import within
from tests.processes import limited, next_line

HEADER = "partitions  received/s"
ON_A_TERMINAL = """
import sys
from dagkit.cli.running.launch_progress import live_table
from dagkit.compiler import compile_application
from dagkit.engine.record.run_events import Committed
from dagkit.launching import Machine, launch_compiled
from tests.engine.cast import numbers_collected

def note(event):
    if isinstance(event, Committed):
        print("a message after window", event.window_id, file=sys.stderr)
        print("a result")

compilation = compile_application(numbers_collected(((9,), (9,))))
launch_compiled(compilation, Machine("reference"), windows=2, path="app", observers=[note], watch=live_table)
print("the summary")
"""


def launched(folder, *, stdout=None):
    """What the program shows on a terminal, with `^` for each line that is taken back."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'operators'}", "TERM": "xterm", "COLUMNS": "120"}
    shown = on_terminal([sys.executable, "-c", ON_A_TERMINAL], folder, environment, stdout=stdout)
    return shown.decode().replace("\r", "").replace("\x1b[2K\x1b[1A", "^")


@pytest.mark.slow
def test_the_figures_are_below_the_messages_and_vanish_at_the_end(tmp_path):
    shown = launched(tmp_path)
    assert shown.index("a message after window 1") < shown.rindex(HEADER)
    assert shown.count("a result\n") == 2
    assert shown.endswith("the summary\n")
    assert "\x1b[?25h" in shown, "the cursor is visible again"
    last = shown[shown.rindex(HEADER) :]
    assert last.count("^") + last.count("\x1b[1A") >= 5, "the table is taken back"


@pytest.mark.slow
def test_results_in_a_file_are_not_shown_on_the_terminal(tmp_path):
    with (tmp_path / "results").open("w") as file:
        shown = launched(tmp_path, stdout=file.fileno())
    assert "a message after window 1" in shown
    assert "a result" not in shown
    assert (tmp_path / "results").read_text() == "a result\na result\nthe summary\n"


@rows(
    "output, backend, term, is_terminal, is_shown",
    (Output(), "spark", "xterm", True, True),
    (Output(), "spark", "xterm", False, False),
    (Output(), "spark", "dumb", True, False),
    (Output(), "spark", None, True, False),
    (Output(), "reference", "xterm", True, False),
    (Output(verbosity=1), "spark", "xterm", True, False),
    (Output(verbosity=-1), "spark", "xterm", True, False),
    (Output(as_json=True), "spark", "xterm", True, False),
    (Output(report=lambda *_, **__: None), "spark", "xterm", True, False),
)
def test_a_table_is_shown_on_a_terminal(monkeypatch, *, output, backend, term, is_terminal, is_shown):
    monkeypatch.setattr(launch_progress, "is_terminal", lambda _: is_terminal)
    monkeypatch.delenv("TERM", raising=False)
    if term is not None:
        monkeypatch.setenv("TERM", term)
    assert launch_progress.has_live_table(output, backend) is is_shown


def test_a_table_replaces_the_lines_about_windows(capsys, monkeypatch):
    monkeypatch.setattr("dagkit.cli.running.launch_progress._SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr("dagkit.cli.running.launch_progress._SECONDS_WITHOUT_WINDOW", 0.0)
    printed = []
    for has_table in (False, True):
        progress = Progress(Output(), {}, {}, has_table=has_table)
        for event in (Starting("starting Spark"), *WINDOW, Draining(3)):
            progress(event)
        printed.append(capsys.readouterr().err.splitlines())
    with_lines, with_table = printed
    assert with_table[0] == "starting Spark"
    assert with_table[-1].startswith("stopping:")
    assert any(line.startswith("window 3: ") for line in with_lines)
    assert not any(line.startswith(("window ", "at work: ")) for line in with_table)


def test_the_own_terminal_shows_the_step_of_the_start_and_then_the_figures():
    run = RunPicture(SetClock(), first_snapshot(), compile_application(numbers_collected(((9,),))).plan)
    first = run.snapshot()

    def seen():
        return own_picture(run.snapshot().model_copy(update={"at": first.since + timedelta(seconds=4)}))

    assert seen() == "App: starting, launched 4 s ago"
    run(Starting("sending code"))
    assert seen() == "App: sending code, launched 4 s ago"
    for event in WINDOW:
        run(event)
    assert "operator" in seen()
    assert first.driver.user not in seen(), "the process is known"


ADDRESS = re.compile(r"console: (http://127\.0\.0\.1:\d+/\?token=[\w-]{43})$", re.MULTILINE)


@pytest.fixture
def ran(dagkit, word_count, write):
    """The folder of an application that ran."""
    write("input/a.txt", "one two two\n")
    assert dagkit("launch", word_count, "--once", "--reference", "--path", "run").code == 0
    return "run"


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_console_of_a_folder_answers_until_it_is_interrupted(ran, folder, number):
    """Also where it was started with interrupts ignored, as a shell starts programs in the background."""
    command = [sys.executable, "-W", "error", "-m", "dagkit.cli", "console", ran]
    path = f"{ROOT}:{ROOT / 'operators'}"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    console = subprocess.Popen(  # noqa: S603 - this very Python
        command, cwd=folder, env={"PYTHONPATH": path, "HOME": str(folder)}, stdout=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, before)
    with limited(console, 50):
        try:
            (address,) = ADDRESS.findall(next_line(console))
            with urlopen(address) as page:  # noqa: S310 - our own server
                assert b"<title>dagkit console</title>" in page.read()
            console.send_signal(number)
            assert console.wait(timeout=within(30)) == 0
        finally:
            console.kill()


def test_without_a_ledger_and_with_wrong_options_there_is_no_console(dagkit, word_count):
    folder = "give the folder that it runs in, which holds a ledger"
    dagkit("console", "nowhere").fails(6, "application-missing", folder)
    dagkit("console", word_count).fails(6, "chain-missing")
    for wrong in ("--console=70000", "--console=x", "--allow-control"):
        assert dagkit("launch", wrong, word_count).code == 2


def test_a_launch_with_a_console_prints_its_address(dagkit, word_count):
    launched = dagkit("launch", "--console", word_count, "--once", "--reference")
    assert (launched.code, bool(ADDRESS.search(launched.err))) == (0, True)


def test_a_taken_port_is_one_sentence_before_anything_runs(dagkit, ran, word_count):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = dagkit("launch", word_count, "--reference", f"--console={taken.getsockname()[1]}")
    assert refused.code == 5
    assert "the console cannot be served at 127.0.0.1" in refused.err
    assert "address-taken" in refused.err
