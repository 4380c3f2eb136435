"""Progress: how much of a restriction is done and left."""

import math
from dataclasses import dataclass
from typing import Final

from dagkit.ranges.range_errors import FractionInvalid, ProgressInvalid


@dataclass(frozen=True, slots=True)
class Progress:
    """Work done and work left, in a unit that the tracker chooses; the work left may be infinite."""

    completed: float
    remaining: float

    def __post_init__(self) -> None:
        if not (0 <= self.completed < math.inf and self.remaining >= 0):
            raise ProgressInvalid(self.completed, self.remaining, "work is counted from 0, and what is done is finite")

    @classmethod
    def of_fraction(cls, fraction: float) -> "Progress":
        """Progress if only the completed fraction is known: the total is 1."""
        if not 0.0 <= fraction <= 1.0:
            raise FractionInvalid(fraction)
        return cls(fraction, 1.0 - fraction)

    @classmethod
    def of_remaining(cls, remaining: float, fraction: float) -> "Progress":
        """Progress if the work left and the completed fraction are known."""
        if not 0.0 <= fraction <= 1.0:
            raise FractionInvalid(fraction)
        if fraction == 1.0:
            raise ProgressInvalid(math.nan, remaining, "all is done, so the total cannot be computed")
        return cls(remaining * fraction / (1.0 - fraction), remaining)

    @classmethod
    def of_completed(cls, completed: float, fraction: float) -> "Progress":
        """Progress if the work done and the completed fraction are known."""
        if not 0.0 <= fraction <= 1.0:
            raise FractionInvalid(fraction)
        if fraction == 0.0:
            raise ProgressInvalid(completed, math.nan, "nothing is done yet, so the total cannot be computed")
        return cls(completed, completed * (1.0 - fraction) / fraction)

    @property
    def total(self) -> float:
        """The work done and the work left."""
        return self.completed + self.remaining

    @property
    def fraction_completed(self) -> float:
        """The fraction of the work that is done; 1 if there was nothing to do."""
        return 1.0 if self.total == 0 else self.completed / self.total

    @property
    def fraction_remaining(self) -> float:
        """The fraction of the work that is left."""
        return 1.0 - self.fraction_completed


SHARES: Final = 2**62
"""How many an element has."""


def percent(share: int) -> str:
    """`25.0 %` of an element; what is not the whole is not rounded up to it."""
    return f"{share * 1000 // SHARES / 10} %"


def share_of(place: int | None, *, is_shares: bool) -> float | None:
    """The part of an element, from 0 to 1; None of positions."""
    return place / SHARES if is_shares and place is not None else None
