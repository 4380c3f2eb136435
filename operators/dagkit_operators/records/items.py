"""Items that are known in advance: names, patterns, initial numbers."""

from collections.abc import Sequence
from typing import Annotated, Generic

from pydantic import AfterValidator, Field
from typing_extensions import TypeVar

from dagkit import InputOperator, OutputPort, State

MOST = 10_000
"""The most items sent by one call of `emit_tuples`."""

T = TypeVar("T")


class Items(InputOperator, Generic[T]):
    """Sends the given items once. If items are appended later, the next launch sends those."""

    kind = "items.given/1"
    output = OutputPort[T]()

    items: Annotated[Sequence[T], AfterValidator(tuple)] = Field(default=..., kw_only=False)
    """The items to send, in this order."""

    sent = State(0)
    """The number of items sent so far."""

    def known_items(self) -> tuple[T, ...]:
        """The items that this operator sends."""
        return tuple(self.items)

    def emit_tuples(self) -> None:
        for item in self.items[self.sent : self.sent + MOST]:
            self.output.emit(item)
            self.sent += 1
