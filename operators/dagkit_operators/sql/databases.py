"""The databases that a URL names: PostgreSQL, and files of SQLite."""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from dagkit_operators.libraries import library
from dagkit_operators.sql.connection import Connection
from dagkit_operators.sql.postgres import Postgres
from dagkit_operators.tables.storage import database_refused, table_mismatched

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


class Sqlite(Connection):
    """A connection to a file of SQLite."""

    def __init__(self, url: str, home: str, *, creates: bool) -> None:
        driver = library("adbc_driver_sqlite.dbapi", "sql")
        path = Path(home) / unquote(urlsplit(url).path.removeprefix("/"))
        if not creates and not path.exists():
            raise database_refused(f"{url}: there is no file {path}", "correct the url; only a writer creates a file")
        (millis,) = parse_qs(urlsplit(url).query).get("timeout_millis", [_BUSY_MILLIS])

        def connect() -> Any:
            # SQLite creates a missing file unless it is opened in this mode, and the file may have gone since it was
            # looked for.
            connection = driver.connect(str(path) if creates else f"file:{quote(str(path))}?mode=rw")
            with connection.cursor() as cursor:
                cursor.execute(f"PRAGMA busy_timeout = {int(millis)}")
            return connection

        super().__init__(url, connect, driver)

    def writable(self, rows: "pa.Table", there: "pa.Schema") -> "pa.Table":  # noqa: ARG002 - SQLite declares no types
        import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

        for index, field in enumerate(rows.schema):
            if pa.types.is_decimal(field.type):  # SQLite has no decimals, and text loses nothing
                rows = rows.set_column(index, field.name, rows.column(index).cast(pa.string()))
            elif pa.types.is_nested(field.type):
                raise table_mismatched(f"SQLite has no type for the column {field.name}, which holds {field.type}")
        return rows

    def begin_again(self) -> None:
        # A trigger rolled back, and the driver did not begin a transaction after that.
        self.run("BEGIN")


def connect(url: str, password: str | None = None, home: str = "", *, creates: bool = True) -> Connection:
    """Connect to the database at a URL. A relative path of SQLite starts from `home`."""
    return Sqlite(url, home, creates=creates) if urlsplit(url).scheme == _SQLITE else Postgres(url, password)
