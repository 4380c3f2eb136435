"""What windows cost besides their work, and how fast slots read: with what a backlog can be worked off."""

from collections import deque
from dataclasses import dataclass, field

from dagkit.api.stats import Capacity
from dagkit.engine.worker.protocol import Cores

NEWEST = 0.3
"""How much the newest window counts in an average over windows."""


@dataclass
class WindowCosts:
    """What the last windows cost besides the work of their busiest slot."""

    _last: deque[float] = field(default_factory=lambda: deque(maxlen=5))

    def committed(self, whole_millis: float, busiest_millis: float) -> None:
        """A window was committed, which took so long as a whole."""
        self._last.append(max(0.0, whole_millis - busiest_millis))

    @property
    def least(self) -> float:
        """Of the cheapest one: the first of a run starts workers, and others wait for the rest of the machine."""
        return min(self._last, default=0.0)


@dataclass
class ReadingSpeed:
    """How fast one busy slot of an operator reads."""

    per_milli: float | None = None
    """Positions in a millisecond; None before anything was read."""

    def read(self, positions: float, busy_millis: float) -> None:
        """In one window slots read so much, in so much time together."""
        if positions and busy_millis:
            newest = positions / busy_millis
            self.per_milli = newest if self.per_milli is None else NEWEST * newest + (1 - NEWEST) * self.per_milli


def capacity_of(cores: Cores, speed: ReadingSpeed, costs: WindowCosts) -> Capacity:
    """With what the backlog of one operator can be worked off."""
    return Capacity(
        cores=cores.now,
        most_cores=cores.most,
        positions_per_second=None if speed.per_milli is None else speed.per_milli * 1000,
        window_millis=costs.least,
    )
