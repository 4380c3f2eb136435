"""Databases for tests, and applications that write to them."""

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dagkit import Dag, OperatorContext, PortContext, StatelessPartitioner
from dagkit.testing import FakeClock
from dagkit_operators import Map, SqlWriter
from dagkit_operators.sql.databases import connected
from tests.engine.cast import Digits, Draw, Ranges
from tests.services.postgres import PostgresServer


@dataclass(frozen=True)
class Row:
    number: int
    text: str | None


@dataclass(frozen=True)
class TestDatabase:
    """A database that belongs to one test."""

    __test__ = False

    url: str
    password: str | None = None

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Execute a statement, commit, and return its rows."""
        with connected(self.url, self.password) as connection:
            found = connection.execute(statement)
            connection.commit()
            return found

    @contextmanager
    def in_transaction(self, statement: str) -> Iterator[None]:
        """Execute a statement in a transaction that stays open while the block runs, and is rolled back then."""
        with connected(self.url, self.password) as connection:
            connection.execute(statement)
            yield

    @property
    def settings(self) -> dict[str, Any]:
        return {"url": self.url, "password": self.password}


class Meanwhile(FakeClock):
    """A clock that does something when a run waits."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act

    def wait(self, woken: threading.Event, until: dt.datetime) -> None:
        self._act()
        super().wait(woken, until)


def starting(server: PostgresServer) -> Meanwhile:
    """A clock that starts the server, if it was killed, when a run waits."""
    return Meanwhile(lambda: server.is_running or server.start())


def rows_written(
    database: TestDatabase,
    *,
    looks: tuple[tuple[int, ...], ...] = ((4, 3), (5,), (2, 2)),
    readers: int = 2,
    make: Any = lambda number: Row(number, f"row {number}"),
    **properties: Any,
) -> Draw:
    """Stretches of numbers, read by several, which write a row for each number."""
    given: dict[str, Any] = {"table": "numbers", "record_type": Row, **database.settings, **properties}

    def draw(dag: Dag, conf: object) -> None:
        ranges = dag.add_operator("ranges", Ranges(looks=looks))
        digits = dag.add_operator("digits", Digits())
        each = dag.add_operator("each", Map(make))
        write = dag.add_operator("write", SqlWriter(**given))
        dag.set_operator_attribute(digits, OperatorContext.PARTITIONER, StatelessPartitioner(readers))
        for port in (each.input, write.input):
            dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)
        dag.add_stream("blocks", ranges.blocks, digits.blocks)
        dag.add_stream("numbers", digits.numbers, each.input)
        dag.add_stream("rows", each.output, write.input)

    return draw
