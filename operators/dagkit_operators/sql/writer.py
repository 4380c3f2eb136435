"""Writing records to a table of a database, each of them once."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field
from typing_extensions import TypeVar

from dagkit import ExternalOutput, StagedWindow
from dagkit_operators.sql.client import SqlClient
from dagkit_operators.sql.databases import Connection, quoted
from dagkit_operators.sql.loading import TableLoader
from dagkit_operators.tables.staged_rows import TableWriter, together
from dagkit_operators.tables.storage import database_refused, table_mismatched

if TYPE_CHECKING:
    import pyarrow as pa


_ROWS_TOGETHER = 1 << 18
"""The most rows that are inserted at once."""


class WindowedTable:
    """Inserts the rows of windows, and records the last window of the writer in another table of the database."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        table: str,
        *,
        key: Sequence[str] = (),
        window_table: str = "dagkit_windows",
        schema: "pa.Schema | None" = None,
        creates_table: bool = True,
    ) -> None:
        self._connect = connect
        self._table = table
        self._key = key
        self._windows = window_table
        self._schema = schema
        """The columns of rows, if they are known before the first one."""
        self._creates_table = creates_table
        self._connection: Connection | None = None

    def prepare(self, writer: str) -> None:
        self._connection = connection = self._connect()
        self._enter(connection, writer)
        if self._schema is not None:
            loader = TableLoader(connection, self._table, self._key)
            if self._creates_table and not loader.exists():
                loader.create(self._schema)
            loader.check(self._schema)
        connection.commit()

    def apply(self, window: StagedWindow) -> None:
        connection = self._connection
        assert connection is not None, "it is prepared before"
        if not self._claims(connection, window):
            connection.rollback()
            return
        TableLoader(connection, self._table, self._key).load(lambda: together(window, _ROWS_TOGETHER))
        connection.commit()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _enter(self, connection: Connection, writer: str) -> None:
        """Enter the writer in the table of windows, unless it is there."""
        windows = quoted(self._windows)
        if connection.schema_of(self._windows) is None:
            connection.execute(f"CREATE TABLE {windows} (writer VARCHAR(700) PRIMARY KEY, window_id BIGINT NOT NULL)")
            connection.commit()
        if self._last_window(connection, writer) is not None:
            return
        entering = f"INSERT INTO {windows} (writer, window_id) VALUES (?, 0)"
        connection.execute(entering, writer)
        connection.rollback()
        if self._last_window(connection, writer) is not None:
            raise database_refused(
                f"{connection.name} keeps what a transaction rolled back, so a window could be there in part, or twice",
                "let no statement commit by itself; in MariaDB and MySQL, let tables have the engine InnoDB",
            )
        connection.execute(entering, writer)
        connection.commit()

    def _last_window(self, connection: Connection, writer: str) -> int | None:
        found = connection.execute(f"SELECT writer, window_id FROM {quoted(self._windows)} WHERE writer = ?", writer)
        for name, window in found:
            if name != writer:
                raise table_mismatched(
                    f"{self._windows} holds the windows of {name}, and takes {writer} for the same",
                    "change the collation of its column `writer`, so that it distinguishes upper and lower case",
                )
            return int(window)
        return None

    def _claims(self, connection: Connection, window: StagedWindow) -> bool:
        """Record the window. Return False if it was recorded before.

        The row is locked until the transaction ends, so that an older driver waits, and then finds the window.
        """
        update = f"UPDATE {quoted(self._windows)} SET window_id = "
        connection.execute(f"{update} window_id WHERE writer = ?", window.writer)
        last = self._last_window(connection, window.writer)
        if last is None:
            raise table_mismatched(f"{self._windows} no longer holds {window.writer}, which the launch entered")
        if last >= window.window_id:
            return False
        connection.execute(f"{update} {window.window_id} WHERE writer = ?", window.writer)
        return True


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
