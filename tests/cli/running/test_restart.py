"""`dagkit restart`: says what it will do, asks, and refuses while the application runs."""

import os
import shutil
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from dagkit.api.running import Until
from dagkit.engine.record.run_events import Committed
from dagkit.launching import Machine, launch
from tests.engine.cast import Desk, numbers_collected
from tests.engine.parts.test_requests import multiplied
from tests.launching.test_restarting import KILLED
from tests.patience import within
from tests.processes import run_program


def run_numbers(looks, *observers):
    options = {"machine": Machine("reference"), "path": "app", "durable": False, "observers": observers}
    launch(numbers_collected(looks), {"dt.attr.APPLICATION_NAME": "Numbers"}, until="once", **options)


@pytest.fixture
def place(tmp_path):
    """The folder of an application that committed three windows."""
    run_numbers(((9,), (9,), (9,)))
    return str(tmp_path / "app")


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_document_names_both_folders(dagkit, place):
    document = dagkit("restart", place, "--from", "2", "--yes", "--json").document
    assert Path(document.pop("kept")).is_dir()
    windows = {"window": 2, "last": 3, "withdrawn": [], "missing": []}
    assert document == {"schema": "dagkit.restart/1", "application": "Numbers", "place": place, **windows}


@pytest.mark.slow
def test_a_running_application_is_not_restarted(dagkit, tmp_path):
    codes = []

    def restart_it(event):
        if isinstance(event, Committed):
            codes.append(dagkit("restart", str(tmp_path / "app"), "--from", "1", "--yes").code)

    run_numbers(((9,),), restart_it)
    assert codes == [11]


APPLICATION = """
from dagkit import Config, Dag
from tests.engine.parts.test_requests import multiplied

def populate_dag(dag: Dag, conf: Config) -> None:
    multiplied()(dag, conf)
"""


@contextmanager
def running(home):
    """An application that runs in its own thread until the block ends."""
    loop = Desk(home, multiplied(), until=Until.STOPPED).loop()
    driver = threading.Thread(target=loop.run)
    driver.start()
    try:
        yield loop
    finally:
        loop.stop()
        driver.join(within(30))
        assert not driver.is_alive()


def test_properties_and_counts_are_set_in_an_application_that_runs(dagkit, tmp_path):
    path = str(tmp_path / "app")
    with running(tmp_path) as loop:
        answer = dagkit("set", path, "times", "factor", "10")
        assert (answer.out[:31], answer.out[-16:]) == ("times.factor is 10 from window ", " on (before: 1)\n")
        assert loop.run_state.program.operators["times"][0].factor == 10
        assert dagkit("set", path, "times", "Fac_Tor", "10").out.startswith("times.factor is 10 from window ")
        assert dagkit("set", path, "times", "FACTOR", "11", "--json").document["name"] == "factor"
        refused = dagkit("set", path, "times", "faktor", "10")
        refused.fails(3, "did you mean 'factor'?")
        assert refused.err.splitlines()[0].count("[") == 1, "it has one code"
        answer = dagkit("set", path, "times", "PARTITIONER", "StatelessPartitioner:3")
        assert answer.out.startswith("times.PARTITIONER is StatelessPartitioner(partition_count=3) from window ")
        assert answer.out.endswith(" on (before: None)\n")
        document = dagkit("scale", "set", path, "times", "2", "--json").document
        assert (document["operator"], document["before"], document["after"]) == ("times", 3, 2)
        assert len(loop.run_state.program.operators["times"]) == 2
        dagkit("scale", "set", path, "script", "3").fails(3, "script runs once, on the driver")
    first, _ = dagkit("scale", "explain", path).out.splitlines()
    assert first.endswith(" times, by asked: 1 becomes 3: PARTITIONER was set by hand")


VERBS = [("set", "app", "times", "factor", "10"), ("scale", "set", "app", "times", "3")]


def asked(place, verb):
    """The arguments of a request to an application in a place."""
    return [str(place) if part == "app" else part for part in verb]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("seconds", ["1e400", "inf", "nan", "1e9", "-1"])
def test_a_wait_has_an_end(dagkit, tmp_path, verb, seconds):
    dagkit(*asked(tmp_path / "app", verb), "--wait", seconds).fails(2, "Invalid value for '--wait'")


@pytest.mark.parametrize("verb", VERBS)
def test_an_application_that_has_ended_or_is_not_there_is_not_waited_for(dagkit, tmp_path, verb):
    launch(multiplied(), path=tmp_path / "app", until="once", machine=Machine("reference"))
    ended = dagkit(*asked(tmp_path / "app", verb), "--wait", "1")
    ended.fails(8, " is not running; its last launch: stopped [request-unanswered]\n")
    assert not (tmp_path / "app" / "requests").exists()
    answer = dagkit(*asked("nowhere", verb))
    answer.fails(6, "APP is a file, a folder with app.py")
    assert answer.err.endswith("; or give the folder that it runs in, which holds a ledger\n")


def test_given_the_application_a_value_is_tried_before_anybody_is_asked(dagkit, write, tmp_path):
    Desk(tmp_path, multiplied()).run()
    app = write("app.py", APPLICATION).name
    given = ("--path", str(tmp_path / "app"), "--wait", "0")
    assert dagkit("set", app, "times", "factor", "2", *given).code == 8
    wrong = dagkit("set", app, "times", "factor", "many", *given)
    wrong.fails(3, "times.factor cannot be 'many'")
    assert wrong.err.splitlines()[0].endswith(" was not changed: 1 problem")


def test_without_an_answer_the_request_is_withdrawn_and_a_plain_secret_is_not_sent(dagkit, tmp_path):
    Desk(tmp_path, multiplied()).run()
    place = ("set", str(tmp_path / "app"), "times")
    dagkit(*place, "password", "sesame", "--wait", "0").fails(3, "times.password is a secret")
    assert not (tmp_path / "app" / "requests").exists()
    unanswered = "no running driver answered within 0 s, and the request was withdrawn"
    dagkit(*place, "factor", "10", "--wait", "0").fails(8, unanswered)
    assert list((tmp_path / "app" / "requests").iterdir()) == []
