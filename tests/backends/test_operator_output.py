"""What operators print and log is in the log of the drivers, once, with the window and the operator."""

# ruff: noqa: T201 - printing is what is tested

import json
import logging
import os
import socket
import sys
import threading
from dataclasses import replace

import pytest

from dagkit import InputOperator, InputPort, Operator, OutputPort, Shutdown, State
from dagkit.api.running import Until
from dagkit.api.secrets import MASK
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program import operator_output
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.operator_output import MOST_REPORTED, LogPlace, SlotOutput, captured, muted
from dagkit.engine.run.loop import Loop
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from dagkit_operators import Filter, Items
from tests.backends.slots import InSlots
from tests.engine.cast import chain
from tests.patience import join, within

_log = logging.getLogger("author")
SECRET = "hidden-from-logs"  # noqa: S105 - the test looks for it


class Loud(Operator):
    kind = "tests.loud/1"
    stateless = True
    password: str = SECRET
    input = InputPort(str)

    def process(self, item: str) -> None:
        print("got", item, self.password)
        print("no end", file=sys.stderr, end="")
        _log.warning("%s is %s", item, "odd")
        _log.info("%s is even", item)

    def end_window(self) -> None:
        print(": the window ends", file=sys.stderr)


def strictly(item: str) -> bool:
    print(f"looking at {item}")
    if item == "c":
        raise RuntimeError(item)
    return True


@pytest.fixture(params=["reference", pytest.param("spark", marks=pytest.mark.slow)])
def machine(request):
    return Machine("reference") if request.param == "reference" else Machine(spark=request.getfixturevalue("spark"))


def lines_in(folder):
    """The event, the logger, the window, the operator and the message of each line of an operator."""
    lines = map(json.loads, (folder / "logs" / "driver.log").read_text().splitlines())
    return [
        (line["event"], line["logger"], line["window"], line["operator"], line["message"])
        for line in lines
        if line["event"] in ("printed", "logged") and "operator" in line
    ]


def test_lines_that_an_operator_prints_and_logs_are_in_the_log(tmp_path, machine, caplog):
    caplog.set_level(logging.INFO)
    launch(chain(items=Items(items=["a"]), loud=Loud()), until="once", machine=machine, path=tmp_path / "app")
    assert sorted(lines_in(tmp_path / "app")) == [
        ("logged", "author", 1, "loud", "a is even"),
        ("logged", "author", 1, "loud", "a is odd"),
        ("printed", "stderr", 1, "loud", "no end: the window ends"),
        ("printed", "stdout", 1, "loud", f"got a {MASK}"),
    ]


def test_the_search_for_a_failing_record_prints_nothing_again(tmp_path, machine):
    graph = chain(items=Items(items=["a", "b", "c", "d"]), strict=Filter(strictly))
    with pytest.raises(OperatorFailed, match="RuntimeError: c"):
        launch(graph, until="once", machine=machine, path=tmp_path / "app")
    of_strict = [line[-1] for line in lines_in(tmp_path / "app") if line[3] == "strict"]
    assert of_strict == ["looking at a", "looking at b", "looking at c"]


def output(folder, **options):
    (folder / "log").touch()
    place = LogPlace(str(folder / "log"), options.pop("host", socket.gethostname()))
    return SlotOutput(place, "app", 1, {}, str.upper, **options)


class Growing:
    def process(self) -> bytearray:
        buffer = bytearray(b"a")
        view = memoryview(buffer)
        print(len(view))
        del view
        buffer.extend(b"b")
        return buffer


def test_a_buffer_may_grow_after_a_line_was_printed_while_it_was_in_use(tmp_path):
    author = Growing()
    printing = output(tmp_path)
    printing.operators = {id(author): "author"}
    with captured(printing):
        assert author.process() == b"ab"
    assert '"operator": "author"' in (tmp_path / "log").read_text()


def test_streams_are_those_of_before_after_a_slot_and_keep_their_text(tmp_path, capsys):
    before = sys.stdout, sys.stderr
    with captured(output(tmp_path)):
        print("shown")
        with muted():
            print("again")
            _log.warning("again")
    print("after")
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().out == "shown\nafter\n"
    assert [json.loads(line)["message"] for line in (tmp_path / "log").read_text().splitlines()] == ["SHOWN"]


def test_a_slot_on_another_machine_appends_nothing_and_reports_some_lines(tmp_path):
    there = output(tmp_path, host="elsewhere")
    with captured(there):
        for number in range(MOST_REPORTED + 2):
            print("line", number)
    assert (tmp_path / "log").read_text() == ""
    messages = [json.loads(line)["message"] for line in there.reported]
    assert (messages[0], len(messages)) == ("LINE 0", MOST_REPORTED + 1)
    assert messages[-1] == "AND 2 MORE LINES, WHICH ARE IN THE STANDARD ERROR OF ITS EXECUTOR"


def test_the_driver_appends_the_lines_of_slots_on_other_machines_once_their_window_is_committed(tmp_path):
    compilation = compile_application(chain(items=Items(items=["a"]), loud=Loud()))
    log = tmp_path / "logs" / "driver.log"
    log.parent.mkdir()
    log.touch()
    settings = RunSettings(str(tmp_path), until=Until.ONCE)
    run = RunState(compilation, InSlots(compilation), Ledger(MemoryStore()), settings, observers=[])
    run.launch = replace(run.launch, log=LogPlace(str(log), "elsewhere"))
    Loop(run).run()
    assert ("printed", "stdout", 1, "loud", f"got a {MASK}") in lines_in(tmp_path)


class Looking(InputOperator):
    output = OutputPort(str)
    ended = State(False)

    def emit_tuples(self) -> None:
        print("looking")
        if self.ended:
            raise Shutdown
        self.ended = True
        self.output.emit("a")


def test_what_an_input_operator_prints_is_in_the_log(tmp_path):
    graph = chain(finds=Looking(), loud=Loud())
    launch(graph, until="once", machine=Machine("reference"), path=tmp_path / "app")
    assert ("printed", "stdout", 1, "finds", "looking") in lines_in(tmp_path / "app")


def test_a_process_that_is_forked_while_another_thread_begins_to_capture_can_capture():
    codes = []

    def fork():
        child = os.fork()
        if child == 0:
            os._exit(0 if operator_output._changing.acquire(timeout=within(1)) else 1)
        codes.append(os.waitpid(child, 0)[1])

    forking = threading.Thread(target=fork)
    with operator_output._changing:
        forking.start()
        forking.join(0.2)  # it waits for the lock
    join(forking)
    assert codes == [0]
