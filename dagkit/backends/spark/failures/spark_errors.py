"""Convert errors of Spark to errors of dagkit, with the cause and a help text."""

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from dagkit.backends.spark.failures.causes import Cause, cause_of, is_death
from dagkit.backends.spark.failures.jobs import is_connect
from dagkit.backends.spark.failures.workers_python import PythonMismatched
from dagkit.engine.program.failures import WindowLost, WorkerDied
from dagkit.errors import DagkitError, RunFailure


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
        if not answers(spark):
            raise _ended(what, spark) from error
        cause = cause_of(error)
        if cause.has_other_python:
            raise PythonMismatched(f"{what}: {cause}") from error
        if cause.missing_module:  # another attempt at the window would fail in the same way
            raise RunFailure(f"{what}: {cause}", _help_for_missing(cause), code="worker-failed") from error
        if is_death(error):
            raise WorkerDied(f"{what}: {cause}") from error
        raise WindowLost(
            f"{what}: {cause}",
            "see the logs of Spark's executors; launch again to resume after the last committed window",
            code="spark-failed",
        ) from error


def answers(spark: SparkSession) -> bool:
    """Whether the Java process of a classic session still answers, or a Connect session is not known to have ended."""
    if is_connect(spark):
        return not (spark.is_stopped or _is_given_up(spark))  # type: ignore[attr-defined] # only Connect's have it
    try:
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
