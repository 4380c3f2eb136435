"""Windows of event time: how instants are divided into windows. Instants are in microseconds since 1970."""

from collections.abc import Iterator
from typing import Self

from pydantic import BaseModel, ConfigDict, PositiveInt, model_validator


class _Windows(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TumblingWindows(_Windows):
    """Windows of one length, which follow each other without gaps: each instant is in one."""

    millis: PositiveInt
    """The length of a window."""
    offset_millis: int = 0
    """How much later than 1970-01-01T00:00Z a window begins; the others follow from it."""

    def around(self, micros: int) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each window that an instant is in."""
        length = self.millis * 1000
        offset = self.offset_millis * 1000
        start = (micros - offset) // length * length + offset
        yield start, start + length


class SlidingWindows(_Windows):
    """Windows of one length that begin at equal distances, and may overlap: an instant may be in several."""

    millis: PositiveInt
    """The length of a window."""
    every_millis: PositiveInt
    """The time between the starts of two windows; at most the length."""
    offset_millis: int = 0
    """How much later than 1970-01-01T00:00Z a window begins; the others follow from it."""

    @model_validator(mode="after")
    def _leave_no_gaps(self) -> Self:
        if self.every_millis > self.millis:
            raise ValueError(f"every_millis is {self.every_millis}, which is longer than a window of {self.millis}")
        return self

    def around(self, micros: int) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each window that an instant is in, the earliest first."""
        length, every, offset = self.millis * 1000, self.every_millis * 1000, self.offset_millis * 1000
        last = (micros - offset) // every * every + offset
        first = (micros - offset - length) // every * every + offset + every
        for start in range(first, last + 1, every):
            yield start, start + length


class SessionWindows(_Windows):
    """Windows of activity: a session of a key ends when the key has had no record for the length of the gap.

    Each record begins a session that lasts as long as the gap. Sessions of one key that overlap become one.
    """

    gap_millis: PositiveInt
    """The time without a record that ends a session."""

    def around(self, micros: int) -> Iterator[tuple[int, int]]:
        """Yield the session of a record alone."""
        yield micros, micros + self.gap_millis * 1000


TimeWindows = TumblingWindows | SlidingWindows | SessionWindows
