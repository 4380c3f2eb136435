"""What operators look at: the value of a record, or any other item as a whole."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator

from dagkit import Batch, Column
from dagkit.schema.batch import ITEM
from dagkit_operators.blocks import Record
from dagkit_operators.expressions import Expression

VALUE = "value"


def _asked_of_one(function: Any) -> Any:
    """A function that can be called with one value, as far as anybody can tell before it is."""
    if isinstance(function, Expression):
        return function
    if isinstance(getattr(function, "__self__", None), Expression):
        told = f"{function.__name__} is a method of an expression, and no expression: call it"
        raise ValueError(told)  # noqa: TRY004 - what pydantic makes a fault of
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):  # a callable of C, which does not tell
        return function
    try:
        taken.bind(object())
    except TypeError as error:
        raise ValueError(f"it is given one value, and takes {taken}: {error}") from error
    return function


OfOne = Annotated[Callable[[Any], Any], AfterValidator(_asked_of_one)]
"""A function of one value, or of one column."""


def seen(item: Any, on: str | None) -> Any:
    """What of an item is looked at: the field that was named, else the value of a record, else the item."""
    if on is not None:
        return getattr(item, on)
    return item.value if isinstance(item, Record) else item


def seen_field(batch: Batch[Any], on: str | None) -> str | None:
    """The field that is looked at in all items of a batch; none: the items themselves."""
    if on is not None:
        return on
    if batch.made_by is None:
        return VALUE if len(batch) and isinstance(batch.items()[0], Record) else None
    return VALUE if batch.made_by is Record else None


def seen_column(batch: Batch[Any], on: str | None) -> Column:
    """What is looked at in all items of a batch."""
    return column_of(batch, seen_field(batch, on))


def column_of(batch: Batch[Any], field: str | None) -> Column:
    """One field of all items of a batch; none: the items themselves."""
    if field is not None:
        return batch.column(field)
    return batch.columns[ITEM] if batch.made_by is None else Batch.of(batch.items()).columns[ITEM]
