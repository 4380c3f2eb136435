"""A server that does not answer: how long to wait, and when to report it."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakSet

from dagkit.ground.forks import over_forks

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait between two attempts, and how often to report that a server is still away. In seconds."""

    first: float = 0.1
    """The first pause; each further one is twice as long."""
    longest: float = 10.0
    reported_every: float = 60.0


PATIENCE = Patience()

_outages: "WeakSet[Outage]" = WeakSet()
"""Those of this process. One whose server nothing asks any longer is removed with the object that asked."""
_lock = over_forks(threading.Lock())
_LONG_SECONDS = 5.0
"""After this time an outage is reported, even if another one was reported within the minute before."""
_FORGOTTEN_SECONDS = 120.0
"""After this time without another failure, nothing asks the server any longer: an attempt may take long."""


def present_outages() -> tuple[str, ...]:
    """The servers that this process waits for, each in a sentence; the one that is away for longest first."""
    with _lock:
        known = list(_outages)
    on = sorted((one for one in known if one.is_awaited), key=lambda one: -one.seconds)
    return tuple(dict.fromkeys(one.sentence for one in on))


class Outage:
    """Counts failed attempts. Reports one failure each minute, and the end of an outage that was reported.

    Of the outages that follow within a minute, it reports those that last.
    """

    def __init__(
        self, server: str, now: Callable[[], float] = time.monotonic, *, patience: Patience = PATIENCE
    ) -> None:
        self._server = server
        self._now = now
        self._patience = patience
        self._began: float | None = None
        self._reported: float | None = None
        """When a failure was reported last, of this outage or of one before."""
        self._was_reported = False
        self._failed = 0.0
        self._reason = ""
        self._pause = patience.first
        with _lock:
            _outages.add(self)

    @property
    def is_awaited(self) -> bool:
        """Whether the server is away, and is still asked."""
        return self.is_on and self._now() - self._failed < _FORGOTTEN_SECONDS + self._patience.longest

    @property
    def sentence(self) -> str:
        """Which server does not answer, for how long, and why."""
        return f"{self._server} has not answered for {self.seconds:.0f} s: {self._reason}"

    @property
    def problem(self) -> str:
        """Which server does not answer, and why."""
        return f"{self._server} does not answer: {self._reason}"

    @property
    def is_on(self) -> bool:
        """Whether the last attempt failed."""
        return self._began is not None

    @property
    def seconds(self) -> float:
        """For how long attempts have failed."""
        began = self._began  # another thread may set it meanwhile
        return 0.0 if began is None else self._now() - began

    def failed(self, reason: str, at_least: float = 0.0, *, has_progressed: bool = False) -> float:
        """Record a failed attempt, and return the seconds to wait before the next one: twice as many each time.

        If the server has accepted something since the attempt before, the pauses and the time begin again. The log does
        not, nor with another outage: a server that refuses one request in twenty would fill it.
        """
        now = self._now()
        self._failed, self._reason = now, reason
        is_first = self._began is None
        if self._began is None or has_progressed:
            self._began, self._pause = now, self._patience.first
        is_long = not self._was_reported and self.seconds >= _LONG_SECONDS
        if self._reported is None or now - self._reported >= self._patience.reported_every or is_long:
            self._reported, self._was_reported = now, True
            if is_first:
                _logger.warning("%s does not answer, and is tried again until it does: %s", self._server, reason)
            else:
                _logger.warning("%s", self.sentence)
        pause, self._pause = self._pause, min(2 * self._pause, self._patience.longest)
        return max(pause, at_least)

    def is_over(self) -> None:
        """Record an attempt that succeeded."""
        if self._was_reported:
            _logger.warning("%s answers again, after %.0f s", self._server, self.seconds)
        self._began, self._was_reported = None, False
