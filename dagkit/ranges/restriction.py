"""The contract between a function that processes a restriction, and the engine that takes work back from it.

A restriction is part of the work that one item asks for: bytes of a file, records of a log. The function claims each
block of work before doing it, does the whole block once it is granted, and returns when a claim is refused:

    while tracker.try_claim(position):
        position = work_on(position)

Meanwhile the engine may split: what was claimed stays here, as the primary; another call processes the residual.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from dagkit.ranges.cursor import P, Run
from dagkit.ranges.offset import OFFSET_INFINITY, OffsetCursor, OffsetRange
from dagkit.ranges.progress import Progress
from dagkit.ranges.range_errors import DelayInvalid, FractionInvalid, WorkUnclaimed

R = TypeVar("R")


class SplitRestriction(NamedTuple, Generic[R]):
    """The primary, with which the function continues, and the residual for another call. Together: the original."""

    primary: R
    residual: R


@dataclass(frozen=True, slots=True)
class Deferred(Generic[R]):
    """Work that the function deferred, because there is nothing to read yet."""

    residual: R
    delay: timedelta | datetime

    def due(self, now: datetime) -> datetime:
        """The time at which to resume work that was deferred at `now`."""
        return self.delay if isinstance(self.delay, datetime) else now + self.delay


class RestrictionTracker(ABC, Generic[R, P]):
    """Guards the work on one restriction; every method may be called from any thread at any time."""

    _deferred: Deferred[R] | None = None

    def __init_subclass__(cls, **given: Any) -> None:
        """A tracker that changes how work is split by share, and not by position, knows no positions.

        It may round to records, for instance; what it inherits would split where it never does.
        """
        super().__init_subclass__(**given)
        if "try_split" in vars(cls) and "try_split_at" not in vars(cls):
            cls.try_split_at = RestrictionTracker.try_split_at  # type: ignore[method-assign] # as if it stood there

    @abstractmethod
    def current_restriction(self) -> R:
        """The work of this tracker as it is now: the whole at first, the primary after a split."""

    @abstractmethod
    def is_bounded(self) -> bool:
        """Whether the work ends by itself."""

    @abstractmethod
    def is_started(self) -> bool:
        """Whether anything was claimed; splitting before that hands the same work on for ever."""

    @abstractmethod
    def try_claim(self, position: P) -> bool:
        """Whether the block at `position` is to be worked on here; if not, the function returns."""

    @abstractmethod
    def claim_many(self, positions: Run[P]) -> int:
        """How many of the ascending blocks are to be worked on here; if not all, the function returns after them."""

    @abstractmethod
    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[R] | None:
        """Keep so much of the unclaimed work and give the rest away; 0 keeps what is claimed and nothing else.

        None if there is nothing to give, and nothing has changed.
        """

    def try_split_at(self, position: P) -> SplitRestriction[R] | None:  # noqa: ARG002 - a subclass needs it
        """Keep what lies before an unclaimed position, and give the rest away.

        A tracker that divides its work between two records may take the next record after the position. None if the
        position is claimed already, or nothing would lie on one side of it; None, too, from a tracker whose work
        has no positions. Nothing has changed then.
        """
        return None

    @abstractmethod
    def current_progress(self) -> Progress:
        """How much is done and left."""

    @abstractmethod
    def check_done(self) -> None:
        """Raise if the function returned with work unclaimed that it did not defer."""

    def defer_remainder(self, delay: timedelta | datetime | None = None) -> None:
        """Put off what is unclaimed, for some time or until an instant; the function returns after this."""
        delay = timedelta() if delay is None else delay
        _refuse_unless_time(delay)
        split = self.try_split(0.0)
        if split is not None:
            self._deferred = Deferred(split.residual, delay)

    def deferred(self) -> Deferred[R] | None:
        """What was put off, if anything was."""
        return self._deferred


def _refuse_unless_time(delay: object) -> None:
    if not (isinstance(delay, timedelta) or (isinstance(delay, datetime) and delay.tzinfo is not None)):
        raise DelayInvalid(delay)


class OffsetRestrictionTracker(OffsetCursor, RestrictionTracker[OffsetRange, int]):
    """Tracks work on a range of integers.

    A range without an end can be given away from the next offset on, and nowhere else: it has no halves.
    """

    def __init__(self, restriction: OffsetRange) -> None:
        super().__init__(restriction.start, restriction.stop)

    def current_restriction(self) -> OffsetRange:
        return OffsetRange(self.start_position(), self.stop_position())

    def is_bounded(self) -> bool:
        return self.stop_position() != OFFSET_INFINITY

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[OffsetRange] | None:
        if not 0.0 <= fraction_of_remainder <= 1.0:
            raise FractionInvalid(fraction_of_remainder)
        with self._lock:
            if not self.is_bounded() and fraction_of_remainder > 0:
                return None
            return self._split_towards(self.stop_position(), fraction_of_remainder)

    def try_split_at(self, position: int) -> SplitRestriction[OffsetRange] | None:
        """A range without an end is split here, too: where the position lies is known, unlike where halfway is."""
        position = self.plain(position)
        with self._lock:
            if not max(self._reached(), self.start_position()) < position < self.stop_position():
                return None
            return self._split_there(position)

    def _split_towards(self, end: int, fraction: float) -> SplitRestriction[OffsetRange] | None:
        """Split at a fraction of the way to an end, the next offset at least; called under the lock."""
        reached = self._reached()
        position = min(end, reached + int(max(1, (end - reached) * fraction)))
        if position >= self.stop_position():
            return None
        if position == self.start_position() and fraction > 0:
            # Only a checkpoint may keep nothing. Sharing that hands on the whole would go round for ever.
            return None
        return self._split_there(position)

    def _split_there(self, position: int) -> SplitRestriction[OffsetRange]:
        """The range stops at a position that is not claimed; called under the lock."""
        split = SplitRestriction(*self.current_restriction().split_at(position))
        self._stop = position
        return split

    def current_progress(self) -> Progress:
        with self._lock:
            return self._progress_towards(self.stop_position() if self.is_bounded() else float("inf"))

    def _progress_towards(self, end: float) -> Progress:
        """Offsets before the last claim, and from it to an end; called under the lock."""
        at = self.start_position() if self._last is None else min(int(self._last), self.stop_position())
        return Progress(at - self.start_position(), max(0, end - at))

    def check_done(self) -> None:
        with self._lock:
            unclaimed, stop = self._reached() + 1, self.stop_position()
        if unclaimed < stop:
            raise WorkUnclaimed(unclaimed, stop)

    def _reached(self) -> int:
        """The last offset that was asked for; the one before the start if none was."""
        return self.start_position() - 1 if self._last is None else int(self._last)


def split_near(
    tracker: RestrictionTracker[R, P], position: P, fraction_of_remainder: float
) -> SplitRestriction[R] | None:
    """Split at a position, or where its tracker knows no positions, at the share of the unclaimed work before it."""
    split = tracker.try_split_at(position)
    return tracker.try_split(fraction_of_remainder) if split is None else split


def claimed_runs(tracker: RestrictionTracker[OffsetRange, int], length: int) -> Iterator[range]:
    """The offsets of a restriction in runs of so many, each claimed at once; they end where a claim is refused."""
    start = tracker.current_restriction().start
    granted = length
    while granted == length:
        granted = tracker.claim_many(range(start, start + length))
        if granted:
            yield range(start, start + granted)
        start += granted
