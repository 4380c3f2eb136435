"""The payloads of databases: queries, and ranges of the keys of their rows."""

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from dagkit.ranges import OFFSET_INFINITY
from dagkit_operators.sql.key_order import KeySteps


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
