"""Launching: where an application is kept, what ends it, and that what is there already stays."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

from dagkit import Config, Dag, DagContext, InputOperator, InputPort, Operator, OutputPort, State, Until
from dagkit.clock import SystemClock
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.points import Point
from dagkit.engine.reports.run_events import Committed, Ended, Resumed, RunEvent
from dagkit.engine.reports.status_file import DriverRuns, read_status
from dagkit.errors import DagkitError
from dagkit.launching import Machine, launch
from dagkit.ledger import Ledger, SequenceTaken
from dagkit.ledger.audit.verify import verify
from dagkit.testing import Crash, CrashAfter
from dagkit_operators import PartWriter
from tests.patience import within
from tests.processes import next_line, run_program

REFERENCE = Machine("reference")


class Numbers(InputOperator):
    """One number in each window, up to the last."""

    kind = "launching.numbers/1"
    output = OutputPort(int)
    last: int = 3
    sent = State(0)

    def emit_tuples(self) -> None:
        if self.sent < self.last:
            self.sent += 1
            self.output.emit(self.sent)


class Sum(Operator):
    """Adds up."""

    kind = "launching.sum/1"
    input = InputPort(int)
    total = State(0)

    def process(self, item: int) -> None:
        if item < 0:
            raise ValueError("no negative numbers")
        self.total += item


def summing(dag: Dag, conf: Config) -> None:
    dag.add_operator("Numbers", Numbers()) >> dag.add_operator("Sum", Sum())


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


def test_a_launch_goes_on_where_the_last_one_ended():
    seen: list[RunEvent] = []
    first = launch(summing, until="once", windows=2, machine=REFERENCE)
    second = launch(summing, until=Until.ONCE, machine=REFERENCE, observers=[seen.append])
    assert (first.window_id, second.window_id) == (2, 3)
    assert [type(each) for each in seen if isinstance(each, Resumed | Committed | Ended)] == [
        Resumed,
        Committed,
        Ended,
    ]


def test_a_crash_costs_the_open_window_and_nothing_else():
    with pytest.raises(Crash, match="after staged of window 2"):
        launch(summing, until="once", machine=REFERENCE, probe=CrashAfter(Point.STAGED, 2))
    launched = launch(summing, until="once", machine=REFERENCE)
    ledger = Ledger.open(launched.application_path)
    memory = json.loads(ledger.chain(launched.application).checkpoint() or b"")
    assert memory["state"]["Sum"] == [{"total": 6}]
    assert verify(ledger).is_valid


def test_a_second_launch_is_refused_while_one_runs_unless_it_takes_over():
    refused: list[DagkitError] = []

    def launch_again(event: RunEvent) -> None:
        if isinstance(event, Resumed):
            with pytest.raises(DriverRuns, match=f"process {os.getpid()} of") as raised:
                launch(summing, until="once", machine=REFERENCE)
            refused.append(raised.value)
            launch(summing, until="once", machine=REFERENCE, take_over=True)

    with pytest.raises(SequenceTaken):
        launch(summing, until="once", machine=REFERENCE, observers=[launch_again])
    assert [error.exit_code for error in refused] == [11]


def test_a_launch_leaves_how_it_ended():
    launched = launch(summing, until="once", machine=REFERENCE)
    status = read_status(Ledger.open(launched.application_path).store)
    assert status is not None
    assert (status.state, status.window, status.totals.windows, status.block) == ("stopped", 3, 3, 5)


def test_a_launch_returns_its_figures():
    launched = launch(summing, until="once", machine=REFERENCE)
    assert launched.status is not None
    assert (launched.status.state, launched.status.totals.windows, launched.outputs) == ("stopped", 3, {})
    assert [(each.name, each.sent, each.received) for each in launched.status.operators] == [
        ("Numbers", 3, 0),
        ("Sum", 0, 3),
    ]


def test_a_failure_names_the_operator_and_the_window():
    def draw(dag: Dag, conf: Config) -> None:
        dag.add_operator("Numbers", Negative()) >> dag.add_operator("Sum", Sum())

    with pytest.raises(OperatorFailed, match="Sum failed in window 1, slot 0: ValueError: no negative numbers"):
        launch(draw, until="once", machine=REFERENCE)


class Negative(Numbers):
    """Numbers below zero."""

    def emit_tuples(self) -> None:
        self.output.emit(-1)


ENDLESS = """
import sys, time
from dagkit import *
from dagkit.launching import Machine, launch
from dagkit.engine.reports.run_events import Committed

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
        time.sleep(60 if item > 3 and "lingers" in sys.argv else 0.02)

def draw(dag, conf):
    dag.add_operator("Ticks", Ticks()) >> dag.add_operator("Last", Last())

def tell(happening):
    if isinstance(happening, Committed):
        print(happening.window_id, flush=True)

launch(draw, machine=Machine("reference"), path="app", observers=[tell])
print("ended", flush=True)
"""


@pytest.fixture
def endless(request):
    """A launch that never ends by itself, in a process of its own, after its first windows."""
    arguments: list[str] = getattr(request, "param", [])
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "operators")])
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", ENDLESS, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
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
    assert endless.returncode == 0
    assert told.splitlines()[-1] == "ended"
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
    assert launch(summing, until="once", machine=REFERENCE).window_id == 3


STARTING = """
import os, signal, sys, threading
import pyspark
from dagkit.launching import Machine, launch
from tests.launching.test_launching import summing

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


def _interrupted_at(moment: str, *signals: signal.Signals) -> "subprocess.CompletedProcess[str]":
    """A launch that is interrupted then; it is over when no process holds its output any more, also not Java."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "operators")])
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", STARTING, moment, *(str(int(each)) for each in signals)],
        capture_output=True,
        text=True,
        check=False,
        timeout=within(50),
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("moment", ["java", "context"])
def test_an_interrupt_while_spark_starts_ends_it_before_its_first_window(moment):
    ended = _interrupted_at(moment, signal.SIGINT)
    assert (ended.returncode, ended.stdout) == (0, "window 0\n")
    assert "Traceback" not in ended.stderr


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("moment", ["java", "context"])
def test_a_second_interrupt_while_spark_starts_ends_it_at_once_and_java_with_it(moment):
    ended = _interrupted_at(moment, signal.SIGINT, signal.SIGTERM)
    assert (ended.returncode, ended.stdout) == (128 + signal.SIGTERM, "")
    assert "Traceback" not in ended.stderr


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.spark
def test_where_the_process_stays_after_a_second_interrupt_the_session_is_stopped_once_it_is_made():
    ended = _interrupted_at("stays", signal.SIGINT, signal.SIGTERM)
    assert (ended.returncode, ended.stdout) == (0, "stopped True\n")


UNUSED = """
import sys, threading
import pyspark
from dagkit.machine import Machine

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


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("moment", ["made", "starting"])
def test_a_session_that_a_launch_started_and_did_not_use_is_stopped(moment):
    run_program([sys.executable, "-c", UNUSED, moment], seconds=120)


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_that_is_there_is_used_and_stays(spark):
    launched = launch(summing, until="once", spark=spark)
    unasked = launch(summing, until="once", path="another")
    named = launch(summing, until="once", path="named", machine=Machine(master="local[2]"))
    with ThreadPoolExecutor(1) as pool:  # the active session is that of a thread
        elsewhere = pool.submit(launch, summing, until="once", path="elsewhere").result(within(120))
    assert [each.window_id for each in (launched, unasked, named, elsewhere)] == [3, 3, 3, 3]
    assert spark.range(3).count() == 3


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_elsewhere_is_not_taken_for_the_one_that_is_wanted(spark):
    with pytest.raises(DagkitError, match=r"has a Spark session at local\[2\], so it cannot start one at local\[1\]"):
        launch(summing, until="once", machine=Machine(master="local[1]"))
    with pytest.raises(DagkitError, match=r"has a Spark session with another spark\.speculation, so it cannot"):
        launch(summing, until="once", machine=Machine(settings={"spark.speculation": "true"}))
    assert spark.range(3).count() == 3


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.spark
def test_a_session_whose_context_was_stopped_is_none(tmp_path):
    program = """
from dagkit.backends.spark import local_session, running_session
local_session(1).sparkContext.stop()
assert running_session() is None
assert local_session(1).range(3).count() == 3
"""
    run_program([sys.executable, "-c", program], cwd=tmp_path, seconds=120)


@pytest.mark.parametrize(
    ("options", "raised"),
    [
        ({"until": "onec"}, "there is no until='onec'; did you mean 'once'?"),
        ({"reference": True}, "launch has no option 'reference'; did you mean machine=Machine('reference')?"),
        ({"frsh": True}, "launch has no option 'frsh'; did you mean 'fresh'?"),
    ],
    ids=["until", "reference", "another"],
)
def test_a_wrong_argument_is_answered_by_the_right_one(options, raised):
    with pytest.raises((TypeError, ValueError), match=re.escape(raised)):
        launch(summing, **options)  # type: ignore[arg-type] # the mistakes under test


def test_the_result_is_shown_in_a_line_with_what_was_done_and_where(tmp_path):
    first, again = (launch(summing, until="once", machine=REFERENCE, path=tmp_path, durable=False) for _ in range(2))
    assert (
        repr(first)
        == "<Launched tests.launching.test_launching, window 3; 3 windows, 0 B read, 0 B written to 0 files>"
    )
    assert repr(again).endswith("window 3; no new input since window 3>")


def writing(dag: Dag, conf: Config) -> None:
    dag.add_operator("Numbers", Numbers()) >> dag.add_operator("Writer", PartWriter(file_path="out", format=str))


def test_files_that_a_launch_leaves_incomplete_are_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stopped = launch(writing, windows=2, machine=REFERENCE, path="app", durable=False)
    assert (stopped.incomplete, list(Path("out").iterdir())) == (1, [])
    assert "; 1 file is not complete, so not visible; the next launch continues it, and one with " in repr(stopped)
    done = launch(writing, until="once", machine=REFERENCE, path="app", durable=False)
    assert (done.incomplete, len(list(Path("out").iterdir())), "complete" in repr(done)) == (0, 1, False)
