"""Reading CSV: columns by the names in the header of each file."""

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from pydantic import field_validator, model_validator

from dagkit import Block
from dagkit.ranges import OffsetRange, OffsetRestrictionTracker
from dagkit_operators.contexts.encodings import UTF_8, encoding_of
from dagkit_operators.contexts.lines import LineTooLong
from dagkit_operators.contexts.portions import in_portions
from dagkit_operators.contexts.reader_context import Tracker
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.formats.line_format import LineFormat, RowRefused, one_batch
from dagkit_operators.formats.parts import Part
from dagkit_operators.formats.quoted import Quoted
from dagkit_operators.formats.record_types import reason_of
from dagkit_operators.formats.tabular import ColumnsMismatched, as_text
from dagkit_operators.payloads import VALUE, Rejected

if TYPE_CHECKING:
    import pyarrow as pa

HEADER_CHUNK = 16 << 10
"""Bytes that are read at a time to find the header."""


class CsvContext(LineFormat):
    """Reads CSV: values between separators, quoted where necessary, with quotes doubled within quotes.

    Files are in UTF-8 unless `encoding` is set. Values have the types of `record_type` or `types`; other columns are
    text. Empty lines are skipped. A row is a line unless `quoted_newlines` is set; a quote that is open at the end of a
    line rejects it, so no row is lost silently.
    """

    separator: str = ","
    """The character between values."""
    quote: str = '"'
    """The character around values that contain separators, quotes or newlines; empty: quotes are part of values."""
    header: bool = True
    """Whether the first row of a file names its columns; if not, `record_type`, `types` or `columns` do, in order."""
    null_values: tuple[str, ...] = ("",)
    """Texts that stand for a missing value; in a text column only if its field may be None."""
    quoted_newlines: bool = False
    """Whether quoted values may contain newlines. A block then scans the file from its beginning for quotes."""

    _names: tuple[tuple[str, str], list[str]] | None = None
    """The columns of the file that was read last, with its path and version."""
    _reached: tuple[str, int] | None = None
    """The path of the file that was read last, and where the next row starts."""

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
        if self.quoted_newlines and not self.quote:
            raise ValueError("quoted_newlines is set, and quote is empty; set quote")
        if self.quoted_newlines and encoding_of(self.encoding, "\n").name != UTF_8:
            raise ValueError(
                f"quoted_newlines is set, and encoding is {self.encoding!r}; only UTF-8 is searched for quotes"
            )
        if not (self.header or self._declared_names):
            raise ValueError("header is False, so columns have no names; set types, columns or record_type")
        return self

    @property
    def blank(self) -> bytes:
        return super().blank.replace(self.separator.encode(), b"")

    @property
    def _declared_names(self) -> list[str]:
        """The columns of files without a header."""
        return list(dict.fromkeys([*self.fields, *self.types])) or list(self.columns)

    def parts(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Part | Rejected]:
        if self.quoted_newlines:
            return self._quoted_parts(stream, block, tracker)
        return super().parts(stream, block, tracker)

    def lines(self, skipped: int = 0) -> Any:
        return super().lines(skipped or int(self.header))

    def names_of(self, stream: Seekable, block: Block) -> list[str]:
        """The columns of a file, as its header names them. Raise ColumnsMismatched unless they are distinct."""
        if not self.header:
            return self._declared_names
        key = block.path, block.version
        if self._names is None or self._names[0] != key:
            self._names = key, self._header(stream, block)
        return self._names[1]

    def _header(self, stream: Seekable, block: Block) -> list[str]:
        row = self._first_quoted_row(stream, block) if self.quoted_newlines else self._first_line(stream, block)
        names = self._values_of(row.removeprefix("\ufeff").rstrip("\r\n"), block.path)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ColumnsMismatched(block.path, f"its header, at byte 0, names the column {twice!r} twice")
        if not names:
            raise ColumnsMismatched(block.path, "its first line, at byte 0, is empty and names no columns")
        return names

    def _first_line(self, stream: Seekable, block: Block) -> str:
        start = Block(block.block_id, block.path, 0, 1, version=block.version, facts=block.facts)
        reading = super().lines().model_copy(update={"chunk_size": HEADER_CHUNK})
        return "".join(
            text
            for one in reading.batches(stream, start, OffsetRestrictionTracker(OffsetRange(0, 1)))
            if not isinstance(one, Rejected)
            for text in one.column(VALUE).values()
        )

    def _first_quoted_row(self, stream: Seekable, block: Block) -> str:
        quoted = Quoted(stream, self.quote, HEADER_CHUNK, self.longest_line)
        try:
            content = b"".join(chunk.data.tobytes() for chunk in quoted.chunks(0, 1, None))
        except LineTooLong as fault:
            raise LineTooLong(fault.start, fault.longest, block.path) from None
        return as_text(content)

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
            why = "a carriage return ends no row; end rows with newlines" if "\r" in header else str(fault)
            raise ColumnsMismatched(path, f"its header, at byte 0, is no row: {why}") from None
        return rows[0] if rows else []

    def schema_of(self, stream: Seekable, block: Block) -> "pa.Schema":
        """All columns of the file, with their types; those that are not needed are null."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        names = self.names_of(stream, block)
        needed = {*self.needed(names, block.path)}
        declared = self.declared()
        kinds = [(declared.get(name) or pa.string()) if name in needed else pa.null() for name in names]
        return pa.schema(list(zip(names, kinds, strict=True)))

    def batch_of(self, part: Part, schema: "pa.Schema") -> "tuple[pa.RecordBatch, None]":
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow.csv as pa_csv  # noqa: PLC0415

        data = part.data.data
        last = part[len(part) - 1]
        if self.quote and self.quote.encode() in last and self._is_open(last):
            raise RowRefused("a quote is open at the end; set quoted_newlines if values contain newlines")
        content = data.tobytes()
        if len(part) > 1 and content.count(b"\r") != content.count(b"\r\n"):
            raise RowRefused("a carriage return ends no row")
        reading = pa_csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=schema.names)
        parsing = pa_csv.ParseOptions(delimiter=self.separator, quote_char=self.quote or False)
        included = [field for field in schema if not pa.types.is_null(field.type)]
        converting = pa_csv.ConvertOptions(
            include_columns=[field.name for field in included],
            column_types={field.name: field.type for field in included},
            null_values=list(self.null_values),
            strings_can_be_null=False,
        )
        try:
            table = pa_csv.read_csv(pa.BufferReader(content), reading, parsing, converting)
        except pa.ArrowException as fault:
            raise RowRefused(reason_of(fault).replace("Row #1: ", "")) from None
        return self._with_nulls(one_batch(table, len(part))), None

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

    def _is_open(self, line: bytes) -> bool:
        """Whether a quote is open at the end of a line."""
        quote, separator = ord(self.quote), ord(self.separator)
        is_open, begins, index = False, True, 0
        while index < len(line):
            byte = line[index]
            if is_open and byte == quote:
                doubled = line[index + 1 : index + 2] == bytes([quote])
                is_open, index = doubled, index + doubled
            elif byte == quote and begins:
                is_open = True
            begins = not is_open and byte == separator
            index += 1
        return is_open

    def _quoted_parts(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Part]:
        """The rows that the tracker grants; a newline within quotes ends no row."""
        quoted = Quoted(stream, self.quote, self.chunk_size, self.longest_line)
        start = tracker.current_restriction().start
        reached, self._reached = self._reached, None
        after = reached[1] if reached is not None and reached[0] == block.source and reached[1] >= start else None
        first, is_inside = (start, quoted.begins_inside(start)) if after is None else (after, None)
        reading = quoted.chunks(first, block.end, is_inside)
        skips = self.header
        try:
            for chunk in in_portions(reading):
                after = chunk.base + len(chunk.data)
                if chunk.base == 0 and skips:
                    skips = False
                    if len(chunk) == 1:
                        continue
                    chunk = chunk.parted(1)[1]  # noqa: PLW2901 - without the header
                granted = tracker.claim_many(chunk)
                if granted:
                    yield Part.of_chunk(chunk if granted == len(chunk) else chunk.up_to(granted))
                if granted < len(chunk):
                    return
        except LineTooLong as fault:
            raise LineTooLong(fault.start, fault.longest, block.path) from None
        tracker.try_claim(block.end)
        if after is not None and after >= block.end:
            self._reached = block.source, after
