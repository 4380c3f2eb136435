"""Finding the rows of a table or a query, and dividing them into ranges of keys."""

import threading
from concurrent.futures import Future
from typing import Self

from pydantic import Field, PositiveInt, PrivateAttr, model_validator

from dagkit import Context, InputOperator, OutputPort, State, Unavailable, Until
from dagkit_operators.outage import Outage
from dagkit_operators.sql.client import SqlClient
from dagkit_operators.sql.databases import Connection, quoted, quoted_name
from dagkit_operators.sql.queries import SqlRange
from dagkit_operators.tables.faults import TableMismatched

_MOST_RANGES = 1000
"""How many ranges one look sends at most: those of sparse keys are longer than `range_size`."""


class SqlSplitter(SqlClient, InputOperator):
    """Finds the rows of a table or a query, and sends them as ranges of a key.

    Each look sends the keys that are higher than all earlier ones. So rows that are added later are read, too, if their
    keys become visible in ascending order; a row that is changed is not read again.
    """

    kind = "sql.splitter/1"
    ranges = OutputPort(SqlRange)

    table: str = ""
    """The table to read; the name of a schema and a dot may precede it."""
    query: str = ""
    """A SELECT statement to read, in the place of a table."""
    key: str = Field(default=..., min_length=1)
    """A column of integers, 0 or more, that an index has. SQLite has a `rowid` in each table."""
    range_size: PositiveInt = 100_000
    """The keys of one range. Readers divide ranges further."""

    next_key = State(0)
    next_number = State(0)

    _context: Context | None = PrivateAttr(default=None)
    _look: "Future[tuple[int, int] | None] | None" = PrivateAttr(default=None)
    _looks: int = PrivateAttr(default=0)
    """How many looks have ended."""
    _abandoned: threading.Event | None = PrivateAttr(default=None)
    """Ends a look that waits for the database. Made by `setup`: an event cannot be pickled."""

    @model_validator(mode="after")
    def _reads_one(self) -> Self:
        if bool(self.table) == bool(self.query):
            raise ValueError("set either table or query")
        return self

    @property
    def statement(self) -> str:
        """The statement that selects all rows."""
        columns = "*" if self.key != "rowid" else "rowid, *"
        return self.query or f"SELECT {columns} FROM {quoted(self.table)}"

    def setup(self, context: Context) -> None:
        self._context = context
        self._abandoned = threading.Event()
        self._look = None
        self._looks = 0

    def teardown(self) -> None:
        if self._abandoned is not None:
            self._abandoned.set()

    def emit_tuples(self) -> None:
        """Send what the last look found. Without one, begin a look."""
        assert self._context is not None, "an operator is set up before it runs"
        if self._look is None and not (self._looks and self._context.until is Until.ONCE):
            self._look = self._context.in_background(self._ask)
        if self._look is not None and self._look.done():
            found, self._look = self._look.result(), None
            self._looks += 1
            if found is not None:
                self._send(*found)

    def _ask(self) -> tuple[int, int] | None:
        """Ask the database until it answers. It runs on another thread."""
        assert self._abandoned is not None, "an operator is set up before it runs"
        outage = Outage(self.url)
        while True:
            try:
                found = self._found()
            except Unavailable as error:
                if self._abandoned.wait(outage.failed(error.problem)):
                    return None
            else:
                outage.is_over()
                return found

    def _found(self) -> tuple[int, int] | None:
        """The lowest and the highest key that are new; None if there are none."""
        key, new = quoted_name(self.key), f"WHERE {quoted_name(self.key)} >= {self.next_key}"
        with self.connected() as connection:
            if not self.next_number:
                self._check_keys(connection)
            statement = f"SELECT min({key}), max({key}) FROM ({self.statement}) AS rows_found {new}"
            ((lowest, highest),) = connection.execute(statement)
        return None if lowest is None else (lowest, highest)

    def _check_keys(self, connection: Connection) -> None:
        """Raise `TableMismatched` if there are rows that no range of keys contains."""
        key, rows = quoted_name(self.key), f"FROM ({self.statement}) AS rows_found"
        ((lowest,),) = connection.execute(f"SELECT min({key}) {rows}")
        if lowest is not None and not (isinstance(lowest, int) and lowest >= 0):
            raise TableMismatched(f"{self.key} begins with {lowest!r}; a key is an integer, 0 or more")
        if connection.execute(f"SELECT 1 {rows} WHERE {key} IS NULL LIMIT 1"):
            raise TableMismatched(
                f"{self.key} is NULL in a row of {self.table or 'the query'}, which no range of keys contains",
                f"give each row a key, or leave these rows out: query = SELECT … WHERE {self.key} IS NOT NULL",
            )

    def _send(self, lowest: int, highest: int) -> None:
        step = max(self.range_size, -(-(highest + 1 - lowest) // _MOST_RANGES))
        for upto in range(lowest + step, highest + 1 + step, step):
            end = min(upto, highest + 1)
            # the first range begins where the last one ended: the ledger proves that no key is left out
            self.ranges.emit(SqlRange(self.statement, self.key, self.next_key, end, self.next_number))
            self.next_key, self.next_number = end, self.next_number + 1
