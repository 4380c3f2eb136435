"""What the helper imports, which is no function."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """How long a word may be."""

    letters: int


LONGEST = Limit(3)
