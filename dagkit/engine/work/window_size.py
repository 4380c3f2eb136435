"""Choose the length and the amount of work of the next window. Pure.

Each window has an overhead, and a slot without more work waits for the others until the window is over. Its wait
depends on the error of the forecast: long windows are best if it is accurate, short ones if it is not. With the backlog
T, the overhead h of a window and the error r, windows of sqrt(T h / r) have the lowest total cost; they get shorter as
the backlog does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

from dagkit.scaling.policy import LONGEST_MILLIS

FIRST_POSITIONS = 512 << 20
"""The work of a slot before any measurement: more than it reads in time, since unread work costs nothing."""
FIRST_MILLIS = 1_000.0
"""The shortest first window: it includes loading the programs."""
FIRST_PER_MILLI = 100_000
"""The assumed reading speed of a slot per millisecond before any measurement."""
LEAST_ERROR = 0.02
"""The lowest error that is assumed of any forecast."""
SOMEWHAT_WRONG = 0.1
"""Up to this error a window may run longer to end the backlog; above it, the next window shares out late work again."""
_KEPT = 0.9
"""The weight of earlier measurements beside the newest window."""
_RISING = 1.25
"""The largest growth of the overhead in one window: other load may have delayed a single window."""


class WindowLength(NamedTuple):
    """The duration of a window and the amount of its work."""

    lasts_millis: float
    """After this time slots begin no new work, and work in progress is split."""
    work_millis: float
    """The amount of work to allocate to each slot."""


@dataclass(frozen=True, slots=True)
class WindowSizer:
    """The measurements so far."""

    shortest_millis: float
    """STREAMING_WINDOW_SIZE_MILLIS: the length of a window with little work."""
    positions: float = 0.0
    millis: float = 0.0
    """What all slots read recently, and their busy time in total."""
    overhead_millis: float = 100.0
    """The overhead of a window."""
    error: float = LEAST_ERROR
    """The recent error of forecasts: 0 is exact, 1 is as bad as no forecast."""
    hands_over: bool = False
    """Whether slots hand work over, so that no slot waits long for another, whatever the error of the forecast."""

    @property
    def usual(self) -> float | None:
        """Milliseconds per position; None before any measurement."""
        return self.millis / self.positions if self.positions else None

    def after(self, positions: float, busy_millis: float) -> "WindowSizer":
        """Return the measurements including one window: the positions and the busy time of all slots."""
        if positions <= 0 or busy_millis <= 0:
            return self
        return replace(self, positions=_KEPT * self.positions + positions, millis=_KEPT * self.millis + busy_millis)

    def after_window(self, whole_millis: float, busiest_millis: float) -> "WindowSizer":
        """Return the measurements including the overhead of a window: its duration without that of its busiest slot."""
        seen = max(0.0, whole_millis - busiest_millis)
        return replace(self, overhead_millis=max(1.0, min(seen, _RISING * self.overhead_millis)))

    def after_forecast(self, expected: Sequence[float], took: Sequence[float]) -> "WindowSizer":
        """Return the measurements including the forecast error of a window: expected and actual times by slot.

        If all slots were slower by the same factor, none waited, and the forecast counts as right. One slot alone never
        waits.
        """
        if len(took) < 2 or sum(expected) <= 0 or sum(took) <= 0:
            return self
        slower = sum(took) / sum(expected)
        off = sum(abs(t - slower * e) for e, t in zip(expected, took, strict=True)) / sum(took)
        return replace(self, error=min(1.0, max(LEAST_ERROR, off, (off + self.error) / 2)))

    def next(self, backlog: float, *, is_delivered: bool = False) -> WindowLength:
        """Return the next window for a backlog per slot, in milliseconds, or in positions while nothing is measured.

        If the driver delivers the results of each window while slots work on the next one, slots wait for the delivery
        of the last one as if its forecast were all wrong.
        """
        if self.usual is None:
            lasts = min(max(FIRST_MILLIS, backlog / FIRST_PER_MILLI), LONGEST_MILLIS / 4)
            return WindowLength(max(self.shortest_millis, lasts), FIRST_POSITIONS)
        longest = max(self.shortest_millis, LONGEST_MILLIS)
        error = 1.0 if is_delivered else LEAST_ERROR if self.hands_over else self.error
        best = min(max(self.shortest_millis, sqrt(backlog * self.overhead_millis / error)), longest)
        if backlog <= best * 1.25:
            late = 2 * self.error * backlog + self.overhead_millis if self.error <= SOMEWHAT_WRONG else 0.0
            return WindowLength(max(self.shortest_millis, backlog + late), backlog)
        return WindowLength(best, best)
