"""Lines of a stretch of bytes: each line belongs to the stretch in which it starts, wherever the file was cut.

Nothing is decoded and no line is copied: a chunk is a window on a buffer that is used again, with the places where its
lines end. A line longer than the buffer makes the buffer grow, up to a limit.
"""

from collections.abc import Iterator
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
LOOKED_BACK = 4096
"""Bytes in which the start of a chunk's last line is looked for first."""


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


class Chunk:
    """Whole lines, one after the other, with what ends them. Good until the next chunk is asked for.

    Where lines end is found when it is asked for: what only wants the bytes, or the text, is spared that.
    """

    __slots__ = ("_count", "_ends", "base", "data", "delimiter")

    def __init__(self, data: "Bytes", base: int, delimiter: bytes, ends: "Places | None" = None) -> None:
        self.data = data
        self.base = base
        """Where `data` starts in the file."""
        self.delimiter = delimiter
        self._ends = ends
        self._count: int | None = None

    def __len__(self) -> int:
        """How many lines there are."""
        if self._count is None:
            self._count = self._counted()
        return self._count

    def _counted(self) -> int:
        if self._ends is not None or len(self.delimiter) > 1:
            return len(self.ends)
        import numpy as np  # noqa: PLC0415

        return int(np.count_nonzero(self.data == self.delimiter[0])) + (not self.is_ended)

    @property
    def is_ended(self) -> bool:
        """Whether the last line is ended, as all others are."""
        return self.data[-len(self.delimiter) :].tobytes() == self.delimiter

    @property
    def ends(self) -> "Places":
        """Where each line ends in `data`, its delimiter included."""
        if self._ends is None:
            import numpy as np  # noqa: PLC0415

            ends = _ends(self.data, self.delimiter)
            self._ends = ends if self.is_ended else np.append(ends, len(self.data))
        return self._ends

    @property
    def starts(self) -> "Places":
        """Where each line starts in `data`."""
        import numpy as np  # noqa: PLC0415

        starts = np.empty_like(self.ends)
        starts[:1] = 0
        starts[1:] = self.ends[:-1]
        return starts

    @property
    def last_start(self) -> int:
        """Where the last line starts in `data`."""
        if self._ends is not None:
            return int(self._ends[-2]) if len(self._ends) > 1 else 0
        place = len(self.data) - (len(self.delimiter) if self.is_ended else 0)
        width = LOOKED_BACK
        while True:
            before = max(0, place - width)
            found = self.data[before:place].tobytes().rfind(self.delimiter)
            if found >= 0:
                return before + found + len(self.delimiter)
            if not before:
                return 0
            width *= 8

    @property
    def places(self) -> "Starts":
        """Where each line starts in the file."""
        return Starts(self)

    def up_to(self, count: int) -> "Chunk":
        """The first lines alone."""
        end = int(self.ends[count - 1]) if count else 0
        return Chunk(self.data[:end], self.base, self.delimiter, self.ends[:count])


class Starts:
    """Where the lines of a chunk start in the file. The first and the last are known before all others are found."""

    __slots__ = ("_chunk",)

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk

    def __len__(self) -> int:
        return len(self._chunk)

    def __getitem__(self, index: int) -> int:
        chunk = self._chunk
        if index == 0:
            return chunk.base
        if index == -1:
            return chunk.base + chunk.last_start
        return chunk.base + int(chunk.starts[index])


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
        if end is not None and chunk.base + chunk.last_start >= end:
            starting = int(np.searchsorted(chunk.starts, end - chunk.base))
            if starting:
                yield chunk.up_to(starting)
            return
        after = chunk.base + len(chunk.data)
        yield chunk
        if end is not None and after >= end:
            return


class _Reading:
    """A buffer that moves along the stream: what is read of it, and where it lies in the file."""

    def __init__(self, stream: Seekable, delimiter: bytes, size: int, longest: int) -> None:
        self.stream = stream
        self.delimiter = delimiter
        self.longest = longest
        self._take(bytearray(max(size, len(delimiter))))
        self.filled = 0
        self.base = 0
        self.consumed = 0
        """Bytes of the buffer that were given out as lines."""
        self.ended = False

    def _take(self, memory: bytearray) -> None:
        """Read into other memory from now on."""
        import numpy as np  # noqa: PLC0415

        self.bytes = memory
        self.view = memoryview(memory)
        self.buffer: Bytes = np.frombuffer(memory, np.uint8)

    def begin(self, start: int) -> bool:
        """Stand at the first line that starts at `start` or after; False where there is none."""
        self.base = max(0, start - len(self.delimiter))
        self.stream.seek(self.base)
        if start == 0:
            return True
        while True:
            self._fill()
            found = self.bytes.find(self.delimiter, 0, self.filled)
            if found >= 0:
                self.consumed = found + len(self.delimiter)
                return True
            if self.ended:
                return False
            kept = min(self.filled, len(self.delimiter) - 1)  # the delimiter may have begun
            self.consumed = self.filled - kept
            self._move()

    def lines(self) -> Chunk | None:
        """The next whole lines; the last of the stream may lack its delimiter."""
        self._move()
        searched = 0
        while True:
            self._fill()
            found = self.bytes.rfind(self.delimiter, searched, self.filled)
            whole = self.filled if self.ended else found + len(self.delimiter) if found >= 0 else 0
            if whole:
                self.consumed = whole
                return Chunk(self.buffer[:whole], self.base, self.delimiter)
            if self.ended:
                return None
            searched = max(0, self.filled - len(self.delimiter) + 1)
            self._grow()

    def _fill(self) -> None:
        """Read until the buffer is full, or the stream ends."""
        while self.filled < len(self.buffer) and not self.ended:
            got = self.stream.readinto(self.view[self.filled :]) or 0
            self.filled += got
            self.ended = got == 0

    def _move(self) -> None:
        """Bring what was not consumed to the front."""
        rest = self.filled - self.consumed
        self.view[:rest] = self.view[self.consumed : self.filled]
        self.base += self.consumed
        self.filled, self.consumed = rest, 0

    def _grow(self) -> None:
        if len(self.bytes) >= self.longest:
            raise LineTooLong(self.base, self.longest)
        larger = bytearray(min(2 * len(self.bytes), self.longest))
        larger[: self.filled] = self.view[: self.filled]
        self._take(larger)


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
