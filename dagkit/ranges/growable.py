"""Ranges of integers that grow while they are read, such as a log that is still written to."""

from collections.abc import Callable

from dagkit.ranges.offset import OffsetRange
from dagkit.ranges.progress import Progress
from dagkit.ranges.range_errors import FractionInvalid
from dagkit.ranges.restriction import OffsetRestrictionTracker, SplitRestriction

EndEstimator = Callable[[], int]
"""Returns the current end of a range, exclusive. Called outside of the tracker's lock, so it may be slow."""


class GrowableOffsetRestrictionTracker(OffsetRestrictionTracker):
    """Tracks work on a range that may be unbounded. An estimator returns its current end, so that it can be split.

    After a split, the primary is bounded. The reader of an unbounded range defers the remainder when it has read all
    that exists, or claims OFFSET_INFINITY when there will be no more.
    """

    def __init__(self, restriction: OffsetRange, estimate_end: EndEstimator) -> None:
        super().__init__(restriction)
        self._estimate_end = estimate_end

    def is_bounded(self) -> bool:
        return self._done or super().is_bounded()

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[OffsetRange] | None:
        if self.is_bounded():
            return super().try_split(fraction_of_remainder)
        if not 0.0 <= fraction_of_remainder <= 1.0:
            raise FractionInvalid(fraction_of_remainder)
        # a fraction of 0 takes all unclaimed work, so it needs no estimate, and no failing estimator can prevent it
        estimate = self._estimate_end() if fraction_of_remainder else 0
        with self._lock:
            # Another thread may have split the range meanwhile: then the estimate is limited to the new stop.
            end = min(self.stop_position(), max(estimate, self._reached() + 1))
            return self._split_towards(end, fraction_of_remainder)

    def try_split_at(self, position: int) -> SplitRestriction[OffsetRange] | None:
        """Split as a bounded range does: a known position needs no estimate."""
        return super().try_split_at(position)

    def current_progress(self) -> Progress:
        if self.is_bounded():
            return super().current_progress()
        estimate = self._estimate_end()
        with self._lock:
            return self._progress_towards(min(self.stop_position(), estimate))
