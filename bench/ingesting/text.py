"""The text that everybody reads, and what must be left of it.

Lines of some hundred bytes, one in ten beginning with a dot. Every byte is drawn from a seed, so that equal sizes are
equal texts. Commas, quotes and dots inside lines are there on purpose: who reads lines as if they were tables, or looks
for a dot anywhere, keeps the wrong ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

DROPPED_IN = 10
"""One line in so many begins with a dot."""
SHORTEST, LONGEST = 72, 122
"""Bytes of a line, what ends it included; half open."""
STRETCH = 16 << 20
"""Bytes that are made at a time; each stretch is whole lines."""

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789,.\"';:-", np.uint8)
_LETTERS = np.resize(_LETTERS, 256)  # indexed by a random byte
_DOT, _NEWLINE = ord("."), ord("\n")


@dataclass(frozen=True, slots=True)
class Count:
    """So many lines, and the bytes of them, what ends each line included."""

    lines: int
    bytes: int

    def __add__(self, other: "Count") -> "Count":
        return Count(self.lines + other.lines, self.bytes + other.bytes)


NOTHING = Count(0, 0)


@dataclass(frozen=True, slots=True)
class Text:
    """A text on a file, and what is to be kept of it."""

    path: Path
    all: Count
    kept: Count


def write_text(path: Path, size: int, seed: int = 0) -> Text:
    """A text of exactly `size` bytes in a new file, counted afterwards from the file itself."""
    made = NOTHING
    with path.open("wb", buffering=0) as file:
        for number, start in enumerate(range(0, size, STRETCH)):
            stretch, lines = _stretch(np.random.default_rng((seed, number)), min(STRETCH, size - start))
            file.write(stretch.data)
            made += Count(lines, len(stretch))
    everything, dropped = counted(path)
    assert everything == made == Count(made.lines, size), "the file holds what was made"
    return Text(path, everything, Count(everything.lines - dropped.lines, everything.bytes - dropped.bytes))


def _stretch(chance: np.random.Generator, size: int) -> tuple[Bytes, int]:
    """Whole lines of so many bytes together; the last may be longer, or the only one."""
    lengths = chance.integers(SHORTEST, LONGEST, size=size // SHORTEST + 1)
    ends = np.cumsum(lengths)
    ends = ends[: max(1, int(np.searchsorted(ends, size, side="right")))]
    ends[-1] = size
    starts = np.concatenate(([0], ends[:-1]))
    text: Bytes = _LETTERS[np.frombuffer(chance.bytes(size), np.uint8)]
    firsts = text[starts]
    firsts[firsts == _DOT] = ord("x")
    firsts[chance.integers(0, DROPPED_IN, size=len(starts)) == 0] = _DOT
    text[starts] = firsts
    text[ends - 1] = _NEWLINE
    return text, len(ends)


def counted(path: Path) -> tuple[Count, Count]:
    """All lines of a file, and those of them that begin with a dot; a last line may lack its end."""
    everything, dropped = NOTHING, NOTHING
    for block in _whole_lines(path):
        ends = np.flatnonzero(block == _NEWLINE) + 1
        if not len(ends) or ends[-1] != len(block):
            ends = np.append(ends, len(block))
        starts = np.concatenate(([0], ends[:-1]))
        dotted = block[starts] == _DOT
        everything += Count(len(ends), len(block))
        dropped += Count(int(dotted.sum()), int((ends - starts)[dotted].sum()))
    return everything, dropped


def _whole_lines(path: Path) -> Iterator[Bytes]:
    """The bytes of a file in stretches that end where lines end."""
    rest = b""
    with path.open("rb") as file:
        while block := file.read(STRETCH):
            whole, newline, tail = block.rpartition(b"\n")
            if newline:
                yield np.frombuffer(rest + whole + newline, np.uint8)
                rest = tail
            else:
                rest += block
    if rest:
        yield np.frombuffer(rest, np.uint8)


def left_in(folder: Path) -> tuple[Count, Count]:
    """The lines of all files that somebody wrote into a folder, and those of them that had to be dropped.

    Marks and checksums that engines lay beside their files, hidden or with an underscore in front, are no output.
    """
    everything, dropped = NOTHING, NOTHING
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts):
            lines, dotted = counted(path)
            everything, dropped = everything + lines, dropped + dotted
    return everything, dropped
