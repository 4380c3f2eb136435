"""What a check reports."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Breach:
    """One mistake: its file, its line from 1, what is wrong, and what to do."""

    path: str
    line: int
    problem: str
    help: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}: {self.help}"


def line_of(text: str, part: str) -> int:
    """The line that a part of a text begins on, from 1; the first line if the text has no such part."""
    return text.count("\n", 0, max(0, text.find(part))) + 1
