"""Lines of a stretch of bytes: each line belongs to the stretch in which it starts, wherever the file was cut.

Nothing is decoded and no line is copied: a chunk is a window on a buffer that is used again, with the places where its
lines end. A line longer than the buffer makes the buffer grow, up to a limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:  # whoever only compiles does not load numpy
    import numpy as np
    import numpy.typing as npt

    Bytes: TypeAlias = npt.NDArray[np.uint8]
    Places: TypeAlias = npt.NDArray[np.int64]

CHUNK_SIZE = 1 << 20
"""Bytes read at a time: more leaves the processor's cache, less costs calls."""
LONGEST_LINE = 1 << 30
"""Bytes of a line beyond which it is no line but a fault."""


class LineTooLong(ValueError):
    """A line is longer than the reader was told to hold; says where it starts."""

    def __init__(self, start: int, longest: int, path: str = "") -> None:
        self.start = start
        self.longest = longest
        self.path = path
        of_file = f"{path}: " if path else ""
        super().__init__(f"{of_file}the line at byte {start} is longer than {longest} bytes; raise longest_line")

    def __reduce__(self) -> tuple[type, tuple[int, int, str]]:
        return LineTooLong, (self.start, self.longest, self.path)


class Seekable(Protocol):
    """What lines are read from."""

    def seek(self, offset: int, /) -> int: ...
    def readinto(self, buffer: memoryview, /) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines, one after the other, with what ends them. Good until the next chunk is asked for."""

    data: "Bytes"
    ends: "Places"
    """Where each line ends in `data`, its delimiter included."""
    base: int
    """Where `data` starts in the file."""

    @property
    def starts(self) -> "Places":
        """Where each line starts in `data`."""
        import numpy as np  # noqa: PLC0415

        starts = np.empty_like(self.ends)
        starts[:1] = 0
        starts[1:] = self.ends[:-1]
        return starts

    def up_to(self, count: int) -> "Chunk":
        """The first lines alone."""
        end = int(self.ends[count - 1]) if count else 0
        return Chunk(self.data[:end], self.ends[:count], self.base)


def delimiter_of(text: str | bytes) -> bytes:
    """The bytes that end a line. One that could begin inside itself would split a file differently at each cut."""
    delimiter = text.encode() if isinstance(text, str) else text
    if not delimiter:
        raise ValueError("a delimiter has at least one byte")
    for length in range(1, len(delimiter)):
        if delimiter[:length] == delimiter[-length:]:
            raise ValueError(
                f"the delimiter {delimiter!r} overlaps itself: it begins as it ends, with {delimiter[:length]!r}"
            )
    return delimiter


def chunks(
    stream: Seekable,
    start: int,
    end: int | None,
    delimiter: bytes = b"\n",
    *,
    size: int = CHUNK_SIZE,
    longest: int = LONGEST_LINE,
) -> Iterator[Chunk]:
    """The lines that start in `[start, end)`, or from `start` on where there is no end."""
    import numpy as np  # noqa: PLC0415

    reading = _Reading(stream, delimiter, size, longest)
    if not reading.begin(start):
        return
    while True:
        chunk = reading.lines()
        if chunk is None:
            return
        if end is not None:
            starting = int(np.searchsorted(chunk.starts, end - chunk.base))
            if starting < len(chunk.ends):
                if starting:
                    yield chunk.up_to(starting)
                return
        yield chunk


class _Reading:
    """A buffer that moves along the stream: what is read of it, and where it lies in the file."""

    def __init__(self, stream: Seekable, delimiter: bytes, size: int, longest: int) -> None:
        import numpy as np  # noqa: PLC0415

        self.stream = stream
        self.delimiter = delimiter
        self.longest = longest
        self.buffer: Bytes = np.empty(max(size, len(delimiter)), np.uint8)
        self.filled = 0
        self.base = 0
        self.consumed = 0
        """Bytes of the buffer that were given out as lines."""
        self.ended = False

    def begin(self, start: int) -> bool:
        """Stand at the first line that starts at `start` or after; False where there is none."""
        self.base = max(0, start - len(self.delimiter))
        self.stream.seek(self.base)
        if start == 0:
            return True
        while True:
            self._fill()
            ends = _ends(self.buffer[: self.filled], self.delimiter)
            if len(ends):
                self.consumed = int(ends[0])
                return True
            if self.ended:
                return False
            kept = min(self.filled, len(self.delimiter) - 1)  # the delimiter may have begun
            self.consumed = self.filled - kept
            self._move()

    def lines(self) -> Chunk | None:
        """The next whole lines; the last of the stream may lack its delimiter."""
        import numpy as np  # noqa: PLC0415

        self._move()
        searched = 0
        while True:
            self._fill()
            ends = _ends(self.buffer[searched : self.filled], self.delimiter) + searched
            if self.ended and (not len(ends) or ends[-1] < self.filled) and self.filled:
                ends = np.append(ends, self.filled)
            if len(ends):
                self.consumed = int(ends[-1])
                return Chunk(self.buffer[: self.consumed], ends, self.base)
            if self.ended:
                return None
            searched = max(0, self.filled - len(self.delimiter) + 1)
            self._grow()

    def _fill(self) -> None:
        """Read until the buffer is full, or the stream ends."""
        view = memoryview(self.buffer)  # type: ignore[arg-type] # numpy arrays are buffers; the stubs say so from 3.12 on
        while self.filled < len(self.buffer) and not self.ended:
            got = self.stream.readinto(view[self.filled :]) or 0
            self.filled += got
            self.ended = got == 0

    def _move(self) -> None:
        """Bring what was not consumed to the front."""
        rest = self.filled - self.consumed
        self.buffer[:rest] = (
            self.buffer[self.consumed : self.filled].copy()
            if rest > self.consumed
            else self.buffer[self.consumed : self.filled]
        )
        self.base += self.consumed
        self.filled, self.consumed = rest, 0

    def _grow(self) -> None:
        import numpy as np  # noqa: PLC0415

        if len(self.buffer) >= self.longest:
            raise LineTooLong(self.base, self.longest)
        larger: Bytes = np.empty(min(2 * len(self.buffer), self.longest), np.uint8)
        larger[: self.filled] = self.buffer[: self.filled]
        self.buffer = larger


def _ends(data: "Bytes", delimiter: bytes) -> "Places":
    """Where each delimiter ends."""
    import numpy as np  # noqa: PLC0415

    last = len(delimiter) - 1
    if last == 0:
        return np.flatnonzero(data == delimiter[0]) + 1
    candidates = np.flatnonzero(data[last:] == delimiter[last]) + last
    for distance in range(1, last + 1):
        candidates = candidates[data[candidates - distance] == delimiter[last - distance]]
    return candidates + 1
