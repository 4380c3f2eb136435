"""The overhead of windows and the reading speed of slots: the capacity to work off a backlog."""

from collections import deque
from dataclasses import dataclass, field

from dagkit.api.stats import Capacity
from dagkit.engine.worker.protocol import Cores

NEWEST = 0.3
"""The weight of the newest window in a moving average over windows."""


@dataclass
class WindowCosts:
    """The overhead of the last windows: their duration without the work of their busiest slot."""

    _last: deque[float] = field(default_factory=lambda: deque(maxlen=5))

    def committed(self, whole_millis: float, busiest_millis: float) -> None:
        """Record a committed window and its whole duration."""
        self._last.append(max(0.0, whole_millis - busiest_millis))

    @property
    def least(self) -> float:
        """The lowest overhead: a run's first window starts workers, and others wait for other load of the machine."""
        return min(self._last, default=0.0)


@dataclass
class ReadingSpeed:
    """The reading speed of one busy slot of an operator."""

    per_milli: float | None = None
    """Positions per millisecond; None before the first read."""

    def read(self, positions: float, busy_millis: float) -> None:
        """Record the positions that all slots read in one window, and their busy time in total."""
        if positions and busy_millis:
            newest = positions / busy_millis
            self.per_milli = newest if self.per_milli is None else NEWEST * newest + (1 - NEWEST) * self.per_milli


def capacity_of(cores: Cores, speed: ReadingSpeed, costs: WindowCosts) -> Capacity:
    """Return the capacity to work off the backlog of one operator."""
    return Capacity(
        cores=cores.now,
        most_cores=cores.most,
        positions_per_second=None if speed.per_milli is None else speed.per_milli * 1000,
        window_millis=costs.least,
    )
