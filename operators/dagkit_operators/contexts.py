"""Reader contexts: how the bytes of a block become records.

A context is asked for the records of a stretch of a stream. It claims each record before it hands it on, so that the
stretch can be split while it is read, and comes to the stretch's end by a claim that is refused.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dagkit import Arrowed, Batch, Block, Column, Constant, Lines, Listed
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, RestrictionTracker
from dagkit.schema.columns import TEXT_ERRORS
from dagkit_operators.blocks import Record
from dagkit_operators.bytewise import places_in
from dagkit_operators.chunk import Chunk, unescaped
from dagkit_operators.lines import (
    CHUNK_SIZE,
    LONGEST_LINE,
    LineTooLong,
    Seekable,
    after_header,
    chunks,
    filled,
    first_start,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from dagkit_operators.bytewise import Bytes, Places

T = TypeVar("T")
Tracker = RestrictionTracker[OffsetRange, int]

FIRST_CLAIM = 16
"""Lines that are claimed first of a block, when nobody knows how long they take."""
ENOUGH_LINES = 64
"""Of fewer nobody can say whether they are quick: what they cost together is more than what each costs."""
CLAIM_SECONDS = 0.005
"""How long the lines of one claim are to take: if they get a hundred times slower, it is half a second."""
QUICK_SECONDS = 5e-6
"""Lines that take no longer are claimed as they are read: to part them would take longer than they do."""
SHORTEST_SECONDS = 1e-9
"""What a clock may tell as nothing."""
GROWTH = 8
"""By how much a claim may be larger than the one before."""
DECODED = 256 << 10
"""Bytes of lines that are decoded at a time, where that is up to us."""


class ReaderContext(ABC, Generic[T]):
    """Makes records of a block."""

    @abstractmethod
    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[T]]]:
        """The records that start in what the tracker grants of the block.

        A batch is good until the next one is asked for.
        """


@dataclass(frozen=True, slots=True)
class ReadAheadLines(ReaderContext[str]):
    """Lines; the last of a block is read ahead to its end, wherever that lies, and the next block leaves it out.

    A line that is longer than a chunk makes the chunk double until the line fits: a line of n bytes costs 1.6 n
    bytes of memory, 2.1 n where nothing ends it, and 3.1 n where it is decoded.
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
        """The lines that are ended by now, of a file that grows; and whether that was all that the tracker grants.

        A last line that nobody has ended yet is not claimed.
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
        """Where the last line before `end` ends that is ended; None where none does from `start` on.

        It is looked for near the end first.
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
        """The lines that the tracker grants, and whether it granted all of them."""
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
        """The lines that start there and are no header."""
        if self.skip_header_lines:
            header = after_header(self._all(stream, 0, None), self.skip_header_lines)
            start = end if header is None else max(start, header)
        return self._all(stream, start, end) if start < end else iter(())

    def _all(self, stream: Seekable, start: int, end: int | None) -> Iterator[Chunk]:
        return chunks(
            stream, start, end, self.delimiter, escape=self.escape, size=self.chunk_size, longest=self.longest_line
        )

    def _column(self, chunk: Chunk) -> Column:
        """What lines are handed on as that something is to be taken away from."""
        bare = chunk if self.keep_returns else _without_returns(chunk)
        if self.escape:
            return CopiedTexts(
                _texts(bare), chunk
            )  # there may be delimiters in them: nobody else could tell them apart
        bare = bare if bare.is_ended else _ended(bare)
        return CopiedLines(binary_array(bare.data, bare.offsets), bare.delimiter, chunk)


def in_portions(reading: Iterable[Chunk], now: Callable[[], float] = time.perf_counter) -> Iterator[Chunk]:
    """The chunks in parts that are to be claimed at once: few lines where they are slow, for a claim is not split.

    Lines are taken to be as slow as those before: whoever asks for more is done with them.
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
                most = None  # as many as there are
            else:
                most = max(1, min(GROWTH * lines, int(lines * CLAIM_SECONDS / max(seconds, SHORTEST_SECONDS))))


class ReadLines(Lines):
    """Lines over a chunk's own bytes. Where they end is found when it is asked for."""

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
        """The lines as bytes, their delimiters included."""
        if self._ended is None:
            self._ended = binary_array(self._chunk.data, self._chunk.offsets)
        return self._ended

    @property
    def content(self) -> memoryview:
        return self._chunk.data.data

    def pieces(self) -> Iterator["ReadLines"]:
        """The same lines in smaller parts, whose texts stay in the processor's cache, and in memory that is at hand."""
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
        texts.pop()  # what follows the last delimiter: nothing
        return texts

    def starts(self) -> Sequence[int]:
        return _starts(self._chunk)


class CopiedLines(Lines):
    """Lines that are not as they stand in the file, and know where they start there."""

    __slots__ = ("_chunk",)

    def __init__(self, ended: "pa.BinaryArray | pa.LargeBinaryArray", delimiter: bytes, chunk: Chunk) -> None:
        super().__init__(ended, delimiter)
        self._chunk = chunk

    def starts(self) -> Sequence[int]:
        return _starts(self._chunk)


class CopiedTexts(Listed):
    """Texts of lines that know where they start in the file."""

    __slots__ = ("_chunk",)

    def __init__(self, texts: Sequence[str], chunk: Chunk) -> None:
        super().__init__(texts)
        self._chunk = chunk

    def starts(self) -> Sequence[int]:
        return _starts(self._chunk)


def _starts(chunk: Chunk) -> list[int]:
    """Where each line of a chunk starts in the file."""
    return [chunk.base + start for start in chunk.starts.tolist()]  # as Python's numbers: those of numpy are narrow


def _whole(chunk: Chunk) -> Chunk:
    """The lines that are ended."""
    return chunk if chunk.is_ended else chunk.up_to(len(chunk) - 1)


def _ended(chunk: Chunk) -> Chunk:
    """The chunk with its last line ended, in a copy."""
    import numpy as np  # noqa: PLC0415 - whoever only compiles does not load it

    data = np.append(chunk.data, np.frombuffer(chunk.delimiter, np.uint8))
    return Chunk(data, chunk.base, chunk.delimiter, escape=chunk.escape)


def _texts(chunk: Chunk) -> list[str]:
    """Each line by itself, without what ends it."""
    content, ends = chunk.data.tobytes(), chunk.ends.tolist()
    stops = [end - len(chunk.delimiter) for end in ends]
    if not chunk.is_ended:
        stops[-1] = ends[-1]
    return [content[start:stop].decode("utf-8", TEXT_ERRORS) for start, stop in zip([0, *ends], stops, strict=False)]


def _without_returns(chunk: Chunk) -> Chunk:
    """The lines in a copy, without the return before what ends them, where one stands there and is not escaped."""
    import numpy as np  # noqa: PLC0415 - whoever only compiles does not load it

    data, offsets = chunk.data, chunk.offsets
    after = (offsets[1:] if chunk.is_ended else offsets[1:-1]) - len(chunk.delimiter)
    after = after[(after > 0) & (data[after - 1] == ord("\r"))]
    if chunk.escape:
        after = unescaped(data, after, 1, chunk.escape)
    taken = np.searchsorted(after, offsets).astype(offsets.dtype)
    return Chunk(np.delete(data, after - 1), chunk.base, chunk.delimiter, offsets - taken, chunk.escape)


@dataclass(frozen=True, slots=True)
class FixedLength(ReaderContext[bytes]):
    """Records of so many bytes, counted from where each block starts; the last of a block may be shorter.

    The tracker must be one that splits between records: a StrideTracker of the same length.
    """

    length: int
    chunk_size: int = CHUNK_SIZE

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[bytes]]]:
        import numpy as np  # noqa: PLC0415 - whoever only compiles does not load it

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
    """Values that stand one after the other, over their own bytes and without a copy."""
    import pyarrow as pa  # noqa: PLC0415 - whoever only compiles does not load it

    kind = pa.binary() if offsets.itemsize == 4 else pa.large_binary()
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def records_of(block: Block, values: Column) -> "Batch[Record[Any]]":
    return Batch({"block_id": Constant(block.block_id, len(values)), "value": values}, Record)
