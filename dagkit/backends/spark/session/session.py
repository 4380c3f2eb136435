"""Spark sessions: find the running one of this process, or start one locally, at a master or with Spark Connect."""

import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dagkit.backends.spark.failures.jobs import is_connect
from dagkit.backends.spark.failures.spark_errors import answers, cause_of, spark_ended
from dagkit.backends.spark.failures.workers_python import check_python
from dagkit.backends.spark.session import class_archive
from dagkit.backends.spark.session.gateway import find_numpy_without_pandas, ignore_ended_java
from dagkit.backends.spark.session.java import ensure_java, without_warning
from dagkit.backends.spark.session.master import Kind, Master, reach, spark_unavailable
from dagkit.backends.spark.session.session_settings import (
    JAVA_OPTIONS,
    has_own_logging,
    settings_for,
    spark_home,
    users_settings,
)
from dagkit.errors import DagkitError, RunFailure
from dagkit.ground.clock import patient
from dagkit.ground.urls import shown_master

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""The variables with which PySpark connects to a Java that runs."""

CONNECTED_WITHIN_SECONDS = 10.0
"""The time within which a Spark Connect server must answer, once its port accepts a connection."""

_given: dict[str, str] = {}
"""The settings that dagkit started Java with. Spark later lists them as if the user had set them."""

_kept: list[Mapping[str, Any]] = []
"""The address of the Java that another process keeps, if this process is to use it."""

_missing: dict[Path, str] = {}
"""The archives of Java's classes that were not there when Java started, with the user's options of that Java."""


def _session_mismatched(there: str, wanted: str) -> RunFailure:
    """This process already has another Spark session, which Spark would return instead of a new one."""
    return RunFailure(
        f"this process already has a Spark session {there}, so it cannot start {wanted}",
        "name no master and no settings to use the running session, or stop it first",
        code="session-mismatched",
    )


def spark_incomplete(problem: str, remedy: str) -> RunFailure:
    """This environment lacks a package or setting that a master of this kind needs."""
    return RunFailure(problem, remedy, code="spark-incomplete")


def web_page(spark: SparkSession) -> str | None:
    """The URL of Spark's own page about a session; None for Spark Connect, or if the page is switched off."""
    return None if is_connect(spark) else spark.sparkContext.uiWebUrl


def running_session(
    address: str | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> SparkSession | None:
    """The running session of this process, whichever thread started it; None if there is none.

    Raise session-mismatched if it is not at `address`, or has other `settings`.
    """
    try:
        session = SparkSession.active()
        if not is_connect(session):
            session.sparkContext.statusTracker()
    except (PySparkException, AttributeError):  # no session, or its context was stopped and has no Java
        return None
    except (Py4JError, OSError) as error:
        raise spark_ended("Spark cannot start a second time in this process") from error
    there = session.conf.get("spark.master") or "another place"
    # Spark would return the running session also for another address, and the caller would then stop it.
    if address is not None and address != there:
        raise _session_mismatched(f"at {shown_master(there)}", f"one at {shown_master(address)}")
    for name, value in settings.items():
        if session.conf.get(name, None) != value:
            raise _session_mismatched(f"with another {name}", "one with this value")
    return session


def local_session(cores: int | None = None) -> SparkSession:
    """A Spark session on this machine: the running one, else a new one with these cores or with all."""
    return session_at(f"local[{cores or '*'}]")


def submitted_master() -> str | None:
    """The master of the `spark-submit` that started this process."""
    from pyspark import SparkConf  # noqa: PLC0415 - a Connect client may lack it

    _connect_to_java()
    return SparkConf().get("spark.master")


def _is_submitted() -> bool:
    """Whether `spark-submit` started this process, and before it Java, which has the user's settings."""
    return _PORT in os.environ


def _connect_to_java() -> None:
    from pyspark import SparkContext  # noqa: PLC0415 - a Connect client may lack it

    SparkContext._ensure_initialized()  # noqa: SLF001 - nothing public connects to it without a context


def has_kept_java() -> bool:
    """Whether a warm driver keeps Spark running for this process: a session begins at once."""
    return bool(_kept)


def session_at(
    address: str, settings: Mapping[str, str] = MappingProxyType({}), *, recording: Path | None = None
) -> SparkSession:
    """A session at a master, or at a Spark Connect server if the address begins with `sc:`.

    `settings` are Spark's; they override those of the user's files. A local Java writes an archive of its classes to
    `recording` when it ends. Raise master-invalid for an invalid address, and spark-unavailable if no Spark answers or
    starts there.
    """
    master = Master.of(address)
    # By default, PySpark starts workers with any `python3` on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    find_numpy_without_pandas()
    if _kept:
        return _on_kept_java()
    _check_environment(master)
    reach(master)
    try:
        return _connect(master, settings) if master.kind is Kind.CONNECT else _start(master, settings, recording)
    except DagkitError:
        raise
    except Exception as error:
        raise spark_unavailable(f"Spark did not start at {shown_master(address)}: {cause_of(error)}") from error


def use_java(java: Mapping[str, Any]) -> None:
    """Let the session of this process be one on a Java that another process keeps."""
    _kept.append(java)


def stop_session(session: SparkSession) -> None:
    """Stop a session. If the Java of a classic session has ended, or another process keeps it, do nothing."""
    if not is_connect(session) and (_kept or not answers(session)):
        return
    if is_connect(session) and not answers(session):
        # The server has no session to release, and a call to it could only fail.
        session.release_session_on_close = False  # type: ignore[attr-defined]
    try:
        session.stop()
    except (Py4JError, OSError):
        if is_connect(session) or answers(session):
            raise


def _check_environment(master: Master) -> None:
    if master.kind is Kind.CONNECT:
        try:
            import pyspark.sql.connect.client  # noqa: F401, PLC0415 - Spark Connect's packages may be missing
        except ImportError as error:
            lacking = str(error).partition("\n")[0].removeprefix("[PACKAGE_NOT_INSTALLED] ").partition(";")[0]
            raise spark_incomplete(
                f"Spark Connect needs packages that are not installed: {lacking.removesuffix(' must be installed')}",
                "run: pip install 'pyspark[connect]'",
            ) from error
        return
    ensure_java()
    if master.kind in (Kind.LOCAL, Kind.CLUSTER_HERE):
        check_python(os.environ["PYSPARK_PYTHON"])
    knows_yarn = _is_submitted() or {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys()
    if master.kind is Kind.YARN and not knows_yarn:
        raise spark_incomplete(
            "Spark does not know where YARN is",
            "set HADOOP_CONF_DIR to the folder that holds the cluster's yarn-site.xml and core-site.xml",
        )


def _connect(master: Master, settings: Mapping[str, str]) -> SparkSession:
    """A session at a Spark Connect server, if it answers within some seconds."""
    import grpc  # noqa: PLC0415 - only for Spark Connect
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415 - as above

    from dagkit.backends.spark.failures.connect_retries import retry_briefly  # noqa: PLC0415 - as above

    # Spark's own client would wait for minutes.
    channel, seconds = DefaultChannelBuilder(master.url).toChannel(), patient(CONNECTED_WITHIN_SECONDS)
    try:
        grpc.channel_ready_future(channel).result(timeout=seconds)
    except grpc.FutureTimeoutError as error:
        raise spark_unavailable(
            f"no Spark Connect server answers at {shown_master(master.url)} within {seconds:g} s",
            "check the port; if the server expects TLS, add /;use_ssl=true to the URL",
        ) from error
    finally:
        channel.close()
    remote: SparkSession = SparkSession.builder.remote(master.url).config(map=dict(settings)).getOrCreate()
    retry_briefly(remote)
    return remote


def _on_kept_java() -> SparkSession:
    """A new session on the Java that another process keeps."""
    os.environ |= {_PORT: str(_kept[0]["port"]), _SECRET: _kept[0]["secret"]}
    try:
        _connect_to_java()
        session = _new_session()
    except (Py4JError, OSError) as error:
        raise spark_ended("Spark cannot be used") from error
    finally:
        # With them, this process and its children would count as started by `spark-submit`.
        del os.environ[_PORT], os.environ[_SECRET]
    ignore_ended_java(session.sparkContext)
    return session


def _new_session() -> SparkSession:
    """A new session on the running context of Java."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - a Connect client may lack them

    jvm: Any = SparkContext._jvm  # noqa: SLF001 - nothing public reaches Java
    context = jvm.org.apache.spark.api.java.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    first = jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
    own: Any = SparkContext(conf=SparkConf(_jconf=context.getConf()), jsc=context)
    return SparkSession(own, first.newSession())


def _start(master: Master, settings: Mapping[str, str], recording: Path | None) -> SparkSession:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - a Connect client may lack them

    # Only then has `SparkConf` the settings of `spark-submit`: they are in its Java.
    if _is_submitted():
        _connect_to_java()
    # Empty as long as no Java runs.
    there = dict(SparkConf().getAll())
    users = {**(dict(there.items() - _given.items()) if there else users_settings()), **settings}
    own = settings_for(master, users, logs=not has_own_logging(), own_python=_runs_workers_itself(users))
    if not there:
        options = _with_archive(own.get(JAVA_OPTIONS, users.get(JAVA_OPTIONS, "")), users, recording)
        if options:
            own[JAVA_OPTIONS] = options
        _given.update(own)
    # Without Java's own list: it has what dagkit set for an earlier session, perhaps at another master.
    conf = SparkConf(loadDefaults=False).setAll([*users.items(), *own.items()])
    with without_warning() if master.is_local and not there else nullcontext():
        context = SparkContext.getOrCreate(conf.setMaster(master.url).setAppName("dagkit"))
    ignore_ended_java(context)
    return SparkSession.builder.getOrCreate()


def start_faster_next_time() -> None:
    """Let a process in the background make the archive of Java's classes that Spark started without, if any."""
    for archive, java_options in _missing.items():
        class_archive.make_in_background(archive, java_options)


def _runs_workers_itself(users: Mapping[str, str]) -> bool:
    """Whether the workers of a local Spark run in the Python of this process."""
    return os.environ.get("PYSPARK_PYTHON") == sys.executable and "spark.pyspark.python" not in users


def archive_of_driver(users: Mapping[str, str]) -> Path | None:
    """Where the archive lies, or will lie, for a driver of Spark with these settings of the user; None if nowhere."""
    java = ensure_java()
    own = settings_for(Master.of("local"), users, logs=not has_own_logging())
    return class_archive.archive_for(java, spark_home() / "jars", own[JAVA_OPTIONS])


def _with_archive(options: str, users: Mapping[str, str], recording: Path | None) -> str:
    """Java's options with an archive: one to write, or the one of this environment to use, if it is there."""
    if recording is not None:
        return f"{options} {class_archive.options_to_make(recording, ensure_java())}"
    archive = archive_of_driver(users)
    if archive is None:
        return options
    if not class_archive.usable(archive):
        _missing[archive] = users.get(JAVA_OPTIONS, "")
        return options
    class_archive.note_use(archive)
    return f"{options} {class_archive.options_to_use(archive, ensure_java())}"
