"""A server that does not answer: how long to wait, and when to report it."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait between two attempts, and how often to report that a server is still away. In seconds."""

    first: float = 0.1
    """The first pause; each further one is twice as long."""
    longest: float = 10.0
    reported_every: float = 60.0


PATIENCE = Patience()


class Outage:
    """Counts failed attempts. Reports the first failure, then one each minute, and the end of the outage."""

    def __init__(
        self, server: str, now: Callable[[], float] = time.monotonic, *, patience: Patience = PATIENCE
    ) -> None:
        self._server = server
        self._now = now
        self._patience = patience
        self._began: float | None = None
        self._reported = 0.0
        self._pause = patience.first

    @property
    def is_on(self) -> bool:
        """Whether the last attempt failed."""
        return self._began is not None

    @property
    def seconds(self) -> float:
        """For how long attempts have failed."""
        return 0.0 if self._began is None else self._now() - self._began

    def failed(self, reason: str) -> float:
        """Record a failed attempt, and return the seconds to wait before the next one: twice as many each time."""
        now = self._now()
        if self._began is None:
            self._began = self._reported = now
            self._pause = self._patience.first
            _logger.warning("%s does not answer, and is tried again until it does: %s", self._server, reason)
        elif now - self._reported >= self._patience.reported_every:
            self._reported = now
            _logger.warning("%s has not answered for %.0f s: %s", self._server, self.seconds, reason)
        pause, self._pause = self._pause, min(2 * self._pause, self._patience.longest)
        return pause

    def is_over(self) -> None:
        """Record an attempt that succeeded."""
        if self.is_on:
            _logger.warning("%s answers again, after %.0f s", self._server, self.seconds)
            self._began = None
