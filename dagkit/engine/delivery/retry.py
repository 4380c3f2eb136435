"""When to call an external system again that was unavailable, and what is logged of it."""

import logging
from datetime import datetime, timedelta

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

    def failed(self, operator: str, error: Exception) -> None:
        """Note a failed attempt. Log the first one, and then one every few minutes."""
        now = self._clock.now()
        if self._since is None:
            self._since = self._logged = now
            _logger.warning(
                "%s: %s; dagkit tries again until this works, and what is committed is not lost", operator, error
            )
        elif now - self._logged >= LOGGED_EVERY:
            self._logged = now
            _logger.warning("%s: %s; for %s now", operator, error, _rounded(now - self._since))
        self.due = now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def succeeded(self) -> None:
        """Note a successful attempt, and log it if others failed before."""
        if self._since is not None:
            _logger.warning(
                "the external system is available again, after %s", _rounded(self._clock.now() - self._since)
            )
        self._since = self.due = None
        self._pause = FIRST_PAUSE


def _rounded(length: timedelta) -> timedelta:
    return timedelta(seconds=round(length.total_seconds()))
