"""Consecutive texts of rows in memory, as the formats of lines parse them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from dagkit import Column, Lines
from dagkit.schema.columns import TEXT_ERRORS
from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.line_columns import starts_of

if TYPE_CHECKING:
    from dagkit_operators.native.bytewise import Bytes, Places


class Part(Sequence[bytes]):
    """The bytes of consecutive rows, each with its line end, and their positions in the file."""

    __slots__ = ("_starts", "data", "offsets")

    def __init__(self, data: "Bytes", offsets: "Places", starts: Callable[[], Sequence[int]]) -> None:
        self.data = data
        self.offsets = offsets
        """The start of each row in `data`, and the end of the last one."""
        self._starts = starts

    @classmethod
    def of_column(cls, column: Column) -> "Part":
        """The lines that a context for lines has read."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow as pa  # noqa: PLC0415

        if not isinstance(column, Lines):  # lines that were decoded one by one
            texts = [text.encode("utf-8", TEXT_ERRORS) + b"\n" for text in column.values()]
            return cls(
                np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)]), lambda: starts(column)
            )
        ended = column.ended
        places = ended.buffers()[1]
        width = np.int64 if isinstance(ended, pa.LargeBinaryArray) else np.int32
        offsets = np.frombuffer(places, width)[ended.offset : ended.offset + len(ended) + 1]
        data = np.frombuffer(column.content, np.uint8)
        return cls(data, offsets - offsets[0], lambda: starts(column))

    @classmethod
    def of_chunk(cls, chunk: Chunk) -> "Part":
        """The rows of a chunk whose ends are known."""
        return cls(chunk.data, chunk.offsets, lambda: starts_of(chunk))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int, /) -> bytes: ...
    @overload
    def __getitem__(self, index: slice, /) -> Sequence[bytes]: ...
    def __getitem__(self, index: Any, /) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        start, stop = int(self.offsets[index]), int(self.offsets[index + 1])
        return self.data[start:stop].tobytes()

    def starts(self) -> Sequence[int]:
        """The position of each row in the file."""
        return self._starts()

    def sliced(self, start: int, stop: int) -> "Part":
        """The rows from `start` up to `stop`."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        offsets = self.offsets[start : stop + 1] - first
        return Part(self.data[first:last], offsets, lambda: self.starts()[start:stop])


def starts(column: Column) -> Sequence[int]:
    """The positions of the values of a column in their file, which a context for lines knows."""
    known = column.starts()
    assert known is not None, "a context for lines reports where they are"
    return known
