"""Rejecting items: those for which a function raises ValueError leave by the output `rejected`, with the reason."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from dagkit import Batch, Column, Constant, Operator, OutputPort
from dagkit.errors import RunFailure, clipped
from dagkit.ground.urls import shown
from dagkit_operators.payloads import Rejected, why_invalid
from dagkit_operators.reading.conversion import as_text


class ItemRejected(RunFailure):
    """An operator refused an item, and its output `rejected` is not connected."""

    code = "item-rejected"
    usual_help = "connect the output `rejected` to continue without such items"
    caused_by_author = True

    def __init__(self, rejected: Rejected, place: str = "") -> None:
        """`place` is where the item was read; without it, the message names only the file."""
        self.rejected = rejected
        # No position: an item that is tried again alone does not know it, and must give the same message
        place = place or shown(rejected.path)
        super().__init__(
            f"the item {clipped(rejected.text)}{f' of {place}' * bool(place)} is rejected: {rejected.reason}"
        )


class Rejecting(Operator):
    """An operator that rejects the items for which its function raises ValueError."""

    rejected = OutputPort(Rejected, names_origins=True)
    """Items that the operator refused. If it is not connected, the first such item fails the run."""

    def reject(self, item: Any, value: Any, fault: ValueError, start: int | None = None, path: str = "") -> None:
        """Send an item to `rejected`. Raise ItemRejected if that output is not connected."""
        element, offset = self.item_origin
        path, at = path or getattr(element, "path", ""), offset if start is None else start
        rejected = Rejected(path, at, as_text(value), why_invalid(fault), item)
        if not self.rejected.is_connected:
            raise ItemRejected(rejected) from fault
        self.rejected.emit(rejected)

    def tried(self, function: Callable[[Any], Any], column: Column, item_at: "ItemsOf") -> tuple[list[Any], list[int]]:
        """Repeat a failed call for many values one by one, to find the values for which it raises ValueError.

        Return the results and the indexes of their values. Reject the items of all other values.
        """
        results: list[Any] = []
        taken: list[int] = []
        # Computed for the first item that is rejected: most batches have none.
        places = cache(column.places)
        for index, value in enumerate(column.values()):
            try:
                result = function(value)
            except ValueError as fault:
                known = places()
                self.reject(item_at(index), value, fault, None if known is None else known[index], item_at.path)
            else:
                results.append(result)
                taken.append(index)
        return results, taken


@dataclass(frozen=True, slots=True)
class ItemsOf:
    """The items of a batch by index, without making all of them."""

    batch: Batch[Any]

    def __call__(self, index: int) -> Any:
        return self.batch.sliced(index, 1).items()[0]

    @property
    def path(self) -> str:
        """The file from which the items were read; empty if the batch does not know it."""
        columns = self.batch.columns.values()
        return next((column.path for column in columns if isinstance(column, Constant)), "")
