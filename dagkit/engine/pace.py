"""Pace: how long the next window is, and how much it is given. Pure."""

from dataclasses import dataclass, replace

LONGEST_MILLIS = 10_000.0
"""Of a window in the middle of a large backlog: so long that what a window costs besides its work hardly shows."""
FIRST_POSITIONS = 512 << 20
"""What a slot is given before anything was measured: more than it reads in time, for what it leaves costs nothing."""
_NEWEST = 0.5
"""How much the newest window counts in the average."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What was measured so far."""

    shortest_millis: float
    """STREAMING_WINDOW_SIZE_MILLIS: how long a window is when there is little to do."""
    per_milli: float | None = None
    """Positions that one busy slot reads in a millisecond."""

    def after(self, positions: int, busy_millis: float) -> "Pace":
        """What is known after slots have read so much in so much time together."""
        if positions <= 0 or busy_millis <= 0:
            return self
        measured = positions / busy_millis
        per_milli = measured if self.per_milli is None else _NEWEST * measured + (1 - _NEWEST) * self.per_milli
        return replace(self, per_milli=per_milli)

    def lasts_millis(self, backlog: int, slots: int) -> float:
        """How long the next window may take: short when it can end the backlog, long when it cannot."""
        if self.per_milli is None:
            return max(self.shortest_millis, LONGEST_MILLIS / 4)
        needed = backlog / (self.per_milli * max(1, slots))
        return min(max(self.shortest_millis, needed), max(self.shortest_millis, LONGEST_MILLIS))

    def positions_each(self, lasts_millis: float) -> float:
        """How much a slot can read in a window of that length, and a little more, so that none runs dry."""
        if self.per_milli is None:
            return FIRST_POSITIONS
        return self.per_milli * lasts_millis * 1.25
