"""Finding the rows of a table or a query, and dividing them into ranges of keys."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Self

from pydantic import Field, PositiveInt, model_validator

from dagkit import OutputPort, State
from dagkit_operators.looks import LooksForInput
from dagkit_operators.sql.client import SqlClient
from dagkit_operators.sql.connection import Connection, quoted, quoted_name
from dagkit_operators.sql.queries import KeySteps, SqlRange, bounds_between, highest
from dagkit_operators.tables.storage import table_mismatched

_MOST_RANGES = 1000
"""How many ranges one look sends at most: those of sparse keys are longer than `range_size`."""

_STEPS_OF_A_RANGE = 10
"""The steps of a range of keys that are no integers: a reader reads a step at once."""


class SqlSplitter(SqlClient, LooksForInput):
    """Finds the rows of a table or a query, and sends them as ranges of a key.

    Each look sends the keys that are higher than all earlier ones. So rows that are added later are read, too, if their
    keys become visible in ascending order; a row that is changed is not read again.
    """

    kind = "sql.splitter/1"
    ranges = OutputPort(SqlRange)

    table: str = Field(default="", kw_only=False)
    """The table to read; the name of a schema and a dot may precede it."""
    query: str = ""
    """A SELECT statement to read, in the place of a table."""
    key: str | tuple[str, ...] = Field(default=..., min_length=1)
    """The column, or the columns together, whose order divides the rows; an index has them, and none is NULL.

    A column of integers, 0 or more, is divided by its values; SQLite has a `rowid` in each table. Any other key is
    divided into steps of equally many rows, which the database counts.
    """
    range_size: PositiveInt = 100_000
    """The values of one range of integers, or the rows of one range of other keys. Readers divide ranges further."""

    next_key = State(0)
    """The first integer, or the number of the first step, that is not sent."""
    last_key = State("")
    """The highest key that was sent, in SQL, if the key is no column of integers."""
    next_number = State(0)

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

    def looks_again_in_millis(self) -> int | None:
        # Looks have no interval of their own. Without the usual pause, they would load the database all the time.
        return None

    def emit_tuples(self) -> None:
        """Send what the last look found. Without one, begin a look."""
        looks = self.looks
        if not looks.are_on and looks.are_due():
            looks.begin(partial(looks.ask, self.database, self._look))
        for range_ in looks.take() or ():
            self.ranges.emit(range_)
            self.next_key, self.next_number = range_.end, range_.number + 1
            self.last_key = "" if range_.steps is None else range_.steps.bounds[-1]

    def _look(self) -> list[SqlRange]:
        """The ranges of the keys that are new. It runs on another thread."""
        with self.connect() as connection:
            self._check_keys(connection)
            if self.last_key or (not self.next_number and not self._begins_with_integers(connection)):
                if not connection.literal:
                    raise table_mismatched(
                        f"{', '.join(self._columns)} is no column of integers, 0 or more, by which the rows that "
                        f"{self.driver} reads are divided",
                        "take such a column as the key, or read a `SqlQuery` without one, in one step",
                    )
                return list(self._ranges_of_steps(connection))
            return list(self._ranges_of_integers(connection))

    @property
    def _columns(self) -> tuple[str, ...]:
        """The columns of the key."""
        return (self.key,) if isinstance(self.key, str) else self.key

    def _check_keys(self, connection: Connection) -> None:
        """Raise `table-mismatched` if there are rows that no range of keys contains."""
        # In each look, since a key may become NULL later: its row would be left out without a report.
        for name in self._columns:
            if connection.execute(
                f"SELECT 1 FROM ({self.statement}) AS rows_found WHERE {quoted_name(name)} IS NULL LIMIT 1"
            ):
                raise table_mismatched(
                    f"{name} is NULL in a row of {self.table or 'the query'}, which no range of keys contains",
                    f"give each row a key, or leave these rows out: query = SELECT … WHERE {name} IS NOT NULL",
                )

    def _begins_with_integers(self, connection: Connection) -> bool:
        """Whether the key is a column whose first and last values are integers, 0 or more."""
        if len(self._columns) > 1:
            return False
        (key,) = map(quoted_name, self._columns)
        ends = [
            connection.execute(f"SELECT {key} FROM ({self.statement}) AS rows_found ORDER BY {key} {order} LIMIT 1")
            for order in ("ASC", "DESC")
        ]
        # Not `isinstance`: True and False are integers to it.
        return all(type(value) is int and value >= 0 for rows in ends for (value,) in rows)

    def _ranges_of_integers(self, connection: Connection) -> Iterator[SqlRange]:
        (name,) = self._columns
        key, new = quoted_name(name), f"WHERE {quoted_name(name)} >= {self.next_key}"
        ((lowest, highest),) = connection.execute(
            f"SELECT min({key}), max({key}) FROM ({self.statement}) AS rows_found {new}"
        )
        if lowest is None:
            return
        if not isinstance(highest, int):
            raise table_mismatched(f"{name} is now {highest!r} in a row; until now its values were integers")
        step = max(self.range_size, -(-(highest + 1 - lowest) // _MOST_RANGES))
        ends = [*range(lowest + step, highest + 1, step), highest + 1]
        # The first range begins where the last one ended: the ledger proves that no key is left out
        for number, (start, end) in enumerate(pairwise([self.next_key, *ends]), self.next_number):
            yield SqlRange(self.statement, name, start, end, number)

    def _ranges_of_steps(self, connection: Connection) -> Iterator[SqlRange]:
        rows, key = self.statement, self._columns
        high = highest(connection, rows, key, self.last_key)
        if high is None:
            return
        size = -(-self.range_size // _STEPS_OF_A_RANGE)
        most = _MOST_RANGES * _STEPS_OF_A_RANGE
        ends = bounds_between(connection, rows, key, self.last_key, high, step_rows=size, most=most)
        bounds, start = (self.last_key, *ends), self.next_key
        for number, at in enumerate(range(0, len(ends), _STEPS_OF_A_RANGE), self.next_number):
            steps = KeySteps(key, bounds[at : at + _STEPS_OF_A_RANGE + 1])
            end = start + at + len(steps.bounds) - 1
            yield SqlRange(rows, None, start + at, end, number, steps)
