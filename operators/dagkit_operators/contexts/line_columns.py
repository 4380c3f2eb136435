"""Columns of lines over the bytes that were read. Values are decoded, and line ends computed, on first use."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dagkit import Column, Lines, Listed
from dagkit.schema.columns import TEXT_ERRORS
from dagkit_operators.contexts.chunk import Chunk, unescaped
from dagkit_operators.contexts.reader_context import binary_array

if TYPE_CHECKING:
    import pyarrow as pa

DECODED = 256 << 10
"""Bytes of lines decoded at a time, unless the caller asks for all values at once."""


class ReadLines(Lines):
    """Lines over a chunk's own bytes. Line ends are computed on first use."""

    __slots__ = ("_chunk", "_ended")

    def __init__(self, chunk: Chunk) -> None:
        self.delimiter = chunk.delimiter
        self.base = chunk.base
        self._part_start = None
        self._chunk = chunk if chunk.is_ended else with_end(chunk)
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
        """The lines in smaller parts, whose decoded texts fit into the processor's cache."""
        chunk, start = self._chunk, 0
        while start < len(chunk.data):
            piece = Chunk(chunk.data[start : start + DECODED], chunk.base + start, chunk.delimiter)
            if not piece.is_ended:
                # If no line ends in the piece, all that is left becomes one piece.
                whole = piece.last_start or len(chunk.data) - start
                piece = Chunk(chunk.data[start : start + whole], chunk.base + start, chunk.delimiter)
            yield ReadLines(piece)
            start += len(piece.data)

    def values(self) -> Sequence[str]:
        texts = str(self.content, "utf-8", TEXT_ERRORS).split(self.delimiter.decode())
        texts.pop()  # the empty text after the last delimiter
        return texts

    def starts(self) -> Sequence[int]:
        return starts_of(self._chunk)


def picked_of(column: Column, made: Sequence[Any], indexes: Sequence[int]) -> Listed:
    """Values that were made of those of a column at these indexes, with their positions."""

    def starts() -> Sequence[int] | None:
        known = column.starts()
        return None if known is None else [known[index] for index in indexes]

    return Listed(made, starts, column.part_start())


def kept_values_of(column: Column, values: Sequence[Any], kept: Sequence[Any]) -> Listed:
    """Some of the values of a column, in order, with their positions: they are the same objects."""

    # Positions are asked for only when an item is rejected, so they are found then: a filter that noted its indexes
    # would be slower for every record.
    def starts() -> Sequence[int] | None:
        known, remaining = column.starts(), iter(kept)
        if known is None:
            return None
        wanted, places = next(remaining, remaining), []
        for value, start in zip(values, known, strict=True):
            if value is wanted:
                places.append(start)
                wanted = next(remaining, remaining)
        return places

    return Listed(kept, starts, column.part_start())


def starts_of(chunk: Chunk) -> list[int]:
    """The file position of each line of a chunk."""
    return [chunk.base + start for start in chunk.starts.tolist()]  # as Python integers: numpy's may overflow


def whole(chunk: Chunk) -> Chunk:
    """The lines that have a delimiter."""
    return chunk if chunk.is_ended else chunk.up_to(len(chunk) - 1)


def with_end(chunk: Chunk) -> Chunk:
    """A copy of the chunk, with a delimiter after its last line."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    data = np.append(chunk.data, np.frombuffer(chunk.delimiter, np.uint8))
    return Chunk(data, chunk.base, chunk.delimiter, escape=chunk.escape)


def line_of(chunk: Chunk, index: int) -> Chunk:
    """A chunk of one line."""
    start, end = chunk.offsets[index], chunk.offsets[index + 1]
    offsets = chunk.offsets[index : index + 2] - start
    return Chunk(chunk.data[start:end], chunk[index], chunk.delimiter, offsets, chunk.escape)


def without_mark(chunk: Chunk, mark: bytes) -> Chunk:
    """The lines of a chunk, without the byte order mark with which it begins."""
    offsets = chunk.offsets.copy()
    offsets[1:] -= len(mark)
    return Chunk(chunk.data[len(mark) :], chunk.base, chunk.delimiter, offsets, chunk.escape, is_ended=chunk.is_ended)


def texts(chunk: Chunk) -> list[str]:
    """The decoded lines, without delimiters."""
    return [line.decode("utf-8", TEXT_ERRORS) for line in bare_lines(chunk)]


def bare_lines(chunk: Chunk) -> list[bytes]:
    """The bytes of the lines, without delimiters."""
    content, ends = chunk.data.tobytes(), chunk.ends.tolist()
    stops = [end - len(chunk.delimiter) for end in ends]
    if not chunk.is_ended:
        stops[-1] = ends[-1]
    return [content[start:stop] for start, stop in zip([0, *ends], stops, strict=False)]


def without_returns(chunk: Chunk) -> Chunk:
    """A copy of the lines without the carriage return before each delimiter, unless the return is escaped."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    data, offsets = chunk.data, chunk.offsets
    after = (offsets[1:] if chunk.is_ended else offsets[1:-1]) - len(chunk.delimiter)
    after = after[(after > 0) & (data[after - 1] == ord("\r"))]
    if chunk.escape:
        after = unescaped(data, after, 1, chunk.escape)
    taken = np.searchsorted(after, offsets).astype(offsets.dtype)
    return Chunk(np.delete(data, after - 1), chunk.base, chunk.delimiter, offsets - taken, chunk.escape)
