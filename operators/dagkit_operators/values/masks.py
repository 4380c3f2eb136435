"""Masks: one bool for each value of a column."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dagkit import Batch, Column
from dagkit_operators.values.inlined import making

if TYPE_CHECKING:
    import pyarrow as pa


def mask_of(predicate: Callable[[Any], Any], column: Column) -> "pa.BooleanArray":
    """The mask of a predicate, from its `mask` method if it has one, else value by value."""
    of_column = getattr(predicate, "mask", None)
    return mask_by_value(predicate, column) if of_column is None else of_column(column)


def mask_by_value(predicate: Callable[[Any], Any], column: Column) -> "pa.BooleanArray":
    """The mask of a predicate, called with each value."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow as pa  # noqa: PLC0415

    return pa.array(np.fromiter(making(predicate)(column.values()), np.bool_, len(column)))


def masked(answer: Any, count: int) -> "pa.BooleanArray":
    """The result of a `batch` predicate as a mask. It may be a numpy or Arrow array, or a list."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    mask = answer if isinstance(answer, pa.Array) else pa.array(answer, pa.bool_())
    if not pa.types.is_boolean(mask.type) or len(mask) != count:
        raise TypeError(f"the batch function answered {len(mask)} of {mask.type} for {count} values; one bool for each")
    return mask.fill_null(False) if mask.null_count else mask


def only(batch: Batch[Any], taken: list[int]) -> Batch[Any]:
    """The items of a batch at these indexes, which ascend."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow as pa  # noqa: PLC0415

    mask = np.zeros(len(batch), np.bool_)
    mask[taken] = True
    return batch.where(pa.array(mask))
