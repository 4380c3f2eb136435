"""Databases for tests, and applications that write to them."""

import importlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from dagkit import Operator, OperatorContext, PortContext, StatelessPartitioner
from dagkit.testing import FakeClock
from dagkit_operators import Map, SqlWriter
from dagkit_operators.sql.databases import connect
from tests.engine.cast import Digits, Draw, Ranges
from tests.operators.ways import placed
from tests.services.scripted import ScriptedServer


@dataclass(frozen=True)
class Row:
    number: int
    text: str | None


def row(number: int) -> Row:
    return Row(number, f"row {number}")


LOOKS = ((4, 3), (5,), (2, 2))
"""The stretches of sixteen numbers."""


@dataclass(frozen=True)
class TestDatabase:
    """A database that belongs to one test."""

    __test__ = False

    url: str
    password: str | None = None

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement, commit, and return its rows."""
        with connect(self.url, self.password) as connection:
            found = connection.execute(statement)
            connection.commit()
            return found

    @contextmanager
    def in_transaction(self, statement: str) -> Iterator[None]:
        """Execute a statement in a transaction that stays open while the block runs, and is rolled back then."""
        with connect(self.url, self.password) as connection:
            connection.execute(statement)
            yield

    @property
    def settings(self) -> dict[str, Any]:
        return {"url": self.url, "password": self.password}


@dataclass(frozen=True)
class Database:
    """A database to which a module of Python connects."""

    driver: str
    options: Mapping[str, object]
    session: tuple[str, ...] = ()
    password: str | None = None

    @property
    def settings(self):
        return {each: getattr(self, each) for each in ("driver", "options", "session", "password")}

    def rows(self, statement):
        secret = {"password": self.password} if self.password else {}
        with closing(importlib.import_module(self.driver).connect(**self.options, **secret)) as connection:
            cursor = connection.cursor()
            for each in (*self.session, statement):
                cursor.execute(each)
            found = list(cursor.fetchall()) if cursor.description else []
            cursor.close()
            connection.commit()
            return found


class Meanwhile(FakeClock):
    """A clock that does something when a run waits."""

    def __init__(self, act):
        super().__init__()
        self._act = act

    def wait(self, woken, until):
        self._act()
        super().wait(woken, until)


def starting(server: ScriptedServer) -> Meanwhile:
    """A clock that starts the server, if it was killed, when a run waits."""
    return Meanwhile(lambda: server.is_running or server.start())


def rows_into(writer: Operator, looks=LOOKS, make=row, *, readers=1) -> Draw:
    """Stretches of numbers, read by several, and a row for each number; if there are several, so many write them."""

    def draw(dag, conf):
        copies = placed(dag, ranges=Ranges(looks=looks), digits=Digits(), each=Map(make), write=writer)
        dag.set_operator_attribute(copies["digits"], OperatorContext.PARTITIONER, StatelessPartitioner(readers))
        for name in ("each", "write") if readers > 1 else ("each",):
            dag.set_input_port_attribute(copies[name].input, PortContext.PARTITION_PARALLEL, True)

    return draw


def rows_written(database: TestDatabase | Database, *, looks=LOOKS, make=row, **properties: Any) -> Draw:
    given = {"table": "numbers", "record_type": Row, **database.settings, **properties}
    return rows_into(SqlWriter(**given), looks, make, readers=2)
