"""The contract between the reader of a range and a thread that splits it meanwhile.

Positions are ordered. A record is a *split point* if reading can begin with it; its position is the largest from which
reading begins with it. A reader of `[start, stop)` returns everything from the first split point at or after start, up
to the first one at or after stop. So `[a, b)` and `[b, c)` together are `[a, c)`, wherever b lies.

A position is consumed once the reader was granted a record at or after it. Splits take unconsumed positions only.
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
    """A range ends at `position` now, a `fraction` of what it was; the residual goes from there to `stop`.

    The fraction is None if positions have no distances, the stop if the range has no bound. The splitting thread must
    use this stop: one that it queried before may have been moved by another thread since.
    """

    position: Where
    fraction: float | None
    stop: Where | None


class SplitPoints(NamedTuple):
    """The number of split points before the current one, and of those from the current one on; None if unknown."""

    consumed: int
    remaining: int | None


class RangeTracker(ABC, Generic[P]):
    """Guards the reading of one range; every method may be called from any thread at any time."""

    @abstractmethod
    def start_position(self) -> P | None:
        """Where the range starts, inclusive; None if it has no bound there."""

    @abstractmethod
    def stop_position(self) -> P | None:
        """Where the range stops now, exclusive; None if it has no bound there."""

    @abstractmethod
    def try_claim(self, position: P) -> bool:
        """Whether the split point at `position` may be returned."""

    @abstractmethod
    def claim_many(self, positions: Run[P]) -> int:
        """How many of the ascending split points may be returned."""

    @abstractmethod
    def try_return_record_at(self, is_at_split_point: bool, record_start: P) -> bool:  # noqa: FBT001 - readers are ported from contracts with this very order
        """Whether the record may be returned. Called for every split point, and for other records if the reader likes.

        A record that is no split point follows its split point, also beyond the stop.
        """

    @abstractmethod
    def try_split_at_position(self, position: P) -> Split[P] | None:
        """The range stops at `position` from now on; None if that is refused, and nothing has changed."""

    @abstractmethod
    def fraction_consumed(self) -> float | None:
        """About how much of the range is consumed; None where positions have no distances."""

    @abstractmethod
    def position_at_fraction(self, fraction: float) -> P | None:
        """The position with about this fraction of the range before it."""

    @abstractmethod
    def split_points(self) -> SplitPoints:
        """How many split points are consumed, and how many remain."""

    @abstractmethod
    def set_split_points_unclaimed_callback(self, unclaimed: Unclaimed[P | None]) -> None:
        """Let the reader say how many split points lie before a stop; called without the lock, copies do not get it."""


class CursorRangeTracker(Cursor[P], RangeTracker[P]):
    """A tracker over a cursor; what is left to a subclass is how positions and fractions map to each other."""

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
        """The last record now stands at `record_start` and is no split point."""
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
        """About how much of `[start, stop)` lies before a position in it. Runs under the lock: call no other object."""

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
