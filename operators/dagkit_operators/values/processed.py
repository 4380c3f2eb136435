"""The part of an item that operators process: the value of a record, any other item as a whole."""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints

from pydantic import AfterValidator

from dagkit import Batch, Column, Listed
from dagkit.schema import bind
from dagkit.schema.batch import ITEM
from dagkit_operators.payloads import VALUE, Record
from dagkit_operators.values.expressions import Expression

E = TypeVar("E")
"""The element of an iterable."""


def _check_unary(function: Any) -> Any:
    """Return the function. Raise ValueError if its signature shows that it cannot be called with one value."""
    if isinstance(function, Expression):
        return function
    if isinstance(getattr(function, "__self__", None), Expression):
        problem = f"{function.__name__} is a method of an expression, and no expression: call it"
        raise ValueError(problem)  # noqa: TRY004 - pydantic reports ValueError only
    try:
        taken = inspect.signature(function)
    # A callable written in C may have no signature.
    except (TypeError, ValueError):
        return function
    try:
        taken.bind(object())
    except TypeError as error:
        takes = f"{taken}: {error}" if taken.parameters else "none"
        raise ValueError(f"it is called with one value, but takes {takes}") from error
    return function


_MAKE_THEMSELVES = (int, float, complex, str, bytes, bool, list, tuple, set, frozenset, dict)
"""Classes with a `__new__` of their own that make instances of themselves."""

UnaryFunction = Annotated[Callable[[Any], Any], AfterValidator(_check_unary)]
"""A function of one value, or of one column."""


def returned_by(function: Any) -> Any:
    """The type that a function is annotated to return, and that a class makes; None if it is unknown."""
    if isinstance(function, partial):
        return returned_by(function.func)
    if isinstance(function, type):
        makes_others = any("__new__" in vars(ancestor) for ancestor in function.__mro__[:-1])
        return None if makes_others and function not in _MAKE_THEMSELVES else function
    is_plain = inspect.isroutine(function)
    try:
        hints = get_type_hints(function if is_plain else type(function).__call__)
    # An annotation in text cannot be resolved, or there is none to read.
    except (NameError, TypeError, AttributeError):
        return None
    return hints.get("return")


def element_of(iterable: Any) -> Any:
    """The type of the elements of an iterable type; None if it is unknown."""
    found: dict[Any, Any] = {}
    bind(Iterable[E], iterable, found)  # type: ignore[valid-type]  # a type as a value
    return next(iter(found.values()), None)


def with_value(received: Any, value: Any, on: str | None) -> Any:
    """The type of an item after its processed part became a value of another type; None if that is unknown.

    An item of a class stays one with another value in a field, unless the type of the field is an argument of it.
    """
    kind = get_origin(received) or received
    if not isinstance(kind, type) or kind is object:
        return None
    is_record = issubclass(kind, Record)
    if on is not None and not (is_record and on == VALUE):
        return received if kind is received or is_record else None
    if value is None:
        return None
    return Record[value] if is_record else value


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
    return batch.columns[ITEM] if batch.made_by is None else Listed(batch.items(), batch.places)
