"""How much of a restriction is done, and how much is left."""

import math
from dataclasses import dataclass

from dagkit.ranges.range_errors import FractionInvalid, ProgressInvalid


@dataclass(frozen=True, slots=True)
class Progress:
    """Work done and work left, in a unit of the tracker's own; what is left may be infinite."""

    completed: float
    remaining: float

    def __post_init__(self) -> None:
        if not (0 <= self.completed < math.inf and self.remaining >= 0):
            raise ProgressInvalid(self.completed, self.remaining, "work is counted from 0, and what is done is finite")

    @classmethod
    def of_fraction(cls, fraction: float) -> "Progress":
        """Progress of which only the fraction completed is known: the whole is 1."""
        if not 0.0 <= fraction <= 1.0:
            raise FractionInvalid(fraction)
        return cls(fraction, 1.0 - fraction)

    @classmethod
    def of_remaining(cls, remaining: float, fraction: float) -> "Progress":
        """Progress of which the work left and the fraction completed are known."""
        if not 0.0 <= fraction <= 1.0:
            raise FractionInvalid(fraction)
        if fraction == 1.0:
            raise ProgressInvalid(math.nan, remaining, "when all is done, what is left does not tell the whole")
        return cls(remaining * fraction / (1.0 - fraction), remaining)

    @classmethod
    def of_completed(cls, completed: float, fraction: float) -> "Progress":
        """Progress of which the work done and the fraction completed are known."""
        if not 0.0 <= fraction <= 1.0:
            raise FractionInvalid(fraction)
        if fraction == 0.0:
            raise ProgressInvalid(completed, math.nan, "when nothing is done, what is done does not tell the whole")
        return cls(completed, completed * (1.0 - fraction) / fraction)

    @property
    def total(self) -> float:
        """All the work there is."""
        return self.completed + self.remaining

    @property
    def fraction_completed(self) -> float:
        """What part is done; all of it where there was nothing to do."""
        return 1.0 if self.total == 0 else self.completed / self.total

    @property
    def fraction_remaining(self) -> float:
        """What part is left."""
        return 1.0 - self.fraction_completed
