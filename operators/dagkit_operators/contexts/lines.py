"""Lines of a range of a file: each line belongs to the range in which it starts, wherever the file was split.

Lines are read in chunks into a reused buffer. If a line is longer than the buffer, the buffer grows, up to a limit.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, NonNegativeInt, PositiveInt

from dagkit.errors import printable
from dagkit_operators.contexts.chunk import FIRST_SEARCH, Chunk, run_before
from dagkit_operators.filesystem.access import BadFile, Seekable, filled

if TYPE_CHECKING:  # compiling alone does not load numpy
    from dagkit_operators.native.bytewise import Bytes

CHUNK_SIZE = 1 << 20
"""Bytes read at a time: more would exceed the processor's cache, fewer would cost more calls."""
LONGEST_LINE = 1 << 30
"""The most bytes of a line; a longer one raises LineTooLong."""


class LineTooLong(BadFile):
    """A line is longer than `longest_line`; the problem names where it starts."""

    code = "line-too-long"
    usual_help = "raise the property longest_line, or set the delimiter that ends the lines"

    def __init__(self, start: int, longest: int, path: str = "", help: str = "") -> None:  # noqa: A002 - as in RunFailure
        self.start = start
        self.longest = longest
        self.path = path
        of_file = f"{printable(path)}: " if path else ""
        super().__init__(f"{of_file}the line at byte {start} is longer than {longest} bytes", help)


def delimiter_of(text: str) -> bytes:
    """The bytes that end a line. Raise ValueError if they are empty or overlap themselves.

    With an overlapping delimiter, the lines would depend on where the file is split.
    """
    delimiter = text.encode()
    if not delimiter:
        raise ValueError("a delimiter has at least one byte")
    for length in range(1, len(delimiter)):
        if delimiter[:length] == delimiter[-length:]:
            raise ValueError(
                f"the delimiter {delimiter!r} overlaps itself: it begins as it ends, with {delimiter[:length]!r}"
            )
    return delimiter


def escape_of(text: str, delimiter: bytes) -> bytes:
    """The byte that escapes a following delimiter; empty if the text is empty.

    Raise ValueError if it is longer than one byte, or if the delimiter contains it, which would be ambiguous.
    """
    escape = text.encode()
    if len(escape) > 1:
        raise ValueError(f"the escape {escape!r} has {len(escape)} bytes; it has one")
    if escape and escape in delimiter:
        raise ValueError(f"the delimiter {delimiter!r} holds the escape {escape!r}, so what ends a line is ambiguous")
    return escape


class LineForm(BaseModel):
    """Where lines end, and which of them are records: properties of reader contexts for lines, and of their readers."""

    delimiter: str = "\n"
    """The text that ends a line."""
    longest_line: PositiveInt = LONGEST_LINE
    """The most bytes of a line; a longer one fails the run."""
    escape: str = ""
    """The escape byte. A delimiter after an odd number of escapes ends no line. Values keep their escapes."""
    keep_returns: bool = True
    """Whether a carriage return before the newline stays in the value; if not, LF and CRLF may both end lines."""
    collapse_line_ends: bool = False
    """Whether a run of carriage returns and newlines, however long, ends one line, so that empty lines are no records.

    As in Malhar, one empty record comes first if a file begins with such a run.
    """
    skip_header_lines: NonNegativeInt = 0
    """The number of lines at the beginning of each file that are not records."""
    encoding: str = "utf-8"
    """The encoding of the file, by the name that Python gives it. Values and outputs are UTF-8."""
    skip_byte_order_mark: bool = False
    """Whether a byte order mark at the beginning of a file is no part of its first line; `utf-16` always skips it."""
    undecodable: Literal["keep", "reject", "fail"] = "keep"
    """What happens to a line with bytes that are no text in its encoding.

    `keep`: the bytes become lone surrogates, and are written as they were; in UTF-16 and UTF-32 this is impossible, so
    the line is rejected. `reject`: the line goes to `rejected`. `fail`: the run fails with the file and the position.
    """


def after_header(reading: Iterator[Chunk], count: int) -> int | None:
    """The end of the first `count` lines of a file, given its chunks; None if the file has fewer lines."""
    for chunk in reading:
        if len(chunk) >= count:
            return chunk.base + int(chunk.ends[count - 1])
        count -= len(chunk)
    return None


def within(reading: Iterator[Chunk], longest: int) -> Iterator[Chunk]:
    """The chunks. Raise LineTooLong for a line that is longer, also if it fits into a chunk."""
    for chunk in reading:
        if len(chunk.data) > longest:
            import numpy as np  # noqa: PLC0415

            lengths = np.diff(chunk.offsets)
            if lengths.max() > longest:
                raise LineTooLong(chunk[int(np.argmax(lengths > longest))], longest)
        yield chunk


def chunks(
    stream: Seekable,
    start: int,
    end: int | None,
    delimiter: bytes = b"\n",
    *,
    escape: bytes = b"",
    size: int = CHUNK_SIZE,
    longest: int = LONGEST_LINE,
    at_line: bool = False,
) -> Iterator[Chunk]:
    """The lines that start in `[start, end)`; if `end` is None, all that start at or after `start`.

    With `at_line`, the bytes at `start` begin a line, whatever lies before them.

    A delimiter after an odd number of escapes ends no line. That depends only on the bytes right before it, not on
    where reading began, so the lines are the same however the file is split.
    """
    import numpy as np  # noqa: PLC0415

    # To clear a large buffer takes longer than to read a small file. With the byte behind its end, the end is noticed
    # at once.
    if end is not None:
        size = min(size, end - start + len(delimiter) + 1)
    reading = _Reading(stream, delimiter, escape, size, longest)
    if not reading.begin(start, at_line=at_line):
        return
    while True:
        chunk = reading.lines()
        if chunk is None:
            return
        after = chunk.base + len(chunk.data)
        if end is not None and after > end and chunk.base + chunk.last_start >= end:
            starting = int(np.searchsorted(chunk.starts, end - chunk.base))
            if starting:
                yield chunk.up_to(starting)
            return
        yield chunk
        if end is not None and after >= end:
            return


def first_start(
    stream: Seekable, start: int, delimiter: bytes = b"\n", *, escape: bytes = b"", size: int = CHUNK_SIZE
) -> int | None:
    """The position at or after `start` at which the first line starts, even if that line has no bytes yet.

    Return None if the line before it has no delimiter yet.
    """
    reading = _Reading(stream, delimiter, escape, size, LONGEST_LINE)
    return reading.base + reading.consumed if reading.begin(start) else None


class _Reading:
    """A buffer that moves along the stream: its bytes, and their position in the file."""

    def __init__(self, stream: Seekable, delimiter: bytes, escape: bytes, size: int, longest: int) -> None:
        self.stream = stream
        self.delimiter = delimiter
        self.escape = escape
        self.longest = longest
        self._take(bytearray(max(size, len(delimiter))))
        self.filled = 0
        self.base = 0
        self.consumed = 0
        """Bytes of the buffer that were returned as lines."""
        self.escapes_before = 0
        """The number of escapes in the file right before the buffer."""
        self.ended = False
        self.latest: Chunk | None = None
        """The chunk that was returned last."""

    def _take(self, memory: bytearray) -> None:
        """Use this memory as the buffer."""
        import numpy as np  # noqa: PLC0415

        self.bytes = memory
        self.view = memoryview(memory)
        self.buffer: Bytes = np.frombuffer(memory, np.uint8)

    def begin(self, start: int, *, at_line: bool = False) -> bool:
        """Move to the first line that starts at or after `start`; return False if there is none."""
        # A delimiter that ends at `start` shows that a line starts there.
        self.base = start if at_line else max(0, start - len(self.delimiter))
        self.escapes_before = self._escapes_before(self.base)
        self.stream.seek(self.base)
        if start == 0 or at_line:
            return True
        while True:
            self._fill()
            found = self._first()
            if found >= 0:
                self.consumed = found + len(self.delimiter)
                return True
            if self.ended:
                return False
            rest = min(self.filled, len(self.delimiter) - 1)  # these bytes may be the beginning of a delimiter
            self.consumed = self.filled - rest
            self._move()

    def lines(self) -> Chunk | None:
        """The next whole lines; the last of the stream may lack its delimiter."""
        self._move()
        searched = 0
        while True:
            self._fill()
            found = self._last(searched)
            whole = self.filled if self.ended else found + len(self.delimiter) if found >= 0 else 0
            if whole:
                self.consumed = whole
                self.latest = self._chunk(whole, found)
                return self.latest
            if self.ended:
                return None
            # The last bytes may be the beginning of a delimiter.
            searched = max(0, self.filled - len(self.delimiter) + 1)
            self._grow()

    def _chunk(self, whole: int, found: int) -> Chunk:
        """The first `whole` bytes as a chunk. `found` is the position of the last delimiter, which saves a search."""
        # A caller that needed the line ends of the last chunk will need those of this one.
        wanted = self.latest is not None and self.latest.knows_ends
        is_ended = found >= 0 and found + len(self.delimiter) == whole
        last_start = None
        if not self.escape:  # else the delimiter before it may be escaped
            before = self.bytes.rfind(self.delimiter, 0, found if is_ended else whole)
            last_start = before + len(self.delimiter) if before >= 0 else 0
        return Chunk(
            self.buffer[:whole],
            self.base,
            self.delimiter,
            escape=self.escape,
            wanted=wanted,
            last_start=last_start,
            is_ended=is_ended,
        )

    def _first(self) -> int:
        """The position of the first unescaped delimiter in the buffer; -1 if there is none."""
        found = self.bytes.find(self.delimiter, 0, self.filled)
        while self.escape and found >= 0 and self._is_escaped(found):
            found = self.bytes.find(self.delimiter, found + 1, self.filled)
        return found

    def _last(self, searched: int) -> int:
        """The position of the last unescaped delimiter at or after `searched`; -1 if there is none."""
        found = self.bytes.rfind(self.delimiter, searched, self.filled)
        while self.escape and found >= 0 and self._is_escaped(found):
            found = self.bytes.rfind(self.delimiter, searched, found)
        return found

    def _is_escaped(self, place: int) -> bool:
        return self._escapes_at(place) % 2 == 1

    def _escapes_at(self, place: int) -> int:
        """The number of escapes right before a position in the buffer, counting those in the file before the buffer."""
        run = run_before(self.bytes, place, self.escape)
        return run + self.escapes_before if run == place else run

    def _escapes_before(self, place: int) -> int:
        """The number of escapes right before a position in the file. Reads backwards until another byte is found."""
        run, step = 0, 16
        while self.escape and run < place:
            step = min(2 * step, place - run, FIRST_SEARCH)
            piece = bytearray(step)
            self.stream.seek(place - run - step)
            found = run_before(piece, filled(self.stream, memoryview(piece)), self.escape)
            run += found
            if found < step:
                break
        return run

    def _fill(self) -> None:
        """Read until the buffer is full or the stream ends."""
        if self.filled < len(self.buffer) and not self.ended:
            self.filled += filled(self.stream, self.view[self.filled :])
            self.ended = self.filled < len(self.buffer)

    def _move(self) -> None:
        """Move the bytes that were not consumed to the front of the buffer."""
        rest = self.filled - self.consumed
        if self.escape:
            self.escapes_before = self._escapes_at(self.consumed)
        self.view[:rest] = self.view[self.consumed : self.filled]
        self.base += self.consumed
        self.filled, self.consumed = rest, 0

    def _grow(self) -> None:
        if len(self.bytes) >= self.longest:
            raise LineTooLong(self.base, self.longest)
        larger = bytearray(min(2 * len(self.bytes), self.longest))
        larger[: self.filled] = self.view[: self.filled]
        self._take(larger)
