"""What time it is, asked of a value, so that a test can say."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Whoever knows the time; instants are aware and in UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)
