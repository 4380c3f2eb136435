"""Inserting Arrow tables into a table of a database, within the open transaction of a connection."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from dagkit_operators.sql.connection import Connection, columns, quoted, quoted_name
from dagkit_operators.sql.faults import Kind, failure_of, kind_of, text_of
from dagkit_operators.tables.staged_rows import row_refused
from dagkit_operators.tables.storage import RowRefused, table_mismatched

if TYPE_CHECKING:
    import pyarrow as pa


class TableLoader:
    """Inserts into one table, or updates it by a key."""

    def __init__(self, connection: Connection, table: str, key: Sequence[str]) -> None:
        self._connection = connection
        self._table = table
        self._key = key

    def exists(self) -> bool:
        """Whether there is such a table."""
        return self._connection.schema_of(self._table) is not None

    def create(self, schema: "pa.Schema") -> None:
        """Create the table with these columns, and a unique index of the key."""
        with self._connection.failing():
            ready = self._connection.writable(schema.empty_table(), schema)
            self._connection.insert(self._table, ready, mode="create")
        if self._key:
            name = quoted_name(f"{self._table.rpartition('.')[2]}_key")
            self._connection.execute(f"CREATE UNIQUE INDEX {name} ON {quoted(self._table)} ({columns(self._key)})")

    def check(self, schema: "pa.Schema") -> None:
        """Raise a failure if the table cannot take rows with these columns."""
        self._connection.check(self._table, schema, self._key, self._there(schema))

    def load(self, pieces: "Callable[[], Iterator[pa.Table]]") -> None:
        """Insert rows, given in pieces. Raise `RowRefused` for the first one that is refused; then roll back."""
        for index, rows in enumerate(pieces()):
            refusal = self._refusal_of(iter((rows,)))
            if refusal is not None:
                raise self._refused(partial(_first, pieces, index), rows, refusal) from refusal.error

    def _load(self, rows: "pa.Table") -> None:
        self._connection.load(self._table, rows, self._key, self._there(rows.schema))

    def _there(self, schema: "pa.Schema") -> "pa.Schema":
        """The columns of the table. Raise `table-mismatched` if it lacks a column, or records lack one of the key."""
        there = self._connection.schema_of(self._table)
        if there is None:
            raise table_mismatched(f"{self._connection.name} has no table {self._table}")
        missing = [name for name in (*schema.names, *self._key) if name not in there.names]
        lacking = [name for name in self._key if name not in schema.names]
        if missing or lacking:
            problem = f"has no column {missing[0]}" if missing else f"is updated by {lacking[0]}, which no record has"
            raise table_mismatched(f"{self._table} {problem}; its columns are {', '.join(there.names)}")
        return there

    def _refused(
        self, earlier: "Callable[[], Iterator[pa.Table]]", rows: "pa.Table", refusal: "_Refusal"
    ) -> RowRefused:
        """The failure that names the first of some rows that is refused, found by inserting fewer and fewer of them.

        A row may be refused because of an earlier one, also of an earlier piece.
        """
        # Each attempt begins again instead of going back to a savepoint: the driver of PostgreSQL executes nothing
        # after an error until the transaction is rolled back.
        # Rows that are refused alone are searched without the earlier pieces, which each attempt would insert again.
        before = earlier if self._tried(iter((rows,))) is None else lambda: iter(())
        good, bad = 0, rows.num_rows
        while bad - good > 1:
            middle = (good + bad) // 2
            found = self._tried(chain(before(), (rows.slice(0, middle),)))
            good, bad, refusal = (middle, bad, refusal) if found is None else (good, middle, found)
        return row_refused(self._table, rows, good, refusal.reason)

    def _tried(self, pieces: "Iterator[pa.Table]") -> "_Refusal | None":
        """Why the database refuses rows in a transaction of their own, which is rolled back; None if it takes them."""
        self._connection.rollback()
        try:
            return self._refusal_of(pieces)
        finally:
            self._connection.rollback()

    def _refusal_of(self, pieces: "Iterator[pa.Table]") -> "_Refusal | None":
        """Insert rows. Return why the database refuses one of them; None if it takes them."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        try:
            for rows in pieces:
                self._load(rows)
        except pa.ArrowInvalid as error:
            return _Refusal(str(error), error)
        except self._connection.errors as error:
            if kind_of(error) is not Kind.ROWS:
                raise failure_of(error, self._connection.name) from error
            return _Refusal(text_of(error), error)
        return None


def _first(pieces: "Callable[[], Iterator[pa.Table]]", count: int) -> "Iterator[pa.Table]":
    return islice(pieces(), count)


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    error: Exception
