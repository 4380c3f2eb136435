"""Rejecting items: those for which a function raises ValueError leave by the output `rejected`, with the reason."""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from dagkit import Batch, Column, Operator, OutputPort, RowOperator
from dagkit.errors import RunFailure
from dagkit_operators.payloads import Rejected
from dagkit_operators.reading.conversion import as_text


class ItemRejected(RunFailure):
    """An operator refused an item, and its output `rejected` is not connected."""

    code = "item-rejected"
    usual_help: ClassVar[str] = "connect the output `rejected` to continue without such items"
    caused_by_author: ClassVar[bool] = True

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected
        super().__init__(f"the item {rejected.text!r:.80} is rejected: {rejected.reason}")


class Rejecting(Operator):
    """An operator that rejects the items for which its function raises ValueError."""

    rejected = OutputPort(Rejected)
    """Items that the operator refused. If it is not connected, the first such item fails the run."""

    def reject(self, item: Any, value: Any, fault: ValueError, start: int | None = None) -> None:
        """Send an item to `rejected`. Raise ItemRejected if that output is not connected."""
        rejected = Rejected("", start, as_text(value), str(fault), item)
        if not self.rejected.is_connected:
            raise ItemRejected(rejected) from fault
        self.rejected.emit(rejected)

    def tried(
        self, function: Callable[[Any], Any], column: Column, item_at: Callable[[int], Any]
    ) -> tuple[list[Any], list[int]]:
        """Repeat a failed call for many values one by one, to find the values for which it raises ValueError.

        Return the results and the indexes of their values. Reject the items of all other values.
        """
        results: list[Any] = []
        taken: list[int] = []
        starts = cache(column.starts)  # computed for the first item that is rejected
        for index, value in enumerate(column.values()):
            try:
                result = function(value)
            except ValueError as fault:
                known = starts()
                self.reject(item_at(index), value, fault, None if known is None else known[index])
            else:
                results.append(result)
                taken.append(index)
        return results, taken


class RejectingRowOperator(Rejecting, RowOperator):
    """A row operator that rejects the items for which its function raises ValueError."""


def item_of(batch: Batch[Any]) -> Callable[[int], Any]:
    """A function that returns the item of a batch at an index, without making all items."""
    return lambda index: batch.sliced(index, 1).items()[0]


def only(batch: Batch[Any], taken: list[int]) -> Batch[Any]:
    """The items of a batch at these indexes, which ascend."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow as pa  # noqa: PLC0415

    mask = np.zeros(len(batch), np.bool_)
    mask[taken] = True
    return batch.where(pa.array(mask))
