"""The inputs of a new application: files, a topic, a table. A look at the first records finds their types."""

import importlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from dagkit.cli.making.file_look import origin_of_files
from dagkit.cli.making.origin import Origin, literal
from dagkit.cli.making.record_classes import Classes
from dagkit.cli.making.topic_look import origin_of_topic
from dagkit.cli.terminal.output import WrongUsage
from dagkit.errors import did_you_mean, printable

HOW = "a folder, a file, kafka://HOST:PORT/TOPIC, sqlite:///FILE or postgresql://HOST/DATABASE"

_DATABASES = ("sqlite", "postgresql", "postgres")
_ROWS = 1000
"""How many rows of a table are looked at."""
_VARIABLE = "DB_PASSWORD"
"""The variable from which a new application takes the password of a database."""
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1",
    "postgresql": "SELECT CASE table_schema WHEN 'public' THEN '' ELSE table_schema || '.' END || table_name "
    "FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
}


def origin_of(place: str, table: str | None, row: str, home: Path) -> Origin:
    """The source at a path or URL for an application in `home`. `row` is the name of the class of its records."""
    scheme = urlsplit(place).scheme
    if table is not None and scheme not in _DATABASES:
        raise WrongUsage("--table goes with a database: --from sqlite:///FILE, or --from postgresql://HOST/DATABASE")
    if scheme == "kafka":
        return origin_of_topic(place, row)
    if scheme in _DATABASES:
        return _table(place, table, row)
    if not os.path.exists(place):  # noqa: PTH110 - unlike Path, accepts names that no file can have
        raise WrongUsage(f"there is no file or folder {printable(place)!r}; give {HOW}")
    return origin_of_files(Path(place), row, home)


def _table(url: str, table: str | None, row: str) -> Origin:
    parts = urlsplit(url)
    secret: dict[str, str] = {}
    if parts.scheme == "sqlite":
        file = str(Path(_sqlite_file(url)).resolve())  # the application may run in another folder
        url = f"sqlite:///{re.sub('[%?#$]', lambda special: quote(special[0]), file)}"
    elif parts.password is not None:
        secret = {f"{operator}.prop.password": f"${{env:{_VARIABLE}}}" for operator in ("Splitter", "Reader")}
    kept = url.replace(f":{parts.password}@", "@", 1) if secret else url
    with _connected(url, kept) as connection:
        if table is None:
            raise WrongUsage(
                f"name a table of the database: --table NAME; {did_you_mean('', _tables(connection, kept))}"
            )
        records = _first_rows(connection, kept, table)
    columns = list(records[0])
    numbers = [name for name in columns if isinstance(records[0][name], int)]
    key = next((name for name in numbers if name.lower() in ("id", f"{table}_id".lower())), (numbers or columns)[0])
    classes = Classes()
    # Rows that were not looked at may have NULL in any column but the key.
    classes.add_records(row, records, f"A row of {table}.", missing={*columns} - {key})
    notes = [f"rows are found by {key}, and a later look finds those with a higher one (property `key`)"]
    if secret:
        notes.append(f"the password is in no file: set the variable {_VARIABLE} to it before a launch")
    return Origin(
        f"the table {table} of {kept}",
        "SqlSplitter",
        "SqlReader",
        "ParquetPartWriter()",
        settings=f"record_type={row}",
        properties={
            "Splitter.prop.url": kept,
            "Splitter.prop.table": literal(table),
            "Splitter.prop.key": literal(key),
            "Reader.prop.url": kept,
            **secret,
        },
        classes=classes,
        rejects=False,
        notes=notes,
    )


def _sqlite_file(url: str) -> str:
    """The file that the URL of a database names: as it is written if there is such a file, else unquoted."""
    written = url.partition(":///")[2]
    is_there = os.path.isfile(written)  # noqa: PTH113 - as above
    return written if is_there else unquote(urlsplit(url).path.removeprefix("/"))


@contextmanager
def _connected(url: str, kept: str) -> Iterator[Any]:
    """A connection to a database. `kept` is its URL without a password."""
    is_sqlite = url.startswith("sqlite:")
    path = _sqlite_file(url)
    if is_sqlite and not os.path.isfile(path):  # noqa: PTH113 - as above
        raise WrongUsage(f"there is no database {printable(path)!r}; sqlite:///FILE names one by its path")
    try:
        driver = importlib.import_module("adbc_driver_sqlite.dbapi" if is_sqlite else "adbc_driver_postgresql.dbapi")
    except ImportError as missing:
        raise WrongUsage("tables need more packages: python -m pip install 'dagkit[sql]'") from missing
    try:
        with closing(driver.connect(path if is_sqlite else url)) as connection:
            yield connection
    except driver.Error as refused:
        raise WrongUsage(f"{printable(kept)} cannot be read: {_reason(refused)}") from refused


def _tables(connection: Any, kept: str) -> Sequence[str]:
    """The names of the tables and views of a database, with their schema unless it is the usual one."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(_TABLES["sqlite" if kept.startswith("sqlite:") else "postgresql"])
        return [name for (name,) in cursor.fetchall()]


def _first_rows(connection: Any, kept: str, table: str) -> list[dict[str, Any]]:
    known = _tables(connection, kept)
    name = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"SELECT * FROM {name} LIMIT {_ROWS}")  # noqa: S608 - the name is quoted
            records: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
    except importlib.import_module("adbc_driver_manager.dbapi").Error as refused:
        help_ = "" if table in known else f"; {did_you_mean(table, known)}"
        problem = f"the table {table} of {printable(kept)} cannot be read: {_reason(refused)}{help_}"
        raise WrongUsage(problem) from refused
    if not records:
        raise WrongUsage(f"the table {table} of {printable(kept)} is empty, so the types of its columns are unknown")
    return records


def _reason(refused: Exception) -> str:
    return printable(str(refused).partition("\n")[0])
