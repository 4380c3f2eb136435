"""The cause of what fails in Spark, out of the traces of Python and Java."""

import _strptime
import functools
import gc
import importlib
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from typing import Any, NoReturn

import pytest

from dagkit import InputPort, Operator
from dagkit.backends.reference import ReferenceBackend
from dagkit.backends.reference.child import run_in_child
from dagkit.backends.spark import SparkBackend
from dagkit.backends.spark.failures.spark_errors import LONGEST, Cause, _death, cause_in, spark_errors
from dagkit.engine.program.failures import WindowLost, WorkerDied
from dagkit.engine.worker.protocol import Answer, WindowTask
from dagkit.errors import RunFailure
from dagkit.observers.run_log import LOG, logged
from tests.backends.cast import Words, chain, sent
from tests.patience import join, within
from tests.processes import limited, next_line

ABORTED = "SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: "
LOST = f"{ABORTED}Lost task 0.3 in stage 1.0 (TID 3) (10.0.0.7 executor 2): "
LOST_HERE = f"{ABORTED}Lost task 0.0 in stage 1.0 (TID 3) (10.0.0.7 executor driver): "
TEXTS = {
    "the words of a worker's Python": (
        """PythonException:
  An exception was thrown from the Python worker. Please see the stack trace below.
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "worker.py", line 4207, in invoke_udf
    func, profiler = read_udfs(
                     ^^^^^^^^^^
ModuleNotFoundError: No module named 'orders'
 SQLSTATE: 38000""",
        Cause("ModuleNotFoundError: No module named 'orders'"),
    ),
    "the exception that was raised last, with all lines of its message": (
        """PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "own.py", line 1, in f
KeyError: 1

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "own.py", line 2, in f
own.package.Refused: two
lines: of words

JVM stacktrace:
org.apache.spark.api.python.PythonException
\tat org.apache.spark.api.python.BasePythonRunner""",
        Cause("Refused: two lines: of words"),
    ),
    "what keeps a worker from starting, and on which host": (
        f"""Py4JJavaError: An error occurred while calling o136.getResult.
Caused by: org.apache.spark.{LOST}org.apache.spark.SparkException:
Error from python worker:
  Traceback (most recent call last):
    File "daemon.py", line 129, in manager
      listen_sock.bind(socket_path)
  OSError: AF_UNIX path too long
PYTHONPATH was:
  /opt/spark
org.apache.spark.SparkException: EOFException occurred while reading the port number from pyspark.daemon's stdout
\tat org.apache.spark.api.python.PythonWorkerFactory""",
        Cause("OSError: AF_UNIX path too long", "10.0.0.7"),
    ),
    "the innermost exception of Java's that has a message": (
        f"""Py4JJavaError: An error occurred while calling o136.getResult.
Caused by: org.apache.spark.{LOST}java.lang.reflect.InvocationTargetException
\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)
Caused by: java.lang.NumberFormatException: For input string: "abc"
Caused by: java.lang.IllegalStateException
\t... 37 more

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler""",
        Cause('NumberFormatException: For input string: "abc"', "10.0.0.7"),
    ),
    "not what Java sees of a worker that ended": (
        f"""{LOST_HERE}org.apache.spark.SparkException: Python worker exited unexpectedly.
\tat org.apache.spark.api.python.BasePythonRunner
Caused by: java.net.SocketException: Connection reset
\tat java.base""",
        Cause("SparkException: Python worker exited unexpectedly."),
    ),
    "why an executor was lost": (
        f"{LOST}ExecutorLostFailure (executor 2 exited) Reason: Killed by YARN.\nDriver stacktrace:",
        Cause("ExecutorLostFailure (executor 2 exited) Reason: Killed by YARN.", "10.0.0.7"),
    ),
    "no host where the driver runs the tasks": (
        f"{LOST_HERE}java.lang.OutOfMemoryError: Java heap space",
        Cause("OutOfMemoryError: Java heap space"),
    ),
    "an error that Spark has a name for": (
        "ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1) ==\nid / 0",
        Cause("ArithmeticException: [DIVIDE_BY_ZERO] Division by zero."),
    ),
    "what a connection says in its details": (
        """SparkConnectGrpcException: <_InactiveRpcError of RPC that terminated with:
\tdetails = "failed to connect to all addresses"
>""",
        Cause("SparkConnectGrpcException: failed to connect to all addresses"),
    ),
    "the type of what has no words": ("TimeoutError: ", Cause("TimeoutError")),
    "no more than can be read": (f"ValueError: {'x' * 9999}", Cause(f"ValueError: {'x' * (LONGEST - 12)}…")),
}


@pytest.mark.parametrize(("text", "cause"), TEXTS.values(), ids=TEXTS)
def test_a_cause_is(text, cause):
    assert cause_in(text) == cause


@pytest.mark.parametrize(
    ("words", "module"),
    [
        ("ModuleNotFoundError: No module named 'orders.of_today'", "orders.of_today"),
        ("ImportError: cannot import name 'orders'", ""),
        ("ValueError: ModuleNotFoundError: No module named 'orders'", ""),
    ],
)
def test_a_cause_knows_which_module_is_missing(words, module):
    assert Cause(words).missing_module == module


class Imports:
    """Needs a module, wherever it is read, that is nowhere."""

    def __reduce__(self) -> tuple[Any, ...]:
        return __import__, ("orders_of_today",)


class Needs(Operator):
    words = InputPort(str)
    needed: Any = None

    def process(self, word: str) -> None: ...


def test_a_module_that_workers_lack_is_named_and_the_window_is_not_tried_again(session):
    compilation = chain(words=Words(), needs=Needs(needed=Imports()))
    with (
        closing(SparkBackend(compilation, session)) as backend,
        pytest.raises(RunFailure, match=r"\[worker-failed\]") as raised,
    ):
        backend.run(WindowTask(7, sent(compilation, ["a"])))
    assert str(raised.value) == (
        "Spark failed in window 7: ModuleNotFoundError: No module named 'orders_of_today' [worker-failed]\n"
        "  help: install orders_of_today for the Python of every worker, or keep operators and payloads from using it"
    )


@pytest.mark.parametrize(
    ("column", "cause"),
    [
        ("id / 0", "ArithmeticException: [DIVIDE_BY_ZERO] Division by zero. "),
        ("raise_error('no such order')", "SparkRuntimeException: [USER_RAISED_EXCEPTION] no such order"),
    ],
)
def test_what_fails_in_java_is_reported_in_its_own_words(session, column, cause):
    with pytest.raises(WindowLost, match=r"\[spark-failed\]") as raised, spark_errors("it failed", session):
        session.range(1).selectExpr(column).toArrow()
    assert str(raised.value).startswith(f"it failed: {cause}")
    assert "SQLSTATE" not in str(raised.value)


def test_of_javas_exceptions_the_innermost_is_reported(spark):
    with pytest.raises(WindowLost, match=r"\[spark-failed\]") as raised, spark_errors("it failed", spark):
        spark.range(1).selectExpr("java_method('java.lang.Integer', 'parseInt', 'abc')").toArrow()
    assert raised.value.problem == 'it failed: NumberFormatException: For input string: "abc"'


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("", "without an exception; it was killed, ran out of memory, or an operator's code exited"),
        (" (crashed). Consider setting 'x.faulthandler.enabled' to 'true' for the traceback.", "without an exception"),
        (" (crashed): Segmentation fault", "with Segmentation fault"),
    ],
)
def test_the_death_of_a_worker_is_reported_without_the_advice_of_spark(words, shown):
    said = _death(Cause(f"SparkException: Python worker exited unexpectedly{words}", "10.0.0.7"))
    assert said.startswith(f"a Python worker on 10.0.0.7 ended {shown}")


ANSWER = Answer((), ())


def ended_by(number: int) -> NoReturn:
    os.kill(os.getpid(), number)
    raise AssertionError("the signal ends this process")


def raised(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize(
    ("work", "error", "text"),
    [
        (lambda: raised(MemoryError("full")), WorkerDied, "with status 1: MemoryError: full"),
        (lambda: raised(SystemExit(3)), WorkerDied, "with status 1: SystemExit: 3"),
        (lambda: ended_by(signal.SIGKILL), WorkerDied, "by SIGKILL"),
        (lambda: ended_by(signal.SIGSEGV), WorkerDied, "by SIGSEGV: Fatal Python error: Segmentation fault"),
        (lambda: raised(WindowLost("the machine is gone")), WindowLost, "the machine is gone"),
    ],
)
def test_a_child_that_ends_or_that_a_signal_ends_has_died_and_a_failure_is_raised_as_it_is(work, error, text):
    with pytest.raises(error, match=text):
        run_in_child(work, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_for_the_driver_does_not_end_a_child_not_even_right_after_the_fork(monkeypatch, number):
    fork = os.fork

    def forked() -> int:
        child = fork()
        if child == 0:
            os.kill(os.getpid(), number)
        return child

    def signalled() -> Answer:
        os.kill(os.getpid(), number)
        return ANSWER

    monkeypatch.setattr(os, "fork", forked)
    assert run_in_child(signalled, 1) == ANSWER


@pytest.mark.parametrize("answer", [lambda: raised(AssertionError("a defect")), lambda: lambda: None])
def test_a_defect_is_no_death_for_which_records_are_searched(answer):
    with pytest.raises(RuntimeError, match=r"a window failed in a child process(?s:.*)(a defect|pickle)"):
        run_in_child(answer, 1)


def test_the_child_does_not_use_connections_of_the_driver():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(RuntimeError, match="Broken pipe"):
            run_in_child(lambda: ours.send(b"of the child"), 1)
        ours.send(b"of the driver")
        assert theirs.recv(100) == b"of the driver"


class Waits(Operator):
    """Waits for ever, and reports the process that does."""

    words = InputPort(str)
    began: int = 0

    def process(self, word: str) -> None:
        os.write(self.began, f"{os.getpid()}\n".encode())
        select.select([], [], [])


def test_a_backend_that_is_closed_ends_its_child():
    reading, writing = os.pipe()
    compilation = chain(words=Words(), waits=Waits(began=writing))
    backend = ReferenceBackend(compilation)
    task = WindowTask(7, sent(compilation, ["a"])).trying(isolated=True)
    with os.fdopen(reading) as began, ThreadPoolExecutor(1) as threads:
        running = threads.submit(backend.run, task)
        child = int(began.readline())
        backend.close()
        try:
            with pytest.raises(WorkerDied, match="by SIGKILL"):
                running.result(within(20))
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
    os.close(writing)


def test_the_child_prints_where_the_driver_does_also_to_a_socket():
    """As services of systemd do."""
    ours, theirs = socket.socketpair()
    before = os.dup(2)
    os.dup2(theirs.fileno(), 2)
    try:
        run_in_child(lambda: os.write(2, b"of the child") and ANSWER, 1)
    finally:
        os.dup2(before, 2)
        os.close(before)
    with ours, theirs:
        assert ours.recv(100) == b"of the child"


def test_what_a_child_prints_is_printed_once(monkeypatch):
    reading, writing = os.pipe()

    def prints() -> Answer:
        sys.stdout.write("of the child\n")
        return ANSWER

    with os.fdopen(reading) as printed:
        with os.fdopen(writing, "w") as stdout:
            monkeypatch.setattr(sys, "stdout", stdout)
            sys.stdout.write("of the driver\n")
            run_in_child(prints, 1)
        assert printed.read() == "of the driver\nof the child\n"


@contextmanager
def in_the_middle_of_writing(write: Callable[[str], object], reading: int, writing: int) -> Iterator[None]:
    """A thread that waits within `write`, since the pipe is full. It is read half a second later, to `of the child`."""

    def read_all() -> None:
        written = b""
        while b"of the child" not in written:
            written += os.read(reading, 1 << 16)

    writer = threading.Thread(target=write, args=("x" * (1 << 17),))
    writer.start()
    while select.select([], [writing], [], 0)[1]:
        pass
    reader = threading.Timer(0.5, read_all)
    reader.daemon = True  # if the child does not write, it waits for ever
    reader.start()
    yield
    join(writer, reader)
    os.close(reading)


def test_a_child_prints_although_a_thread_of_the_driver_was_printing_at_the_fork(monkeypatch):
    reading, writing = os.pipe()

    def prints() -> Answer:
        signal.alarm(20)  # ends a child that waits for ever
        sys.stderr.write("of the child")
        sys.stderr.flush()
        return ANSWER

    with os.fdopen(writing, "w") as stderr, in_the_middle_of_writing(stderr.write, reading, writing):
        monkeypatch.setattr(sys, "stderr", stderr)
        assert run_in_child(prints, 1) == ANSWER


def test_the_driver_does_not_wait_for_a_process_that_the_child_leaves_behind():
    reading, writing = os.pipe()

    def leaves() -> NoReturn:
        if os.fork() == 0:
            os.write(writing, str(os.getpid()).encode())
            select.select([], [], [], within(20))
            os._exit(0)
        ended_by(signal.SIGKILL)

    with pytest.raises(WorkerDied, match="by SIGKILL"):
        run_in_child(leaves, 1)
    os.close(writing)
    left = int(os.read(reading, 100))
    assert not select.select([reading], [], [], 0)[0], "it has ended"
    os.kill(left, signal.SIGKILL)
    os.close(reading)


class Ends:
    """Garbage that ends each process but its own when it is collected."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.itself = self

    def __del__(self) -> None:
        if os.getpid() != self.process:
            os._exit(1)


@pytest.mark.parametrize("at_the_fork", [False, True])
def test_garbage_of_the_driver_is_not_collected_in_a_child_not_even_right_after_the_fork(monkeypatch, at_the_fork):
    fork = os.fork

    def forked() -> int:
        child = fork()
        if child == 0 and gc.isenabled():
            gc.collect()
        return child

    def collects() -> Answer:
        gc.collect()
        return ANSWER

    if at_the_fork:
        monkeypatch.setattr(os, "fork", forked)
    Ends()
    assert run_in_child(collects, 1) == ANSWER
    assert gc.isenabled()


@pytest.mark.slow
def test_a_child_writes_to_the_log_although_a_thread_of_the_driver_wrote_to_it_at_the_fork(tmp_path):
    log, logger = tmp_path / LOG, logging.getLogger("dagkit.test_child")
    log.parent.mkdir()
    os.mkfifo(log)
    reading = os.open(log, os.O_RDWR)

    def writes() -> Answer:
        signal.alarm(20)  # ends a child that waits for ever
        logger.warning("of the child")
        return ANSWER

    with logged(str(tmp_path), "app"), in_the_middle_of_writing(logger.warning, reading, reading):
        assert run_in_child(writes, 1) == ANSWER


def test_a_thread_that_sets_up_logging_gets_the_locks_of_handlers_although_another_one_forks(tmp_path):
    """As `logging.config.dictConfig` does, which has the lock of `logging` meanwhile."""
    began, ends, gets = threading.Event(), threading.Event(), list[bool]()

    def sets_up() -> None:
        lock = logging.getLogger().handlers[-1].lock
        with logging._lock:
            began.set()
            ends.wait(0.2)  # the other one is at the fork then
            gets.append(lock.acquire(timeout=within(1)))
        lock.release()

    forking = threading.Thread(target=run_in_child, args=(lambda: ANSWER, 1))
    setting_up = threading.Thread(target=sets_up)
    with logged(str(tmp_path), "app"):
        setting_up.start()
        assert began.wait(within(30))
        forking.start()
        join(setting_up, forking)
    assert gets == [True]


_DRIVER = """
import os, time
from dagkit.backends.reference import ReferenceBackend
from dagkit.backends.reference.child import run_in_child

def work():
    print(os.getpid(), flush=True)
    time.sleep(600)

run_in_child(work, 1)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_child_ends_with_a_driver_that_is_killed():
    driver = subprocess.Popen([sys.executable, "-c", _DRIVER], stdout=subprocess.PIPE, text=True)  # noqa: S603
    with limited(driver), driver.stdout as output:
        assert int(next_line(driver)) != driver.pid
        driver.kill()
        assert select.select([output], [], [], within(60))[0], "the pipe that the child inherited is closed"
        assert output.read() == ""


IMPORTED_SLOWLY = """
import threading
import tests.backends.test_causes as waits
waits.BEGAN.set()
waits.CONTINUES.wait()
"""
BEGAN, CONTINUES = threading.Event(), threading.Event()


@pytest.fixture
def imported_slowly(tmp_path, monkeypatch):
    """The name of a module that a thread of this process is importing until CONTINUES is set."""
    name = "imported_slowly"
    (tmp_path / f"{name}.py").write_text(IMPORTED_SLOWLY)
    monkeypatch.syspath_prepend(tmp_path)
    importing = threading.Thread(target=importlib.import_module, args=(name,))
    importing.start()
    assert BEGAN.wait(within(30))
    yield name
    CONTINUES.set()
    join(importing, seconds=30)
    del sys.modules[name]
    BEGAN.clear()
    CONTINUES.clear()


def test_a_child_imports_a_module_although_a_thread_of_the_driver_was_importing_it(imported_slowly, monkeypatch):
    forks = []

    def forked(fork=os.fork) -> int:
        child = fork()
        if child:
            forks.append(child)
            CONTINUES.set()
        return child

    def imports() -> Answer:
        signal.alarm(20)  # ends a child that waits for ever
        importlib.import_module(imported_slowly)
        return ANSWER

    monkeypatch.setattr(os, "fork", forked)
    assert run_in_child(imports, 1) == ANSWER
    assert len(forks) > 1


@pytest.mark.usefixtures("imported_slowly")
def test_a_child_does_not_wait_for_an_import_without_an_end(monkeypatch):
    monkeypatch.setattr("dagkit.backends.reference.child._LONGEST_IMPORT_SECONDS", 0)
    monkeypatch.setattr("dagkit.backends.reference.child._LASTING", set())
    assert [run_in_child(lambda: ANSWER, window) for window in (1, 2)] == [ANSWER, ANSWER]


def test_a_child_computes_a_cached_property_although_a_thread_of_the_driver_was_computing_it():
    began, continues = threading.Event(), threading.Event()

    class Computed:
        @functools.cached_property
        def in_driver_and_child(self) -> Answer:
            if not began.is_set():
                began.set()
                continues.wait(within(60))
            return ANSWER

    def computes() -> Answer:
        signal.alarm(20)  # ends a child that waits for ever
        return Computed().in_driver_and_child

    computing = threading.Thread(target=lambda: Computed().in_driver_and_child)
    computing.start()
    assert began.wait(within(30))
    try:
        assert run_in_child(computes, 1) == ANSWER
    finally:
        continues.set()
        join(computing)


def test_a_child_uses_a_module_although_a_thread_of_the_driver_had_the_lock_of_the_module():
    def parses() -> Answer:
        signal.alarm(20)  # ends a child that waits for ever
        time.strptime("2026", "%Y")
        return ANSWER

    held, continues = threading.Event(), threading.Event()

    def holds() -> None:
        with _strptime._cache_lock:  # type: ignore[attr-defined] # which each call of `strptime` takes
            held.set()
            continues.wait(within(60))

    holding = threading.Thread(target=holds)
    holding.start()
    assert held.wait(within(30))
    try:
        assert run_in_child(parses, 1) == ANSWER
    finally:
        continues.set()
        join(holding)
