"""Trackers for reader contexts: two split a range only between records, and one keeps the claim that it refuses."""

from copy import copy
from typing import Self

from dagkit.ranges import (
    OffsetRange,
    OffsetRestrictionTracker,
    Progress,
    RestrictionTracker,
    SplitRestriction,
    UnsplittableRestrictionTracker,
)
from dagkit.ranges.cursor import Run


class BetweenRecordsTracker(UnsplittableRestrictionTracker[OffsetRange, int]):
    """Tracks a range whose reader claims the last byte of each record, so the rest begins with a record.

    Whatever share is asked for, all of the unclaimed rest is given away, since the next record starts at its beginning
    and no later start is known. Before the first claim nothing is given away.
    """

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[OffsetRange] | None:
        if not self._inner.is_started() or fraction_of_remainder == 1.0:
            return None
        return self._inner.try_split(0.0)


class RefusingTracker(OffsetRestrictionTracker):
    """Keeps the position that it refuses first, where reading stops."""

    refused: int | None = None
    """The first position that was refused."""

    def try_claim(self, position: int) -> bool:
        return self.claim_many((position,)) == 1

    def claim_many(self, positions: Run[int]) -> int:
        granted = super().claim_many(positions)
        if granted < len(positions) and self.refused is None:
            self.refused = self.plain(positions[granted])
        return granted


class StrideTracker(RestrictionTracker[OffsetRange, int]):
    """Tracks a range of bytes by record numbers; the last record may be shorter."""

    def __init__(self, restriction: OffsetRange, length: int) -> None:
        self._whole = restriction
        self._length = length
        self._records = OffsetRestrictionTracker(OffsetRange(0, self._number(restriction.stop)))

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(vars(self), _records=copy(self._records))
        return twin

    def current_restriction(self) -> OffsetRange:
        return self._bytes(self._records.current_restriction())

    def is_bounded(self) -> bool:
        return True

    def is_started(self) -> bool:
        return self._records.is_started()

    def try_claim(self, position: int) -> bool:
        return self._records.try_claim(self._number(position))

    def claim_many(self, positions: Run[int]) -> int:
        if not len(positions):
            return 0
        first = self._number(int(positions[0]))
        return self._records.claim_many(range(first, first + len(positions)))

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[OffsetRange] | None:
        return self._in_bytes(self._records.try_split(fraction_of_remainder))

    def try_split_at(self, position: int) -> SplitRestriction[OffsetRange] | None:
        return self._in_bytes(self._records.try_split_at(self._number(position)))

    def current_progress(self) -> Progress:
        records = self._records.current_progress()
        return Progress(records.completed * self._length, records.remaining * self._length)

    def check_done(self) -> None:
        self._records.check_done()

    def _in_bytes(self, split: SplitRestriction[OffsetRange] | None) -> SplitRestriction[OffsetRange] | None:
        return None if split is None else SplitRestriction(self._bytes(split.primary), self._bytes(split.residual))

    def _number(self, position: int) -> int:
        """The number of the first record that starts at or after a position."""
        return -(-(position - self._whole.start) // self._length)

    def _bytes(self, records: OffsetRange) -> OffsetRange:
        start, stop = (self._whole.start + number * self._length for number in (records.start, records.stop))
        return OffsetRange(min(start, self._whole.stop), min(stop, self._whole.stop))
