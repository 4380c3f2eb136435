"""Operators that stage records as Arrow columns, and the rows that they staged."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import NonNegativeFloat, PositiveInt
from typing_extensions import TypeVar

from dagkit import Entries, StagedWindow
from dagkit.errors import clipped
from dagkit_operators.tables.storage import RowRefused, table_mismatched
from dagkit_operators.writing.arrow_records import GathersRecords, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
_BYTES_TOGETHER = 1 << 26
"""The bytes of the rows that are added at once: so much of a window the driver has in memory."""


class StagesRows(GathersRecords[T]):
    """Stages records, or Arrow record batches and tables. A subclass declares `staged`, its external output."""

    batch_rows: PositiveInt = 1 << 14
    """The most records that are gathered before they are staged."""

    @property
    def schema_known(self) -> "pa.Schema | None":
        """The columns of the records, if they are known before the first one."""
        return None if self.record_type is None else schema_of(self.record_type)

    def before_checkpoint(self, window_id: int) -> None:  # noqa: ARG002 - the same for every window
        # Not in `end_window`, which is not called in each streaming window, while each has an instance of its own.
        self._arrow.flush()

    def _rows_together(self) -> int:
        return self.batch_rows

    def _take_table(self, table: "pa.Table") -> None:
        staged: Entries = self.staged  # type: ignore[attr-defined] # subclasses declare it
        staged.add(_entry_of(table))


class TableWriter(StagesRows[T]):
    """Adds the records that it stages to a table."""

    creates_table: bool = True
    """Whether a missing table is created with the columns of the records."""
    waits_seconds: NonNegativeFloat | None = None
    """How long a run waits for a table that is away or full before it fails; None: until it is stopped."""


def _entry_of(rows: "pa.Table") -> "memoryview":
    """Rows as an entry."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return memoryview(sink.getvalue())


def together(window: StagedWindow, most_rows: int | None = None) -> "Iterator[pa.Table]":
    """The rows of a window in pieces: those with the same columns together, up to a number of bytes and of rows."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    gathered: list[pa.Table] = []
    count = size = 0
    for entry in window.entries():
        rows = pa.ipc.open_stream(pa.py_buffer(entry)).read_all()
        is_full = size >= _BYTES_TOGETHER or (most_rows is not None and count + rows.num_rows > most_rows)
        if gathered and (is_full or gathered[0].schema != rows.schema):
            yield pa.concat_tables(gathered)
            gathered, count, size = [], 0, 0
        gathered.append(rows)
        count, size = count + rows.num_rows, size + len(entry)
    if gathered:
        yield pa.concat_tables(gathered)


@dataclass(frozen=True, slots=True)
class Description:
    """The columns and the size of the rows that a window staged."""

    schema: "pa.Schema"
    """All columns that rows have, in the order in which they appear."""
    row_bytes: int
    """The mean length of a row."""


def described(window: StagedWindow) -> Description:
    """Read a window once, to describe it."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    fields: dict[str, pa.Field] = {}
    count = size = 0
    for entry in window.entries():
        rows = pa.ipc.open_stream(pa.py_buffer(entry)).read_all()
        count, size = count + rows.num_rows, size + len(entry)
        for field in rows.schema:
            # The first type of a column is enough, since `pieces` casts the others.
            fields.setdefault(field.name, field)
    return Description(pa.schema(fields.values()), size // max(count, 1))


def pieces(window: StagedWindow, table: str, columns: "pa.Schema") -> "Iterator[pa.Table]":
    """The rows of a window with these columns of a table, piece by piece. A column that rows lack is empty there."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    for rows in together(window):
        there = fitted(rows, table, columns)
        values = [
            there[column.name] if column.name in there.column_names else pa.nulls(rows.num_rows, column.type)
            for column in columns
        ]
        yield pa.Table.from_arrays(values, schema=columns)


@contextmanager
def reader(window: StagedWindow, table: str, columns: "pa.Schema") -> "Iterator[pa.RecordBatchReader]":
    """A reader of `pieces`. The block raises the errors of reading as they are."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    # A library that reads wraps an error of its reader in one of its own, without the row or the code.
    raised: list[Exception] = []

    def batches() -> "Iterator[pa.RecordBatch]":
        try:
            for rows in pieces(window, table, columns):
                yield from rows.to_batches()
        except Exception as error:
            raised.append(error)
            raise

    try:
        yield pa.RecordBatchReader.from_batches(columns, batches())
    except Exception as error:
        if raised and error is not raised[0]:
            raise raised[0] from error
        raise


def selected(schema: "pa.Schema", table: str, there: "pa.Schema") -> "pa.Schema":
    """The columns of a table that rows have. Raise `table-mismatched` if it lacks one, or needs another one."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    for name in schema.names:
        if name not in there.names:
            raise table_mismatched(f"{table} has no column {name}; its columns are {', '.join(there.names)}")
    for field in there:
        if not field.nullable and field.name not in schema.names:
            raise table_mismatched(f"{table} needs values of the column {field.name}, which records lack")
    return pa.schema([there.field(name) for name in schema.names])


def check_fits(schema: "pa.Schema", table: str, there: "pa.Schema") -> None:
    """Raise a failure if a table cannot take rows with these columns."""
    fitted(schema.empty_table(), table, selected(schema, table, there))


def fitted(rows: "pa.Table", table: str, there: "pa.Schema") -> "pa.Table":
    """Rows with the types of a table's columns.

    Raise table-mismatched if a column is of another kind, and `RowRefused` for the first row whose value does not fit.
    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    columns, schema = [], pa.schema([there.field(name) for name in rows.schema.names])
    for field, wanted in zip(rows.schema, schema, strict=True):
        values = rows.column(field.name)
        if not wanted.nullable and values.null_count:
            first = values.is_null().index(pa.scalar(value=True)).as_py()
            raise row_refused(table, rows, first, f"the column {field.name} has no value")
        try:
            columns.append(values.cast(wanted.type))
        except pa.ArrowNotImplementedError as error:
            problem = f"the column {field.name} of {table} is of type {wanted.type}, and records hold {field.type}"
            raise table_mismatched(f"{problem}: {error}") from error
        except pa.ArrowInvalid as error:
            raise row_refused(table, rows, _first_unfit(values, wanted.type), f"{field.name}: {error}") from error
    return pa.Table.from_arrays(columns, schema=schema)


def row_refused(table: str, rows: "pa.Table", index: int, reason: str) -> RowRefused:
    """The failure that shows one of some rows."""
    return RowRefused(table, f"{clipped(rows.slice(index, 1).to_pylist()[0], 200)}", reason)


def _first_unfit(values: "pa.ChunkedArray", wanted: "pa.DataType") -> int:
    """The index of the first value that cannot be of a type; there is one."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            values.slice(good, middle - good).cast(wanted)
            good = middle
        except pa.ArrowInvalid:
            bad = middle
    return good
