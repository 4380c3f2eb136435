"""What time it is, asked of a value, so that a test can say."""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Whoever knows the time; instants are aware and in UTC."""

    def now(self) -> datetime: ...


class Timer(Clock, Protocol):
    """A clock that can be waited for."""

    def wait(self, woken: threading.Event, until: datetime) -> None:
        """Return at the instant, or as soon as the event is set."""


class SystemClock:
    """The machine's clock, which goes on where that is set back: nobody waits for an hour to come a second time."""

    def __init__(
        self, said: Callable[[], datetime] = lambda: datetime.now(UTC), passed: Callable[[], float] = time.monotonic
    ) -> None:
        self._said = said
        self._passed = passed
        self._latest = said(), passed()
        """An instant, and what time had passed then."""

    def now(self) -> datetime:
        instant, passed = self._latest
        said, by_now = self._said(), self._passed()
        now = max(said, instant + timedelta(seconds=by_now - passed))
        self._latest = now, by_now
        return now

    def wait(self, woken: threading.Event, until: datetime) -> None:
        woken.wait(max(0.0, (until - self.now()).total_seconds()))
