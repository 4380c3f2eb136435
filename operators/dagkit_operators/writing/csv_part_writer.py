"""Writing records to CSV files, which are rolled as those of `PartWriter`."""

import datetime as dt
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Generic, Literal, Self, get_origin
from uuid import UUID

from pydantic import PrivateAttr, field_validator, model_validator
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, State
from dagkit.errors import clipped
from dagkit.schema import spelled
from dagkit.schema.columns import TEXT_ERRORS
from dagkit_operators.values.processed import processed_column, processed_value
from dagkit_operators.values.record_types import checked_fields_of, has_fields
from dagkit_operators.writing.arrow_records import RecordTyped, field_of
from dagkit_operators.writing.content import as_bytes
from dagkit_operators.writing.part_writer import ONLY, NumberedParts

T = TypeVar("T", default=Any)

_TEXTS: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    # Not `repr`, which is another function in subclasses: numpy writes `np.float64(0.1)`.
    float: float.__repr__,
    Decimal: str,
    UUID: str,
    dt.datetime: dt.datetime.isoformat,
    dt.date: dt.date.isoformat,
    dt.time: dt.time.isoformat,
    bytes: lambda value: value.decode("utf-8", TEXT_ERRORS),
}
"""The text of each type of value that `CsvContext` reads as that type again, and of a few more."""


class CsvPartWriter(RecordTyped, NumberedParts, Generic[T]):
    """Writes records, or the rows of Arrow record batches and tables, to a sequence of CSV files for each partition.

    Files are in UTF-8, and quoted as RFC 4180 describes: a value that contains the separator, a quote or an end of a
    line stands in quotes, and quotes in it are doubled. A file has the limits of `PartWriter`; each has a header. If
    the columns change between two launches, the next file begins. A text with bytes that are not UTF-8 is written as
    the same bytes.
    """

    kind = "files.csv-part-writer/1"
    input = InputPort[T]()

    file_name: str = "part-{partition:05}-{number:05}.csv"
    """The pattern of file names, with the values that it may have in `PartWriter`."""
    columns: tuple[str, ...] = ()
    """The fields that are written, in this order, also of dicts; none named: those of the record type."""
    header: bool = True
    """Whether each file begins with the names of the columns."""
    separator: str = ","
    """The character between values."""
    quote: str = '"'
    """The character around values that need it."""
    quotes_all: bool = False
    """Whether all values stand in quotes, except missing ones."""
    null_value: str = ""
    """The text of a missing value. A value that is this text stands in quotes."""
    record_separator: Literal["\n", "\r\n"] = "\n"
    """The end of each row; RFC 4180 asks for a carriage return in it, and readers accept both."""

    heading = State("")
    """The names of the columns of the current file, as they are written, and after them another dialect than usual."""

    _special: Callable[[str], Any] = PrivateAttr(default=lambda _: None)
    """Whether a text contains what needs quotes."""
    _beginning_bytes: bytes = PrivateAttr(default=b"")
    _names: Sequence[str] = PrivateAttr(default=())
    """The columns of the row that was written last."""

    @field_validator("separator", "quote")
    @classmethod
    def _is_a_character(cls, character: str) -> str:
        if len(character.encode()) != 1 or character in ("\n", "\r"):
            raise ValueError(f"{character!r} is not one ASCII character that may stand within a line")
        return character

    @model_validator(mode="after")
    def _properties_agree(self) -> Self:
        if self.separator == self.quote:
            raise ValueError(f"the separator and the quote are both {self.quote!r}; they are to differ")
        fields = checked_fields_of(self.record_type)
        for name in self.columns:
            if fields and name not in fields:
                raise ValueError(f"columns: records have no field {name}; they have {', '.join(fields)}")
        return self

    @field_validator("record_type")
    @classmethod
    def _has_columns(cls, record_type: type | None) -> type | None:
        for name, field in checked_fields_of(record_type).items():
            if _is_collection(field.hint):
                raise ValueError(f"the field {name} is {spelled(field.hint)}, which is no single value of a CSV row")
        return record_type

    def refused_payload(self, port: str, payload: Any) -> str | None:
        refused = None if self.columns else super().refused_payload(port, payload)
        return None if refused is None else f"{refused}, or set columns to the keys of dicts"

    def setup(self, context: Any) -> None:
        super().setup(context)
        self._special = re.compile(f"[{re.escape(self.separator + self.quote)}\r\n]").search
        self._names = ()

    def process(self, item: T) -> None:
        self._write_rows([processed_value(item, None)])

    def process_batch(self, batch: Batch[T]) -> None:
        if len(batch):
            self._write_rows(processed_column(batch, None).values())

    def _write_rows(self, records: Sequence[Any]) -> None:
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        rows: list[bytes] = []
        for record in records:
            if isinstance(record, pa.RecordBatch | pa.Table):
                self._write_items(rows)
                self._begin(self.columns or record.schema.names)
                self._write_items([self._row(row) for row in record.to_pylist()])
                rows = []
                continue
            names = self.columns or tuple(checked_fields_of(self.record_type))
            if not names:
                raise TypeError(f"{clipped(record, 60)} has no known fields; set record_type, or columns for dicts")
            if names != self._names:
                self._begin(names)
            rows.append(self._row(record))
        self._write_items(rows)

    def _begin(self, names: Sequence[str]) -> None:
        """Write these columns from now on. A file with others is finished."""
        self._names = tuple(names)
        header = self._line([self._quoted(name) for name in names])
        # Names need not contain what rows do: quotes, or missing values.
        heading = header + ("" if (self.quote, self.null_value) == ('"', "") else self.quote + self.null_value)
        part = self.parts.get(ONLY)
        if heading != self.heading and part is not None and part.count:
            self._roll(ONLY, part)
        self.heading = heading
        self._beginning_bytes = as_bytes(header) if self.header else b""

    def _beginning(self) -> bytes:
        return self._beginning_bytes

    def _row(self, record: Any) -> bytes:
        return as_bytes(self._line([self._cell(name, field_of(record, name)) for name in self._names]))

    def _line(self, cells: Sequence[str]) -> str:
        whole = self.separator.join(cells)
        # Readers skip empty lines.
        return (whole or self.quote * 2) + self.record_separator

    def _cell(self, name: str, value: Any) -> str:
        if value is None:
            return self.null_value
        if isinstance(value, Enum):
            return self._cell(name, value.value)
        if isinstance(value, str):
            return self._quoted(value)
        text_of = next((_TEXTS[kind] for kind in type(value).__mro__ if kind in _TEXTS), None)
        if text_of is None:
            problem = f"the column {name} cannot hold {clipped(value)}: it is no text, number, time or truth value"
            raise TypeError(f"{problem}; make one of it with a Map before the writer")
        return self._quoted(text_of(value))

    def _quoted(self, text: str) -> str:
        if self.quotes_all or text == self.null_value or self._special(text):
            return f"{self.quote}{text.replace(self.quote, self.quote * 2)}{self.quote}"
        return text


def _is_collection(hint: Any) -> bool:
    kind = get_origin(hint) or hint
    if not isinstance(kind, type):
        return False
    return has_fields(kind) or (issubclass(kind, Collection) and not issubclass(kind, str | bytes))
