"""Reader contexts for lines of text."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, ClassVar, Self

from pydantic import PositiveInt, field_validator, model_validator

from dagkit import Batch, Block, Column, Lines
from dagkit.ground.urls import is_url
from dagkit.ranges import OFFSET_INFINITY
from dagkit.ranges.cursor import Run
from dagkit_operators.contexts.chunk import Chunk, in_portions
from dagkit_operators.contexts.encodings import (
    LOOKED_AT,
    UTF_8,
    Encoding,
    LineTexts,
    begin_of,
    check_wide_text,
    encoding_of,
    in_order_of,
)
from dagkit_operators.contexts.line_columns import whole
from dagkit_operators.contexts.lines import (
    CHUNK_SIZE,
    LineForm,
    LineTooLong,
    after_header,
    chunks,
    delimiter_of,
    escape_of,
    first_start,
    within,
)
from dagkit_operators.contexts.reader_context import ReaderContext, Splits, Tracker
from dagkit_operators.contexts.scanned_lines import run_chunks, wide_chunks
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.payloads import Record, Rejected


class TextContext(ReaderContext[str], LineForm):
    """The base of the reader contexts for lines: where lines end, and which lines are records."""

    reads: ClassVar[Any] = str

    chunk_size: PositiveInt = CHUNK_SIZE
    """Bytes that are read and sent at a time."""

    @field_validator("delimiter")
    @classmethod
    def _unambiguous(cls, delimiter: str) -> str:
        delimiter_of(delimiter)
        return delimiter

    @model_validator(mode="after")
    def _that_go_together(self) -> Self:
        escape_of(self.escape, delimiter_of(self.delimiter))
        if not (self.keep_returns or self.delimiter == "\n"):
            raise ValueError(f"keep_returns is False, and lines end with {self.delimiter!r}; leave the delimiter away")
        if self.collapse_line_ends and (self.escape or self.delimiter != "\n"):
            raise ValueError("collapse_line_ends is True; leave the delimiter and the escape away")
        encoding = encoding_of(self.encoding, self.delimiter)
        if self.escape and encoding.name != UTF_8:
            raise ValueError(f"escape is {self.escape!r}, and only lines in UTF-8 have escapes")
        if self.collapse_line_ends and encoding.unit > 1:
            raise ValueError(f"collapse_line_ends is True, and a character of {self.encoding} has several bytes")
        return self

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[str]] | Rejected]:
        encoding = in_order_of(encoding_of(self.encoding, self.delimiter), stream)
        start = tracker.current_restriction().start
        # Bytes at the beginning of the file are checked as they are read. A part that begins later looks at them here;
        # for a remote file, that would be another request for each part.
        if self._may_be_wide(encoding) and (start or self.skip_header_lines) and not is_url(block.path):
            check_wide_text(block.path, begin_of(stream))
        reading = self._chunks(stream, start, block.end, encoding)
        if (yield from self._claim_lines(reading, block, tracker, encoding)):
            tracker.try_claim(block.end)

    def batches_of(self, content: bytearray, block: Block) -> Iterator[Batch[Record[str]] | Rejected] | None:
        encoding = encoding_of(self.encoding, self.delimiter)
        has_plain_lines = encoding.name == UTF_8 and not (self.escape or self.collapse_line_ends)
        if not has_plain_lines or self.skip_header_lines or len(content) > self.longest_line:
            return None
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        if self._may_be_wide(encoding):
            check_wide_text(block.path, bytes(content[:LOOKED_AT]))
        chunk = Chunk(np.frombuffer(content, np.uint8), 0, delimiter_of(self.delimiter))
        return LineTexts(self, encoding, block).of(chunk)

    def contents(self, values: Column) -> Sequence[bytes]:
        if not isinstance(values, Lines):
            return super().contents(values)
        lines = bytes(values.content).split(values.delimiter)
        lines.pop()  # the empty bytes after the last delimiter
        return lines

    def text_of(self, content: bytes, stream: Seekable) -> str:
        return in_order_of(encoding_of(self.encoding, self.delimiter), stream).escaped(content)

    def _claims(self, chunk: Chunk, block: Block) -> Run[int]:
        """The positions that are claimed for the lines of a chunk: see `splits`."""
        return chunk if self.splits == "anywhere" else _LastBytes(chunk, block.end)

    def _chunks(self, stream: Seekable, start: int, end: int, encoding: Encoding) -> Iterator[Chunk]:
        """The lines of a block, without header lines, when reading begins at `start`."""
        if self.skip_header_lines:
            header = after_header(self._all(stream, 0, None, encoding), self.skip_header_lines)
            start = end if header is None else max(start, header)
        at_line = self.splits != "anywhere"
        return self._all(stream, start, end, encoding, at_line=at_line) if start < end else iter(())

    def _claim_lines(
        self, reading: Iterator[Chunk], block: Block, tracker: Tracker, encoding: Encoding
    ) -> Generator[Batch[Record[str]] | Rejected, None, bool]:
        """The lines that the tracker grants. Return whether it granted all of them."""
        texts = LineTexts(self, encoding, block)
        reading = self._check_beginning(reading, block) if self._may_be_wide(encoding) else reading
        try:
            for chunk in in_portions(within(reading, self.longest_line)):
                granted = tracker.claim_many(self._claims(chunk, block))
                if granted < len(chunk):
                    if granted:
                        yield from texts.of(chunk.up_to(granted))
                    return False
                yield from texts.of(chunk)
        except LineTooLong as fault:
            raise LineTooLong(fault.start, fault.longest, block.path) from None
        return True

    def _may_be_wide(self, encoding: Encoding) -> bool:
        """Whether text of wider units would be read as lines with NULs that are not expected."""
        return encoding.name == UTF_8 and "\0" not in self.delimiter

    def _check_beginning(self, reading: Iterator[Chunk], block: Block) -> Iterator[Chunk]:
        """The chunks, after checking the beginning of the file if it is among them."""
        for chunk in reading:
            if chunk.base == 0:
                check_wide_text(block.path, chunk.data[:LOOKED_AT].tobytes())
            yield chunk

    def _all(
        self, stream: Seekable, start: int, end: int | None, encoding: Encoding, *, at_line: bool = False
    ) -> Iterator[Chunk]:
        sizes: dict[str, Any] = {"size": self.chunk_size, "longest": self.longest_line, "at_line": at_line}
        if self.collapse_line_ends:
            return run_chunks(stream, start, end, **sizes)
        delimiter = self.delimiter.encode(encoding.name)
        if encoding.unit > 1:
            return wide_chunks(stream, start, end, delimiter, unit=encoding.unit, **sizes)
        return chunks(stream, start, end, delimiter, escape=self.escape.encode(), **sizes)


class ReadAheadLineReaderContext(TextContext):
    """Reads lines. The last line of a block is read to its end, even beyond the block; the next block skips that rest.

    A line belongs to the block in which it starts. If a line is longer than a chunk, the chunk doubles until the line
    fits. A line of n bytes costs 1.6 n bytes of memory, 2.1 n if it lacks a delimiter, and 3.1 n if it is decoded.
    """

    def ended_batches(
        self, stream: Seekable, block: Block, tracker: Tracker
    ) -> Generator[Batch[Record[str]] | Rejected, None, bool]:
        """Yield the lines of a growing file that are complete by now. Return whether the granted range is exhausted.

        A last line without a delimiter is not claimed.
        """
        start, encoding = tracker.current_restriction().start, encoding_of(self.encoding, self.delimiter)
        reached: int | None = None

        def ended() -> Iterator[Chunk]:
            nonlocal reached
            for chunk in self._chunks(stream, start, OFFSET_INFINITY, encoding):
                complete = whole(chunk)
                reached = chunk.base + len(complete.data)
                if len(complete):
                    yield complete

        if not (yield from self._claim_lines(ended(), block, tracker, encoding)):
            return True
        if reached is None:
            reached = self._first_start(stream, start)
        return reached is not None and reached >= tracker.current_restriction().stop and not tracker.try_claim(reached)

    def last_end(self, stream: Seekable, start: int, end: int) -> int | None:
        """The end of the last complete line before `end`; None if no line ends after `start`."""
        # A file may be long and its last line short, so the search begins near the end, in ever longer pieces.
        width = self.chunk_size
        while True:
            base = max(start, end - width)
            reached = self._first_start(stream, base)
            if reached is not None:
                for chunk in self._all(stream, reached, end, encoding_of(self.encoding, self.delimiter)):
                    reached = chunk.base + len(whole(chunk).data)
                return reached
            if base == start:
                return None
            width *= 8

    def _first_start(self, stream: Seekable, start: int) -> int | None:
        delimiter, escape = self.delimiter.encode(self.encoding), self.escape.encode()
        return first_start(stream, start, delimiter, escape=escape, size=self.chunk_size)


class LineReaderContext(TextContext):
    """Reads lines, beginning with the first byte of a block, which may lie in the middle of a line.

    The last line of a block is read to its end. The next block begins where it starts, so its first record may be the
    end of that line. A reader with this context must recognise complete lines: its `convert_to_record` returns None
    for any other. Nothing is read twice, but the records of a file depend on its blocks; prefer
    ReadAheadLineReaderContext, whose records do not.
    """

    splits: ClassVar[Splits] = "between records"


class _LastBytes(Sequence[int]):
    """The position of the last byte of each line; of a line that exceeds the block, the last byte of the block."""

    def __init__(self, chunk: Chunk, end: int) -> None:
        self._chunk = chunk
        self._end = end

    def __len__(self) -> int:
        return len(self._chunk)

    def __getitem__(self, index: Any, /) -> Any:
        end = len(self._chunk.data) if index == -1 else int(self._chunk.ends[index])
        return min(self._chunk.base + end, self._end) - 1
