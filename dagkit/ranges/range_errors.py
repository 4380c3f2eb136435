"""Errors that the author of a source can make with a range. Each error names the conflicting positions.

A refused claim or split is no error: it returns False or None. An error means that continuing would lose or duplicate
records.

    RangeFault
    ├── RangeInvalid          two bounds are no range
    ├── FractionInvalid       a fraction is not between 0 and 1
    ├── PositionUnmeasured    no position can be computed: the range has no end, or its positions have no distances
    ├── PositionOutside       a position is asked about a range that does not hold it
    ├── ClaimBeforeStart      a record starts before the range
    ├── ClaimBackwards        a record does not start after the one before it
    ├── SplitPointMissing     a record is no split point, at a position where only a split point may be
    ├── WorkUnclaimed         reading ended before the range did
    ├── ProgressInvalid       numbers are no progress
    ├── DelayInvalid          work is deferred by a value that is no time
    └── WatermarkInvalid      a watermark is no instant, or goes back
"""

from dagkit.errors import DagkitError


class RangeFault(DagkitError):
    """The base of all range errors. Its arguments are the positions, so that it can be pickled."""


class RangeInvalid(RangeFault):
    """Two bounds are no range."""

    def __init__(self, start: object, stop: object, reason: str) -> None:
        self.start = start
        self.stop = stop
        self.reason = reason
        super().__init__(start, stop, reason)

    def __str__(self) -> str:
        return f"[{self.start!r}, {self.stop!r}) is no range: {self.reason}"


class FractionInvalid(RangeFault):
    """A fraction is not between 0 and 1."""

    def __init__(self, fraction: object) -> None:
        self.fraction = fraction
        super().__init__(fraction)

    def __str__(self) -> str:
        return f"a fraction lies between 0 and 1, unlike {self.fraction!r}"


class PositionUnmeasured(RangeFault):
    """No position can be computed from a fraction."""

    def __init__(self, start: object, reason: str) -> None:
        self.start = start
        self.reason = reason
        super().__init__(start, reason)

    def __str__(self) -> str:
        return f"no fraction of the range from {self.start!r} is a position: {self.reason}"


class PositionOutside(RangeFault):
    """A position is asked about a range that does not hold it."""

    def __init__(self, position: object, start: object, stop: object) -> None:
        self.position = position
        self.start = start
        self.stop = stop
        super().__init__(position, start, stop)

    def __str__(self) -> str:
        return f"position {self.position!r} lies outside of [{self.start!r}, {self.stop!r})"


class ClaimBeforeStart(RangeFault):
    """A record starts before the range: the reader has not moved to the first record of its own."""

    def __init__(self, position: object, start: object) -> None:
        self.position = position
        self.start = start
        super().__init__(position, start)

    def __str__(self) -> str:
        return (
            f"claimed {self.position!r}, before the range's start {self.start!r}; "
            "begin with the first record that starts at or after it"
        )


class ClaimBackwards(RangeFault):
    """A record does not start after the one before it, so its position is already claimed."""

    def __init__(self, position: object, last: object) -> None:
        self.position = position
        self.last = last
        super().__init__(position, last)

    def __str__(self) -> str:
        if self.position == self.last:
            return f"claimed {self.position!r} twice; every split point has a position of its own"
        return f"claimed {self.position!r} after {self.last!r}; claims go forward"


class SplitPointMissing(RangeFault):
    """A record is no split point, at a position where only a split point may be."""

    def __init__(self, position: object, group: object = None) -> None:
        self.position = position
        self.group = group
        super().__init__(position, group)

    def __str__(self) -> str:
        if self.group is None:
            return f"the first record of a range is a split point, unlike the one at {self.position!r}"
        return f"the record at {self.position!r} is no split point, so it belongs to the group at {self.group!r}"


class WorkUnclaimed(RangeFault):
    """Reading ended before the range did: what is left would be lost."""

    def __init__(self, start: object, stop: object) -> None:
        self.start = start
        self.stop = stop
        super().__init__(start, stop)

    def __str__(self) -> str:
        return (
            f"[{self.start!r}, {self.stop!r}) was never claimed; "
            "go on until a claim is refused, or defer the remainder before returning"
        )


class ProgressInvalid(RangeFault):
    """Numbers are no progress."""

    def __init__(self, completed: float, remaining: float, reason: str) -> None:
        self.completed = completed
        self.remaining = remaining
        self.reason = reason
        super().__init__(completed, remaining, reason)

    def __str__(self) -> str:
        return f"{self.completed!r} done and {self.remaining!r} to do is no progress: {self.reason}"


class DelayInvalid(RangeFault):
    """Work is deferred by a value that is neither a timedelta nor an aware datetime."""

    def __init__(self, delay: object) -> None:
        self.delay = delay
        super().__init__(delay)

    def __str__(self) -> str:
        return f"a remainder is deferred by a timedelta or until an aware datetime, not {self.delay!r}"


class WatermarkInvalid(RangeFault):
    """A watermark is no aware instant, or goes back."""

    def __init__(self, instant: object, reason: str) -> None:
        self.instant = instant
        self.reason = reason
        super().__init__(instant, reason)

    def __str__(self) -> str:
        return f"{self.instant!r} is no watermark: {self.reason}"
