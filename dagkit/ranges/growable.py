"""Ranges of integers that grow while they are read: a log that somebody writes to."""

from collections.abc import Callable

from dagkit.ranges.offset import OffsetRange
from dagkit.ranges.progress import Progress
from dagkit.ranges.range_errors import FractionInvalid
from dagkit.ranges.restriction import OffsetRestrictionTracker, SplitRestriction

EndEstimator = Callable[[], int]
"""Where a range ends by now, exclusive; asked outside of the tracker's lock, so it may take its time."""


class GrowableOffsetRestrictionTracker(OffsetRestrictionTracker):
    """Tracks work on a range that may be without an end, and yet has halves: an estimator says where it ends by now.

    Once split, the primary is a range like any other. The reader of one that has no end defers its remainder when it
    has read all there is, or claims OFFSET_INFINITY when there will be no more.
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
        # what takes back all that is not claimed need not know how much it is, and nothing keeps it from that
        estimate = self._estimate_end() if fraction_of_remainder else 0
        with self._lock:
            # Somebody may have split it meanwhile: then it ends there, and no estimate goes further.
            end = min(self.stop_position(), max(estimate, self._reached() + 1))
            return self._split_towards(end, fraction_of_remainder)

    def try_split_at(self, position: int) -> SplitRestriction[OffsetRange] | None:
        """As any range of offsets: for a position that is known, nothing is estimated."""
        return super().try_split_at(position)

    def current_progress(self) -> Progress:
        if self.is_bounded():
            return super().current_progress()
        estimate = self._estimate_end()
        with self._lock:
            return self._progress_towards(min(self.stop_position(), estimate))
