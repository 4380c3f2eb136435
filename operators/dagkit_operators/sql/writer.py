"""Writing records to a table of a database, each of them once."""

from functools import partial
from typing import Any

from pydantic import Field
from typing_extensions import TypeVar

from dagkit import ExternalOutput
from dagkit_operators.sql.client import SqlClient
from dagkit_operators.sql.windows import WindowedTable
from dagkit_operators.tables.staged_rows import TableWriter

T = TypeVar("T", default=Any)


class SqlWriter(SqlClient, TableWriter[T]):
    """Adds records, or Arrow record batches and tables, to a table of a database.

    The records of a window become visible together, after the window's commit, in one transaction. It also sets the
    number of the window in `window_table`, so that a window whose transaction is repeated after a crash is there once.
    With a `key`, a record replaces the row that has the same key; let the key also be that of the stream, so that the
    last record of a key is the last one that was sent.
    """

    kind = "sql.writer/1"
    staged = ExternalOutput(
        lambda writer: WindowedTable(
            partial(writer.connected, creates=writer.creates_table),
            writer.table,
            key=writer.key,
            window_table=writer.window_table,
            schema=writer.schema_known,
            creates_table=writer.creates_table,
        ),
        waits_seconds=lambda writer: writer.waits_seconds,
    )

    table: str = Field(default=..., kw_only=False, min_length=1)
    """The table; the name of a schema and a dot may precede it."""
    key: tuple[str, ...] = ()
    """The columns that identify a row, which a unique index has; without them, each record becomes a row."""
    window_table: str = "dagkit_windows"
    """The table with the last window of each writer. The launch creates it; keep it together with the other table."""
