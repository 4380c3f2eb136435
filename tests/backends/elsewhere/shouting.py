"""What the application's module imports; no worker has it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shout:
    word: str
    process: int


def loud(word: str) -> str:
    return word.upper() + "!"
