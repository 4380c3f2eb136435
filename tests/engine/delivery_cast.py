"""Numbers that reach a table of SQLite, one transaction for each window."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from dagkit import (
    Dag,
    ExternalOutput,
    InputPort,
    Operator,
    OperatorContext,
    PortContext,
    StagedWindow,
    StatelessPartitioner,
    Unavailable,
)
from dagkit.testing import Crash
from tests.engine.cast import Digits, Draw, Ranges

TROUBLE: list[str] = []
"""What goes wrong in the next calls of a database, one entry for each call; empty for a call without trouble.

An entry is the moment and the kind of the trouble, and the stem of the database's path if there are several.
"""


class Database:
    """An external system: a table of numbers in SQLite, and one of the last window of each writer."""

    def __init__(self, path: str) -> None:
        self.path = path

    def prepare(self, writer: str) -> None:
        self._meet("prepare")
        self.writer = writer
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.execute("CREATE TABLE IF NOT EXISTS numbers (number)")
        self.connection.execute("CREATE TABLE IF NOT EXISTS windows (writer PRIMARY KEY, window_id)")

    def apply(self, window: StagedWindow) -> None:
        self._meet("before")
        assert window.writer == self.writer
        self.connection.execute("BEGIN IMMEDIATE")
        found = self.connection.execute("SELECT window_id FROM windows WHERE writer = ?", (window.writer,)).fetchone()
        if found is None or found[0] < window.window_id:
            rows = [(number,) for entry in window.entries() for number in json.loads(entry)]
            self.connection.executemany("INSERT INTO numbers VALUES (?)", rows)
            self.connection.execute("REPLACE INTO windows VALUES (?, ?)", (window.writer, window.window_id))
        self._meet("within")
        self.connection.execute("COMMIT")
        self._meet("after")

    def close(self) -> None:
        if hasattr(self, "connection"):
            self.connection.close()

    def _meet(self, moment: str) -> None:
        """Do what the next trouble says, if it is for this moment."""
        if TROUBLE and TROUBLE[0].split()[::2] in ([moment], [moment, Path(self.path).stem]):
            kind = TROUBLE.pop(0).split()[1]
            if kind == "crash":
                raise Crash(f"{moment} the transaction")
            if kind == "away":
                raise Unavailable("the database is away")
            raise RuntimeError(f"the database refuses {self.path}")


class Insert(Operator):
    numbers = InputPort(int)
    staged = ExternalOutput(lambda insert: Database(insert.path), waits_seconds=lambda insert: insert.waits_seconds)
    path: str
    waits_seconds: float | None = None

    def process(self, item: int) -> None:
        self.staged.add(json.dumps([item]).encode())


def numbers_inserted(
    path: Path,
    *,
    looks: tuple[tuple[int, ...], ...] = ((4, 3), (5,), (2, 2)),
    readers: int = 2,
    insert: str = "insert",
    waits_seconds: float | None = None,
) -> Draw:
    """Stretches of numbers, read by several, each of which adds to the table."""

    def draw(dag: Dag, conf: object) -> None:
        ranges = dag.add_operator("ranges", Ranges(looks=looks))
        digits = dag.add_operator("digits", Digits())
        table = dag.add_operator(insert, Insert(path=str(path), waits_seconds=waits_seconds))
        dag.set_operator_attribute(digits, OperatorContext.PARTITIONER, StatelessPartitioner(readers))
        dag.set_input_port_attribute(table.numbers, PortContext.PARTITION_PARALLEL, True)
        ranges >> digits >> table

    return draw


def numbers_inserted_in_both(first: Path, second: Path, *, waits_seconds: float) -> Draw:
    """Stretches of numbers that are added to two tables."""

    def draw(dag: Dag, conf: object) -> None:
        ranges = dag.add_operator("ranges", Ranges(looks=((4, 3), (5,), (2, 2))))
        digits = dag.add_operator("digits", Digits())
        ranges >> digits
        tables = [
            dag.add_operator(path.stem, Insert(path=str(path), waits_seconds=waits_seconds)) for path in (first, second)
        ]
        dag.add_stream("numbers", digits.numbers, *(table.numbers for table in tables))

    return draw


def rows_in(path: Path, columns: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT {columns}").fetchall()


def numbers_in(path: Path) -> list[int]:
    return [number for (number,) in rows_in(path, "number FROM numbers ORDER BY number")]


def windows_in(path: Path) -> Mapping[str, int]:
    return dict(rows_in(path, "writer, window_id FROM windows"))
