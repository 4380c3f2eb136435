"""The base of JSON lines and CSV: lines are read and claimed as text, and parsed by Arrow, many at a time."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import PositiveInt, field_validator

from dagkit import Block
from dagkit_operators.contexts.encodings import UTF_8, encoding_of, in_order_of
from dagkit_operators.contexts.line_contexts import ReadAheadLineReaderContext
from dagkit_operators.contexts.lines import LONGEST_LINE
from dagkit_operators.contexts.reader_context import Tracker
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.formats.parts import Part
from dagkit_operators.formats.tabular import Made, Places, TabularContext, text_of_row
from dagkit_operators.payloads import VALUE, Rejected
from dagkit_operators.values.record_types import Ignored, reason_of

if TYPE_CHECKING:
    import pyarrow as pa


class RowRefused(Exception):
    """Rows cannot be parsed together; if it is one row, it is rejected for this reason."""


class LineFormat(TabularContext):
    """Reads rows that are lines of text. A row belongs to the range in which it starts."""

    longest_line: PositiveInt = LONGEST_LINE
    """The most bytes of a row; a longer one fails the run."""
    chunk_size: PositiveInt = 1 << 20
    """Bytes that are read and parsed at a time."""
    encoding: str = UTF_8
    """The encoding of the file, by the name that Python gives it. A row that is no text in it is rejected."""

    @property
    def blank(self) -> bytes:
        """The bytes of blank lines, which are no rows."""
        return b" \t\r\n"

    @field_validator("encoding")
    @classmethod
    def _can_be_read_in_blocks(cls, encoding: str) -> str:
        encoding_of(encoding, "\n")
        return encoding

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Made]:
        schema = self.schema_of(stream, block)  # first, as it may read the header
        for part in self.parts(stream, block, tracker):
            if isinstance(part, Rejected):
                yield part
            else:
                yield from self.parsed(block, part, schema)

    def record_end(self, stream: Seekable, block: Block, start: int, stop: int) -> int:
        if self.sends == "batches":  # a record is a batch of lines
            return self.first_claim(stream, block, start, stop)
        return super().record_end(stream, block, start, stop)

    def text_of(self, content: bytes, stream: Seekable) -> str:
        return in_order_of(encoding_of(self.encoding, "\n"), stream).escaped(content)

    def parts(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Part | Rejected]:
        """The rows that the tracker grants, as text."""
        for batch in self.lines(self.row_end(stream, block)).batches(stream, block, tracker):
            if isinstance(batch, Rejected):
                yield batch
            elif len(batch):
                yield Part.of_column(batch.column(VALUE))

    def row_end(self, stream: Seekable, block: Block) -> str:  # noqa: ARG002 - for overrides
        """The last character of the rows of a file."""
        return "\n"

    def lines(self, row_end: str, skipped: int = 0) -> ReadAheadLineReaderContext:
        """The context that reads the lines, without the first ones of each file."""
        return ReadAheadLineReaderContext(
            delimiter=row_end,
            longest_line=self.longest_line,
            chunk_size=self.chunk_size,
            skip_header_lines=skipped,
            encoding=self.encoding,
            # Arrow finds bytes that are not UTF-8, and halving finds their row.
            undecodable="keep" if encoding_of(self.encoding, "\n").name == UTF_8 else "reject",
        )

    def parsed(self, block: Block, part: Part, schema: "pa.Schema") -> Iterator[Made]:
        """The records of rows, and the rows that make none."""
        try:
            batch, ignored = self.batch_of(part, schema)
        except RowRefused as fault:
            yield from self._one_by_one(block, part, schema, str(fault))
        else:
            yield from self.records_from(block, batch, Places(part.starts, part))
            if ignored is not None:
                yield ignored

    def _one_by_one(self, block: Block, part: Part, schema: "pa.Schema", reason: str) -> Iterator[Made]:
        """Find the rows that cannot be parsed, by halving."""
        # Arrow reports no positions of rows.
        if len(part) > 1:
            middle = len(part) // 2
            yield from self.parsed(block, part.sliced(0, middle), schema)
            yield from self.parsed(block, part.sliced(middle, len(part)), schema)
        elif part[0].strip(self.blank):
            yield Rejected(block.path, part.starts()[0], text_of_row(part[0]), reason)

    @abstractmethod
    def schema_of(self, stream: Seekable, block: Block) -> "pa.Schema":
        """The columns that are read of a file, with their types."""

    @abstractmethod
    def batch_of(self, part: Part, schema: "pa.Schema") -> "tuple[pa.RecordBatch, Ignored | None]":
        """Parse rows, and count the fields that are not read. Raise RowRefused unless each row makes one record."""


def one_batch(table: "pa.Table", rows: int) -> "pa.RecordBatch":
    """The rows of a table as one batch. Raise RowRefused for another number of rows, or if a text is not UTF-8."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    if table.num_rows != rows:
        raise RowRefused(f"the line holds {table.num_rows} records" if rows == 1 else "lines are not records")
    try:
        table.validate(full=True)
    except pa.ArrowException as fault:
        raise RowRefused(reason_of(fault)) from None
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    return batch
