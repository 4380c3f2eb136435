"""Writing records to a table of a database, each of them once."""

from typing import Any, Generic

from pydantic import Field, NonNegativeFloat, PositiveInt, PrivateAttr, field_validator
from typing_extensions import TypeVar

from dagkit import Batch, ExternalOutput, InputPort
from dagkit_operators.sql.client import SqlClient
from dagkit_operators.sql.windows import WindowedTable, entry_of
from dagkit_operators.writing.arrow_records import ArrowRecords, check_columns, schema_of

T = TypeVar("T", default=Any)


class SqlWriter(SqlClient, Generic[T]):
    """Adds records, or Arrow record batches and tables, to a table of a database.

    The records of a window become visible together, after the window's commit, in one transaction. It also sets the
    number of the window in `window_table`, so that a window whose transaction is repeated after a crash is there once.
    With a `key`, a record replaces the row that has the same key; let the key also be that of the stream, so that the
    last record of a key is the last one that was sent.
    """

    kind = "sql.writer/1"
    input = InputPort[T]()
    staged = ExternalOutput(
        lambda writer: WindowedTable(
            writer.connected,
            writer.table,
            key=writer.key,
            window_table=writer.window_table,
            schema=None if writer.record_type is None else schema_of(writer.record_type),
            creates_table=writer.creates_table,
        ),
        waits_seconds=lambda writer: writer.waits_seconds,
    )

    table: str = Field(default=..., min_length=1)
    """The table; the name of a schema and a dot may precede it."""
    record_type: type | None = None
    """A dataclass, pydantic model, TypedDict or NamedTuple, whose fields are the columns; None: items are of Arrow."""
    key: tuple[str, ...] = ()
    """The columns that identify a row, which a unique index has; without them, each record becomes a row."""
    creates_table: bool = True
    """Whether the launch creates a missing table with the columns of `record_type`, and an index of the `key`."""
    window_table: str = "dagkit_windows"
    """The table with the last window of each writer. The launch creates it; keep it together with the other table."""
    waits_seconds: NonNegativeFloat | None = None
    """How long a run waits for a database that is away or full before it fails; None: until it is stopped."""
    batch_rows: PositiveInt = 1 << 14
    """The most records that are gathered before they are staged."""

    _records: ArrowRecords | None = PrivateAttr(default=None)

    @field_validator("record_type")
    @classmethod
    def _has_columns(cls, record_type: type | None) -> type | None:
        return check_columns(record_type)

    def process(self, item: T) -> None:
        self._arrow.take(item)

    def process_batch(self, batch: Batch[T]) -> None:
        self._arrow.take_batch(batch)

    def end_window(self) -> None:
        self._arrow.flush()

    @property
    def _arrow(self) -> ArrowRecords:
        if self._records is None:
            self._records = ArrowRecords(
                self.record_type, self.batch_rows, lambda rows: self.staged.add(entry_of(rows))
            )
        return self._records
