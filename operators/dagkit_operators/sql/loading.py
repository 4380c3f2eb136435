"""Inserting Arrow tables into a table of a database, within the open transaction of a connection."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from dagkit_operators.sql.any_database import AnyDatabase
from dagkit_operators.sql.databases import Connection, Postgres, Sqlite, columns, quoted, quoted_name
from dagkit_operators.sql.faults import Kind, failure_of, kind_of, text_of
from dagkit_operators.tables.staged_rows import row_refused
from dagkit_operators.tables.storage import RowRefused, table_mismatched

if TYPE_CHECKING:
    import pyarrow as pa

STAGED = "dagkit_staged"
"""A temporary table: rows lie there if the database has to convert them, or to look for their keys."""
_ROW = "dagkit_row"
"""Its column for the order of rows: of two with the same key, the later one counts."""


class TableLoader:
    """Inserts into one table, or updates it by a key."""

    def __init__(self, connection: Connection, table: str, key: Sequence[str] = ()) -> None:
        self._connection = connection
        self.table = table
        self._key = key
        self._types: Mapping[str, str] | None = None

    def exists(self) -> bool:
        """Whether there is such a table."""
        return self._connection.schema_of(self.table) is not None

    def create(self, schema: "pa.Schema") -> None:
        """Create the table with these columns, and a unique index of the key."""
        with self._connection.failing():
            self._connection.insert(self.table, _plain(schema.empty_table(), self._connection), mode="create")
        if self._key:
            name = quoted_name(f"{self.table.rpartition('.')[2]}_key")
            self._connection.execute(f"CREATE UNIQUE INDEX {name} ON {quoted(self.table)} ({columns(self._key)})")

    def check(self, schema: "pa.Schema") -> None:
        """Raise a failure if the table cannot take rows with these columns."""
        self._forms(schema)
        if isinstance(self._connection, AnyDatabase):
            return
        names = columns(schema.names)
        source = f"SELECT {names} FROM {quoted(self.table)} WHERE 1 = 0"
        self._connection.execute(self._insertion(schema.names, source))

    def load(self, pieces: "Callable[[], Iterator[pa.Table]]") -> None:
        """Insert rows, given in pieces. Raise `RowRefused` for the first one that is refused; then roll back."""
        for index, rows in enumerate(pieces()):
            refusal = self._refusal_of(iter((rows,)))
            if refusal is not None:
                raise self._refused(partial(_first, pieces, index), rows, refusal) from refusal.error

    def _load(self, rows: "pa.Table") -> None:
        converted = self._forms(rows.schema)
        if self._key and isinstance(self._connection, AnyDatabase):
            self._connection.update(self.table, rows, self._key)
            return
        ready = _plain(rows, self._connection)
        if isinstance(self._connection, Postgres):
            ready = _cast(ready, self._schema(), converted)
        if not converted and not self._key:
            self._connection.insert(self.table, ready)
            return
        self._connection.execute(f"DROP TABLE IF EXISTS {STAGED}")
        self._connection.insert(STAGED, _numbered(ready), mode="create", temporary=True)
        self._connection.run(self._insertion(rows.schema.names, self._staged_rows(rows.schema.names, converted)))
        self._connection.execute(f"DROP TABLE {STAGED}")

    def _staged_rows(self, names: Sequence[str], converted: Mapping[str, str]) -> str:
        """The statement that selects the staged rows: of each key the last one."""
        values = ", ".join(
            f"CAST({quoted_name(name)} AS {converted[name]})" if name in converted else quoted_name(name)
            for name in names
        )
        if not self._key:
            return f"SELECT {values} FROM {STAGED} ORDER BY {_ROW}"
        ranked = f"SELECT *, row_number() OVER (PARTITION BY {columns(self._key)} ORDER BY {_ROW} DESC) AS dagkit_rank"
        return f"SELECT {values} FROM ({ranked} FROM {STAGED}) AS ranked WHERE dagkit_rank = 1"

    def _insertion(self, names: Sequence[str], source: str) -> str:
        """The statement that inserts what another one selects, or updates the rows with the same key."""
        insertion = f"INSERT INTO {quoted(self.table)} ({columns(names)}) {source}"
        if not self._key:
            return insertion
        others = [name for name in names if name not in self._key]
        update = ", ".join(f"{quoted_name(name)} = excluded.{quoted_name(name)}" for name in others)
        return f"{insertion} ON CONFLICT ({columns(self._key)}) DO {f'UPDATE SET {update}' if update else 'NOTHING'}"

    def _schema(self) -> "pa.Schema":
        found = self._connection.schema_of(self.table)
        if found is None:
            raise table_mismatched(f"{self._connection.name} has no table {self.table}")
        return found

    def _forms(self, schema: "pa.Schema") -> Mapping[str, str]:
        """The columns that the database has to convert, with their types there. Raise `table-mismatched` for others."""
        there = self._schema()
        missing = [name for name in (*schema.names, *self._key) if name not in there.names]
        lacking = [name for name in self._key if name not in schema.names]
        if missing or lacking:
            problem = f"has no column {missing[0]}" if missing else f"is updated by {lacking[0]}, which no record has"
            raise table_mismatched(f"{self.table} {problem}; its columns are {', '.join(there.names)}")
        if not isinstance(self._connection, Postgres):
            return {}
        converted = {}
        for field in schema:
            wanted = there.field(field.name).type
            if not _fits(field.type, wanted):
                kind = self._types_there()[field.name]
                if _is_plain(wanted):
                    raise table_mismatched(
                        f"the column {field.name} of {self.table} is of type {kind}, and records hold {field.type}"
                    )
                converted[field.name] = kind
        return converted

    def _types_there(self) -> Mapping[str, str]:
        if self._types is None:
            found = self._connection.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = CAST(? AS regclass) AND attnum > 0 AND NOT attisdropped",
                quoted(self.table),
            )
            self._types = dict(found)
        return self._types

    def _refused(
        self, earlier: "Callable[[], Iterator[pa.Table]]", rows: "pa.Table", refusal: "_Refusal"
    ) -> RowRefused:
        """The failure that names the first of some rows that is refused, found by inserting fewer and fewer of them.

        A row may be refused because of an earlier one. Those of earlier pieces are inserted again if that is so. There
        is no savepoint: the driver of PostgreSQL executes nothing after an error until the transaction is rolled back.
        """
        before = earlier if self._tried(iter((rows,))) is None else lambda: iter(())
        good, bad = 0, rows.num_rows
        while bad - good > 1:
            middle = (good + bad) // 2
            found = self._tried(chain(before(), (rows.slice(0, middle),)))
            good, bad, refusal = (middle, bad, refusal) if found is None else (good, middle, found)
        return row_refused(self.table, rows, good, refusal.reason)

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


def _numbered(rows: "pa.Table") -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415 - as above

    return rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))


def _plain(rows: "pa.Table", connection: Connection) -> "pa.Table":
    """The rows without the types that the driver cannot write."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if not isinstance(connection, Sqlite):
        return rows
    for index, field in enumerate(rows.schema):
        if pa.types.is_decimal(field.type):  # SQLite has no decimals, and text loses nothing
            rows = rows.set_column(index, field.name, rows.column(index).cast(pa.string()))
        elif pa.types.is_nested(field.type):
            raise table_mismatched(f"SQLite has no type for the column {field.name}, which holds {field.type}")
    return rows


def _cast(rows: "pa.Table", there: "pa.Schema", converted: Mapping[str, str]) -> "pa.Table":
    """The rows with the types of the table: PostgreSQL takes the bytes of another type without complaint."""
    for index, field in enumerate(rows.schema):
        wanted = there.field(field.name).type
        if field.name not in converted and _is_plain(wanted) and field.type != wanted:
            rows = rows.set_column(index, field.name, rows.column(index).cast(wanted))
    return rows


def _is_plain(kind: Any) -> bool:
    return _family(kind) != ""


def _fits(kind: Any, wanted: Any) -> bool:
    """Whether values of one type can be written as another one, if their size allows it."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if isinstance(wanted, pa.BaseExtensionType):
        return bool(pa.types.is_decimal(kind)) and getattr(wanted, "type_name", "") == "numeric"
    if pa.types.is_list(kind) and pa.types.is_list(wanted):
        return bool(kind.value_type == wanted.value_type)
    return _family(kind) != "" and _family(kind) == _family(wanted)


def _family(kind: Any) -> str:
    """The family of a type within which values are converted; empty for types that only the database converts."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    families = (
        ("integer", pa.types.is_integer),
        ("floating", pa.types.is_floating),
        ("text", lambda each: pa.types.is_string(each) or pa.types.is_large_string(each)),
        ("bytes", lambda each: pa.types.is_binary(each) or pa.types.is_large_binary(each)),
        ("boolean", pa.types.is_boolean),
        ("date", pa.types.is_date),
        ("zoned instant", lambda each: pa.types.is_timestamp(each) and each.tz is not None),
        ("instant", pa.types.is_timestamp),
    )
    return next((name for name, fits in families if fits(kind)), "")
