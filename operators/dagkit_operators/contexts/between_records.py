"""Claims by contexts that cannot find a record from any position: a range is split after a claimed record only."""

from copy import copy
from typing import Self

from dagkit.ranges import OffsetRange, OffsetRestrictionTracker, Progress, RestrictionTracker, SplitRestriction
from dagkit.ranges.cursor import Run


class BetweenRecordsTracker(RestrictionTracker[OffsetRange, int]):
    """Tracks a range whose reader claims the last byte of each record, so the rest begins with a record.

    Whatever share is asked for, all of the unclaimed rest is given away, since the next record starts at its beginning
    and no later start is known. Before the first claim nothing is given away.
    """

    def __init__(self, inner: OffsetRestrictionTracker) -> None:
        self._inner = inner

    def __copy__(self) -> Self:
        return type(self)(copy(self._inner))

    def current_restriction(self) -> OffsetRange:
        return self._inner.current_restriction()

    def is_bounded(self) -> bool:
        return self._inner.is_bounded()

    def is_started(self) -> bool:
        return self._inner.is_started()

    def try_claim(self, position: int) -> bool:
        return self._inner.try_claim(position)

    def claim_many(self, positions: Run[int]) -> int:
        return self._inner.claim_many(positions)

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[OffsetRange] | None:
        if not self._inner.is_started() or fraction_of_remainder == 1.0:
            return None
        return self._inner.try_split(0.0)

    def current_progress(self) -> Progress:
        return self._inner.current_progress()

    def check_done(self) -> None:
        self._inner.check_done()
