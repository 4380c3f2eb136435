"""The cause of what fails in Spark, out of the traces of Python and Java."""

from contextlib import closing
from typing import Any

import pytest

from dagkit import InputPort, Operator
from dagkit.backends.spark import SparkBackend
from dagkit.backends.spark.failures.spark_errors import LONGEST, Cause, _death, cause_in, spark_errors
from dagkit.engine.program.failures import WindowLost
from dagkit.engine.worker.protocol import WindowTask
from dagkit.errors import RunFailure
from tests.backends.cast import Words, chain, sent

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
    line = _death(Cause(f"SparkException: Python worker exited unexpectedly{words}", "10.0.0.7"))
    assert line.startswith(f"a Python worker on 10.0.0.7 ended {shown}")
