"""Launching: where an application is kept, what ends it, and that what is there already stays."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import PrivateAttr

from dagkit import Config, Context, Dag, DagContext, InputOperator, InputPort, Operator, OutputPort, Shutdown, Until
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import newest_checkpoint
from dagkit.engine.record.run_events import Committed, Draining, Ended, Resumed, RunEvent, Starting
from dagkit.engine.record.status_file import read_status
from dagkit.errors import DagkitError, RunFailure
from dagkit.ground.clock import SystemClock
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger, SequenceTaken
from dagkit.testing import Crash, CrashAfter, FakeClock
from dagkit_operators import Items, Map, PartWriter, SumByKey
from tests.engine.cast import chain
from tests.launching.cast import LAST, Numbers, summed, summing
from tests.patience import within
from tests.processes import next_line, run_program

REFERENCE = Machine("reference")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_it_is_kept_under_its_own_name_unless_it_says_where(tmp_path):
    def draw(dag: Dag, conf: Config) -> None:
        summing(dag, conf)
        dag.set_attribute(DagContext.APPLICATION_PATH, "elsewhere")

    named = launch(summing, {"dt.attr.APPLICATION_NAME": "Adding up"}, until="once", machine=REFERENCE)
    told = launch(draw, until="once", machine=REFERENCE)
    given = launch(draw, until="once", machine=REFERENCE, path=tmp_path / "given")
    assert [Path(each.application_path) for each in (told, given)] == [tmp_path / "elsewhere", tmp_path / "given"]
    assert Path(named.application_path).parent == tmp_path / ".dagkit"


def test_an_observer_that_raises_before_the_run_receives_no_more_events():
    launch(summing, until="once", machine=REFERENCE)
    events: list[RunEvent] = []

    def failing(event: RunEvent) -> None:
        events.append(event)
        raise ValueError

    launch(summing, until="once", machine=REFERENCE, observers=[failing], fresh=True)
    assert [type(event) for event in events] == [Starting]


def test_a_launch_goes_on_where_the_last_one_ended():
    seen: list[RunEvent] = []
    first = launch(summing, until="once", windows=2, machine=REFERENCE)
    second = launch(summing, until=Until.ONCE, machine=REFERENCE, observers=[seen.append])
    assert (first.window_id, second.window_id) == (2, LAST)
    seen_types = [type(each) for each in seen if isinstance(each, Resumed | Committed | Ended)]
    assert seen_types == [Resumed, Committed, Committed, Ended]


def test_a_crash_costs_the_open_window_and_nothing_else():
    with pytest.raises(Crash, match="after staged of window 2"):
        launch(summing, until="once", machine=REFERENCE, probe=CrashAfter(Point.STAGED, 2))
    launch(summing, until="once", machine=REFERENCE)
    assert summed() == 10


RUNS = (
    rf"is already running: process {os.getpid()} of .* since .*\n  help: stop it with `dagkit stop \S+`; only if that"
)


def test_a_second_launch_is_refused_while_one_runs_unless_it_takes_over():
    refused: list[DagkitError] = []

    def launch_again(event: RunEvent) -> None:
        if isinstance(event, Resumed):
            with pytest.raises(RunFailure, match=RUNS) as raised:
                launch(summing, until="once", machine=REFERENCE)
            refused.append(raised.value)
            launch(summing, until="once", machine=REFERENCE, take_over=True)

    with pytest.raises(SequenceTaken):
        launch(summing, until="once", machine=REFERENCE, observers=[launch_again])
    assert [error.exit_code for error in refused] == [11]


def test_a_launch_leaves_how_it_ended_and_returns_its_figures():
    launched = launch(summing, until="once", machine=REFERENCE)
    kept = read_status(Ledger.open(launched.application_path).store)
    assert (kept.state, kept.window, kept.totals.windows, kept.block) == ("stopped", LAST, LAST, LAST + 2)
    status = launched.status
    assert (status.state, status.totals.windows, launched.outputs) == ("stopped", LAST, {})
    figures = [(each.name, each.sent, each.received) for each in status.operators]
    assert figures == [("Numbers", LAST, 0), ("Sum", 0, LAST)]


ENDLESS = """
import sys, time
from dagkit import *
from dagkit.launching import Machine, launch
from dagkit.engine.record.run_events import Committed

class Ticks(InputOperator):
    output = OutputPort(int)
    sent = State(0)
    def emit_tuples(self):
        self.sent += 1
        self.output.emit(self.sent)

class Last(Operator):
    input = InputPort(int)
    seen = State[list[int]](list)
    def process(self, item):
        self.seen.append(item)
        time.sleep(36000 if item > 3 and "lingers" in sys.argv else 0.02)

def draw(dag, conf):
    dag.add_operator("Ticks", Ticks()) >> dag.add_operator("Last", Last())

def tell(happening):
    if isinstance(happening, Committed):
        print(happening.window_id, flush=True)

launch(draw, machine=Machine("reference"), path="app", observers=[tell])
print("ended", flush=True)
"""


ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "operators")])}


@pytest.fixture
def endless(request):
    """A launch that never ends by itself, in a process of its own, after its first windows."""
    command = [sys.executable, "-c", ENDLESS, *getattr(request, "param", [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)  # noqa: S603 - our own
    while next_line(process).strip() != "3":
        assert process.poll() is None, "it runs"
    yield process
    process.kill()
    process.wait(within(120))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_after_the_window(endless, number):
    endless.send_signal(number)
    told, _ = endless.communicate(timeout=within(120))
    ledger = Ledger.open("app")
    (name,) = {*ledger.names()} - {"Ticks"}
    memory = json.loads(ledger.chain(name).checkpoint() or b"")
    assert (endless.returncode, told.splitlines()[-1]) == (0, "ended")
    assert memory["state"]["Last"] == [{"seen": list(range(1, memory["window"] + 1))}]


@pytest.mark.slow
@pytest.mark.parametrize("endless", [["lingers"]], indirect=True, ids=["in the midst of a window"])
def test_a_second_interrupt_ends_it_at_once(endless):
    endless.send_signal(signal.SIGINT)
    endless.send_signal(signal.SIGTERM)
    told, _ = endless.communicate(timeout=within(120))
    assert endless.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert "ended" not in told


class Interrupting(SystemClock):
    """Interrupts this process when it is first asked for the time, which is long before there is a loop."""

    is_done = False

    def now(self) -> datetime:
        if not self.is_done:
            self.is_done = True
            signal.raise_signal(signal.SIGINT)
        return super().now()


def test_an_interrupt_before_the_loop_ends_it_before_its_first_window():
    before = signal.getsignal(signal.SIGINT)
    launched = launch(summing, machine=REFERENCE, clock=Interrupting())
    assert launched.window_id == 0
    assert signal.getsignal(signal.SIGINT) is before
    assert launch(summing, until="once", machine=REFERENCE).window_id == LAST


def test_a_signal_that_a_program_around_python_handles_is_left_to_it(tmp_path):
    program = """
import ctypes, os, signal, sys
library = ctypes.CDLL(None)
library.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
library.signal(signal.SIGTERM, ctypes.cast(library.abort, ctypes.c_void_p))
del sys.modules["_signal"]
import _signal  # Python looks at the handlers again, as when such a program starts it

from dagkit.launching import Machine, launch
from tests.launching.cast import summing

print("window", launch(summing, until="once", machine=Machine("reference")).window_id, flush=True)
os.kill(os.getpid(), signal.SIGTERM)
"""
    command = [sys.executable, "-c", program]
    ended = run_program(command, env=ENVIRONMENT, cwd=tmp_path, check=False, seconds=50)
    assert (ended.returncode, ended.stdout) == (-signal.SIGABRT, f"window {LAST}\n"), ended.stderr


STARTING = """
import os, signal, sys, threading
import pyspark
from dagkit.launching import Machine, launch
from tests.launching.cast import summing

def interrupt(*_):
    for each in sys.argv[2:]:
        os.kill(os.getpid(), int(each))

def on_java(event, arguments):
    if event == "subprocess.Popen" and "spark-submit" in str(arguments):
        interrupt()

def on_context(self, *arguments):
    begin(self, *arguments)
    interrupt()

begin = pyspark.SparkContext._do_init
if sys.argv[1] == "java":
    sys.addaudithook(on_java)
else:
    pyspark.SparkContext._do_init = on_context
try:
    print("window", launch(summing, machine=Machine(cores=1)).window_id, flush=True)
except SystemExit:
    if sys.argv[1] != "stays":
        raise
    for each in threading.enumerate():
        if each.name == "dagkit-session":
            each.join()
    print("stopped", pyspark.SparkContext._active_spark_context is None, flush=True)
"""


BOTH = signal.SIGINT, signal.SIGTERM


@pytest.mark.trial
@pytest.mark.spark
@pytest.mark.parametrize(
    ("moment", "signals", "code", "printed"),
    [
        ("java", [signal.SIGINT], 0, "window 0\n"),
        ("context", [signal.SIGINT], 0, "window 0\n"),
        ("java", BOTH, 128 + signal.SIGTERM, ""),
        ("context", BOTH, 128 + signal.SIGTERM, ""),
        ("stays", BOTH, 0, "stopped True\n"),
    ],
)
def test_an_interrupt_while_spark_starts_ends_it_before_its_first_window_and_a_second_one_at_once(
    moment, signals, code, printed
):
    """It is over when no process holds its output any more, also not Java; where it stays, the session is stopped."""
    command = [sys.executable, "-c", STARTING, moment, *(str(int(each)) for each in signals)]
    ended = run_program(command, env=ENVIRONMENT, check=False, seconds=50)
    assert (ended.returncode, ended.stdout) == (code, printed)
    assert "Traceback" not in ended.stderr


UNUSED = """
import sys, threading
import pyspark
from dagkit.runs.machine import Machine

def wait():
    for each in threading.enumerate():
        if each.name == "dagkit-session":
            each.join()

with Machine(cores=1).with_spark_starting():
    if sys.argv[1] == "made":
        wait()
        assert pyspark.SparkContext._active_spark_context is not None
wait()
assert pyspark.SparkContext._active_spark_context is None
"""


STOPPED = """
from dagkit.backends.spark import local_session, running_session
local_session(1).sparkContext.stop()
assert running_session() is None
assert local_session(1).range(3).count() == 3
"""


@pytest.mark.trial
@pytest.mark.spark
@pytest.mark.parametrize(
    "program",
    [[UNUSED, "made"], [UNUSED, "starting"], [STOPPED]],
    ids=["made in vain", "started in vain", "without a context"],
)
def test_a_session_that_a_launch_started_and_did_not_use_is_stopped_and_one_whose_context_was_stopped_is_none(program):
    run_program([sys.executable, "-c", *program], seconds=120)


def test_a_session_that_is_there_is_used_and_stays(spark):
    named = launch(summing, until="once", path="named", machine=Machine(master="local[2]"))
    with ThreadPoolExecutor(1) as pool:  # the active session is that of a thread
        elsewhere = pool.submit(launch, summing, until="once", path="elsewhere").result(within(120))
    assert [each.window_id for each in (named, elsewhere)] == [LAST] * 2
    assert spark.range(3).count() == 3


def test_a_session_elsewhere_is_not_taken_for_the_one_that_is_wanted(spark):
    with pytest.raises(DagkitError, match=r"has a Spark session at local\[2\], so it cannot start one at local\[1\]"):
        launch(summing, until="once", machine=Machine(master="local[1]"))
    with pytest.raises(DagkitError, match=r"has a Spark session with another spark\.speculation, so it cannot"):
        launch(summing, until="once", machine=Machine(settings={"spark.speculation": "true"}))
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    ("options", "raised"),
    [
        ({"until": "onec"}, "there is no until='onec'; did you mean 'once'?"),
        ({"reference": True}, "launch has no option 'reference'; did you mean machine=Machine('reference')?"),
        ({"frsh": True}, "launch has no option 'frsh'; did you mean 'fresh'?"),
        ({"spark": "a session", "machine": REFERENCE}, "launch takes spark or machine, not both"),
    ],
)
def test_a_wrong_argument_is_answered_by_the_right_one(options, raised):
    with pytest.raises((TypeError, ValueError), match=re.escape(raised)):
        launch(summing, **options)


def test_the_result_is_shown_in_a_line_with_what_was_done_and_where(tmp_path):
    first, again = (launch(summing, until="once", machine=REFERENCE, path=tmp_path, durable=False) for _ in range(2))
    figures = "window 4; 4 windows, 4 items read, nothing written"
    assert repr(first) == f"<Launched tests.launching.cast, {figures}>"
    assert repr(again).endswith("window 4; no new input since window 4>")


def test_files_that_a_launch_leaves_incomplete_are_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writing = chain(Numbers=Numbers(), Writer=PartWriter(file_path="out", format=str))
    stopped = launch(writing, windows=2, machine=REFERENCE, path="app", durable=False)
    assert (stopped.incomplete, list(Path("out").iterdir())) == (1, [])
    assert "; 1 file is not complete, so not visible; the next launch continues it, and one with " in repr(stopped)
    done = launch(writing, until="once", machine=REFERENCE, path="app", durable=False)
    assert (done.incomplete, len(list(Path("out").iterdir())), "complete" in repr(done)) == (0, 1, False)


class Lingers(Operator):
    """Interrupts the driver at each number, and is not done with the number before the launch has ended."""

    input = InputPort(int)
    received: ClassVar[list[int]] = []
    has_ended: ClassVar[threading.Event] = threading.Event()

    def process(self, item: int) -> None:
        self.received.append(item)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        assert self.has_ended.wait(within(30))


def test_an_interrupt_ends_a_launch_on_the_reference_between_two_records_if_its_window_takes_too_long():
    clock = FakeClock()

    def observe(event: RunEvent) -> None:
        if isinstance(event, Draining):
            clock.advance(seconds=60)
        elif isinstance(event, Ended):
            Lingers.has_ended.set()

    pair = chain(Pair=Items[int](items=(1, 2)), Lingers=Lingers())
    launched = launch(pair, machine=REFERENCE, clock=clock, observers=[observe])
    assert (Lingers.received, launched.window_id) == ([1], 0)


class OnePair(InputOperator):
    """Sends a pair, and ends."""

    output = OutputPort[tuple[str, int]]()

    def emit_tuples(self) -> None:
        self.output.emit(("a", 1))
        raise Shutdown


def test_a_launch_until_it_is_stopped_warns_of_outputs_that_send_only_when_all_is_processed(tmp_path, caplog):
    def finals(dag: Dag, conf: Config) -> None:
        items, sums = (
            dag.add_operator("Items", OnePair()),
            dag.add_operator("Sums", SumByKey()),
        )
        items >> sums
        sums.finals >> dag.add_operator("Writer", PartWriter(file_path=str(tmp_path / "out"), format=str))

    launch(finals, until="stopped", path=tmp_path / "stopped", machine=REFERENCE)
    (warning,) = {record.getMessage() for record in caplog.records if "sends only after" in record.getMessage()}
    assert warning.startswith("Sums.finals sends only after all input is processed")
    caplog.clear()
    launch(finals, until="once", path=tmp_path / "once", machine=REFERENCE)
    assert "sends only after" not in caplog.text


def _wait(connection: Connection) -> None:
    connection.send("begun")
    connection.recv()


class Terminates(Operator):
    """Forks a process, as multiprocessing does, and ends it by SIGTERM, as `Pool.terminate` does."""

    kind = "test.terminates/1"
    input = InputPort(int)
    output = OutputPort(int)

    def process(self, item: int) -> None:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        with ours, theirs:
            child = context.Process(target=_wait, args=(theirs,))
            child.start()
            ours.recv()  # Python forgets a signal that comes while a process begins
            child.terminate()
            child.join(within(10))
            child.kill()  # unless it has ended
            child.join(within(10))
        self.output.emit(child.exitcode)


@pytest.mark.parametrize(
    "conf", [{}, {"dt.attr.RECORD_TIMEOUT_MILLIS": "600000"}], ids=["in the driver", "in a child of the driver"]
)
def test_a_process_that_an_operator_forks_ends_when_it_is_terminated(conf):
    writer = PartWriter(file_path="codes", format=str)
    draw = chain(One=Items[int](items=(1,)), Ended=Terminates(), Writer=writer)
    launch(draw, conf, until="once", machine=REFERENCE)
    assert Path("codes/part-00000-00000").read_text() == f"{-signal.SIGTERM}\n"


class Exits(Operator):
    """Ends its process, as a function that was written for a command line may do."""

    kind = "test.exits/1"
    input = InputPort(int)
    at: str = "process"

    def process(self, item: int) -> None:
        if self.at == "process":
            sys.exit(0)

    def end_window(self) -> None:
        if self.at == "end_window":
            sys.exit(0)


@pytest.mark.parametrize("at", ["process", "end_window"])
def test_an_operator_that_exits_fails_the_launch(at):
    draw = chain(One=Items[int](items=(1,)), Exits=Exits(at=at))
    with pytest.raises(OperatorFailed, match="Exits failed in window 1, slot 0: SystemExit: 0"):
        launch(draw, until="once", machine=REFERENCE)


class FindsAndExits(InputOperator):
    kind = "test.finds-and-exits/1"
    output = OutputPort[int]()
    at: str = "emit_tuples"
    in_background: bool = False
    _context: Context | None = PrivateAttr(default=None)

    def setup(self, context: Context) -> None:
        self._context = context
        self._exit("setup")

    def emit_tuples(self) -> None:
        self.output.emit(1)
        if self.in_background:
            self._context.in_background(lambda: self._exit("background")).result()
        self._exit("emit_tuples")
        raise Shutdown

    def end_window(self) -> None:
        self._exit("end_window")

    def teardown(self) -> None:
        sys.exit(5)

    def _exit(self, callback: str) -> None:
        if callback == self.at:
            sys.exit(4)


@pytest.mark.parametrize("at", ["setup", "emit_tuples", "background", "end_window"])
def test_an_input_operator_that_exits_fails_the_launch_and_nothing_of_its_window_is_committed(at, tmp_path):
    finds = FindsAndExits(at=at, in_background=at == "background")
    draw = chain(Finds=finds, Lines=Map(str), Write=PartWriter(file_path=tmp_path / "out"))
    with pytest.raises(OperatorFailed, match="Finds failed in window 1, on the driver: SystemExit: 4"):
        launch(draw, until="once", machine=REFERENCE, path=tmp_path / "app", durable=False)
    assert list((tmp_path / "out").iterdir()) == []
    assert newest_checkpoint(Ledger.open(tmp_path / "app")).window == 0


def test_a_second_signal_ends_the_process_although_code_of_an_operator_runs(tmp_path):
    program = """
import os, signal
from dagkit import InputOperator, OutputPort
from dagkit.launching import Machine, launch
from dagkit_operators import Map

class Finds(InputOperator):
    output = OutputPort[int]()

    def emit_tuples(self):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)

def draw(dag, conf):
    dag.add_operator("Finds", Finds()) >> dag.add_operator("Map", Map(str))

launch(draw, machine=Machine("reference"))
"""
    command = [sys.executable, "-c", program]
    ended = run_program(command, env=ENVIRONMENT, cwd=tmp_path, check=False, seconds=50)
    assert ended.returncode == 128 + signal.SIGTERM
