"""The readers of blocks by name: each is a block reader with the reader context of its records."""

from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from dagkit import Batch, Block, OutputPort
from dagkit_operators.contexts.fixed_bytes import FixedBytesReaderContext
from dagkit_operators.contexts.line_contexts import ReadAheadLineReaderContext, TextContext
from dagkit_operators.contexts.reader_context import Tracker
from dagkit_operators.payloads import VALUE, Record
from dagkit_operators.reading.block_reader import BlockReader
from dagkit_operators.reading.reader import LinesReader


class LineReader(LinesReader[str], BlockReader[str]):
    """Reads blocks of text files, and sends a record for each line.

    A line belongs to the block in which it starts. The delimiter is no part of the record; the last line of a file may
    lack it. Bytes that are not valid UTF-8 are decoded to lone surrogates, and written as the original bytes.

    By default, everything else is part of the value: carriage returns, a byte order mark, escapes.
    """

    kind = "files.line-reader/1"
    messages = OutputPort[Record[str]](main=True)

    reader_context: TextContext = ReadAheadLineReaderContext()
    """How lines are read; the properties of lines below are its properties."""


class FixedLengthReader(BlockReader[bytes]):
    """Reads blocks of fixed-length records, as bytes.

    Records are counted from the start of each block, and end with the block: the last one may be shorter.
    """

    kind = "files.fixed-length-reader/1"
    messages = OutputPort[Record[bytes]](main=True)

    reader_context: FixedBytesReaderContext = FixedBytesReaderContext()
    """How records are read."""
    length: PositiveInt = Field(default=...)
    """Bytes of a record. It may also be set in the reader context."""

    @model_validator(mode="before")
    @classmethod
    def _of_its_context(cls, given: Any) -> Any:
        context = given.get("reader_context") if isinstance(given, dict) else None
        length = context.get("length") if isinstance(context, dict) else getattr(context, "length", None)
        return given if length is None or "length" in given else {**given, "length": length}


Mode = Literal["delimited_record", "fixed_width_record"]


class RecordReader(BlockReader[bytes]):
    """Reads blocks of records, delimited or of a fixed width, and sends the bytes of each.

    `records` sends the bytes alone, `messages` together with the ID of the block. Records of a fixed width are counted
    from the start of each block, so `block_size` of the splitter should be a multiple of `record_length`; the last
    record of a block may be shorter.
    """

    kind = "files.record-reader/1"
    messages = OutputPort[Record[bytes]](main=True)
    records = OutputPort[bytes]()

    reader_context: ReadAheadLineReaderContext | FixedBytesReaderContext = ReadAheadLineReaderContext()
    """How records are read; by default, as `mode` and `record_length` say."""
    mode: Mode = "delimited_record"
    """Whether records end with a delimiter, or all have the same length."""
    record_length: PositiveInt | None = None
    """Bytes of a record of a fixed width; must be set in that mode."""

    @field_validator("mode", mode="before")
    @classmethod
    def _in_any_case(cls, mode: Any) -> Any:
        """Accept the names of Apex, which are in capitals."""
        return mode.lower() if isinstance(mode, str) else mode

    @model_validator(mode="after")
    def _has_the_context_of_its_mode(self) -> Self:
        if self.mode == "delimited_record":
            if not isinstance(self.reader_context, ReadAheadLineReaderContext):
                raise ValueError(f"mode is {self.mode!r}, and reader_context reads records of a fixed width")
            return self
        fixed = self.reader_context if isinstance(self.reader_context, FixedBytesReaderContext) else None
        length = self.record_length or (None if fixed is None else fixed.length)
        if length is None:
            raise ValueError(f"mode is {self.mode!r}, and record_length is not set; set it to the bytes of a record")
        if fixed is not None and fixed.length not in (None, length):
            raise ValueError(f"record_length is {length}, and reader_context.length is {fixed.length}; set one of them")
        context = FixedBytesReaderContext(length=length, chunk_size=self.chunk_size)
        # Past pydantic, which refuses to assign properties of a component.
        self.__dict__.update(reader_context=context, record_length=length)
        return self

    def convert_to_record(self, content: bytes) -> bytes:
        # An override, although it changes nothing: without one, lines would be sent as the text that the context reads.
        return content

    def process(self, element: Block, tracker: Tracker) -> Iterator[Batch[Record[bytes]]]:
        for batch in super().process(element, tracker):
            if self.records.is_connected:
                self.records.emit_batch(Batch.of_column(batch.column(VALUE)))
            yield batch
