"""Errors in the use of ranges by the author of a source. Each error names the conflicting positions.

A refused claim or split is not an error: it returns False or None. An error means that continuing would lose or
duplicate records.

    RangeFault
    ├── RangeInvalid          two bounds do not form a range
    ├── FractionInvalid       a fraction is not between 0 and 1
    ├── PositionUnmeasured    no position can be computed: the range has no end, or its positions have no distances
    ├── PositionOutside       a position is not in the range
    ├── ClaimBeforeStart      a record starts before the range
    ├── ClaimBackwards        a record does not start after the one before it
    ├── SplitPointMissing     a record is not a split point, at a position where only a split point may be
    ├── WorkUnclaimed         reading ended before the end of the range
    ├── ProgressInvalid       amounts of work done and left are invalid
    ├── DelayInvalid          work is deferred by a value that is not a time
    └── WatermarkInvalid      a watermark is not an instant, or goes back
"""

from dagkit.errors import RunFailure


class RangeFault(RunFailure):
    """The base of all range errors. Each keeps the positions as attributes."""

    caused_by_author = True


class RangeInvalid(RangeFault):
    """Two bounds do not form a range."""

    code = "range-invalid"
    usual_help = "give the range a start and a later stop of its own kind, and cut pieces of at least 1"

    def __init__(self, start: object, stop: object, reason: str) -> None:
        super().__init__(f"[{start!r}, {stop!r}) is not a range: {reason}")
        self.start = start
        self.stop = stop
        self.reason = reason


class FractionInvalid(RangeFault):
    """A fraction is not between 0 and 1."""

    code = "fraction-invalid"
    usual_help = "pass a fraction from 0 to 1"

    def __init__(self, fraction: object) -> None:
        super().__init__(f"{fraction!r} is not a fraction between 0 and 1")
        self.fraction = fraction


class PositionUnmeasured(RangeFault):
    """No position can be computed from a fraction."""

    code = "position-unmeasured"
    usual_help = "give the range an end, or split at a position that the reader knows"

    def __init__(self, start: object, reason: str) -> None:
        super().__init__(f"no position in the range from {start!r} can be computed from a fraction: {reason}")
        self.start = start
        self.reason = reason


class PositionOutside(RangeFault):
    """A position is not in the range."""

    code = "position-outside"
    usual_help = "ask only about positions in the range"

    def __init__(self, position: object, start: object, stop: object) -> None:
        super().__init__(f"position {position!r} lies outside of [{start!r}, {stop!r})")
        self.position = position
        self.start = start
        self.stop = stop


class ClaimBeforeStart(RangeFault):
    """A record starts before the range: the reader has not skipped to the first record in the range."""

    code = "claim-before-start"
    usual_help = "begin with the first record that starts at or after the start of the range"

    def __init__(self, position: object, start: object) -> None:
        super().__init__(f"claimed {position!r}, before the range's start {start!r}")
        self.position = position
        self.start = start


class ClaimBackwards(RangeFault):
    """A record does not start after the one before it, so its position is already claimed."""

    code = "claim-backwards"
    usual_help = "claims go forward: claim records in the order of their positions, each split point once"

    def __init__(self, position: object, last: object) -> None:
        before = "twice" if position == last else f"after {last!r}"
        super().__init__(f"claimed {position!r} {before}")
        self.position = position
        self.last = last


class SplitPointMissing(RangeFault):
    """A record is not a split point, at a position where only a split point may be."""

    code = "split-point-missing"
    usual_help = "mark the first record at each position as a split point, and no further record of its group"

    def __init__(self, position: object, group: object = None) -> None:
        super().__init__(
            f"the first record of a range must be a split point, but the one at {position!r} is not"
            if group is None
            else f"the record at {position!r} is not a split point, so it must be in the group at {group!r}"
        )
        self.position = position
        self.group = group


class WorkUnclaimed(RangeFault):
    """Reading ended before the end of the range, so the rest would be lost."""

    code = "work-unclaimed"
    usual_help = (
        "claim until a claim is refused, also the end, tracker.current_restriction().stop, "
        "once there are no more records; or defer the remainder before returning"
    )

    def __init__(self, start: object, stop: object) -> None:
        super().__init__(f"[{start!r}, {stop!r}) was never claimed")
        self.start = start
        self.stop = stop


class ProgressInvalid(RangeFault):
    """The amounts of work done and left are invalid."""

    code = "progress-invalid"
    usual_help = "return the amount that is done and the amount that is left, each a number from 0"

    def __init__(self, completed: float, remaining: float, reason: str) -> None:
        super().__init__(f"{completed!r} done and {remaining!r} left is not valid progress: {reason}")
        self.completed = completed
        self.remaining = remaining
        self.reason = reason


class DelayInvalid(RangeFault):
    """Work is deferred by a value that is neither a timedelta nor an aware datetime."""

    code = "delay-invalid"
    usual_help = "pass a timedelta, or a datetime with a time zone"

    def __init__(self, delay: object) -> None:
        super().__init__(f"a remainder is deferred by a timedelta or until an aware datetime, not {delay!r}")
        self.delay = delay


class WatermarkInvalid(RangeFault):
    """A watermark is not an aware instant, or goes back."""

    code = "watermark-invalid"
    usual_help = "set a datetime with a time zone that is not before the last watermark"

    def __init__(self, instant: object, reason: str) -> None:
        super().__init__(f"{instant!r} is not a valid watermark: {reason}")
        self.instant = instant
        self.reason = reason
