"""Where an application runs, and the Spark session that dagkit starts there.

This module imports little, so that `dagkit launch` starts Spark before it imports and compiles.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Machine:
    """Where an application runs."""

    backend: Literal["spark", "reference"] = "spark"
    spark: Any = None
    """An existing session to use; it is not stopped."""
    master: str | None = None
    """Where to start a session: the URL of a master or of a Connect server; None: that of `spark-submit`, else here."""
    cores: int | None = None
    """The cores of a local session; None: all."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings for a session that is started; they override spark-defaults.conf."""
    starting: "StartingSession | None" = None
    """The session that `with_spark_starting` or `opened_again` starts."""

    @property
    def name(self) -> str:
        """The master of Spark, or `reference`."""
        if self.backend == "reference":
            return "reference"
        if self.spark is not None:
            return str(self.spark.conf.get("spark.master", "a given session"))
        return self.master or self._default_master()

    @property
    def shown(self) -> str:
        """The name as messages, logs and the status show it."""
        from dagkit.ground.urls import shown_master  # noqa: PLC0415 - Spark starts before this is imported

        return shown_master(self.name)

    def _default_master(self) -> str:
        """The master that `spark-submit` was given if it started this process, else a local one."""
        submitted = None
        if "PYSPARK_GATEWAY_PORT" in os.environ and self.cores is None:
            from dagkit.backends.spark import submitted_master  # noqa: PLC0415 - imports PySpark

            submitted = submitted_master()
        return submitted or f"local[{self.cores or '*'}]"

    @contextlib.contextmanager
    def with_spark_starting(self) -> Iterator["Machine"]:
        """This machine, whose session starts now in another thread; unless it has one or needs none.

        If the block ends before anything uses the session, it is stopped as soon as it exists.
        """
        needs_one = self.backend == "spark" and self.spark is None and self.starting is None
        # To look for a session imports PySpark, which takes longer than the start of Java.
        if not needs_one or ("pyspark" in sys.modules and self._is_there()):
            yield self
            return
        starting = _in_thread(self)
        try:
            yield replace(self, starting=starting)
        finally:
            if not starting.is_used:
                starting.stop_once_made()

    def started(self) -> Any:
        """A session that starts now, unless one runs."""
        from dagkit.backends.spark import session_at  # noqa: PLC0415 - imported while others work

        return session_at(self.name, self.settings)

    @property
    def server(self) -> str | None:
        """The host and port of the Connect server at which dagkit opens the session; None if there is none."""
        if self.master is None or not self.master.startswith("sc:") or self._there() is not None:
            return None
        return urlsplit(self.master).netloc.rpartition("@")[2]

    def opened_again(self) -> "Machine":
        """This machine with another session, which dagkit opens; raise what that raises."""
        starting = _in_thread(self)
        _waited_for(starting)
        return replace(self, starting=starting)

    def _there(self) -> Any:
        """The session that dagkit uses and leaves open; None if it starts one."""
        if self.starting is not None:
            return None
        from dagkit.backends.spark import running_session  # noqa: PLC0415 - the reference has no Spark

        return self.spark or running_session(self.master, self.settings)

    def _is_there(self) -> bool:
        """Whether this session runs in this process: dagkit leaves it open."""
        from dagkit.errors import RunFailure  # noqa: PLC0415 - Spark starts before this is imported

        try:
            return self._there() is not None
        except RunFailure:  # it is another one
            return False

    @contextlib.contextmanager
    def session(self) -> Iterator[Any]:
        """The Spark session. At the end, stop it if dagkit started it."""
        from dagkit.backends.spark import start_faster_next_time, stop_session  # noqa: PLC0415 - as above

        there = self._there()
        if there is not None:
            yield there
            return
        starting = self.starting or _in_thread(self)
        starting.is_used = True
        session = _waited_for(starting)
        try:
            yield session
        finally:
            stop_session(session)
            if self.master is None:
                start_faster_next_time()


class StartingSession(Future[Any]):
    """A session that another thread starts."""

    is_used = False
    """Whether `session` has taken it."""

    def stop_once_made(self) -> None:
        self.add_done_callback(lambda made: made.exception() or made.result().stop())


def _in_thread(machine: Machine) -> StartingSession:
    """Start a session in a thread of its own, which no signal interrupts.

    If its start is interrupted, Java is left running; and if the main thread makes the session, PySpark handles SIGINT
    itself.
    """
    made = StartingSession()

    def run() -> None:
        try:
            made.set_result(machine.started())
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            made.set_exception(error)

    threading.Thread(target=run, name="dagkit-session", daemon=True).start()
    return made


def _waited_for(made: StartingSession) -> Any:
    """The session, once it exists.

    A second signal does not wait for it: Java ends with the process, and if the process stays, as in a notebook, the
    session is stopped as soon as it exists.
    """
    try:
        return made.result()
    except SystemExit:
        made.stop_once_made()
        raise
