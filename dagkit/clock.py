"""What time it is, asked of a value, so that a test can say."""

import threading
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Whoever knows the time; instants are aware and in UTC."""

    def now(self) -> datetime: ...


class Timer(Clock, Protocol):
    """A clock that can be waited for."""

    def wait(self, woken: threading.Event, until: datetime) -> None:
        """Return at the instant, or as soon as the event is set."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def wait(self, woken: threading.Event, until: datetime) -> None:
        woken.wait(max(0.0, (until - self.now()).total_seconds()))
