"""Pace: how long the next window is, and how much it is given. Pure.

A window costs something besides its work, and a slot that has no more work waits for the others until the window is
over. How much is waited depends on how wrong the forecast is. Long windows where it is right, short ones where it is
wrong: with the backlog T, the cost h of a window and the error r, windows of sqrt(T h / r) cost least of both together,
and they get shorter as the backlog does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

from dagkit.scaling.policy import LONGEST_MILLIS

FIRST_POSITIONS = 512 << 20
"""What a slot is given before anything was measured: more than it reads in time, for what it leaves costs nothing."""
FIRST_MILLIS = 1_000.0
"""How long a first window is at least: programs are loaded in it, too."""
FIRST_PER_MILLI = 100_000
"""How much a slot is thought to read in a millisecond before anything was measured."""
LEAST_ERROR = 0.02
"""No forecast is better."""
SOMEWHAT_WRONG = 0.1
"""Up to here a window is given time to end the backlog though it takes longer; beyond, what is late is shared anew."""
_KEPT = 0.9
"""How much of what was known counts beside the newest window."""
_RISING = 1.25
"""By how much the cost of a window may be found to have grown in one window: others may have kept it waiting."""


class WindowLength(NamedTuple):
    """Of a window."""

    lasts_millis: float
    """When no new work is begun, and what is being worked on is split."""
    work_millis: float
    """How much each slot is to be given."""


@dataclass(frozen=True, slots=True)
class WindowSizer:
    """What was measured so far."""

    shortest_millis: float
    """STREAMING_WINDOW_SIZE_MILLIS: how long a window is when there is little to do."""
    positions: float = 0.0
    millis: float = 0.0
    """What slots read lately, and how long they were busy with it, together."""
    overhead_millis: float = 100.0
    """What a window costs besides its work."""
    error: float = LEAST_ERROR
    """How wrong forecasts were lately: 0 never, 1 as good as none."""

    @property
    def usual(self) -> float | None:
        """Milliseconds that one position takes; none before anything was measured."""
        return self.millis / self.positions if self.positions else None

    def after(self, positions: float, busy_millis: float) -> "WindowSizer":
        """What is known after slots have read so much in so much time together."""
        if positions <= 0 or busy_millis <= 0:
            return self
        return replace(self, positions=_KEPT * self.positions + positions, millis=_KEPT * self.millis + busy_millis)

    def after_window(self, whole_millis: float, busiest_millis: float) -> "WindowSizer":
        """What is known of the cost of a window after one whose busiest slot was at work for so long."""
        seen = max(0.0, whole_millis - busiest_millis)
        return replace(self, overhead_millis=max(1.0, min(seen, _RISING * self.overhead_millis)))

    def after_forecast(self, expected: Sequence[float], took: Sequence[float]) -> "WindowSizer":
        """What is known of forecasts after slots took so long for what was expected to take so long.

        Where all were slower by the same, nobody waits for anybody, and the forecast was right. One alone never waits.
        """
        if len(took) < 2 or sum(expected) <= 0 or sum(took) <= 0:
            return self
        slower = sum(took) / sum(expected)
        off = sum(abs(t - slower * e) for e, t in zip(expected, took, strict=True)) / sum(took)
        return replace(self, error=min(1.0, max(LEAST_ERROR, off, (off + self.error) / 2)))

    def next(self, backlog: float) -> WindowLength:
        """The next window, where each slot has so much to do: milliseconds, or positions while nothing is measured."""
        if self.usual is None:
            lasts = min(max(FIRST_MILLIS, backlog / FIRST_PER_MILLI), LONGEST_MILLIS / 4)
            return WindowLength(max(self.shortest_millis, lasts), FIRST_POSITIONS)
        longest = max(self.shortest_millis, LONGEST_MILLIS)
        best = min(max(self.shortest_millis, sqrt(backlog * self.overhead_millis / self.error)), longest)
        if backlog <= best * 1.25:
            late = 2 * self.error * backlog + self.overhead_millis if self.error <= SOMEWHAT_WRONG else 0.0
            return WindowLength(max(self.shortest_millis, backlog + late), backlog)
        return WindowLength(best, best)
