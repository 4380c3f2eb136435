"""Control tuples: messages to all operators downstream, beside the items, such as "a file begins".

    @dataclass(frozen=True)
    class EndOfFile(Control):
        path: str

    self.output.emit_control(EndOfFile("a.txt"))

The engine delivers a control tuple once to every partition of every operator downstream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from dagkit.schema.batch import Batch


class Delivery(StrEnum):
    """When an operator gets a control tuple."""

    IMMEDIATE = "immediate"
    """As soon as it arrives."""
    END_WINDOW = "end-window"
    """After all items of the streaming window in which it arrived, before `end_window`."""


class Control:
    """The base class of control tuples. A subclass is a frozen dataclass."""

    delivery: ClassVar[Delivery] = Delivery.END_WINDOW


@dataclass(frozen=True, slots=True)
class Stamped:
    """A control tuple in transit, with an ID, by which a receiver drops copies that other partitions deliver."""

    control: Control
    stamp: str


def controls_in(batch: Batch[Any]) -> Sequence[Stamped]:
    """The control tuples of a batch that holds only these; empty for a batch of items."""
    if batch.made_by is Stamped:
        return batch.items()
    if batch.made_by is None and len(batch) == 1 and isinstance(batch.items()[0], Stamped):
        return batch.items()
    return ()


def by_name(controls: Sequence[type[Control]]) -> Mapping[str, type[Control]]:
    """Classes of control tuples, by their names in ledgers."""
    return {control.__qualname__: control for control in controls}
