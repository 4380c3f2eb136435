"""Keys of items: by a function of the processed value, by a field, or the processed value itself."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from dagkit import Batch, Column, Listed
from dagkit_operators.records.expressions import Expression
from dagkit_operators.records.inlined import making
from dagkit_operators.records.processed import UnaryFunction, processed_column, processed_value

Key = UnaryFunction | str | None
"""A function of the value of a record or of any other item; the name of a field; None for the value itself."""

T = TypeVar("T")


def key_of(key: Key, item: Any) -> Any:
    """The key of an item."""
    if key is None or isinstance(key, str):
        return processed_value(item, key)
    return key(processed_value(item, None))


def key_column(key: Key, batch: Batch[Any]) -> Column:
    """The keys of the items of a batch. They equal those that `key_of` returns for each item."""
    if key is None or isinstance(key, str):
        return processed_column(batch, key)
    column = processed_column(batch, None)
    return key.of(column) if isinstance(key, Expression) else Listed(making(key)(column.values()))


def keys_of(key: Key, batch: Batch[Any]) -> Sequence[Any]:
    """The keys of the items of a batch as Python values."""
    return key_column(key, batch).values()


def routed_by(key: Key) -> Callable[[Any], Any] | str:
    """The key as an input port takes it: a field by its name, so that batches are routed without making items."""
    return key if isinstance(key, str) else partial(key_of, key)


def first_of(pair: Any) -> Any:
    """The key of a pair."""
    return pair[0]


def second_of(pair: Any) -> Any:
    """The value of a pair."""
    return pair[1]


def sorted_by_key(pairs: Iterable[tuple[Any, T]]) -> list[tuple[Any, T]]:
    """Sort pairs by key; if the keys cannot be compared, keep the order as it is."""
    listed = list(pairs)
    try:
        return sorted(listed, key=first_of)
    except TypeError:
        return listed
