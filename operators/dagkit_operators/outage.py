"""A server that does not answer: how long to wait, and when to report it."""

import logging
import time
from collections.abc import Callable
from functools import cache

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
REPORTED_EVERY_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Outage:
    """Counts failed attempts. Reports the first failure, then one each minute, and the end of the outage."""

    def __init__(self, server: str, now: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._now = now
        self._began: float | None = None
        self._reported = 0.0
        self._pause = FIRST_PAUSE_SECONDS

    @property
    def is_on(self) -> bool:
        """Whether the last attempt failed."""
        return self._began is not None

    def failed(self, reason: str) -> float:
        """Record a failed attempt, and return the seconds to wait before the next one: twice as many each time."""
        now = self._now()
        if self._began is None:
            self._began = self._reported = now
            self._pause = FIRST_PAUSE_SECONDS
            _log.warning("%s does not answer, and is tried again until it does: %s", self._server, reason)
        elif now - self._reported >= REPORTED_EVERY_SECONDS:
            self._reported = now
            _log.warning("%s has not answered for %.0f s: %s", self._server, now - self._began, reason)
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        return pause

    def is_over(self) -> None:
        """Record an attempt that succeeded."""
        if self._began is not None:
            _log.warning("%s answers again, after %.0f s", self._server, self._now() - self._began)
            self._began = None


@cache
def outage_of(server: str) -> Outage:
    """The outage of a server as the readers of this process see it: it lasts longer than a window."""
    return Outage(server)
