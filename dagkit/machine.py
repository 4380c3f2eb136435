"""Where an application runs, and the Spark session that dagkit starts there.

This module imports little, so that `dagkit launch` starts Spark before it imports and compiles.
"""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Literal


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
    starting: Future[Any] | None = None
    """The session that `with_spark_starting` starts."""

    @property
    def name(self) -> str:
        """The master of Spark, or `reference`."""
        if self.backend == "reference":
            return "reference"
        if self.spark is not None:
            return str(self.spark.conf.get("spark.master", "a given session"))
        return self.master or self._default_master()

    def _default_master(self) -> str:
        """The master that `spark-submit` was given if it started this process, else a local one."""
        submitted = None
        if "PYSPARK_GATEWAY_PORT" in os.environ and self.cores is None:
            from dagkit.backends.spark import submitted_master  # noqa: PLC0415 - imports PySpark

            submitted = submitted_master()
        return submitted or f"local[{self.cores or '*'}]"

    def with_spark_starting(self) -> "Machine":
        """This machine, whose session starts now in another thread; unless it has one or needs none."""
        if self.backend != "spark" or self.spark is not None or self.starting is not None:
            return self
        return replace(self, starting=_in_thread(self))

    def started(self) -> Any:
        """A session that starts now, unless one runs."""
        from dagkit.backends.spark import session_at  # noqa: PLC0415 - imported while others work

        return session_at(self.name, self.settings)

    @contextlib.contextmanager
    def session(self) -> Iterator[Any]:
        """The Spark session. At the end, stop it if dagkit started it."""
        from dagkit.backends.spark import (  # noqa: PLC0415 - the reference has no Spark
            running_session,
            start_faster_next_time,
            stop_session,
        )

        there = None if self.starting is not None else self.spark or running_session(self.master, self.settings)
        if there is not None:
            yield there
            return
        session = _waited_for(self.starting or _in_thread(self))
        try:
            yield session
        finally:
            stop_session(session)
            if self.master is None:
                start_faster_next_time()


def _in_thread(machine: Machine) -> Future[Any]:
    """Start a session in a thread of its own, which no signal interrupts.

    If its start is interrupted, Java is left running; and if the main thread makes the session, PySpark handles SIGINT
    itself.
    """
    made: Future[Any] = Future()

    def run() -> None:
        try:
            made.set_result(machine.started())
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            made.set_exception(error)

    threading.Thread(target=run, name="dagkit-session", daemon=True).start()
    return made


def _waited_for(made: Future[Any]) -> Any:
    """The session, once it exists.

    A second signal does not wait for it: Java ends with the process, and if the process stays, as in a notebook, the
    session is stopped as soon as it exists.
    """
    try:
        return made.result()
    except SystemExit:
        made.add_done_callback(lambda session: session.exception() or session.result().stop())
        raise
