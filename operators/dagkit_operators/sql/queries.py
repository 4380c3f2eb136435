"""The payloads of databases: queries, and ranges of the keys of their rows, in the order of the database."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from dagkit.ranges import OFFSET_INFINITY
from dagkit_operators.sql.connection import Connection, columns, quoted_name


# Python orders text otherwise than a collation, and a key between two others cannot be computed; numbers of rows change
# when others are added. So the database draws bounds at every tenth of the new rows and compares with them, and offsets
# count the steps between them. It reads the index twice for each look. A row that comes after its step was read is
# never read, as with integers.
@dataclass(frozen=True, slots=True)
class KeySteps:
    """Rows in the order of a key, divided into steps.

    The database draws the bounds and compares with them, in its own order: that of its collation for text.
    """

    columns: tuple[str, ...]
    """The columns of the key."""
    bounds: tuple[str, ...]
    """Keys as values in SQL. A step begins after one of them and ends with the next one; "" stands before all keys."""

    def rows(self, statement: str, step: int) -> str:
        """The statement that selects the rows of a step, in the order of the key."""
        between = within(self.columns, *self.bounds[step : step + 2])
        return f"SELECT * FROM ({statement}) AS rows_found {between} ORDER BY {columns(self.columns)}"

    def part(self, start: int, end: int) -> "KeySteps":
        """The steps from one up to, not including, another."""
        return replace(self, bounds=self.bounds[start : end + 1])

    def place(self, step: int | None) -> str:
        """The keys of a step as text; for None, those of all steps."""
        low, high = (self.bounds[0], self.bounds[-1]) if step is None else self.bounds[step : step + 2]
        upto = f"up to ({high})"
        return f"({', '.join(self.columns)}) " + (f"after ({low}) {upto}" if low else upto)


def within(key: Sequence[str], low: str, high: str = "") -> str:
    """A WHERE clause for keys after one and up to another; "" stands for no bound."""
    bounds = [f"({columns(key)}) {than} ({bound})" for than, bound in ((">", low), ("<=", high)) if bound]
    return f"WHERE {' AND '.join(bounds)}" if bounds else ""


def highest(connection: Connection, statement: str, key: Sequence[str], low: str) -> str | None:
    """The highest key after `low`, as values in SQL; None if there is none."""
    descending = ", ".join(f"{quoted_name(name)} DESC" for name in key)
    rows = connection.execute(
        f"SELECT {_values(connection, key)} FROM ({statement}) AS rows_found {within(key, low)} "
        f"ORDER BY {descending} LIMIT 1"
    )
    return rows[0][0] if rows else None


def bounds_between(
    connection: Connection, statement: str, key: Sequence[str], low: str, high: str, *, step_rows: int, most: int
) -> list[str]:
    """The keys that end steps, after `low` up to `high`. Steps have `step_rows` rows, or more if they were too many."""
    rows = f"FROM ({statement}) AS rows_found {within(key, low, high)}"
    ((count,),) = connection.execute(f"SELECT count(*) {rows}")
    size = max(step_rows, -(-count // most))
    numbered = f"SELECT {columns(key)}, row_number() OVER (ORDER BY {columns(key)}) AS row_found {rows}"
    ends = connection.execute(
        f"SELECT {_values(connection, key)} FROM ({numbered}) AS numbered WHERE row_found % {size} = 0 "
        "ORDER BY row_found"
    )
    return list(dict.fromkeys([*(bound for (bound,) in ends), high]))


def _values(connection: Connection, key: Sequence[str]) -> str:
    """An expression whose value is the text of a key in SQL."""
    return " || ', ' || ".join(connection.literal.format(quoted_name(name)) for name in key)


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query, to be read from its first row to its last."""

    statement: str
    """A SELECT statement without ORDER BY and LIMIT."""
    key: str | None = None
    """A column of integers, unique or not, by which the rows are read in order and in parts; None: in one part."""
    start: int = 0
    """The lowest key to read."""
    end: int = OFFSET_INFINITY
    """The key after the last one to read."""

    @property
    def source(self) -> str:
        """The statement."""
        return f"sql:{self.statement}"

    def place(self, position: int | None) -> str:
        """The statement and a key as text; for None, the range of keys."""
        if self.key is None:
            return self.statement
        end = "inf" if self.end == OFFSET_INFINITY else self.end
        return f"{self.statement}, {self.key} " + (f"in [{self.start}, {end})" if position is None else f"= {position}")


@dataclass(frozen=True, slots=True)
class SqlRange(SqlQuery):
    """Rows of a table or a query: those with keys, or in steps, from `start` up to, not including, `end`."""

    number: int = 0
    """The ID of the range, which is unique among all ranges of a splitter."""
    steps: Annotated[KeySteps | None, Field(exclude_if=lambda steps: steps is None)] = None
    """The steps of a key that is no column of integers. Stored ranges omit the field if it is None."""

    @property
    def source_size(self) -> int | None:
        """None: tables grow."""
        return None

    def part(self, start: int, end: int) -> "SqlRange":
        """The range, reduced to some of its keys or steps."""
        steps = None if self.steps is None else self.steps.part(start - self.start, end - self.start)
        return replace(self, start=start, end=end, steps=steps)

    def place(self, position: int | None) -> str:
        """The statement and a key or a step as text; for None, all of them."""
        if self.steps is None:
            return SqlQuery.place(self, position)
        return f"{self.statement}, {self.steps.place(None if position is None else position - self.start)}"
