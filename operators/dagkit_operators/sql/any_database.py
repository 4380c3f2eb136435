"""Connections to any database, by a Python module with the interface of PEP 249, or of ADBC, which extends it.

The statements are those that databases have in common, so a row of a key is looked up before it is written. What a
module has of ADBC is used: results and bulk inserts as Arrow columns.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from dagkit_operators.sql.connection import Connection, columns, quoted, quoted_name
from dagkit_operators.sql.faults import Kind, failure_of, kind_of
from dagkit_operators.tables.storage import table_mismatched

if TYPE_CHECKING:
    import pyarrow as pa

_MARKS = {"qmark": "?", "format": "%s", "pyformat": "%s"}
"""Parameters by the style of a module; all others have numbers."""


class AnyDatabase(Connection):
    """A connection that `connect` of a module returned."""

    literal = ""

    def __init__(self, name: str, module: Any, options: Mapping[str, Any], session: Sequence[str]) -> None:
        """Connect with these options, and execute the statements of `session`."""
        self._style: str = module.paramstyle
        self.mark = self._mark_of(1)
        super().__init__(name, lambda: module.connect(**options), module)
        self._has_columns = hasattr(self._cursor, "adbc_ingest")
        with self.failing():
            # Committed below, since a rollback would undo settings that a database keeps in its transaction.
            for statement in session:
                self._cursor.execute(statement)
            self._connection.commit()

    def table(self, statement: str) -> "pa.Table":
        if self._has_columns:
            return super().table(statement)
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        with self.failing():
            self._cursor.execute(statement)
            names, rows = _names(self._cursor), self._cursor.fetchall()
        values = zip(*rows, strict=True) if rows else ((),) * len(names)
        return pa.Table.from_arrays([_array(column) for column in values], names=names)

    def schema_of(self, table: str) -> "pa.Schema | None":
        """The columns of a table, without types if the module is none of ADBC; None if there is no such table."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        try:
            # A cursor of its own: that of DuckDB fails at each statement after an error.
            with closing(self._connection.cursor()) as cursor:
                cursor.execute(f"SELECT * FROM {quoted(table)} WHERE 1 = 0")
                names = _names(cursor)
        except self.errors as error:
            # Some databases execute nothing more in a transaction that had an error.
            self.rollback()
            if kind_of(error) is Kind.STATEMENT:
                return None
            raise failure_of(error, self.name) from error
        return pa.schema([(name, pa.null()) for name in names])

    def insert(self, table: str, rows: "pa.Table", *, mode: str = "append", temporary: bool = False) -> None:
        if self._has_columns:
            super().insert(table, rows, mode=mode, temporary=temporary)
            return
        names = rows.column_names
        # Databases differ in the names of their types, so the author creates the table.
        if mode == "create":
            raise table_mismatched(f"{self.name} has no table {table}", f"create it, with the columns {columns(names)}")
        marks = ", ".join(self._mark_of(number) for number in range(1, len(names) + 1))
        into = self.escaped(f"{quoted(table)} ({columns(names)})")
        values = [tuple(row.values()) for row in rows.to_pylist()]
        self._cursor.executemany(f"INSERT INTO {into} VALUES ({marks})", values)

    def check(self, table: str, schema: "pa.Schema", key: Sequence[str], there: "pa.Schema") -> None:
        """Do nothing: no statement that all databases have checks an insertion without inserting."""

    def load(self, table: str, rows: "pa.Table", key: Sequence[str], there: "pa.Schema") -> None:  # noqa: ARG002 - the types of columns are unknown
        import pyarrow as pa  # noqa: PLC0415 - as above

        if not key:
            self.insert(table, rows)
            return

        others = [name for name in rows.column_names if name not in key]
        latest = {tuple(row[name] for name in key): row for row in rows.to_pylist()}
        target = self.escaped(quoted(table))
        lookup = f"SELECT 1 FROM {target} WHERE {self._equals(key, ' AND ')}"
        known = {values for values in latest if self._has(lookup, values)}
        if others and known:
            changes = f"{self._equals(others, ', ')} WHERE {self._equals(key, ' AND ', after=len(others))}"
            for values in known:
                new_values = [latest[values][name] for name in others]
                self._cursor.execute(f"UPDATE {target} SET {changes}", [*new_values, *values])
        added = [row for values, row in latest.items() if values not in known]
        if added:
            self.insert(table, pa.Table.from_pylist(added, rows.schema))

    def _has(self, statement: str, values: Sequence[Any]) -> bool:
        self._cursor.execute(statement, list(values))
        return bool(self._cursor.fetchall())

    def _equals(self, names: Sequence[str], between: str, after: int = 0) -> str:
        """Columns and the marks of their values; so many marks stand before them."""
        return between.join(
            f"{self.escaped(quoted_name(name))} = {self._mark_of(number)}"
            for number, name in enumerate(names, after + 1)
        )

    def _mark_of(self, number: int) -> str:
        return _MARKS.get(self._style, f":{number}")


def _names(cursor: Any) -> list[str]:
    return [column[0] for column in cursor.description]


def _array(values: Sequence[Any]) -> "pa.Array":
    """Values of a column. Those without a type of Arrow become text."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if value is None else str(value) for value in values])
