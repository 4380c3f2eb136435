"""The text that all contestants read, and the expected output.

Lines have about a hundred bytes, and one in ten begins with a dot. All bytes derive from a seed, so equal sizes give
equal texts. Lines contain commas, quotes and dots on purpose: a contestant that parses lines as tables, or searches for
dots anywhere, keeps the wrong lines.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

DROPPED_IN = 10
"""One in this many lines begins with a dot."""
SHORTEST, LONGEST = 72, 122
"""Bytes of a line with its end; half open."""
STRETCH = 16 << 20
"""Bytes that are generated at a time, as whole lines."""

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789,.\"';:-", np.uint8)
_LETTERS = np.resize(_LETTERS, 256)  # indexed by a random byte
_DOT, _NEWLINE = ord("."), ord("\n")


@dataclass(frozen=True, slots=True)
class Count:
    """A number of lines, and their bytes with line ends."""

    lines: int
    bytes: int

    def __add__(self, other: "Count") -> "Count":
        return Count(self.lines + other.lines, self.bytes + other.bytes)


NOTHING = Count(0, 0)


@dataclass(frozen=True, slots=True)
class Text:
    """A text in a file, and the counts of all lines and of those to keep."""

    path: Path
    all: Count
    kept: Count


def write_text(path: Path, size: int, seed: int = 0) -> Text:
    """Write a text of exactly `size` bytes to a new file, and count it from the file."""
    made = NOTHING
    with path.open("wb", buffering=0) as file:
        for number, start in enumerate(range(0, size, STRETCH)):
            stretch, lines = _stretch(np.random.default_rng((seed, number)), min(STRETCH, size - start))
            file.write(stretch.data)
            made += Count(lines, len(stretch))
    everything, dropped = counted(path)
    assert everything == made == Count(made.lines, size), "the file holds the generated text"
    age(path)
    return Text(path, everything, Count(everything.lines - dropped.lines, everything.bytes - dropped.bytes))


def age(path: Path) -> None:
    """Let a file have changed a minute ago, so that no launch waits for it."""
    changed = path.stat().st_mtime - 60
    os.utime(path, (changed, changed))


def _stretch(chance: np.random.Generator, size: int) -> tuple[Bytes, int]:
    """Whole lines of this many bytes in all; the last one may be longer."""
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
    """The counts of all lines of a file, and of those that begin with a dot; the last line may lack its end."""
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
    """The bytes of a file in chunks of whole lines."""
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
    """The counts of all lines in the files of a folder, and of those that should have been dropped.

    Files whose names begin with a dot or an underscore are ignored: engines write markers and checksums there.
    """
    everything, dropped = NOTHING, NOTHING
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts):
            lines, dotted = counted(path)
            everything, dropped = everything + lines, dropped + dotted
    return everything, dropped
