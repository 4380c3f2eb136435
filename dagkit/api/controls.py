"""Control tuples: messages beside the items to all operators downstream, such as "a file begins" or "a batch is over".

    @dataclass(frozen=True)
    class EndOfFile(Control):
        path: str

    self.output.emit_control(EndOfFile("a.txt"))

A control tuple reaches every partition of every operator downstream once; the engine passes it on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from dagkit.schema.batch import Batch


class Delivery(StrEnum):
    """When an operator gets a control tuple."""

    IMMEDIATE = "immediate"
    """When it comes."""
    END_WINDOW = "end-window"
    """Before `end_window` of the streaming window in which it came, after all items."""


class Control:
    """The base of control tuples; a frozen dataclass."""

    delivery: ClassVar[Delivery] = Delivery.END_WINDOW


@dataclass(frozen=True, slots=True)
class Stamped:
    """A control tuple in transit, with its identity: several partitions may deliver the same one."""

    control: Control
    stamp: str


def controls_in(batch: Batch[Any]) -> Sequence[Stamped]:
    """The control tuples that travel as a batch of their own; none in a batch of items."""
    if batch.made_by is Stamped:
        return batch.items()
    if batch.made_by is None and len(batch) == 1 and isinstance(batch.items()[0], Stamped):
        return batch.items()
    return ()


def by_name(controls: Sequence[type[Control]]) -> Mapping[str, type[Control]]:
    """Classes of control tuples by the names that ledgers know them by."""
    return {control.__qualname__: control for control in controls}
