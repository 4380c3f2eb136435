"""`dagkit launch` on a terminal shows the figures of the run below its messages, and renews them in place."""

import os
import sys
from datetime import timedelta

import pytest

from dagkit.cli.running import launch_progress
from dagkit.cli.running.launch_progress import Progress
from dagkit.cli.terminal.output import Output
from dagkit.compiler import compile_application
from dagkit.engine.record.run_events import Draining, Starting
from dagkit.engine.record.run_picture import RunPicture
from dagkit.observers.run_text import own_picture
from tests.cli.conftest import ROOT, on_terminal
from tests.engine.cast import numbers_collected
from tests.engine.record.launches import SetClock, first_snapshot
from tests.engine.record.test_run_picture import WINDOW

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


@pytest.mark.parametrize(
    ("output", "backend", "term", "is_terminal", "is_shown"),
    [
        (Output(), "spark", "xterm", True, True),
        (Output(), "spark", "xterm", False, False),
        (Output(), "spark", "dumb", True, False),
        (Output(), "spark", None, True, False),
        (Output(), "reference", "xterm", True, False),
        (Output(verbosity=1), "spark", "xterm", True, False),
        (Output(verbosity=-1), "spark", "xterm", True, False),
        (Output(as_json=True), "spark", "xterm", True, False),
        (Output(report=lambda *_, **__: None), "spark", "xterm", True, False),
    ],
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
