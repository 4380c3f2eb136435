"""Connections to databases by ADBC, whose results and bulk inserts are Arrow columns."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit, urlunsplit

from dagkit_operators.libraries import library
from dagkit_operators.sql.faults import Kind, failure_of, kind_of, text_of
from dagkit_operators.tables.storage import RowRefused, database_refused

if TYPE_CHECKING:
    import pyarrow as pa


_SQLITE = "sqlite"
_POSTGRES = ("postgresql", "postgres")
_BUSY_MILLIS = "5000"
"""How long a statement of SQLite waits for another connection, unless the url has another `timeout_millis`."""


def check_url(url: str) -> str:
    """Return the URL of a database. Raise ValueError if dagkit has no driver for it, or if it shows a password."""
    parts = urlsplit(url)
    if parts.scheme not in (_SQLITE, *_POSTGRES):
        raise ValueError("the url begins with sqlite:/// and a path, or with postgresql://")
    if parts.password is not None or "password" in parse_qs(parts.query):
        raise ValueError("the url shows a password: set the property `password` instead")
    if parts.scheme == _SQLITE and (parts.netloc or not parts.path.strip("/")):
        raise ValueError("a path follows sqlite:///, as in sqlite:///folder/file.db or sqlite:////folder/file.db")
    return url


def quoted(table: str) -> str:
    """The name of a table in SQL, which may begin with that of its schema and a dot."""
    return ".".join(map(quoted_name, table.split(".")))


def quoted_name(name: str) -> str:
    """A name in SQL, such as that of a column."""
    return '"' + name.replace('"', '""') + '"'


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
        for each in (self._cursor, self._connection):
            with suppress(Exception):  # a connection that is lost cannot be closed, and has nothing to lose
                each.close()

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
        """Execute a statement, and return its rows."""
        with self.failing():
            return self.run(statement, parameter)

    def run(self, statement: str, parameter: str | None = None) -> list[tuple[Any, ...]]:
        """Execute a statement, and return its rows. Errors of the driver pass as they are."""
        if parameter is None:  # a question mark is then part of the statement, such as one in a query of the author
            self._cursor.execute(statement)
        else:
            self._cursor.execute(statement.replace("?", self.mark), [parameter])
        return list(self._cursor.fetchall()) if self._cursor.description else []

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
        with self.failing():
            self._connection.rollback()

    def insert(self, table: str, rows: "pa.Table", *, mode: str = "append", temporary: bool = False) -> None:
        """Insert rows. Errors of the driver pass as they are: the caller finds the row that is refused."""
        schema, _, name = table.rpartition(".")
        into = {"db_schema_name": schema} if schema else {}
        with self._connection.cursor() as cursor:  # that of DuckDB would insert the parameters of later statements, too
            cursor.adbc_ingest(name, rows, mode=mode, temporary=temporary, **into)

    def schema_of(self, table: str) -> "pa.Schema | None":
        """The columns of a table; None if there is no such table."""
        if not self.execute(self.finding, self.table_name(table)):  # asking for its columns would break the transaction
            return None
        schema, _, name = table.rpartition(".")
        with self.failing():
            found: pa.Schema = self._connection.adbc_get_table_schema(name, db_schema_filter=schema or None)
        return found

    def table_name(self, table: str) -> str:
        """The name of a table as `finding` takes it."""
        return table


class Postgres(Connection):
    """A connection to PostgreSQL, or to a database that speaks its protocol."""

    mark = "$1"
    finding = "SELECT 1 WHERE to_regclass(?) IS NOT NULL"
    literal = "quote_literal({}::text)"

    def __init__(self, url: str, password: str | None) -> None:
        driver = library("adbc_driver_postgresql.dbapi", "sql")
        parts = urlsplit(url)
        address = parts.netloc
        if password is not None:
            user, _, host = parts.netloc.rpartition("@")
            address = f"{user}:{quote(password, safe='')}@{host}"
        super().__init__(url, lambda: driver.connect(urlunsplit(parts._replace(netloc=address))), driver)

    def table_name(self, table: str) -> str:
        return quoted(table)


class Sqlite(Connection):
    """A connection to a file of SQLite."""

    def __init__(self, url: str, home: str, *, creates: bool) -> None:
        driver = library("adbc_driver_sqlite.dbapi", "sql")
        path = Path(home) / unquote(urlsplit(url).path.removeprefix("/"))
        if not creates and not path.exists():
            raise database_refused(f"{url}: there is no file {path}", "correct the url; only a writer creates a file")
        (millis,) = parse_qs(urlsplit(url).query).get("timeout_millis", [_BUSY_MILLIS])

        def connect() -> Any:
            connection = driver.connect(str(path) if creates else f"file:{quote(str(path))}?mode=rw")
            with connection.cursor() as cursor:
                cursor.execute(f"PRAGMA busy_timeout = {int(millis)}")
            return connection

        super().__init__(url, connect, driver)

    def rollback(self) -> None:
        try:
            self._connection.rollback()
        except self.errors as error:
            if "no transaction is active" not in str(error):
                raise failure_of(error, self.name) from error
            self.run("BEGIN")  # a trigger rolled back, and the driver began none again


def connected(url: str, password: str | None = None, home: str = "", *, creates: bool = True) -> Connection:
    """Connect to the database at a URL. A relative path of SQLite starts from `home`."""
    return Sqlite(url, home, creates=creates) if urlsplit(url).scheme == _SQLITE else Postgres(url, password)


def columns(names: Iterable[str]) -> str:
    """Names of columns in SQL, with commas."""
    return ", ".join(quoted_name(name) for name in names)
