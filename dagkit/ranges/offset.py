"""Ranges of integers: bytes of a file, records of a log, numbers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from operator import index
from typing import Final

from dagkit.ranges.cursor import Cursor
from dagkit.ranges.range_errors import PositionUnmeasured, RangeInvalid
from dagkit.ranges.tracker import CursorRangeTracker

# A float's infinity turns arrays of integers into floats, which loses offsets above 2**53, and has no form in JSON.
# None needs a question before each comparison, and looks like a forgotten stop. So both are refused. The size of a
# range without an end is a large number: code that plans by size asks `is_bounded` first.
OFFSET_INFINITY: Final = 2**63 - 1
"""The stop of a range without an end. It is an integer, as all offsets are, so that it fits in a 64-bit column."""
OFFSET_UNKNOWN: Final = OFFSET_INFINITY - 1
"""The stop of a range with an end that is not known yet. Its offsets do not count as backlog."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets from `start` up to, not including, `stop`."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        refuse_unless_offsets(self.start, self.stop)

    def __iter__(self) -> Iterator[int]:
        """The start and the stop, as in `start, stop = offsets` and `range(*offsets)`: Beam has pairs here."""
        yield self.start
        yield self.stop

    @property
    def size(self) -> int:
        """The number of offsets in the range."""
        return self.stop - self.start

    def is_bounded(self) -> bool:
        """Whether the range has an end."""
        return self.stop != OFFSET_INFINITY

    def split(self, desired: float, minimum: int = 1) -> Iterator["OffsetRange"]:
        """Yield pieces of the desired size. If the tail is too small for a piece, it is added to the last one.

        A range without an end is one piece: it is split while it is read.
        """
        if not desired > 0 or minimum < 1:
            raise RangeInvalid(self.start, self.stop, f"no pieces of {desired!r}, at least {minimum!r}, can be cut")
        step = max(desired, minimum)
        start = self.start
        while start < self.stop:
            stop = self.stop if step >= self.stop - start or not self.is_bounded() else start + math.ceil(step)
            tail = self.stop - stop
            if tail < desired // 4 or tail < minimum:
                stop = self.stop
            yield OffsetRange(start, stop)
            start = stop

    def split_at(self, position: int) -> tuple["OffsetRange", "OffsetRange"]:
        """The range before a position, and the rest."""
        return OffsetRange(self.start, position), OffsetRange(position, self.stop)

    def truncate(self, end: int | None = None) -> "OffsetRange | None":
        """The range that is still to be read when the application drains.

        A bounded range is read to its end. An unbounded one is read up to its current end; if that is unknown, return
        None: nothing is read.
        """
        if self.is_bounded():
            return self
        return None if end is None else OffsetRange(self.start, max(self.start, end))

    def __repr__(self) -> str:
        return f"OffsetRange({self.start}, {self.stop if self.is_bounded() else 'OFFSET_INFINITY'})"


def refuse_unless_offsets(start: object, stop: object) -> None:
    """Raise RangeInvalid unless two bounds form a range of offsets."""
    if not (isinstance(start, int) and isinstance(stop, int)):
        raise RangeInvalid(start, stop, "offsets are integers; OFFSET_INFINITY is the stop of a range without an end")
    if start == OFFSET_INFINITY:
        raise RangeInvalid(start, stop, "only a stop may be infinite")
    if stop > OFFSET_INFINITY:
        raise RangeInvalid(start, stop, "offsets end at OFFSET_INFINITY")
    if start > stop:
        raise RangeInvalid(start, stop, "it stops before it starts")


class OffsetCursor(Cursor[int]):
    """A cursor of integers. No two split points share an offset."""

    plain = staticmethod(index)

    def __init__(self, start: int, stop: int) -> None:
        refuse_unless_offsets(start, stop)
        super().__init__(start, stop)

    def start_position(self) -> int:
        assert self._start is not None, "a range of offsets has a start"
        return self._start

    def stop_position(self) -> int:
        assert self._stop is not None, "a range of offsets has a stop"
        return self._stop


class OffsetRangeTracker(OffsetCursor, CursorRangeTracker[int]):
    """Tracks a range of integers; fractions are shares of the distance.

    A range without an end is never split, because its middle is unknown. See GrowableOffsetRestrictionTracker.
    """

    def _is_free(self, position: int) -> bool:
        return self._stop != OFFSET_INFINITY and super()._is_free(position)

    @classmethod
    def position_to_fraction(cls, position: int, start: int | None, stop: int | None) -> float:
        assert start is not None, "a range of offsets has a start"
        if stop is None or stop in (start, OFFSET_INFINITY):
            return 0.0
        return (int(position) - start) / (stop - start)

    @classmethod
    def fraction_to_position(cls, fraction: float, start: int | None, stop: int | None) -> int:
        assert start is not None, "a range of offsets has a start"
        if stop is None or stop == OFFSET_INFINITY:
            raise PositionUnmeasured(start, "it has no end")
        # Only the distance is multiplied: a float represents it more exactly than the offsets of a huge file.
        return stop if fraction == 1.0 else min(stop, start + math.ceil((stop - start) * fraction))

    def fraction_consumed(self) -> float:
        fraction = super().fraction_consumed()
        assert fraction is not None, "offsets have distances"
        return fraction

    def position_at_fraction(self, fraction: float) -> int:
        position = super().position_at_fraction(fraction)
        assert position is not None, "offsets have distances"
        return position
