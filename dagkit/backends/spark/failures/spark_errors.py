"""Convert errors of Spark to errors of dagkit, with the cause in a text that holds traces of both Python and Java."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from dagkit.backends.spark.failures.jobs import is_connect
from dagkit.backends.spark.failures.workers_python import PythonMismatched
from dagkit.engine.program.failures import WindowLost, WorkerDied
from dagkit.errors import DagkitError, RunFailure

LONGEST = 500
"""The largest number of characters of a cause in an error message."""
_TRACEBACK = "Traceback (most recent call last):"
_AFTER_PYTHON = re.compile(r"\s*$|\s*at |\t| ?SQLSTATE|PYTHONPATH was|(?:JVM|Driver) stacktrace")
"""The beginning of a line that follows the message of a Python exception."""
_LOST_TASK = re.compile(r"Lost task [^(]*\(TID \d+\) \((?P<host>\S+) executor (?P<executor>[^)]+)\): (?P<words>.*)")
_CAUSED_BY = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_CALLING = re.compile(r"An error occurred while calling [^\n]*\n(?:: )?")
_GRPC_DETAILS = re.compile(r'^\s*details = "(.*?)"?$', re.MULTILINE)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+.*")
_PACKAGE = re.compile(r"^(?:[\w$]+\.)+(?=[A-Z])")
_MISSING = re.compile(r"^(?:ModuleNotFoundError|ImportError): No module named '([^']+)'")

_DEATHS = re.compile("Python worker exited unexpectedly|ExecutorLostFailure|exited caused by one of the running tasks")
"""What Spark reports of a process that ended while it ran a task."""
_DEATH_OF_WORKER = re.compile(
    r"^SparkException: Python worker exited unexpectedly(?: \(crashed\))?[.:]?\s*"
    r"(?:Consider setting '.*faulthandler.*)?"
)
"""The same of a worker, with Spark's advice where `session_settings` could not follow it, as on a Connect server."""
_SYMPTOMS = ("EOFException", "SocketException", "ClosedChannelException")
"""Exceptions that Java raises when a worker has ended. They are no cause: the enclosing exception says more."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a Spark failure, in one line."""

    words: str
    """The type and message of the first exception."""
    host: str = ""
    """The host of the executor; empty for this process, or if Spark does not name one."""

    @property
    def missing_module(self) -> str:
        """The module that a worker could not import, if that is the cause."""
        found = _MISSING.match(self.words)
        return found[1] if found else ""

    @property
    def has_other_python(self) -> bool:
        """Whether the Python of a worker is of another version than that of the driver."""
        return "[PYTHON_VERSION_MISMATCH]" in self.words

    def __str__(self) -> str:
        return f"{self.words} (on {self.host})" if self.host else self.words


def cause_of(error: BaseException) -> Cause:
    """The cause of an error that Spark, its gateway to Java, or its connection raised."""
    words = cause_in(f"{type(error).__name__}: {error}").words
    hosts = (cause_in(str(link)).host for link in _chain(error))
    return Cause(words, next(filter(None, hosts), ""))


def is_death(error: BaseException) -> bool:
    """Whether a process that ran a task ended, or Spark says so."""
    return any(_DEATHS.search(str(link)) for link in _chain(error))


def cause_in(text: str) -> Cause:
    """The cause in the text of an error, which begins with the error's type."""
    lost = _LOST_TASK.search(text)
    host = lost["host"] if lost is not None and lost["executor"] != "driver" else ""
    words = " ".join((_python_words(text) or _java_words(text)).split())
    return Cause(words if len(words) <= LONGEST else f"{words[:LONGEST]}…", host)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and the errors that caused it."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or link.__context__


def _python_words(text: str) -> str:
    """The exception at the end of the last Python traceback, with all lines of its message; empty without one."""
    before, found, after = text.rpartition(_TRACEBACK)
    if not found:
        return ""
    # Java indents the traceback of a worker that does not start.
    line = before.rpartition("\n")[2]
    indent = line if line.isspace() else ""
    lines = [line.removeprefix(indent) for line in after.splitlines()[1:]]
    first = next((at for at, line in enumerate(lines) if line and not line[0].isspace()), None)
    if first is None:
        return ""
    words = [_without_package(lines[first])]
    for line in lines[first + 1 :]:
        if _AFTER_PYTHON.match(line):
            break
        words.append(line)
    return " ".join(words)


def _java_words(text: str) -> str:
    """The innermost exception with a message; the error itself if it begins with a Spark error class in brackets."""
    kind, _, message = text.partition(": ")
    details = _GRPC_DETAILS.search(message)
    message = details[1] if details else _CALLING.sub("", message.lstrip())
    first = _SQLSTATE.sub("", message.lstrip().partition("\n")[0].strip())
    if not first or first.startswith("["):
        return f"{kind}: {first}" if first else kind
    outer = first if _LOST_TASK.search(first) or _PACKAGE.match(first) else f"{kind}: {first}"
    found = [_within_task(words) for words in (outer, *_CAUSED_BY.findall(message))]
    messages = [words for words in found if words.partition(": ")[2].strip()]
    causes = [words for words in messages if not words.startswith(_SYMPTOMS)]
    return (causes or messages or found)[-1]


def _within_task(words: str) -> str:
    """The exception of a lost task if Spark reports one, else the text itself."""
    lost = _LOST_TASK.search(words)
    return _without_package(lost["words"] if lost else words)


def _without_package(words: str) -> str:
    return _PACKAGE.sub("", words)


def spark_ended(what: str) -> RunFailure:
    """The Java process of Spark has ended, or a Connect server has lost the session, so no further window can run."""
    return RunFailure(
        f"{what}: its Java process has ended",
        "the ledger is intact; launch again to resume after the last committed window. If Java ends again, give "
        "it more memory (spark.driver.memory)",
        code="spark-ended",
    )


def _session_ended(what: str, reason: str = "has started again or has closed the session") -> RunFailure:
    """A Spark Connect server no longer has the session, as after its restart, or does not answer."""
    return RunFailure(
        f"{what}: the Spark Connect server {reason}",
        "the ledger is intact; launch again to resume after the last committed window",
        code="spark-ended",
    )


@contextmanager
def spark_errors(what: str, spark: SparkSession) -> Iterator[None]:
    """Convert an error of Spark, or of the connection to it, to an error of dagkit whose message begins with `what`."""
    try:
        yield
    except DagkitError:
        raise
    except Exception as error:
        # First: if Java has ended, the error is only a consequence, such as a broken connection.
        if not answers(spark):
            raise _ended(what, spark) from error
        cause = cause_of(error)
        if cause.has_other_python:
            raise PythonMismatched(f"{what}: {cause}") from error
        # Not WindowLost: another attempt at the window would fail in the same way.
        if cause.missing_module:
            raise RunFailure(f"{what}: {cause}", _help_for_missing(cause), code="worker-failed") from error
        if is_death(error):
            raise WorkerDied(f"{what}: {_death(cause)}") from error
        raise WindowLost(
            f"{what}: {cause}",
            "see the logs of Spark's executors; launch again to resume after the last committed window",
            code="spark-failed",
        ) from error


def _death(cause: Cause) -> str:
    """The end of a process in plain words, with what it wrote last, such as the name of a signal."""
    words, found = _DEATH_OF_WORKER.subn("", cause.words)
    if not found:
        return str(cause)
    host = f" on {cause.host}" if cause.host else ""
    without = "without an exception; it was killed, ran out of memory, or an operator's code exited"
    return f"a Python worker{host} ended {f'with {words}' if words else without}"


def answers(spark: SparkSession) -> bool:
    """Whether the Java process of a classic session still answers, or a Connect session is not known to have ended."""
    if is_connect(spark):
        return not (spark.is_stopped or _is_given_up(spark))  # type: ignore[attr-defined] # only Connect's have it
    try:
        # Any call to Java shows whether it has ended, and this one changes nothing.
        spark.sparkContext.statusTracker()
    except (Py4JError, OSError, AttributeError):  # an AttributeError: the context was stopped, and has no Java
        return False
    return True


def _ended(what: str, spark: SparkSession) -> RunFailure:
    if not is_connect(spark):
        return spark_ended(what)
    return _session_ended(what, "does not answer") if _is_given_up(spark) else _session_ended(what)


def _is_given_up(spark: SparkSession) -> bool:
    from dagkit.backends.spark.failures.connect_retries import has_given_up  # noqa: PLC0415 - needs grpcio, as its sessions do

    return has_given_up(spark)


def _help_for_missing(cause: Cause) -> str:
    package = cause.missing_module.partition(".")[0]
    return f"install {package} for the Python of every worker, or keep operators and payloads from using it"
