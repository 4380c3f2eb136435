"""A clock that a test controls."""

import threading
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Returns the same time until `advance` or `set_to` changes it."""

    def __init__(self, start: datetime = datetime(2024, 1, 1, tzinfo=UTC)) -> None:
        assert start.tzinfo is not None, "a clock returns aware instants"
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, *, seconds: float = 0.0, millis: int = 0) -> datetime:
        """Move the time forward, and return it."""
        self._now += timedelta(seconds=seconds, milliseconds=millis)
        return self._now

    def wait(self, woken: threading.Event, until: datetime) -> None:
        """Move the clock forward by this time, and return at once."""
        if not woken.is_set() and until > self._now:
            self._now = until

    def set_to(self, instant: datetime) -> None:
        """Set the time, also backwards, as the clock of a machine may do."""
        assert instant.tzinfo is not None, "a clock returns aware instants"
        self._now = instant.astimezone(UTC)
