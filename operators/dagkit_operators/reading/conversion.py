"""Making items of records one by one. Some records are dropped, and some are rejected."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from dagkit import Column, Listed
from dagkit.errors import RunFailure, clipped
from dagkit.ground.urls import shown
from dagkit.schema.columns import TEXT_ERRORS
from dagkit_operators.payloads import Rejected, why_invalid


class LineRejected(RunFailure):
    """A record could not be made of its bytes, and the output `rejected` is not connected."""

    code = "line-rejected"
    usual_help = "connect the output `rejected` to continue without such lines"
    caused_by_author = True

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected
        where = _line_at(rejected.start)
        super().__init__(f"{shown(rejected.path)}: {where} is rejected: {rejected.reason}: {clipped(rejected.text)}")


@dataclass(frozen=True, slots=True)
class Conversion:
    """Converts the records of a file. Records for which `convert` raises ValueError are rejected."""

    path: str
    convert: Callable[[Any], Any]
    reject: Callable[[Rejected, Exception], None]
    drop: Callable[[int], None] | None = None
    """Called with the number of records of which None was made, and which are dropped; without it, None is an item."""

    def of(self, column: Column, values: Sequence[Any]) -> Listed:
        """Convert the values of a column, in the form that the conversion takes. Reject invalid ones."""
        items: list[Any] = []
        rejected: list[int] = []
        remaining = iter(values)
        starts = cache(column.starts)  # computed for the first record that needs them, and kept for the others
        while True:
            try:
                # In one call for all records: a loop would cost as much as a cheap conversion. Items that were made
                # before a record that fails stay in the list, and the next call continues after that record.
                items.extend(map(self.convert, remaining))
                break
            except ValueError as fault:
                index = len(items) + len(rejected)
                start = _start(column, starts(), index)
                self.reject(Rejected(self.path, start, as_text(values[index]), why_invalid(fault)), fault)
                rejected.append(index)
            except Exception as error:
                index = len(items) + len(rejected)
                text = clipped(as_text(values[index]))
                line = f"{_line_at(_start(column, starts(), index))} of {shown(self.path)}: {text}"
                error.add_note(f"of {line}; only a ValueError rejects a record, any other exception fails the run")
                raise
        dropped = [] if self.drop is None else [index for index, item in enumerate(items) if item is None]
        if self.drop is not None and dropped:
            self.drop(len(dropped))
            items = _without(items, dropped)
        return Listed(items, lambda: _starts_of(starts(), rejected, dropped), column.part_start())


def as_text(value: object) -> str:
    """The text of a record in messages; bytes that are not UTF-8 become lone surrogates."""
    return value.decode("utf-8", TEXT_ERRORS) if isinstance(value, bytes) else str(value)


def _line_at(start: int | None) -> str:
    """A line as messages name it."""
    return "a line" if start is None else f"the line at byte {start}"


def _start(column: Column, starts: Sequence[int] | None, index: int) -> int | None:
    return column.part_start() if starts is None else starts[index]


def _starts_of(starts: Sequence[int] | None, rejected: list[int], dropped: list[int]) -> Sequence[int] | None:
    return None if starts is None else _without(_without(starts, rejected), dropped)


def _without(values: Sequence[Any], indices: list[int]) -> list[Any]:
    """The values at all other indices."""
    excluded = set(indices)
    return [value for index, value in enumerate(values) if index not in excluded] if excluded else list(values)
