"""A clock that a test moves."""

import threading
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Stands at one instant until `advance` or `set_to` moves it."""

    def __init__(self, start: datetime = datetime(2024, 1, 1, tzinfo=UTC)) -> None:
        assert start.tzinfo is not None, "a clock returns aware instants"
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, *, seconds: float = 0.0, millis: int = 0) -> datetime:
        """Move forward, and return the new time."""
        self._now += timedelta(seconds=seconds, milliseconds=millis)
        return self._now

    def wait(self, woken: threading.Event, until: datetime) -> None:
        """Return at once, with the clock moved forward by the time waited for."""
        if not woken.is_set() and until > self._now:
            self._now = until

    def set_to(self, instant: datetime) -> None:
        """Jump, backwards too: a machine's clock may do the same."""
        assert instant.tzinfo is not None, "a clock returns aware instants"
        self._now = instant.astimezone(UTC)
