"""Reading CSV: columns by the names in the header of each file."""

import csv
from codecs import BOM_UTF8
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Self

from pydantic import field_validator, model_validator

from dagkit import Block
from dagkit.ranges import OffsetRange, OffsetRestrictionTracker
from dagkit_operators.contexts.chunk import Chunk, in_portions
from dagkit_operators.contexts.encodings import LOOKED_AT, UTF_8, Encoding, check_wide_text, encoding_of, in_order_of
from dagkit_operators.contexts.line_columns import starts_of
from dagkit_operators.contexts.lines import LineTooLong, within
from dagkit_operators.contexts.reader_context import Tracker
from dagkit_operators.filesystem.access import Seekable, filled
from dagkit_operators.formats.line_format import LineFormat, RowRefused, one_batch
from dagkit_operators.formats.parts import Part
from dagkit_operators.formats.quoted import Marks, Quoted, RowStarts, remembered
from dagkit_operators.formats.tabular import ColumnsMismatched, RecordsReader, V
from dagkit_operators.payloads import VALUE, Rejected
from dagkit_operators.values.record_types import Ignored, reason_of

if TYPE_CHECKING:
    import pyarrow as pa

HEADER_CHUNK = 16 << 10
"""Bytes that are read at a time to find the header."""
SEARCHED = 1 << 20
"""Bytes at the beginning of a file in which its first newline is searched for."""
_LINE_END = "a carriage return or newline is within a value: quote that value"


class CsvContext(LineFormat):
    """Reads CSV: values between separators, quoted where necessary, with quotes doubled within quotes.

    Files are in UTF-8 unless `encoding` is set. Values have the types of `record_type` or `types`; other columns are
    text. Empty lines are skipped. Quoted values may contain newlines. Rows end with LF or CRLF, or with CR if the first
    MiB of the file has no LF outside of quotes. A row is rejected whole if it has a quote elsewhere than around a
    value, or a CR or LF within a value that is not quoted, since where its values end is a guess.
    """

    separator: str = ","
    """The character between values."""
    quote: str = '"'
    """The character around values that contain separators, quotes or newlines; empty: quotes are part of values."""
    header: bool = True
    """Whether the first row of a file names its columns; if not, `record_type`, `types` or `columns` do, in order."""
    null_values: tuple[str, ...] = ("",)
    """Texts that stand for a missing value; in a text column only if its field may be None."""
    quoted_newlines: bool = True
    """Whether quoted values may contain newlines. Each process then scans a file for quotes, up to what it reads.

    False: no file has such values. A row is a line then, found without a scan. If a file has them nevertheless, lines
    within a value that look like rows are read as rows.
    """

    _begun: tuple[Hashable, str, list[str]] | None = None
    """The file that was read last, by its path and version, the last character of its rows, and its columns."""
    _known: tuple[Hashable, RowStarts] | None = None
    """The file that was read last, and where its rows start, if nothing distinguishes its versions."""

    @field_validator("separator", "quote")
    @classmethod
    def _is_a_character(cls, character: str) -> str:
        if len(character.encode()) > 1 or character in ("\n", "\r"):
            raise ValueError(f"{character!r} is not one ASCII character that may stand within a line")
        return character

    @model_validator(mode="after")
    def _options_agree(self) -> Self:
        if not self.separator or self.separator == self.quote:
            raise ValueError(f"the separator is {self.separator!r}, and the quote {self.quote!r}; they are to differ")
        if self._searches_quotes:
            try:
                encoding_of(self.encoding, self.separator + self.quote)  # neither may be part of a character
            except ValueError as fault:
                raise ValueError(f"{fault}; set quoted_newlines to False if no value contains a newline") from None
        if not (self.header or self._declared_names):
            raise ValueError("header is False, so columns have no names; set types, columns or record_type")
        return self

    @property
    def _searches_quotes(self) -> bool:
        """Whether quotes are searched for, to find where rows end."""
        return self.quoted_newlines and bool(self.quote)

    @property
    def blank(self) -> bytes:
        return super().blank.replace(self.separator.encode(), b"")

    @property
    def _declared_names(self) -> list[str]:
        """The columns of files without a header."""
        return list(dict.fromkeys([*self.fields, *self.types])) or list(self.columns)

    def parts(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Part | Rejected]:
        if self._searches_quotes:
            return self._quoted_parts(stream, block, tracker)
        return super().parts(stream, block, tracker)

    def lines(self, row_end: str, skipped: int = 0) -> Any:
        return super().lines(row_end, skipped or int(self.header))

    def row_end(self, stream: Seekable, block: Block) -> str:
        return self._beginning(stream, block)[0]

    def _beginning(self, stream: Seekable, block: Block) -> tuple[str, list[str]]:
        """The last character of the rows of a file, and its columns. Raise ColumnsMismatched for an invalid header."""
        key = block.path, block.version
        if self._begun is None or self._begun[0] != key:
            row_end = self._row_end_in(stream, block)
            self._begun = key, row_end, self._header(stream, block, row_end) if self.header else self._declared_names
        return self._begun[1:]

    # RFC 4180 ends rows with CRLF. Python's csv, pandas and Arrow take each LF, CRLF and CR for an end, so a CR within
    # a value that is not quoted cuts its row in two. Here the beginning of a file decides what ends its rows, and a row
    # with another end in it is rejected whole.
    def _row_end_in(self, stream: Seekable, block: Block) -> str:
        """A carriage return if the beginning of a file has no newline outside of quotes, else a newline."""
        encoding = in_order_of(encoding_of(self.encoding, "\n"), stream)
        stream.seek(0)
        content, size, ended = b"", HEADER_CHUNK, False
        while len(content) < SEARCHED and not ended:
            buffer = memoryview(bytearray(min(size, SEARCHED - len(content))))
            count = filled(stream, buffer)
            content += buffer[:count]
            if encoding.name == UTF_8:
                check_wide_text(block.path, content[:LOOKED_AT])
            ended, size = count < len(buffer), 2 * size
            text = encoding.decoded(content)
            outside = self.quote.join(text.split(self.quote)[::2]) if self._searches_quotes else text
            if "\n" in outside:
                return "\n"
        return "\r" if "\r" in outside else "\n"

    def _header(self, stream: Seekable, block: Block, row_end: str) -> list[str]:
        """The names of the columns in the header. Raise ColumnsMismatched unless they are distinct."""
        first_row = self._first_quoted_row if self._searches_quotes else self._first_line
        row = first_row(stream, block, row_end)
        names = self._values_of(row.removeprefix("\ufeff").rstrip("\r\n"), block.path)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ColumnsMismatched(block.path, f"its header, at byte 0, names the column {twice!r} twice")
        if not names:
            raise ColumnsMismatched(block.path, "its first line, at byte 0, is empty and names no columns")
        return names

    def _first_line(self, stream: Seekable, block: Block, row_end: str) -> str:
        start = Block(block.block_id, block.path, 0, 1, version=block.version, facts=block.facts)
        reading = super().lines(row_end).model_copy(update={"chunk_size": HEADER_CHUNK})
        return "".join(
            text
            for batch in reading.batches(stream, start, OffsetRestrictionTracker(OffsetRange(0, 1)))
            if not isinstance(batch, Rejected)
            for text in batch.column(VALUE).values()
        )

    def _first_quoted_row(self, stream: Seekable, block: Block, row_end: str) -> str:
        quoted = self._quoted(stream, row_end, RowStarts(), HEADER_CHUNK)
        with _of_file(block.path):
            content = b"".join(chunk.data.tobytes() for chunk in quoted.chunks(0, 1))
        return quoted.encoding.decoded(content)

    def _quoted(self, stream: Seekable, row_end: str, known: RowStarts, size: int) -> Quoted:
        encoding = in_order_of(encoding_of(self.encoding, "\n"), stream)
        marks = Marks.of(encoding, self.separator, self.quote, row_end)
        return Quoted(stream, encoding, marks, known, size, self.longest_line)

    def _values_of(self, header: str, path: str) -> list[str]:
        """The values of the header. Raise ColumnsMismatched if it is no row."""
        try:
            header.encode()
            rows = list(
                csv.reader(
                    [header],
                    delimiter=self.separator,
                    quotechar=self.quote or None,
                    quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
                )
            )
        except UnicodeEncodeError:
            raise ColumnsMismatched(path, "its header, at byte 0, is not UTF-8; set its encoding") from None
        except csv.Error as fault:
            why = _LINE_END if "\r" in header else str(fault)
            raise ColumnsMismatched(path, f"its header, at byte 0, is no row: {why}") from None
        return rows[0] if rows else []

    def schema_of(self, stream: Seekable, block: Block) -> "pa.Schema":
        """All columns of the file, with their types; those that are not needed are null."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        names = self._beginning(stream, block)[1]
        needed = {*self.needed(names, block.path)}
        declared = self.declared()
        kinds = [(declared.get(name) or pa.string()) if name in needed else pa.null() for name in names]
        return pa.schema(list(zip(names, kinds, strict=True)))

    def batch_of(self, part: Part, schema: "pa.Schema") -> "tuple[pa.RecordBatch, Ignored | None]":
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow.csv as pa_csv  # noqa: PLC0415

        self._check_ends(part)
        content = part.data.tobytes()
        # Arrow takes a mark at the beginning of its input for that of a file, and these rows may begin anywhere.
        if content.startswith(BOM_UTF8) and not _begins_file(part):
            content = BOM_UTF8 + content
        # All rows are one block of Arrow: it divides its input at newlines, also at those within quotes.
        reading = pa_csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=schema.names)
        parsing = pa_csv.ParseOptions(delimiter=self.separator, quote_char=self.quote or False)
        included = [field for field in schema if not pa.types.is_null(field.type)]
        converting = pa_csv.ConvertOptions(
            include_columns=[field.name for field in included],
            column_types={field.name: field.type for field in included},
            null_values=list(self.null_values),
            # A missing value is null only in fields that may be None: see `_with_nulls`.
            strings_can_be_null=False,
        )
        try:
            table = pa_csv.read_csv(pa.BufferReader(content), reading, parsing, converting)
        except pa.ArrowException as fault:
            raise RowRefused(reason_of(fault).replace("Row #1: ", "")) from None
        return self._with_nulls(one_batch(table, len(part))), self.ignored_columns(len(part), schema.names)

    def _with_nulls(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """The rows with nulls in text columns whose fields may be None."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow.compute as pc  # noqa: PLC0415

        for index, name in enumerate(batch.schema.names):
            if (
                name in self.fields
                and self.fields[name].is_optional
                and pa.types.is_string(batch.schema.field(name).type)
            ):
                column = batch.column(index)
                missing = pc.is_in(column, pa.array(self.null_values, pa.string()))
                batch = batch.set_column(index, name, pc.if_else(missing, pa.scalar(None, pa.string()), column))
        return batch

    def _check_ends(self, part: Part) -> None:
        """Raise RowRefused for rows whose ends, or those of their values, would be a guess.

        They have a quote that neither begins nor ends a value, and is not doubled in one, or another line end.
        """
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        marks = Marks.of(Encoding(UTF_8), self.separator, self.quote, "\n")
        quotes = marks.quotes_in(part.data) if self.quote else np.empty(0, np.int64)
        if len(quotes):
            first = len(BOM_UTF8) if part.data[: len(BOM_UTF8)].tobytes() == BOM_UTF8 and _begins_file(part) else 0
            if not marks.are_strict(part.data, quotes, first):
                raise RowRefused("a quote is within a value: double it there, or set quote to '' if no value is quoted")
            if len(quotes) % 2:
                hint = "" if self.quoted_newlines else "; set quoted_newlines if values contain newlines"
                raise RowRefused(f"a quote is open at the end{hint}")
        if not marks.are_whole(part.data, quotes, part.offsets):
            raise RowRefused(_LINE_END)

    def _quoted_parts(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Part | Rejected]:
        """The rows that the tracker grants; a newline within quotes ends no row."""
        quoted = self._quoted(stream, self.row_end(stream, block), self._row_starts(block), self.chunk_size)
        with _of_file(block.path):
            first = quoted.row_at(tracker.current_restriction().start)
            skips = self.header
            rows = iter(()) if first is None else quoted.chunks(first, block.end)
            for chunk in in_portions(within(rows, self.longest_line)):
                if chunk.base == 0 and skips:
                    skips = False
                    if len(chunk) == 1:
                        continue
                    chunk = chunk.parted(1)[1]  # noqa: PLW2901 - without the header
                granted = tracker.claim_many(chunk)
                if granted:
                    yield from _as_utf_8(chunk if granted == len(chunk) else chunk.up_to(granted), quoted, block)
                if granted < len(chunk):
                    return
        tracker.try_claim(block.end)

    def _row_starts(self, block: Block) -> RowStarts:
        """Where rows of a file start. A process remembers this of a file whose time of change is known."""
        facts = block.facts or {}
        version = block.source, facts.get("length"), facts.get("modified_millis")
        key = *version, self.separator, self.quote, self.encoding
        if facts.get("modified_millis") is not None:
            return remembered(key)
        if self._known is None or self._known[0] != key:
            self._known = key, RowStarts()
        return self._known[1]


def _begins_file(part: Part) -> bool:
    """Whether a file begins with these rows, so that they may begin with its byte order mark."""
    return bool(part.starts()[0] == 0)


def _as_utf_8(chunk: Chunk, quoted: Quoted, block: Block) -> Iterator[Part | Rejected]:
    """The rows of a chunk, and those that are no text in the encoding of the file."""
    encoding = quoted.encoding
    if encoding.name == UTF_8:
        yield Part.of_chunk(chunk)
        return
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling

    texts, starts = [], []
    for start, row in zip(starts_of(chunk), Part.of_chunk(chunk), strict=True):
        fault = encoding.fault_in(row)
        if fault is None:
            texts.append(encoding.decoded(row).encode())
            starts.append(start)
        else:
            text = encoding.decoded(row).rstrip("\r\n")
            yield Rejected(block.path, start, text, f"it is not {encoding.name}: {fault}")
    if texts:
        yield Part(np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)]), lambda: starts)


@contextmanager
def _of_file(path: str) -> Iterator[None]:
    """Name the file of a row that is too long."""
    try:
        yield
    except LineTooLong as fault:
        help_ = "raise the property longest_line; if a quote in that row closes nothing, correct the file"
        raise LineTooLong(fault.start, fault.longest, path, help_) from None


class CsvReader(RecordsReader[V], Generic[V]):
    """Reads blocks of CSV files, and sends a record for each row."""

    kind = "files.csv-reader/1"

    reader_context: CsvContext = CsvContext()
    """How rows become records."""
