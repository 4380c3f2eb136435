"""Ranges of opaque positions that a shuffle assigned to its groups: they are ordered, but have no distances."""

from dagkit.ranges.range_errors import ClaimBackwards, PositionUnmeasured, RangeInvalid, SplitPointMissing
from dagkit.ranges.tracker import CursorRangeTracker


class GroupedShuffleRangeTracker(CursorRangeTracker[bytes]):
    """Tracks groups of a shuffle: the first record of a group is its split point, the others have the same position.

    None, or an empty position, stands for no bound. The consumed fraction is unknown.
    """

    def __init__(self, start: bytes | None = None, stop: bytes | None = None) -> None:
        start, stop = start or None, stop or None
        if start is not None and stop is not None and start > stop:
            raise RangeInvalid(start, stop, "it stops before it starts")
        super().__init__(start, stop)

    def _follow(self, record_start: bytes, last: bytes) -> None:
        if record_start < last:
            raise ClaimBackwards(record_start, last)
        if record_start != last:
            raise SplitPointMissing(record_start, last)

    @classmethod
    def position_to_fraction(cls, position: bytes, start: bytes | None, stop: bytes | None) -> None:  # noqa: ARG003 - whatever is asked
        return None

    @classmethod
    def fraction_to_position(cls, fraction: float, start: bytes | None, stop: bytes | None) -> bytes | None:  # noqa: ARG003 - whatever is asked
        raise PositionUnmeasured(start, "positions of a shuffle have no distances")
