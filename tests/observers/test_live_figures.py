"""A launch in a notebook shows the figures of `dagkit top` below its cell, renewed at most each second."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from dagkit.compiler import compile_application
from dagkit.engine.record.run_events import Ended
from dagkit.engine.record.run_picture import RunPicture
from dagkit.observers.run_text import LiveFigures, in_notebook
from tests.engine.cast import numbers_collected
from tests.engine.record.launches import SetClock, first_snapshot
from tests.engine.record.test_run_picture import WINDOW
from tests.processes import run_program

ROOT = Path(__file__).parents[2]
IN_A_KERNEL = """
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

InteractiveShell.instance().kernel = "a kernel"

from dagkit.launching import Machine, launch
from tests.engine.cast import numbers_collected

with capture_output() as shown:
    launch(numbers_collected(((9,), (9,))), until="once", machine=Machine("reference"), path="app", durable=False)
first, *updates = shown.outputs
assert {output.transient["display_id"] for output in updates} == {first.transient["display_id"]}
print(updates[-1].data["text/plain"])
"""


@pytest.fixture
def run():
    return RunPicture(SetClock(), first_snapshot(), compile_application(numbers_collected(((9,),))).plan)


def test_the_figures_are_shown_each_second_and_at_the_end(run):
    shown: list[str] = []
    seconds = iter([0.0, 0.0, 0.1, 0.9, 1.0, 1.1, 1.2, 1.3])
    figures = LiveFigures(run, shown.append, lambda: next(seconds))
    for event in (*WINDOW, Ended(3)):
        run(event)
        figures(event)
    assert len(shown) == 3
    assert "App: starting" in shown[0]
    assert "window 3 committed" in shown[-1]


def test_outside_of_a_notebook_nothing_is_shown_and_ipython_is_not_imported(run, monkeypatch):
    before = "IPython" in sys.modules
    assert (list(in_notebook(run)), "IPython" in sys.modules) == ([], before)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))  # another thread has begun to import it
    assert [*in_notebook(run)] == []


@pytest.mark.slow
def test_in_a_kernel_one_display_is_renewed(tmp_path):
    pytest.importorskip("IPython", reason="IPython is not installed")
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{IN_A_KERNEL}"
    command = [sys.executable, "-c", program]
    printed = run_program(command, cwd=tmp_path)
    assert "window 2 committed" in printed.stdout
