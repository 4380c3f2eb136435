"""Reader contexts: how the bytes of a block become records.

A context reads the records of a range of a stream. It claims each record before it sends it, so that the range can be
split while it is read. A refused claim marks the end of the range.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dagkit import Arrowed, Batch, Block, Column, Constant, Lines, Listed
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, RestrictionTracker
from dagkit.schema.columns import TEXT_ERRORS
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.native.bytewise import places_in
from dagkit_operators.payloads import Record
from dagkit_operators.reading.chunk import Chunk, unescaped
from dagkit_operators.reading.lines import (
    CHUNK_SIZE,
    LONGEST_LINE,
    LineTooLong,
    after_header,
    chunks,
    filled,
    first_start,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from dagkit_operators.native.bytewise import Bytes, Places

T = TypeVar("T")
Tracker = RestrictionTracker[OffsetRange, int]

FIRST_CLAIM = 16
"""Lines of the first claim of a block, when the time that a line takes is still unknown."""
ENOUGH_LINES = 64
"""With fewer lines, the cost of the claim itself would distort the time measured for each line."""
CLAIM_SECONDS = 0.005
"""Target time for the lines of one claim: if lines get a hundred times slower, a claim takes half a second."""
QUICK_SECONDS = 5e-6
"""Lines that take at most this long each are claimed by whole chunks: smaller claims would cost more than the lines."""
SHORTEST_SECONDS = 1e-9
"""A lower bound for measured times, since a coarse clock may return 0."""
GROWTH = 8
"""The maximum growth from one claim to the next."""
DECODED = 256 << 10
"""Bytes of lines decoded at a time, unless the caller asks for all values at once."""


class ReaderContext(ABC, Generic[T]):
    """Reads the records of a block."""

    @abstractmethod
    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[T]]]:
        """The records that start in the part of the block that the tracker grants.

        A batch is valid until the next one is requested.
        """


@dataclass(frozen=True, slots=True)
class ReadAheadLines(ReaderContext[str]):
    """Reads lines. The last line of a block is read to its end, even beyond the block; the next block skips that rest.

    If a line is longer than a chunk, the chunk doubles until the line fits. A line of n bytes costs 1.6 n bytes of
    memory, 2.1 n if it lacks a delimiter, and 3.1 n if it is decoded.
    """

    delimiter: bytes = b"\n"
    chunk_size: int = CHUNK_SIZE
    longest_line: int = LONGEST_LINE
    escape: bytes = b""
    keep_returns: bool = True
    skip_header_lines: int = 0

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[str]]]:
        reading = self._chunks(stream, tracker.current_restriction().start, block.end)
        if (yield from self._granted(reading, block, tracker)):
            tracker.try_claim(block.end)

    def ended_batches(
        self, stream: Seekable, block: Block, tracker: Tracker
    ) -> Generator[Batch[Record[str]], None, bool]:
        """The lines of a growing file that are complete by now. Return whether the granted range is exhausted.

        A last line without a delimiter is not claimed.
        """
        start = tracker.current_restriction().start
        reached: int | None = None

        def ended() -> Iterator[Chunk]:
            nonlocal reached
            for chunk in self._chunks(stream, start, OFFSET_INFINITY):
                whole = _whole(chunk)
                reached = chunk.base + len(whole.data)
                if len(whole):
                    yield whole

        if not (yield from self._granted(ended(), block, tracker)):
            return True
        if reached is None:
            reached = self._first_start(stream, start)
        return reached is not None and reached >= tracker.current_restriction().stop and not tracker.try_claim(reached)

    def last_end(self, stream: Seekable, start: int, end: int) -> int | None:
        """The end of the last complete line before `end`; None if no line ends after `start`.

        The search starts near `end`.
        """
        width = self.chunk_size
        while True:
            base = max(start, end - width)
            reached = self._first_start(stream, base)
            if reached is not None:
                for chunk in self._all(stream, reached, end):
                    reached = chunk.base + len(_whole(chunk).data)
                return reached
            if base == start:
                return None
            width *= 8

    def _first_start(self, stream: Seekable, start: int) -> int | None:
        return first_start(stream, start, self.delimiter, escape=self.escape, size=self.chunk_size)

    def _granted(
        self, reading: Iterator[Chunk], block: Block, tracker: Tracker
    ) -> Generator[Batch[Record[str]], None, bool]:
        """The lines that the tracker grants. Return whether it granted all of them."""
        column_of = ReadLines if self.keep_returns and not self.escape else self._column
        try:
            for chunk in in_portions(reading):
                granted = tracker.claim_many(chunk)
                if granted < len(chunk):
                    if granted:
                        yield records_of(block, column_of(chunk.up_to(granted)))
                    return False
                yield records_of(block, column_of(chunk))
        except LineTooLong as fault:
            raise LineTooLong(fault.start, fault.longest, block.path) from None
        return True

    def _chunks(self, stream: Seekable, start: int, end: int) -> Iterator[Chunk]:
        """The lines that start in `[start, end)`, without header lines."""
        if self.skip_header_lines:
            header = after_header(self._all(stream, 0, None), self.skip_header_lines)
            start = end if header is None else max(start, header)
        return self._all(stream, start, end) if start < end else iter(())

    def _all(self, stream: Seekable, start: int, end: int | None) -> Iterator[Chunk]:
        return chunks(
            stream, start, end, self.delimiter, escape=self.escape, size=self.chunk_size, longest=self.longest_line
        )

    def _column(self, chunk: Chunk) -> Column:
        """The column for lines whose values differ from the file's bytes: without returns, or with escapes."""
        bare = chunk if self.keep_returns else _without_returns(chunk)
        if self.escape:
            # values may hold escaped delimiters, so a column of bytes would be split wrongly downstream
            return CopiedTexts(_texts(bare), chunk)
        bare = bare if bare.is_ended else _ended(bare)
        return CopiedLines(binary_array(bare.data, bare.offsets), bare.delimiter, chunk)


def in_portions(reading: Iterable[Chunk], now: Callable[[], float] = time.perf_counter) -> Iterator[Chunk]:
    """Divide chunks into parts that are claimed at once. Slow lines get small parts, since a claim cannot be split.

    The time of a line is estimated from the previous part, which the caller has processed when it requests the next.
    """
    most: int | None = FIRST_CLAIM
    for chunk in reading:
        rest: Chunk | None = chunk
        while rest is not None:
            part, rest = (rest, None) if most is None or len(rest) <= most else rest.parted(most)
            lines, began = len(part), now()
            yield part
            seconds = now() - began
            if lines >= ENOUGH_LINES and seconds <= lines * QUICK_SECONDS:
                most = None  # claim whole chunks
            else:
                most = max(1, min(GROWTH * lines, int(lines * CLAIM_SECONDS / max(seconds, SHORTEST_SECONDS))))


class ReadLines(Lines):
    """Lines over a chunk's own bytes. Line ends are computed on first use."""

    __slots__ = ("_chunk", "_ended")

    def __init__(self, chunk: Chunk) -> None:
        self.delimiter = chunk.delimiter
        self.base = chunk.base
        self._chunk = chunk if chunk.is_ended else _ended(chunk)
        self._ended: pa.BinaryArray | pa.LargeBinaryArray | None = None

    def __len__(self) -> int:
        return len(self._chunk)

    @property
    def ended(self) -> "pa.BinaryArray | pa.LargeBinaryArray":
        """The lines as bytes, with their delimiters."""
        if self._ended is None:
            self._ended = binary_array(self._chunk.data, self._chunk.offsets)
        return self._ended

    @property
    def content(self) -> memoryview:
        return self._chunk.data.data

    def pieces(self) -> Iterator["ReadLines"]:
        """The same lines in smaller parts, whose decoded texts fit into the processor's cache."""
        chunk, start = self._chunk, 0
        while start < len(chunk.data):
            piece = Chunk(chunk.data[start : start + DECODED], chunk.base + start, chunk.delimiter)
            if not piece.is_ended:
                whole = piece.last_start or len(chunk.data) - start
                piece = Chunk(chunk.data[start : start + whole], chunk.base + start, chunk.delimiter)
            yield ReadLines(piece)
            start += len(piece.data)

    def values(self) -> Sequence[str]:
        texts = str(self.content, "utf-8", TEXT_ERRORS).split(self.delimiter.decode())
        texts.pop()  # the empty text after the last delimiter
        return texts

    def starts(self) -> Sequence[int]:
        return _starts(self._chunk)


class CopiedLines(Lines):
    """Lines that differ from the bytes of the file, with their positions in the file."""

    __slots__ = ("_chunk",)

    def __init__(self, ended: "pa.BinaryArray | pa.LargeBinaryArray", delimiter: bytes, chunk: Chunk) -> None:
        super().__init__(ended, delimiter)
        self._chunk = chunk

    def starts(self) -> Sequence[int]:
        return _starts(self._chunk)


class CopiedTexts(Listed):
    """Decoded lines with their positions in the file."""

    __slots__ = ("_chunk",)

    def __init__(self, texts: Sequence[str], chunk: Chunk) -> None:
        super().__init__(texts)
        self._chunk = chunk

    def starts(self) -> Sequence[int]:
        return _starts(self._chunk)


def _starts(chunk: Chunk) -> list[int]:
    """The file position of each line of a chunk."""
    return [chunk.base + start for start in chunk.starts.tolist()]  # as Python integers: numpy's may overflow


def _whole(chunk: Chunk) -> Chunk:
    """The lines that have a delimiter."""
    return chunk if chunk.is_ended else chunk.up_to(len(chunk) - 1)


def _ended(chunk: Chunk) -> Chunk:
    """A copy of the chunk, with a delimiter after its last line."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    data = np.append(chunk.data, np.frombuffer(chunk.delimiter, np.uint8))
    return Chunk(data, chunk.base, chunk.delimiter, escape=chunk.escape)


def _texts(chunk: Chunk) -> list[str]:
    """The decoded lines, without delimiters."""
    content, ends = chunk.data.tobytes(), chunk.ends.tolist()
    stops = [end - len(chunk.delimiter) for end in ends]
    if not chunk.is_ended:
        stops[-1] = ends[-1]
    return [content[start:stop].decode("utf-8", TEXT_ERRORS) for start, stop in zip([0, *ends], stops, strict=False)]


def _without_returns(chunk: Chunk) -> Chunk:
    """A copy of the lines without the carriage return before each delimiter, unless the return is escaped."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    data, offsets = chunk.data, chunk.offsets
    after = (offsets[1:] if chunk.is_ended else offsets[1:-1]) - len(chunk.delimiter)
    after = after[(after > 0) & (data[after - 1] == ord("\r"))]
    if chunk.escape:
        after = unescaped(data, after, 1, chunk.escape)
    taken = np.searchsorted(after, offsets).astype(offsets.dtype)
    return Chunk(np.delete(data, after - 1), chunk.base, chunk.delimiter, offsets - taken, chunk.escape)


@dataclass(frozen=True, slots=True)
class FixedLength(ReaderContext[bytes]):
    """Reads records of `length` bytes, counted from the block's start; the last record of a block may be shorter.

    The tracker must split between records only: use a StrideTracker of the same length.
    """

    length: int
    chunk_size: int = CHUNK_SIZE

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[bytes]]]:
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        position = tracker.current_restriction().start
        buffer = np.empty(max(1, self.chunk_size // self.length) * self.length, np.uint8)
        stream.seek(position)
        while position < block.end:
            count = filled(stream, memoryview(buffer)[: min(len(buffer), block.end - position)])  # type: ignore[arg-type]
            if not count:
                break
            starts = np.arange(0, count, self.length)
            granted = tracker.claim_many(position + starts)
            end = min(count, granted * self.length)
            if granted:
                offsets = np.append(starts[:granted], end).astype(places_in(end))
                yield records_of(block, Arrowed(binary_array(buffer[:end], offsets)))
            if granted < len(starts):
                return
            position += count
        tracker.try_claim(block.end)


def binary_array(data: "Bytes", offsets: "Places") -> "pa.BinaryArray | pa.LargeBinaryArray":
    """An Arrow array over consecutive values in `data`, without a copy."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    kind = pa.binary() if offsets.itemsize == 4 else pa.large_binary()
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def records_of(block: Block, values: Column) -> "Batch[Record[Any]]":
    return Batch({"block_id": Constant(block.block_id, len(values)), "value": values}, Record)
