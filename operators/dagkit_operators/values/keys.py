"""Keys of items. Every key sees the value of a record, and any other item as a whole."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from dagkit import Batch, Column, Listed
from dagkit.api.streams import BatchKey
from dagkit.errors import clipped
from dagkit_operators.payloads import Record
from dagkit_operators.values.expressions import Expression, field_of
from dagkit_operators.values.inlined import making
from dagkit_operators.values.processed import UnaryFunction, processed_column, processed_value

Key = UnaryFunction | str | None
"""A function of the value of a record or of any other item; the name of a field of it; None for the value itself."""

T = TypeVar("T")


def key_of(key: Key, item: Any) -> Any:
    """The key of an item."""
    value = processed_value(item, None)
    if key is None:
        return value
    return field_of(value, key) if isinstance(key, str) else key(value)


def key_column(key: Key, batch: Batch[Any]) -> Column:
    """The keys of the items of a batch. They equal those that `key_of` returns for each item."""
    # Of a Record, the name is that of a field of its value, and not of its own.
    if isinstance(key, str) and batch.made_by not in (None, Record) and key in batch.columns:
        return batch.columns[key]
    column = processed_column(batch, None)
    if key is None:
        return column
    if isinstance(key, str):
        return Listed([field_of(value, key) for value in column.values()])
    return key.of(column) if isinstance(key, Expression) else Listed(making(key)(column.values()))


def keys_of(key: Key, batch: Batch[Any]) -> Sequence[Any]:
    """The keys of the items of a batch as Python values."""
    return key_column(key, batch).values()


@dataclass(frozen=True, slots=True)
class RoutingKey(BatchKey):
    """A key as an input port takes it. Batches are routed without making their items, where the key allows that."""

    key: Key

    def __call__(self, item: Any) -> Any:
        return key_of(self.key, item)

    def column(self, batch: Batch[Any]) -> Column:
        return key_column(self.key, batch)


def first_of(pair: Any) -> Any:
    """The key of a pair. Raise TypeError for an item that is none, as a text of two letters."""
    return pair[0] if type(pair) is tuple and pair else _part(pair, 0)


def second_of(pair: Any) -> Any:
    """The value of a pair."""
    return pair[1] if type(pair) is tuple and len(pair) > 1 else _part(pair, 1)


def _part(pair: Any, index: int) -> Any:
    if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) <= index:
        raise TypeError(
            f"{clipped(pair)} is no pair of a key and a value: send pairs, as Map(lambda item: (item, 1)) does, "
            "or set the operator's key, if it has one"
        )
    return pair[index]


def sorted_by_key(pairs: Iterable[tuple[Any, T]]) -> list[tuple[Any, T]]:
    """Sort pairs by key; if the keys cannot be compared, keep the order as it is."""
    listed = list(pairs)
    try:
        return sorted(listed, key=first_of)
    except TypeError:
        return listed
