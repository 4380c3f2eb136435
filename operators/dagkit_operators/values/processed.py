"""The part of an item that operators process: the value of a record, any other item as a whole."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator

from dagkit import Batch, Column
from dagkit.schema.batch import ITEM
from dagkit_operators.payloads import VALUE, Record
from dagkit_operators.values.expressions import Expression


def _check_unary(function: Any) -> Any:
    """Return the function. Raise ValueError if its signature shows that it cannot be called with one value."""
    if isinstance(function, Expression):
        return function
    if isinstance(getattr(function, "__self__", None), Expression):
        problem = f"{function.__name__} is a method of an expression, and no expression: call it"
        raise ValueError(problem)  # noqa: TRY004 - pydantic reports ValueError only
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):  # a callable written in C without a signature
        return function
    try:
        taken.bind(object())
    except TypeError as error:
        raise ValueError(f"it is given one value, and takes {taken}: {error}") from error
    return function


UnaryFunction = Annotated[Callable[[Any], Any], AfterValidator(_check_unary)]
"""A function of one value, or of one column."""


def processed_value(item: Any, on: str | None) -> Any:
    """The part of an item that is processed: the field `on` if given, else the value of a record, else the item."""
    if on is not None:
        return getattr(item, on)
    return item.value if isinstance(item, Record) else item


def processed_field(batch: Batch[Any], on: str | None) -> str | None:
    """The field of a batch that is processed; None: the items themselves."""
    if on is not None:
        return on
    if batch.made_by is None:
        return VALUE if len(batch) and isinstance(batch.items()[0], Record) else None
    return VALUE if batch.made_by is Record else None


def processed_column(batch: Batch[Any], on: str | None) -> Column:
    """The column of a batch that is processed."""
    return column_of(batch, processed_field(batch, on))


def column_of(batch: Batch[Any], field: str | None) -> Column:
    """One field of a batch as a column; None: the items themselves."""
    if field is not None:
        return batch.column(field)
    return batch.columns[ITEM] if batch.made_by is None else Batch.of(batch.items()).columns[ITEM]
