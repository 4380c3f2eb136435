"""`dagkit restart`: says what it will do, asks, and refuses while the application runs."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from dagkit.engine.record.run_events import Committed
from dagkit.launching import Machine, launch
from tests.engine.cast import numbers_collected
from tests.launching.test_restarting import KILLED
from tests.processes import run_program

pytestmark = pytest.mark.slow


def run_numbers(looks, *observers):
    options = {"machine": Machine("reference"), "path": "app", "durable": False, "observers": observers}
    launch(numbers_collected(looks), {"dt.attr.APPLICATION_NAME": "Numbers"}, until="once", **options)


@pytest.fixture
def place(tmp_path):
    """The folder of an application that committed three windows."""
    run_numbers(((9,), (9,), (9,)))
    return str(tmp_path / "app")


def test_it_says_what_it_will_do_and_does_it_but_not_without_yes(dagkit, place):
    answer = dagkit("restart", place, "--from", "1")
    assert (answer.code, answer.err.splitlines()[-1]) == (2, "nothing was changed: --yes restarts without asking")
    assert [path.name for path in Path(place).parent.glob("app*")] == ["app"]
    answer = dagkit("restart", place, "--from", "1", "--yes")
    assert answer.err.splitlines() == [
        "Numbers will resume after window 1: what windows 2 to 3 processed is processed again",
        "  its folder is renamed to app.TIME and kept",
    ]
    assert answer.out.startswith("Numbers resumes after window 1; the earlier run is in ")
    dagkit("restart", place, "--from", "1", "--yes").fails(3, "window 1 is the last one [restart-refused]\n")


PARTS = """
from dagkit import Dag, InputOperator, OutputPort, State
from dagkit_operators import Map, PartWriter

class Numbers(InputOperator):
    kind = "test.restarted-numbers/1"
    output = OutputPort(int)
    sent = State(0)

    def emit_tuples(self):
        if self.sent < 3:
            self.sent += 1
            self.output.emit(self.sent)

def populate_dag(dag: Dag, conf) -> None:
    writer = PartWriter(file_path="out", file_name="{window}/{partition}-{number}", rotation_windows=1)
    dag.add_operator("Numbers", Numbers()) >> dag.add_operator("Text", Map(str)) >> dag.add_operator("W", writer)
"""


@pytest.mark.gate(1)
@pytest.mark.parametrize("target", [".dagkit/parts", "parts.py"])
def test_the_command_that_the_message_names_finishes_a_killed_restart(dagkit, write, folder, target):
    write("parts.py", PARTS)
    step, states = 0, set()
    while True:
        assert dagkit("launch", "parts.py", "--fresh", "--reference", "--once", "--no-sync").code == 0
        killed = [sys.executable, "-c", KILLED, str(folder / ".dagkit" / "parts"), str(step)]
        path = os.pathsep.join(filter(None, sys.path))
        code = run_program(killed, check=False, env={**os.environ, "PYTHONPATH": path}, seconds=50).returncode
        if code == 0:
            break
        is_away = not (folder / ".dagkit" / "parts").exists()
        if is_away:
            asked = dagkit("status", target)
            assert (asked.code, asked.err.count(f"`dagkit restart {target} --from WINDOW`")) == (6, 1)
        assert len([line for line in dagkit("ls").out.splitlines() if "restarting" in line]) == is_away
        answer = dagkit("restart", target, "--from", "1", "--yes")
        assert (answer.code, answer.out.partition(";")[0]) == (0, "parts resumes after window 1")
        assert sorted(str(file.relative_to("out")) for file in Path("out").rglob("*") if file.is_file()) == ["1/0-0"]
        states.add((is_away, "was killed between its steps" in answer.err))
        shutil.rmtree("out")
        step += 1
    assert states == {(False, False), (True, True), (False, True)}


def test_the_document_names_both_folders(dagkit, place):
    document = dagkit("restart", place, "--from", "2", "--yes", "--json").document
    assert Path(document.pop("kept")).is_dir()
    windows = {"window": 2, "last": 3, "withdrawn": [], "missing": []}
    assert document == {"schema": "dagkit.restart/1", "application": "Numbers", "place": place, **windows}


def test_a_running_application_is_not_restarted(dagkit, tmp_path):
    codes = []

    def restart_it(event):
        if isinstance(event, Committed):
            codes.append(dagkit("restart", str(tmp_path / "app"), "--from", "1", "--yes").code)

    run_numbers(((9,),), restart_it)
    assert codes == [11]
