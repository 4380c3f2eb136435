"""The sessions of a launch: when the Spark Connect server of one has started again, the launch resumes in another.

A server that starts again has lost its sessions, and the ledger has lost nothing. So the driver does what the next
launch would do, in the same process: it opens a session, and resumes after the last committed window.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dagkit.api.outage import PATIENCE, Outage, Patience
from dagkit.engine.parts.requests import READ_EVERY
from dagkit.engine.record.run_events import Failed, RunEvent, Starting
from dagkit.engine.run.loop import Loop
from dagkit.engine.worker.protocol import Backend
from dagkit.errors import RunFailure
from dagkit.ground.garbage import rarely_collected
from dagkit.runs.machine import Machine

# A session of Connect cannot be got back, and without this a restarted server ended the launch. Rejected: another
# session for the windows in flight, since the loop would have a second way to lose a window. A session that the user
# made is not replaced: it may have views and settings that dagkit does not know. After each cut of more than 15 seconds
# the windows in flight run again, even if the server still has their session.
MOST_IN_VAIN = 3
"""After this many sessions in a row without a committed window, the launch ends: the window may be what ends them."""
LONGEST_SECONDS = 600.0
"""How long a launch waits for a server. Spark's own client retries a call for about as long."""

_log = logging.getLogger(__name__)


class Sessions:
    """Runs a launch, in another session if the one before has ended."""

    def __init__(
        self,
        server: str | None,
        publish: Callable[[RunEvent], Any],
        stop: threading.Event,
        *,
        patience: Patience = PATIENCE,
        longest_seconds: float = LONGEST_SECONDS,
    ) -> None:
        """Take the server at which sessions are opened, or None if they are not replaced; `stop` ends the waiting."""
        self._server = server
        self._publish = publish
        self._stop = stop
        self._patience = patience
        self._longest_seconds = longest_seconds
        self._window: int | None = None
        """The last committed window when the last session ended."""
        self._in_vain = 0
        """How many sessions in a row have ended without a committed window, the last one included."""

    def run(
        self,
        machine: Machine,
        backend_on: Callable[[Machine], AbstractContextManager[Backend]],
        loop_on: Callable[[Backend, Loop | None], Loop],
    ) -> Loop:
        """Run loops, each on a backend of its own, until one comes to its end, and return it.

        `loop_on` also gets the loop of the session before. Raise what ends the launch.
        """
        loop: Loop | None = None
        while True:
            try:
                with backend_on(machine) as backend:
                    loop = loop_on(backend, loop)
                    with rarely_collected():
                        loop.run()
            except RunFailure as error:
                machine = self._after(error, loop, machine)
            else:
                return loop

    def _after(self, error: RunFailure, loop: Loop | None, machine: Machine) -> Machine:
        """The machine with another session, after this error. Raise the error if the launch is to end with it."""
        is_stopping = self._stop.is_set() or (loop is not None and loop.is_stopping)
        if error.code != "spark-ended" or self._server is None or is_stopping:
            raise error
        window = 0 if loop is None else loop.checkpoint.window
        self._in_vain = 1 if self._window is None or window > self._window else self._in_vain + 1
        self._window = window
        if self._in_vain == MOST_IN_VAIN:
            raise error
        if loop is not None:
            self._publish(Failed(window + 1, None, f"{error.named}: {error.problem}", again=True))
        self._publish(Starting(f"opening another session at {self._server}"))
        _log.warning("%s; the launch resumes from its ledger, in another session", error.problem)
        return self._awaited(self._server, error, loop, machine)

    def _awaited(self, server: str, error: RunFailure, loop: Loop | None, machine: Machine) -> Machine:
        """The machine with another session, once the server answers. Raise `error` if the launch is to stop before."""
        outage = Outage(f"the Spark Connect server {server}", patience=self._patience)
        while True:
            try:
                again = machine.opened_again()
            except RunFailure as refused:
                if refused.code != "spark-unavailable" or outage.seconds >= self._longest_seconds:
                    raise
                pause = outage.failed(refused.problem)
            else:
                outage.is_over()
                return again
            if self._is_to_stop(pause, loop):
                raise error

    def _is_to_stop(self, seconds: float, loop: Loop | None) -> bool:
        """Whether a signal or a request to the loop, which has ended, stops the launch within this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self._stop.wait(min(left, READ_EVERY.total_seconds())):
                return True
            if loop is not None:
                loop.take_news()
                if loop.is_stopping:
                    return True
        return False
