"""`dagkit set` and `dagkit scale set`: a running application is asked, and answers."""

import threading
from contextlib import contextmanager

import pytest

from dagkit.api.running import Until
from dagkit.launching import launch
from dagkit.runs.machine import Machine
from tests.engine.cast import Desk
from tests.engine.parts.test_requests import multiplied
from tests.patience import within

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
    unanswered = "no running driver answered within 0 s, and nothing was changed"
    dagkit(*place, "factor", "10", "--wait", "0").fails(8, unanswered)
    assert list((tmp_path / "app" / "requests").iterdir()) == []
