"""Items that are known beforehand: names, patterns, numbers to begin with."""

from typing import Generic

from pydantic import Field
from typing_extensions import TypeVar

from dagkit import InputOperator, OutputPort, State

MOST = 10_000
"""Items of one look at most."""

T = TypeVar("T")


class Items(InputOperator, Generic[T]):
    """Sends the items that it was given, once. Those that are added behind them later are sent by the next launch."""

    kind = "items.given/1"
    output = OutputPort[T]()

    items: tuple[T, ...] = Field(default=...)
    """What is sent, in this order."""

    sent = State(0)
    """How many of them were sent."""

    def known_items(self) -> tuple[T, ...]:
        """What it sends."""
        return self.items

    def emit_tuples(self) -> None:
        for item in self.items[self.sent : self.sent + MOST]:
            self.output.emit(item)
            self.sent += 1
