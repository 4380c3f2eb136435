"""The contract between a function that processes a restriction, and the engine that takes work back from it.

A restriction is part of the work on an item, such as bytes of a file or records of a log. The function claims each
block of work before it works on it, finishes every granted block, and returns when a claim is refused:

    while tracker.try_claim(position):
        position = work_on(position)

Another thread of the engine may split the restriction at any time. The claimed part stays with the function, as the
primary. Another call processes the rest, the residual.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from dagkit.ranges.cursor import P, Run
from dagkit.ranges.offset import OFFSET_INFINITY, OffsetCursor, OffsetRange
from dagkit.ranges.progress import Progress
from dagkit.ranges.range_errors import DelayInvalid, FractionInvalid, WorkUnclaimed

R = TypeVar("R")


class SplitRestriction(NamedTuple, Generic[R]):
    """The primary, which the function continues, and the residual for another call. Both add up to the original."""

    primary: R
    residual: R


NEXT_LAUNCH = datetime(9999, 1, 1, tzinfo=UTC)
"""The instant to which an operator defers work that only a later launch resumes: no launch waits for it."""


@dataclass(frozen=True, slots=True)
class Deferred(Generic[R]):
    """Work that the function deferred, because there is nothing to read yet, or because its source does not answer."""

    residual: R
    delay: timedelta | datetime
    unanswered: bool = False
    """Whether the source did not answer, so that it is unknown whether there is anything to read."""
    waits_for: str = ""
    """Why input that is there is not read yet, for users."""

    def due(self, now: datetime) -> datetime:
        """The time at which to resume work that was deferred at `now`."""
        return self.delay if isinstance(self.delay, datetime) else now + self.delay


class RestrictionTracker(ABC, Generic[R, P]):
    """Guards the work on one restriction. All methods may be called from any thread at any time."""

    _deferred: Deferred[R] | None = None
    _skipped: tuple[OffsetRange, ...] = ()
    _seen_end: int | None = None

    def __init_subclass__(cls, **given: Any) -> None:
        """Disable `try_split_at` in a class that overrides only `try_split`.

        Such a class may split only at certain positions, for instance between records. An inherited `try_split_at`
        would also split at others.
        """
        super().__init_subclass__(**given)
        if "try_split" in vars(cls) and "try_split_at" not in vars(cls):
            cls.try_split_at = RestrictionTracker.try_split_at  # type: ignore[method-assign] # as if the class had it

    @abstractmethod
    def current_restriction(self) -> R:
        """The current restriction: the whole at first, the primary after a split."""

    @abstractmethod
    def is_bounded(self) -> bool:
        """Whether the work has an end."""

    @abstractmethod
    def is_started(self) -> bool:
        """Whether anything was claimed. Work that is split off before its first claim might never be processed."""

    @abstractmethod
    def try_claim(self, position: P) -> bool:
        """Claim the block at `position`. Return False if it is not granted: then the function must return."""

    @abstractmethod
    def claim_many(self, positions: Run[P]) -> int:
        """Claim ascending blocks, and return the number that is granted, from the first on.

        If not all are granted, the function must return after it has processed these.
        """

    @abstractmethod
    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[R] | None:
        """Keep this fraction of the unclaimed work, and split off the rest; 0 keeps only the claimed work.

        If there is no work to split off, return None and change nothing.
        """

    def try_split_at(self, position: P) -> SplitRestriction[R] | None:  # noqa: ARG002 - a subclass needs it
        """Keep the work before an unclaimed position, and split off the rest.

        A tracker that splits only between records may use the next record after the position. If the position is
        claimed, or no work is on one side of it, return None and change nothing. By default, return None: the work has
        no positions.
        """
        return None

    @abstractmethod
    def current_progress(self) -> Progress:
        """The amounts of work done and left."""

    @abstractmethod
    def check_done(self) -> None:
        """Raise if the function returned while unclaimed work is left that it did not defer."""

    def defer_remainder(
        self, delay: timedelta | datetime | None = None, *, unanswered: bool = False, waits_for: str = ""
    ) -> None:
        """Defer the unclaimed work, for some time or until an instant. The function must return after this call.

        A launch that ends when nothing is left to read does not resume work without an end that is deferred. If the
        source did not answer, set `unanswered`: every launch then resumes the work, and its source is not idle.
        `waits_for` is why input that is there is not read yet, such as "a.csv is still being written": `dagkit status`
        and the summary of a launch print it.
        """
        delay = timedelta() if delay is None else delay
        _refuse_unless_time(delay)
        split = self.try_split(0.0)
        if split is not None:
            self._deferred = Deferred(split.residual, delay, unanswered, waits_for)

    def skip(self, start: int, stop: int) -> None:
        """Report that claimed offsets were not read, as those of removed messages: the ledger calls them skipped."""
        self._skipped = (*self._skipped, OffsetRange(start, stop))

    def skipped(self) -> tuple[OffsetRange, ...]:
        """The claimed offsets that were not read."""
        return self._skipped

    def see_end(self, offset: int) -> None:
        """Report up to which offset there is something to read: what a range without an end leaves of it is backlog."""
        self._seen_end = offset

    def seen_end(self) -> int | None:
        """The offset that the function reported last; None if it reported none."""
        return self._seen_end

    def deferred(self) -> Deferred[R] | None:
        """The deferred work; None if the function deferred none."""
        return self._deferred


def _refuse_unless_time(delay: object) -> None:
    if not (isinstance(delay, timedelta) or (isinstance(delay, datetime) and delay.tzinfo is not None)):
        raise DelayInvalid(delay)


class OffsetRestrictionTracker(OffsetCursor, RestrictionTracker[OffsetRange, int]):
    """Tracks work on a range of integers.

    A range without an end can be split at a position, but by no fraction except 0, because its middle is unknown.
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
        """Split at an offset. A range without an end can be split, too, because no fraction of it is needed."""
        position = self.plain(position)
        with self._lock:
            if not max(self._reached(), self.start_position()) < position < self.stop_position():
                return None
            return self._split_there(position)

    def _split_towards(self, end: int, fraction: float) -> SplitRestriction[OffsetRange] | None:
        """Split at a fraction of the way to an end, at least at the next offset. The caller holds the lock."""
        reached = self._reached()
        position = min(end, reached + int(max(1, (end - reached) * fraction)))
        if position >= self.stop_position():
            return None
        if position == self.start_position() and fraction > 0:
            # Only a fraction of 0, for a checkpoint, may keep no work. Else slots could pass the whole on for ever.
            return None
        return self._split_there(position)

    def _split_there(self, position: int) -> SplitRestriction[OffsetRange]:
        """Make the range stop at an unclaimed position. The caller holds the lock."""
        split = SplitRestriction(*self.current_restriction().split_at(position))
        self._stop = position
        return split

    def current_progress(self) -> Progress:
        with self._lock:
            return self._progress_towards(self.stop_position() if self.is_bounded() else float("inf"))

    def _progress_towards(self, end: float) -> Progress:
        """The numbers of offsets before the last claim, and from it to an end. The caller holds the lock."""
        # A refused claim may lie beyond the stop.
        at = self.start_position() if self._last is None else min(int(self._last), self.stop_position())
        return Progress(at - self.start_position(), max(0, end - at))

    def check_done(self) -> None:
        with self._lock:
            unclaimed, stop = self._reached() + 1, self.stop_position()
        if unclaimed < stop:
            raise WorkUnclaimed(unclaimed, stop)

    def _reached(self) -> int:
        """The last offset that was claimed or refused; the one before the start if there is none."""
        return self.start_position() - 1 if self._last is None else int(self._last)


def split_near(
    tracker: RestrictionTracker[R, P], position: P, fraction_of_remainder: float
) -> SplitRestriction[R] | None:
    """Split at a position, or where its tracker knows no positions, at the share of the unclaimed work before it."""
    split = tracker.try_split_at(position)
    return tracker.try_split(fraction_of_remainder) if split is None else split


def fail_claims(tracker: RestrictionTracker[Any, Any], error: Exception) -> None:
    """Let every later claim raise this error: the function may have no end, and returns only after a claim.

    Attributes of the instance hide the methods of its class, so claims cost no more before.
    """

    def claim(_: object) -> NoReturn:
        raise error

    vars(tracker).update(try_claim=claim, claim_many=claim)


def claimed_runs(tracker: RestrictionTracker[OffsetRange, int], length: int) -> Iterator[range]:
    """The offsets of a restriction in runs of so many, each claimed at once; they end where a claim is refused."""
    start = tracker.current_restriction().start
    granted = length
    while granted == length:
        granted = tracker.claim_many(range(start, start + length))
        if granted:
            yield range(start, start + granted)
        start += granted


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
        # A fraction of 0 takes all unclaimed work, so it needs no estimate, and no failing estimator can prevent it
        estimate = self._estimate_end() if fraction_of_remainder else 0
        with self._lock:
            # Another thread may have split the range meanwhile: then the estimate is limited to the new stop.
            end = min(self.stop_position(), max(estimate, self._reached() + 1))
            return self._split_towards(end, fraction_of_remainder)

    def try_split_at(self, position: int) -> SplitRestriction[OffsetRange] | None:
        """Split as a bounded range does: a known position needs no estimate."""
        # This method looks needless, but `__init_subclass__` disables it in a class that overrides only `try_split`.
        return super().try_split_at(position)

    def current_progress(self) -> Progress:
        if self.is_bounded():
            return super().current_progress()
        estimate = self._estimate_end()
        with self._lock:
            return self._progress_towards(min(self.stop_position(), estimate))
