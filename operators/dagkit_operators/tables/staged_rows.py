"""Operators that stage records as Arrow columns, and the rows that they staged."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic

from pydantic import NonNegativeFloat, PositiveInt, PrivateAttr, field_validator
from typing_extensions import TypeVar

from dagkit import Batch, Entries, InputPort, Operator
from dagkit_operators.tables.faults import TableMismatched
from dagkit_operators.writing.arrow_records import ArrowRecords, check_columns, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
_TOGETHER = 1 << 18
"""Rows that are added at once."""


class StagesRows(Operator, Generic[T]):
    """Stages records, or Arrow record batches and tables. A subclass declares `staged`, its external output."""

    input = InputPort[T]()

    record_type: type | None = None
    """A dataclass, pydantic model, TypedDict or NamedTuple, whose fields are the columns; None: items are of Arrow."""
    creates_table: bool = True
    """Whether a missing table is created with the columns of the records."""
    waits_seconds: NonNegativeFloat | None = None
    """How long a run waits for a table that is away or full before it fails; None: until it is stopped."""
    batch_rows: PositiveInt = 1 << 14
    """The most records that are gathered before they are staged."""

    _records: ArrowRecords | None = PrivateAttr(default=None)

    @field_validator("record_type")
    @classmethod
    def _has_columns(cls, record_type: type | None) -> type | None:
        return check_columns(record_type)

    @property
    def schema_known(self) -> "pa.Schema | None":
        """The columns of the records, if they are known before the first one."""
        return None if self.record_type is None else schema_of(self.record_type)

    def process(self, item: T) -> None:
        self._arrow.take(item)

    def process_batch(self, batch: Batch[T]) -> None:
        self._arrow.take_batch(batch)

    def end_window(self) -> None:
        self._arrow.flush()

    @property
    def _arrow(self) -> ArrowRecords:
        if self._records is None:
            staged: Entries = self.staged  # type: ignore[attr-defined] # subclasses declare it
            self._records = ArrowRecords(self.record_type, self.batch_rows, lambda rows: staged.add(_entry_of(rows)))
        return self._records


def _entry_of(rows: "pa.Table") -> "memoryview":
    """Rows as an entry."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return memoryview(sink.getvalue())


def together(entries: Iterable[bytes], most: int = _TOGETHER) -> "Iterator[pa.Table]":
    """The rows of entries, those with the same columns together, up to a limit."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    gathered: list[pa.Table] = []
    for entry in entries:
        rows = pa.ipc.open_stream(pa.py_buffer(entry)).read_all()
        is_full = sum(table.num_rows for table in gathered) + rows.num_rows > most
        if gathered and (is_full or gathered[0].schema != rows.schema):
            yield pa.concat_tables(gathered)
            gathered = []
        gathered.append(rows)
    if gathered:
        yield pa.concat_tables(gathered)


def fitted(rows: "pa.Table", table: str, there: "pa.Schema") -> "pa.Table":
    """Rows with the types of a table's columns. Raise `TableMismatched` if it lacks one, or has another kind of it."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    columns = []
    for field in rows.schema:
        if field.name not in there.names:
            raise TableMismatched(f"{table} has no column {field.name}; its columns are {', '.join(there.names)}")
        wanted = there.field(field.name)
        try:
            columns.append(rows.column(field.name).cast(wanted.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            problem = f"the column {field.name} of {table} is of type {wanted.type}, and records hold {field.type}"
            raise TableMismatched(f"{problem}: {error}") from error
    return pa.Table.from_arrays(columns, schema=pa.schema([there.field(name) for name in rows.schema.names]))
