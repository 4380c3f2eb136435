"""The contract between the reader of a range and another thread that splits the range while it is read.

Positions are ordered. A record is a *split point* if reading can begin with it. Its position is the largest one from
which reading begins with this record. A reader of `[start, stop)` returns all records from the first split point at or
after `start` up to the first split point at or after `stop`. Therefore `[a, b)` and `[b, c)` together give the records
of `[a, c)`, for any b.

A position is consumed once the tracker granted a record at or after it. Splits take only unconsumed positions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from dagkit.ranges.cursor import Cursor, P, Run
from dagkit.ranges.range_errors import ClaimBackwards, FractionInvalid, SplitPointMissing

Where = TypeVar("Where")

Unclaimed = Callable[[Where], int | None]
"""Returns how many split points lie between the current one and a stop; None if unknown."""


class Split(NamedTuple, Generic[Where]):
    """The result of a split: the range now stops at `position`, and the residual is `[position, stop)`.

    `fraction` is the part of the earlier range that remains; None if positions have no distances. `stop` is None if the
    range has no bound there. Use this stop: another thread may have changed one that was queried before the split.
    """

    position: Where
    fraction: float | None
    stop: Where | None


class SplitPoints(NamedTuple):
    """The number of split points before the current one, and of those from the current one on; None if unknown."""

    consumed: int
    remaining: int | None


class RangeTracker(ABC, Generic[P]):
    """Guards the reading of one range. All methods may be called from any thread at any time."""

    @abstractmethod
    def start_position(self) -> P | None:
        """The start of the range, inclusive; None if it has no bound there."""

    @abstractmethod
    def stop_position(self) -> P | None:
        """The current stop of the range, exclusive; None if it has no bound there."""

    @abstractmethod
    def try_claim(self, position: P) -> bool:
        """Claim the split point at `position`. Return whether the reader may return it; if not, it must stop."""

    @abstractmethod
    def claim_many(self, positions: Run[P]) -> int:
        """Claim ascending split points. Return how many of them the reader may return; if not all, it must stop."""

    @abstractmethod
    def try_return_record_at(self, is_at_split_point: bool, record_start: P) -> bool:  # noqa: FBT001 - readers are ported from contracts with this very order
        """Whether the reader may return the record. Call it for every split point; for other records it is optional.

        A record that is not a split point belongs to the split point before it, and may lie beyond the stop.
        """

    @abstractmethod
    def try_split_at_position(self, position: P) -> Split[P] | None:
        """Make the range stop at `position`. If this is refused, return None and change nothing."""

    @abstractmethod
    def fraction_consumed(self) -> float | None:
        """The approximate fraction of the range that is consumed; None if positions have no distances."""

    @abstractmethod
    def position_at_fraction(self, fraction: float) -> P | None:
        """The position with about this fraction of the range before it."""

    @abstractmethod
    def split_points(self) -> SplitPoints:
        """The numbers of consumed and of remaining split points."""

    @abstractmethod
    def set_split_points_unclaimed_callback(self, unclaimed: Unclaimed[P | None]) -> None:
        """Set a function that counts unclaimed split points. It is called without the lock. Copies do not get it."""


class CursorRangeTracker(Cursor[P], RangeTracker[P]):
    """A tracker based on a cursor. A subclass maps positions to fractions and back."""

    transient = Cursor.transient | {"_unclaimed"}

    def __init__(self, start: P | None, stop: P | None) -> None:
        super().__init__(start, stop)
        self._unclaimed: Unclaimed[P | None] | None = None

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__(state)
        self._unclaimed = None

    def try_return_record_at(self, is_at_split_point: bool, record_start: P) -> bool:  # noqa: FBT001 - see RangeTracker
        if is_at_split_point:
            return self.try_claim(record_start)
        with self._lock:
            if self._last is None:
                raise SplitPointMissing(record_start)
            self._follow(record_start, self._last)
            return not self._done

    def _follow(self, record_start: P, last: P) -> None:
        """Record that the last record starts at `record_start` and is not a split point."""
        if record_start < last:
            raise ClaimBackwards(record_start, last)
        if self._done:
            return
        if record_start > last:
            self._loose = record_start
        self._last = record_start

    def try_split_at_position(self, position: P) -> Split[P] | None:
        with self._lock:
            if not self._is_free(position):
                return None
            fraction = self.position_to_fraction(position, self._start, self._stop)
            split = Split(position, fraction, self.stop_position())
            self._stop = position
            return split

    @classmethod
    @abstractmethod
    def position_to_fraction(cls, position: P, start: P | None, stop: P | None) -> float | None:
        """The approximate fraction of `[start, stop)` before a position in it. A split calls it under the lock."""

    @classmethod
    @abstractmethod
    def fraction_to_position(cls, fraction: float, start: P | None, stop: P | None) -> P | None:
        """The position with about this fraction of `[start, stop)` before it; the stop for 1."""

    def fraction_consumed(self) -> float | None:
        with self._lock:
            start, stop, last = self._start, self._stop, self._last
        if last is None:
            return 0.0
        if stop is not None and last >= stop:
            return 1.0
        fraction = self.position_to_fraction(last, start, stop)
        return None if fraction is None else min(1.0, max(0.0, fraction))

    def position_at_fraction(self, fraction: float) -> P | None:
        if not 0.0 <= fraction <= 1.0:
            raise FractionInvalid(fraction)
        return self.fraction_to_position(fraction, self._start, self._stop)

    def split_points(self) -> SplitPoints:
        with self._lock:
            claims, stop, unclaimed = self._claims, self._stop, self._unclaimed
        # The reader's callback runs outside the lock: it may be slow, or call this tracker.
        left = None if unclaimed is None else unclaimed(stop)
        # The current split point is among the remaining ones until the next is claimed.
        return SplitPoints(max(0, claims - 1), None if left is None else left + 1)

    def set_split_points_unclaimed_callback(self, unclaimed: Unclaimed[P | None]) -> None:
        with self._lock:
            self._unclaimed = unclaimed
