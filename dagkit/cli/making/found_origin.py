"""What an application may read: files, a topic, a table. A look at the first of it finds out the rest."""

import importlib
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dagkit.cli.making.file_look import origin_of_files
from dagkit.cli.making.origin import Origin
from dagkit.cli.making.record_classes import Classes
from dagkit.cli.terminal.output import WrongUsage
from dagkit.errors import printable

HOW = "a folder, a file, kafka://HOST:PORT/TOPIC, sqlite:///FILE or postgresql://HOST/DATABASE"

_DATABASES = ("sqlite", "postgresql", "postgres")
_ROWS = 1000
"""How many rows of a table are looked at."""
_VALUE_OF = '''

def value_of(message: KafkaMessage) -> str:
    """The value of a message as text. A message for which this raises ValueError is rejected."""
    return (message.value or b"").decode()
'''


def origin_of(place: str, table: str | None, row: str) -> Origin:
    """The source at a path or URL. `row` is the name of the class of its records."""
    scheme = urlsplit(place).scheme
    if table is not None and scheme not in _DATABASES:
        raise WrongUsage("--table goes with a database: --from sqlite:///FILE, or --from postgresql://HOST/DATABASE")
    if scheme == "kafka":
        return _topic(place)
    if scheme in _DATABASES:
        return _table(place, table, row)
    if not Path(place).exists():
        raise WrongUsage(f"there is no file or folder {printable(place)!r}; give {HOW}")
    return origin_of_files(Path(place), row)


def _topic(url: str) -> Origin:
    parts = urlsplit(url)
    topic = parts.path.strip("/")
    if not parts.netloc or not topic:
        raise WrongUsage(f"{printable(url)!r} names no topic; write kafka://HOST:PORT/TOPIC")
    return Origin(
        f"the topic {topic} of {parts.netloc}",
        "KafkaSplitter",
        "KafkaReader",
        "PartWriter()",
        settings="parse=value_of",
        types=("KafkaMessage",),
        properties={
            "Splitter.prop.bootstrapServers": parts.netloc,
            "Splitter.prop.topics": topic,
            "Reader.prop.bootstrapServers": parts.netloc,
        },
        functions=_VALUE_OF,
    )


def _table(url: str, table: str | None, row: str) -> Origin:
    if table is None:
        raise WrongUsage("name a table of the database: --table NAME")
    if urlsplit(url).scheme == "sqlite":
        url = f"sqlite:///{Path(urlsplit(url).path[1:]).resolve()}"  # the application may run in another folder
    records = _first_rows(url, table)
    columns = list(records[0])
    numbers = [name for name in columns if isinstance(records[0][name], int)]
    key = next((name for name in numbers if name.lower() in ("id", f"{table}_id".lower())), (numbers or columns)[0])
    classes = Classes()
    classes.add_records(row, records, f"A row of {table}.", missing={*columns} - {key})
    return Origin(
        f"the table {table} of {url}",
        "SqlSplitter",
        "SqlReader",
        "ParquetPartWriter()",
        settings=f"record_type={row}",
        properties={
            "Splitter.prop.url": url,
            "Splitter.prop.table": table,
            "Splitter.prop.key": key,
            "Reader.prop.url": url,
        },
        classes=classes,
        rejects=False,
        notes=(f"rows are found by {key}, and a later look finds those with a higher one (property `key`)",),
    )


def _first_rows(url: str, table: str) -> list[dict[str, Any]]:
    is_sqlite = url.startswith("sqlite:")
    path = urlsplit(url).path.removeprefix("/")
    if is_sqlite and not Path(path).is_file():
        raise WrongUsage(f"there is no database {printable(path)!r}; sqlite:///FILE names one by its path")
    try:
        driver = importlib.import_module("adbc_driver_sqlite.dbapi" if is_sqlite else "adbc_driver_postgresql.dbapi")
    except ImportError as missing:
        raise WrongUsage("tables need more packages: python -m pip install 'dagkit[sql]'") from missing
    name = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
    try:
        with closing(driver.connect(path if is_sqlite else url)) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(f"SELECT * FROM {name} LIMIT {_ROWS}")  # noqa: S608 - the name is quoted
            records: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
    except driver.Error as refused:
        reason = str(refused).partition("\n")[0]
        raise WrongUsage(f"the table {table} of {printable(url)} cannot be read: {reason}") from refused
    if not records:
        raise WrongUsage(f"the table {table} of {printable(url)} is empty, so the types of its columns are unknown")
    return records
