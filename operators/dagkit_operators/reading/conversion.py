"""Making items of records one by one: what a conversion drops, and what it rejects."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from dagkit import Column
from dagkit.errors import RunFailure
from dagkit.schema.columns import TEXT_ERRORS
from dagkit.urls import shown
from dagkit_operators.contexts.line_columns import ListedAt
from dagkit_operators.payloads import Rejected


class LineRejected(RunFailure):
    """A record could not be made of its bytes, and the output `rejected` is not connected."""

    code = "line-rejected"
    usual_help: ClassVar[str] = "connect the output `rejected` to continue without such lines"
    caused_by_author: ClassVar[bool] = True

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected
        where = _line_at(rejected.start)
        super().__init__(f"{shown(rejected.path)}: {where} is rejected: {rejected.reason}: {rejected.text!r:.80}")


@dataclass(frozen=True, slots=True)
class Conversion:
    """Converts the records of a file. Records for which `convert` raises ValueError are rejected."""

    path: str
    convert: Callable[[Any], Any]
    reject: Callable[[Rejected, Exception], None]
    drop: Callable[[], None] | None = None
    """Called for each record of which None is made, and which is therefore dropped; without it, None is an item."""

    def of(self, column: Column, given: Iterable[Any]) -> ListedAt:
        """What is made of the values of a column, given as the conversion takes them."""
        starts = cache(column.starts)  # computed for the first record that needs them, and kept for the others
        items, taken = [], []
        for index, value in enumerate(given):
            try:
                item = self.convert(value)
            except ValueError as fault:
                self.reject(Rejected(self.path, _start(starts(), index), as_text(value), str(fault)), fault)
            except Exception as error:
                line = f"{_line_at(_start(starts(), index))} of {shown(self.path)}: {as_text(value)!r:.80}"
                error.add_note(f"of {line}; what raises ValueError is rejected, and nothing else")
                raise
            else:
                if item is None and self.drop is not None:
                    self.drop()
                    continue
                items.append(item)
                taken.append(index)
        return ListedAt(items, lambda: _starts_of(starts(), taken))


def as_text(value: object) -> str:
    """The text of a record in messages; bytes that are not UTF-8 become lone surrogates."""
    return value.decode("utf-8", TEXT_ERRORS) if isinstance(value, bytes) else str(value)


def _line_at(start: int | None) -> str:
    """A line as messages name it."""
    return "a line" if start is None else f"the line at byte {start}"


def _start(starts: Any, index: int) -> int | None:
    return None if starts is None else starts[index]


def _starts_of(starts: Any, taken: list[int]) -> list[int] | None:
    return None if starts is None else [starts[index] for index in taken]
