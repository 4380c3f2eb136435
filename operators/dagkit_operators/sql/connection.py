"""A connection to a database by ADBC, whose results and bulk inserts are Arrow columns; databases override parts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dagkit_operators.sql.faults import Kind, failure_of, kind_of, text_of
from dagkit_operators.tables.storage import RowRefused

if TYPE_CHECKING:
    import pyarrow as pa

STAGED = "dagkit_staged"
"""A temporary table: rows lie there if the database has to convert them, or to look for their keys."""
_ROW = "dagkit_row"
"""Its column for the order of rows: of two with the same key, the later one counts."""


def quoted(table: str) -> str:
    """The name of a table in SQL, which may begin with that of its schema and a dot."""
    return ".".join(map(quoted_name, table.split(".")))


def quoted_name(name: str) -> str:
    """A name in SQL, such as that of a column."""
    return '"' + name.replace('"', '""') + '"'


def columns(names: Iterable[str]) -> str:
    """Names of columns in SQL, with commas."""
    return ", ".join(quoted_name(name) for name in names)


class Connection:
    """One connection. A transaction begins with the first statement, and ends with `commit` or `rollback`."""

    mark: str = "?"
    """Stands for the parameter of a statement."""
    finding: ClassVar[str] = "SELECT 1 FROM pragma_table_info(?) LIMIT 1"
    """The statement that returns a row if there is a table of a name."""
    literal: ClassVar[str] = "quote({})"
    """The expression whose value is that of a column as SQL; empty if databases differ in it."""

    def __init__(self, name: str, connect: Callable[[], Any], driver: Any) -> None:
        self.name = name
        """The database in messages, without secrets."""
        self.errors: type[Exception] = driver.Error
        """What the driver raises."""
        with self.failing():
            self._connection = connect()
            self._cursor = self._connection.cursor()

    def close(self) -> None:
        """Close the connection, and roll back what is not committed."""
        # A connection that is lost cannot be closed, and has nothing to lose.
        for resource in (self._cursor, self._connection):
            with suppress(Exception):
                resource.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Raise a failure with a code for an error of the driver."""
        try:
            yield
        except self.errors as error:
            raise failure_of(error, self.name) from error

    def execute(self, statement: str, parameter: str | None = None) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows. Its last question mark stands for the parameter."""
        with self.failing():
            return self.run(statement, parameter)

    def run(self, statement: str, parameter: str | None = None) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows. Errors of the driver pass as they are."""
        # Without a parameter, a question mark is part of the statement, such as one in a text in a query of the author.
        if parameter is None:
            self._cursor.execute(statement)
        else:
            # Only the last one: there may be others in names.
            before, _, after = statement.rpartition("?")
            self._cursor.execute(f"{self.escaped(before)}{self.mark}{after}", [parameter])
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def escaped(self, statement: str) -> str:
        """A statement without parameters, as a part of one with parameters."""
        # In this style, a driver takes a percent sign for the beginning of a parameter.
        return statement.replace("%", "%%") if self.mark == "%s" else statement

    def table(self, statement: str) -> "pa.Table":
        """The rows of a query as columns. Types of the database without one of Arrow become text."""
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        with self.failing():
            self._cursor.execute(statement)
            rows: pa.Table = self._cursor.fetch_arrow_table()
        for index, field in enumerate(rows.schema):
            if isinstance(field.type, pa.BaseExtensionType):
                stored = [chunk.storage for chunk in rows.column(index).chunks]
                rows = rows.set_column(index, field.name, pa.chunked_array(stored, field.type.storage_type))
        return rows

    def commit(self) -> None:
        """Commit. Raise `RowRefused` for a constraint that the database checks now."""
        try:
            self._connection.commit()
        except self.errors as error:
            if kind_of(error) is Kind.ROWS:
                raise RowRefused(self.name, "a row", text_of(error)) from error
            raise failure_of(error, self.name) from error

    def rollback(self) -> None:
        try:
            self._connection.rollback()
        except self.errors as error:
            if "no transaction is active" not in str(error):
                raise failure_of(error, self.name) from error
            self.begin_again()

    def begin_again(self) -> None:
        """Begin a transaction, if the driver does not, after a rollback for which none was active."""

    def insert(self, table: str, rows: "pa.Table", *, mode: str = "append", temporary: bool = False) -> None:
        """Insert rows. Errors of the driver pass as they are: the caller finds the row that is refused."""
        schema, _, name = table.rpartition(".")
        into = {"db_schema_name": schema} if schema else {}
        # A cursor of its own: that of DuckDB would insert the parameters of later statements, too.
        with self._connection.cursor() as cursor:
            cursor.adbc_ingest(name, rows, mode=mode, temporary=temporary, **into)

    def load(self, table: str, rows: "pa.Table", key: Sequence[str], there: "pa.Schema") -> None:
        """Insert rows into a table with these columns, or update those with the same key: the last one of a key counts.

        Errors of the driver pass as they are, as those of `insert`.
        """
        converted = self.conversions(table, rows.schema, there)
        ready = self.writable(rows, there)
        if not converted and not key:
            self.insert(table, ready)
            return
        self.execute(f"DROP TABLE IF EXISTS {STAGED}")
        self.insert(STAGED, _numbered(ready), mode="create", temporary=True)
        names = rows.schema.names
        self.run(_insertion(table, names, key, _staged_rows(names, key, converted)))
        self.execute(f"DROP TABLE {STAGED}")

    def check(self, table: str, schema: "pa.Schema", key: Sequence[str], there: "pa.Schema") -> None:
        """Raise a failure if a table with these columns does not take rows of a schema, or has no index of the key."""
        self.conversions(table, schema, there)
        names = schema.names
        self.execute(_insertion(table, names, key, f"SELECT {columns(names)} FROM {quoted(table)} WHERE 1 = 0"))

    def conversions(self, table: str, schema: "pa.Schema", there: "pa.Schema") -> Mapping[str, str]:  # noqa: ARG002 - for databases with types of their own
        """The columns that the database has to convert, with their types there. Raise `table-mismatched` for others."""
        return {}

    def writable(self, rows: "pa.Table", there: "pa.Schema") -> "pa.Table":  # noqa: ARG002 - as above
        """The rows with types that the driver writes as the columns of the table need them."""
        return rows

    def schema_of(self, table: str) -> "pa.Schema | None":
        """The columns of a table; None if there is no such table."""
        # To ask for the columns of a table that is missing would break the transaction.
        if not self.execute(self.finding, self.table_name(table)):
            return None
        schema, _, name = table.rpartition(".")
        with self.failing():
            found: pa.Schema = self._connection.adbc_get_table_schema(name, db_schema_filter=schema or None)
        return found

    def table_name(self, table: str) -> str:
        """The name of a table as `finding` takes it."""
        return table


def _numbered(rows: "pa.Table") -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    return rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))


def _staged_rows(names: Sequence[str], key: Sequence[str], converted: Mapping[str, str]) -> str:
    """The statement that selects the staged rows: of each key the last one."""
    values = ", ".join(
        f"CAST({quoted_name(name)} AS {converted[name]})" if name in converted else quoted_name(name) for name in names
    )
    if not key:
        return f"SELECT {values} FROM {STAGED} ORDER BY {_ROW}"
    ranked = f"SELECT *, row_number() OVER (PARTITION BY {columns(key)} ORDER BY {_ROW} DESC) AS dagkit_rank"
    return f"SELECT {values} FROM ({ranked} FROM {STAGED}) AS ranked WHERE dagkit_rank = 1"


def _insertion(table: str, names: Sequence[str], key: Sequence[str], source: str) -> str:
    """The statement that inserts what another one selects, or updates the rows with the same key."""
    insertion = f"INSERT INTO {quoted(table)} ({columns(names)}) {source}"
    if not key:
        return insertion
    others = [name for name in names if name not in key]
    update = ", ".join(f"{quoted_name(name)} = excluded.{quoted_name(name)}" for name in others)
    return f"{insertion} ON CONFLICT ({columns(key)}) DO {f'UPDATE SET {update}' if update else 'NOTHING'}"
