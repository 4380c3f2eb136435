"""A file's name writes nothing to a terminal but its characters: no escape sequence, no bell, no line of its own."""

import json
import os
import re
import socket
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dagkit.cli.terminal.output import Output
from dagkit.errors import DagkitError, printable
from dagkit.observers import named_observers
from tests.old_files import aged

NAME = "a\x1b]0;\x07\nforged: all is lost\r\x9b31m\u202e.txt"
SHOWN = r"a\u001b]0;\u0007\nforged: all is lost\r\u009b31m\u202e.txt"
CONTROLS = re.compile("[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u202e]|^forged", re.MULTILINE)

APPLICATION = f"""
from dagkit import Dag
from dagkit_operators import Items, MatchFiles, PartWriter, ReadFiles

FOLDER = {NAME!r}

def populate_dag(dag: Dag, conf) -> None:
    patterns = dag.add_operator("Patterns", Items[str](items=(FOLDER,)))
    match = dag.add_operator("Match", MatchFiles(continuously=True))
    read = dag.add_operator("Read", ReadFiles(parse=int))
    writer = dag.add_operator("Writer", PartWriter(file_path="output", format=str))
    patterns >> match >> read >> writer
"""


def check(answer):
    """All that was printed, without a control character."""
    printed = answer.out + answer.err
    assert not CONTROLS.findall(printed), repr(printed)
    return printed


@pytest.fixture
def application(folder, write):
    """An application that reads numbers from a folder of that name, in which there is a file of that name."""
    (folder / NAME).mkdir()
    (folder / NAME / NAME).write_text("1\n2\n")
    aged(folder / NAME / NAME)
    return write("app.py", APPLICATION).name


LAUNCH = ("launch", "app.py", "--once", "--reference", "--no-sync", "--path", "home")


def test_the_name_of_a_file_on_which_a_launch_fails_is_escaped(dagkit, application, folder):
    (folder / NAME / NAME).write_text("1\nx\n")
    aged(folder / NAME / NAME)
    answer = dagkit(*LAUNCH)
    assert answer.code == 7
    assert f"{SHOWN}/{SHOWN}: the line at byte 2 is rejected" in check(answer)


def test_names_in_a_ledger_are_escaped(dagkit, application, folder):
    check(dagkit(*LAUNCH, "-v"))
    assert SHOWN in check(dagkit("splits", "home", "--waiting"))
    answer = dagkit("splits", "home", "--waiting", "--json")
    check(answer)
    assert json.dumps(NAME)[1:-1] in json.dumps(answer.document)
    for verb in ("ls", "show", "verify"):
        check(dagkit("ledger", verb, "home"))
        answer = dagkit("ledger", verb, "home", "--json")
        check(answer)
        assert answer.document


@pytest.mark.parametrize("verb", ["validate", "plan", "explain", "config", "graph"])
def test_names_in_an_application_are_escaped(dagkit, application, verb):
    check(dagkit(verb, "app.py", "-v"))


@pytest.mark.slow
def test_names_in_warnings_are_escaped(process, application, folder):
    os.mkfifo(folder / NAME / "b\n\x1b")
    answer = process(*LAUNCH)
    assert answer.code == 0
    assert rf"{SHOWN}/b\n\u001b is a FIFO, and is skipped" in check(answer)


def test_words_of_others_are_escaped_and_keep_their_lines_and_our_colours_stay(capsys, monkeypatch):
    Output().failure(DagkitError("one\x1b[1m\n\ttwo\x07"))
    Output().message("three\x08")
    Output().result("four\x7f")
    printed = capsys.readouterr()
    assert (printed.err, printed.out) == ("one\\u001b[1m\n\ttwo\\u0007\nthree\\u0008\n", "four\\u007f\n")
    monkeypatch.setenv("FORCE_COLOR", "1")
    Output().failure(DagkitError("it is so [port-taken]\n  help: x\x1b[1m"))
    assert capsys.readouterr().err == "it is so \x1b[2m[port-taken]\x1b[0m\n\x1b[36m  help:\x1b[0m x\\u001b[1m\n"


def test_text_without_control_characters_is_itself():
    assert printable("a ä \N{SNOWMAN} \U0001f600 \\") == "a ä \N{SNOWMAN} \U0001f600 \\"
    assert printable("\udcff\u2028\n") == r"\udcff\u2028\n"


APP = """
from pydantic import SecretStr

from dagkit import *
from dagkit.errors import InputUnreadable
from dagkit_operators import Items

class Refusing(Operator):
    input = InputPort[str]()
    password: SecretStr = SecretStr("hunter2")
    login: SecretStr = SecretStr("hunter2")

    def process(self, item: str) -> None:
        raise InputUnreadable(f"cannot read {item}", f"let {item} be read")

    def teardown(self) -> None:
        raise OSError("cannot log hunter2 out")

class App(StreamingApplication):
    def populate_dag(self, dag, conf):
        dag.add_operator("Items", Items(items=("ftp://hunter2@host",))) >> dag.add_operator("Refusing", Refusing())
"""

LAUNCH_REFUSING = ("launch", "refusing.py", "--once", "--reference")


@pytest.fixture(autouse=True)
def _application(write):
    write("refusing.py", APP)


def test_a_failed_launch_prints_no_secret_as_text_as_a_document_and_as_lines_of_a_log(dagkit):
    text, in_json, in_lines = (dagkit(*LAUNCH_REFUSING, *options) for options in ((), ("--json",), ("--log", "json")))
    for answer in (text, in_json, in_lines):
        printed = answer.out + answer.err
        assert (answer.code, "cannot read ftp://**********@host" in printed, "hunter2" in printed) == (5, True, False)
    assert in_json.document["problem"] == "Refusing cannot read ftp://**********@host"
    assert in_json.document["help"] == "let ftp://**********@host be read"
    lines = {line["event"]: line for line in map(json.loads, in_lines.err.splitlines())}
    assert "OSError: cannot log ********** out" in lines["logged"]["exception"]
    assert lines["stopped"]["help"] == in_json.document["help"]


def test_the_command_that_launches_it_again_is_in_the_status_without_secrets(dagkit, folder, monkeypatch):
    installed = SimpleNamespace(name="noted", load=lambda: lambda: lambda _: None)
    monkeypatch.setattr(named_observers, "entry_points", lambda **_: [installed])
    (folder / "own.properties").write_text("dt.attr.APPLICATION_NAME = Own\n")
    secrets = ("-D", "dt.operator.Refusing.prop.login=hunter2", "-D", "dt.operator.Refusing.prop.password=hunter2")
    options = ("-c", "own.properties", *secrets, "-D", "dt.operator.Items.attr.MEMORY_MB=512", "--path", "my run")
    options += ("--observer", "noted", "--no-sync")
    assert dagkit(*LAUNCH_REFUSING, *options, "--fresh", "-q").code == 5
    assert "hunter2" not in (folder / "my run" / "status.json").read_text()
    masked = " ".join(f"'{option}'" if "=" in option else option for option in secrets).replace("hunter2", "*" * 10)
    (command,) = [line for line in dagkit("status", "my run").out.splitlines() if line.startswith("to launch it again")]
    assert command == (
        f"to launch it again: cd {folder} && dagkit launch refusing.py {masked} "
        "-D dt.operator.Items.attr.MEMORY_MB=512 -c own.properties --once --path 'my run' --reference --no-sync "
        "--observer noted"
    )


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


FAILING = """
from dagkit_operators import Items, Map

def failing(number: int) -> int:
    raise OSError("no")

def populate_dag(dag, conf):
    dag.add_operator("one", Items[int](items=(1,))) >> dag.add_operator("failing", Map(failing))
"""


def test_in_json_faults_warnings_a_window_that_failed_and_the_end_of_the_run_are_events(
    dagkit, disconnected, word_count, write
):
    answer = dagkit("launch", disconnected, "--once", "--reference", "--log", "json")
    (line,) = lines_of(answer)
    assert (answer.code, line["event"], line["level"], line["exit_code"]) == (3, "stopped", "error", 3)
    assert line["app"]
    assert line["diagnostics"]
    asked = ("--once", "--reference", "--log", "json", "-D", "dt.operator.split.prop.nonsense=1", "--allow-unknown")
    told = lines_of(dagkit("launch", word_count, *asked))
    assert [line["level"] for line in told if line["event"] == "diagnosed"] == ["warning"]
    write("failing.py", FAILING)
    answer = dagkit("launch", "failing.py", "--once", "--reference", "--log", "json")
    *_, failed, stopped = lines_of(answer)
    assert (failed["event"], failed["operator"], failed["message"]) == ("failed", "failing", "OSError: no")
    assert (answer.code, stopped["event"], stopped["exit_code"], stopped["app"]) == (7, "stopped", 7, "failing")
    assert "failing failed in window 1" in stopped["message"]
