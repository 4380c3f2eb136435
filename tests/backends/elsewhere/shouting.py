"""What the application's module imports; no worker has it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shout:
    """A loud word, and from which process."""

    word: str
    process: int


def loud(word: str) -> str:
    """The word as it is shouted."""
    return word.upper() + "!"
