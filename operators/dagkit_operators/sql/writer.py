"""Writing records to a table of a database, each of them once."""

from typing import Any

from pydantic import Field
from typing_extensions import TypeVar

from dagkit import ExternalOutput, StagedWindow
from dagkit_operators.sql.client import SqlClient
from dagkit_operators.sql.connection import Connection, quoted
from dagkit_operators.sql.loading import TableLoader
from dagkit_operators.tables.staged_rows import TableWriter, together
from dagkit_operators.tables.storage import database_refused, table_mismatched

_ROWS_TOGETHER = 1 << 18
"""The most rows that are inserted at once."""


class WindowedTable:
    """Inserts the rows of windows, and records the last window of the writer in another table of the database."""

    def __init__(self, operator: "SqlWriter[Any]") -> None:
        self._operator = operator
        self._connection: Connection | None = None

    def prepare(self, writer: str) -> None:
        creates, schema = self._operator.creates_table, self._operator.schema_known
        self._connection = connection = self._operator.connect(creates=creates)
        self._enter(connection, writer)
        if schema is not None:
            loader = self._loader(connection)
            if creates and not loader.exists():
                loader.create(schema)
            loader.check(schema)
        connection.commit()

    def apply(self, window: StagedWindow) -> None:
        connection = self._connection
        assert connection is not None, "it is prepared before"
        if not self._claims(connection, window):
            # Otherwise the row of the writer would stay locked until the next window.
            connection.rollback()
            return
        self._loader(connection).load(lambda: together(window, _ROWS_TOGETHER))
        connection.commit()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _loader(self, connection: Connection) -> TableLoader:
        return TableLoader(connection, self._operator.table, self._operator.key)

    def _enter(self, connection: Connection, writer: str) -> None:
        """Enter the writer in the table of windows, unless it is there."""
        windows = quoted(self._operator.window_table)
        if connection.schema_of(self._operator.window_table) is None:
            # An index of InnoDB has at most 3072 bytes, and a character up to four.
            connection.execute(f"CREATE TABLE {windows} (writer VARCHAR(700) PRIMARY KEY, window_id BIGINT NOT NULL)")
            # The rollback below is to undo the entry alone, not the table.
            connection.commit()
        if self._last_window(connection, writer) is not None:
            return
        # What survives a rollback was committed by itself, by a driver or an engine without transactions. The rows of a
        # window could then be there in part, or twice, so it is found before the first window.
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
        windows = self._operator.window_table
        found = connection.execute(f"SELECT writer, window_id FROM {quoted(windows)} WHERE writer = ?", writer)
        for name, window in found:
            if name != writer:
                raise table_mismatched(
                    f"{windows} holds the windows of {name}, and takes {writer} for the same",
                    "change the collation of its column `writer`, so that it distinguishes upper and lower case",
                )
            return int(window)
        return None

    def _claims(self, connection: Connection, window: StagedWindow) -> bool:
        """Record the window. Return False if it was recorded before."""
        windows = self._operator.window_table
        update = f"UPDATE {quoted(windows)} SET window_id = "
        # It changes nothing, and locks the row until the transaction ends: an older driver waits, and then finds the
        # window.
        connection.execute(f"{update} window_id WHERE writer = ?", window.writer)
        last = self._last_window(connection, window.writer)
        if last is None:
            raise table_mismatched(f"{windows} no longer holds {window.writer}, which the launch entered")
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
    staged = ExternalOutput(WindowedTable, waits_seconds=lambda writer: writer.waits_seconds)

    table: str = Field(default=..., kw_only=False, min_length=1)
    """The table; the name of a schema and a dot may precede it."""
    key: tuple[str, ...] = ()
    """The columns that identify a row, which a unique index has; without them, each record becomes a row."""
    window_table: str = "dagkit_windows"
    """The table with the last window of each writer. The launch creates it; keep it together with the other table."""
