"""Ranges that are never split, such as a gzip file, which can be read only from its beginning."""

from copy import copy
from typing import Self

from dagkit.ranges.cursor import P, Run
from dagkit.ranges.progress import Progress
from dagkit.ranges.restriction import R, RestrictionTracker, SplitRestriction
from dagkit.ranges.tracker import RangeTracker, Split, SplitPoints, Unclaimed


class UnsplittableRangeTracker(RangeTracker[P]):
    """Wraps another tracker and refuses every split. The whole range counts as one split point."""

    def __init__(self, inner: RangeTracker[P]) -> None:
        assert isinstance(inner, RangeTracker), f"an unsplittable tracker wraps a RangeTracker, not {inner!r}"
        self._inner = inner

    # The usual copy would share the inner tracker, and with it the claims.
    def __copy__(self) -> Self:
        return type(self)(copy(self._inner))

    def start_position(self) -> P | None:
        return self._inner.start_position()

    def stop_position(self) -> P | None:
        return self._inner.stop_position()

    def try_claim(self, position: P) -> bool:
        return self._inner.try_claim(position)

    def claim_many(self, positions: Run[P]) -> int:
        return self._inner.claim_many(positions)

    def try_return_record_at(self, is_at_split_point: bool, record_start: P) -> bool:  # noqa: FBT001 - see RangeTracker
        return self._inner.try_return_record_at(is_at_split_point, record_start)

    def try_split_at_position(self, position: P) -> Split[P] | None:  # noqa: ARG002 - the same for all
        return None

    def fraction_consumed(self) -> float | None:
        return self._inner.fraction_consumed()

    def position_at_fraction(self, fraction: float) -> P | None:
        return self._inner.position_at_fraction(fraction)

    def split_points(self) -> SplitPoints:
        return SplitPoints(0, 1)

    def set_split_points_unclaimed_callback(self, unclaimed: Unclaimed[P | None]) -> None:
        """Ignore the callback: there is always one split point."""


class UnsplittableRestrictionTracker(RestrictionTracker[R, P]):
    """Wraps another tracker and refuses every split, also at the end of a window."""

    def __init__(self, inner: RestrictionTracker[R, P]) -> None:
        assert isinstance(inner, RestrictionTracker), (
            f"an unsplittable tracker wraps a RestrictionTracker, not {inner!r}"
        )
        self._inner = inner

    def __copy__(self) -> Self:
        return type(self)(copy(self._inner))

    def current_restriction(self) -> R:
        return self._inner.current_restriction()

    def is_bounded(self) -> bool:
        return self._inner.is_bounded()

    def is_started(self) -> bool:
        return self._inner.is_started()

    def try_claim(self, position: P) -> bool:
        return self._inner.try_claim(position)

    def claim_many(self, positions: Run[P]) -> int:
        return self._inner.claim_many(positions)

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[R] | None:  # noqa: ARG002 - the same for all
        return None

    def try_split_at(self, position: P) -> SplitRestriction[R] | None:  # noqa: ARG002 - the same for all
        return None

    def current_progress(self) -> Progress:
        return self._inner.current_progress()

    def check_done(self) -> None:
        self._inner.check_done()


class SequentialRestrictionTracker(UnsplittableRestrictionTracker[R, P]):
    """Tracks as another tracker does, and splits off only all unclaimed work: one worker at a time works, in order."""

    def try_split(self, fraction_of_remainder: float) -> SplitRestriction[R] | None:
        return self._inner.try_split(0.0) if fraction_of_remainder == 0.0 else None
