"""How a launch reports its progress: metrics over HTTP, and lines of JSON."""

import json
import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families

SCRAPED = '''
import urllib.request
from pathlib import Path

from dagkit import InputOperator, InputPort, Operator, OutputPort, Shutdown, State, auto_metric

class Numbers(InputOperator):
    """Emits three numbers; once they are committed, looks at what is served."""

    output = OutputPort(int)
    port: int
    at = State(0)

    def emit_tuples(self) -> None:
        self.at += 1
        if self.at == 1:
            for number in (1, 2, 3):
                self.output.emit(number)
            return
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            Path("scraped.txt").write_bytes(answer.read())
        raise Shutdown

class Sink(Operator):
    """Its state lets no window, and no look, begin beside another window."""

    input = InputPort(int)
    received = State(0)
    largest = auto_metric(0, aggregators=[max])

    def process(self, item: int) -> None:
        self.received += 1
        self.largest = max(self.largest, item)

def populate_dag(dag, conf):
    dag.add_operator("numbers", Numbers(port=PORT)) >> dag.add_operator("sink", Sink())
'''


@pytest.fixture
def port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def lines_of(answer):
    return [json.loads(line) for line in answer.err.splitlines()]


def test_a_launch_serves_its_metrics_while_it_runs_and_in_json_every_line_on_stderr_is_an_event(
    dagkit, write, folder, port
):
    write("scraped.py", SCRAPED.replace("PORT", str(port)))
    asked = ("--until-idle", "--reference", "--metrics-port", str(port), "--log", "json", "--json")
    answer = dagkit("launch", "scraped.py", *asked)
    assert answer.document["schema"] == "dagkit.launch/1"
    told = [line for line in lines_of(answer) if line["event"] != "starting"]
    events = [line["event"] for line in told]
    assert events[:6] == ["printed", "resumed", "found", "started", "committed", "measured"]
    assert events[-1] == "ended"
    assert f"metrics at http://127.0.0.1:{port}/metrics" in str(told[0])
    assert all({"ts", "level", "logger", "app", "event"} <= line.keys() for line in told)
    assert told[5]["metrics"] == {"sink": {"largest": 3}}
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families((folder / "scraped.txt").read_text())
        for sample in family.samples
    }
    app = ("app", "scraped")
    passed = ("dagkit_tuples_total", app, ("direction", "in"), ("operator", "sink"), ("port", "input"))
    assert found[passed] == 3
    assert found["dagkit_windows_committed_total", app] == 1
    assert found["dagkit_user_largest", app, ("operator", "sink")] == 3


def test_an_address_without_a_port_is_wrong_usage(dagkit, word_count):
    dagkit("launch", word_count, "--metrics-address", "0.0.0.0").fails(2, "--metrics-port")  # noqa: S104 - refused


def test_in_json_faults_and_warnings_are_events_too(dagkit, disconnected, word_count):
    answer = dagkit("launch", disconnected, "--once", "--reference", "--log", "json")
    (line,) = lines_of(answer)
    assert (answer.code, line["event"], line["level"], line["exit_code"]) == (3, "stopped", "error", 3)
    assert line["app"]
    assert line["diagnostics"]
    asked = ("--once", "--reference", "--log", "json", "-D", "dt.operator.split.prop.nonsense=1", "--allow-unknown")
    told = lines_of(dagkit("launch", word_count, *asked))
    assert [line["level"] for line in told if line["event"] == "diagnosed"] == ["warning"]


FAILING = """
from dagkit_operators import Items, Map

def failing(number: int) -> int:
    raise OSError("no")

def populate_dag(dag, conf):
    dag.add_operator("one", Items[int](items=(1,))) >> dag.add_operator("failing", Map(failing))
"""


def test_in_json_a_window_that_failed_and_the_end_of_the_run_are_events(dagkit, write):
    write("failing.py", FAILING)
    answer = dagkit("launch", "failing.py", "--once", "--reference", "--log", "json")
    *_, failed, stopped = lines_of(answer)
    assert (failed["event"], failed["operator"], failed["message"]) == ("failed", "failing", "OSError: no")
    assert (answer.code, stopped["event"], stopped["exit_code"], stopped["app"]) == (7, "stopped", 7, "failing")
    assert "failing failed in window 1" in stopped["message"]
