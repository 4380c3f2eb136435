"""Finding the rows of a table or a query, and dividing them into ranges of keys."""

from typing import Self

from pydantic import Field, PositiveInt, PrivateAttr, model_validator

from dagkit import Context, InputOperator, OutputPort, State, Unavailable, Until
from dagkit_operators.outage import Outage
from dagkit_operators.sql.client import SqlClient
from dagkit_operators.sql.databases import quoted, quoted_name
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

    _outage: Outage | None = PrivateAttr(default=None)
    _pause_millis: int | None = PrivateAttr(default=None)
    """The time until the next look while the database is away; None while it is there."""
    _ends: bool = PrivateAttr(default=False)
    """Whether the launch ends by itself: it fails if the database is away, and does not wait."""

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
        self._ends = context.until is not Until.STOPPED

    def emit_tuples(self) -> None:
        try:
            found = self._found()
        except Unavailable as error:
            self._wait(error)
            return
        self._pause_millis = None
        if self._outage is not None:
            self._outage.is_over()
        if found is not None:
            self._send(*found)

    def looks_again_in_millis(self) -> int | None:
        """The pause of the outage while the database is away; else the usual time."""
        return self._pause_millis

    def _found(self) -> tuple[int, int] | None:
        """The lowest and the highest key that are new; None if there are none."""
        key, new = quoted_name(self.key), f"WHERE {quoted_name(self.key)} >= {self.next_key}"
        with self.connected() as connection:
            if not self.next_number:
                ((lowest,),) = connection.execute(f"SELECT min({key}) FROM ({self.statement}) AS rows_found")
                if lowest is not None and not (isinstance(lowest, int) and lowest >= 0):
                    raise TableMismatched(f"{self.key} begins with {lowest!r}; a key is an integer, 0 or more")
            statement = f"SELECT min({key}), max({key}) FROM ({self.statement}) AS rows_found {new}"
            ((lowest, highest),) = connection.execute(statement)
        return None if lowest is None else (lowest, highest)

    def _send(self, lowest: int, highest: int) -> None:
        step = max(self.range_size, -(-(highest + 1 - lowest) // _MOST_RANGES))
        for upto in range(lowest + step, highest + 1 + step, step):
            end = min(upto, highest + 1)
            # the first range begins where the last one ended: the ledger proves that no key is left out
            self.ranges.emit(SqlRange(self.statement, self.key, self.next_key, end, self.next_number))
            self.next_key, self.next_number = end, self.next_number + 1

    def _wait(self, error: Unavailable) -> None:
        """Look again later, if the launch does; the outage decides what is logged."""
        if self._outage is None:
            self._outage = Outage(self.url)
        self._pause_millis = round(self._outage.failed(error.problem) * 1000)
        if self._ends:
            raise error
