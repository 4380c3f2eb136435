"""What the helper imports, which is no function."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    letters: int


LONGEST = Limit(3)
