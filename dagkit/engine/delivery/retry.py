"""When to call an external system again that was unavailable, and what is logged of it."""

import logging
from datetime import datetime, timedelta

from dagkit.api.external import Unavailable
from dagkit.clock import Clock

_logger = logging.getLogger(__name__)

FIRST_PAUSE = timedelta(milliseconds=500)
LONGEST_PAUSE = timedelta(seconds=30)
LOGGED_EVERY = timedelta(minutes=5)


class Retry:
    """Counts the attempts since a system became unavailable."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: datetime | None = None
        """When the first attempt failed; None while the system is available."""
        self._logged = clock.now()
        self._pause = FIRST_PAUSE
        self.due: datetime | None = None
        """When to try again; None: at once."""

    @property
    def waited(self) -> timedelta:
        """For how long the system has been unavailable."""
        return timedelta() if self._since is None else self._clock.now() - self._since

    def failed(self, operator: str, error: Unavailable) -> None:
        """Note a failed attempt. Log the first one, and then one every few minutes."""
        now, why = self._clock.now(), f"{error.problem} [{error.code}]"
        if self._since is None:
            self._since = self._logged = now
            _logger.warning("%s: %s; dagkit tries again, and what is committed is not lost", operator, why)
        elif now - self._logged >= LOGGED_EVERY:
            self._logged = now
            _logger.warning("%s: %s; it has been so for %s", operator, why, _rounded(self.waited))
        self.due = now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def succeeded(self) -> None:
        """Note a successful attempt, and log it if others failed before."""
        if self._since is not None:
            _logger.warning("the external system is available again, after %s", _rounded(self.waited))
        self._since = self.due = None
        self._pause = FIRST_PAUSE


def _rounded(length: timedelta) -> timedelta:
    return timedelta(seconds=round(length.total_seconds()))
