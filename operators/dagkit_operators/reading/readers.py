"""The readers of blocks by name: a block reader, and the reader context that it has unless set otherwise."""

from typing import Any

from pydantic import Field, PositiveInt, model_validator

from dagkit import OutputPort
from dagkit_operators.contexts.fixed_bytes import FixedBytesReaderContext
from dagkit_operators.contexts.line_contexts import ReadAheadLineReaderContext, TextContext
from dagkit_operators.payloads import Record
from dagkit_operators.reading.block_reader import BlockReader
from dagkit_operators.reading.text_format import TextForm


class LineReader(TextForm[str], BlockReader[str]):
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
