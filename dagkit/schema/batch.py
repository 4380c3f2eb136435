"""Batches: many items of one payload type at once, column by column.

An operator that takes batches is spared a call and an object for each item. A batch is good until the call that it was
handed to returns: its memory may be used again for the next one.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_origin

from dagkit.schema.columns import Column, Constant, Listed

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
ITEM = "item"
"""The only column of a batch whose items are not made of fields."""


class Batch(Generic[T]):
    """Items, either as they are, or as the columns that they would be made of."""

    __slots__ = ("_items", "columns", "made_by")

    def __init__(self, columns: Mapping[str, Column], made_by: Callable[..., T] | None = None) -> None:
        self.columns = columns
        """By field, in the order in which `made_by` takes them."""
        self.made_by = made_by
        """Makes an item of its fields; none: the only column holds the items themselves."""
        self._items: Sequence[T] | None = None

    @classmethod
    def of(cls, items: Sequence[T]) -> "Batch[T]":
        """The batch of items that are there already."""
        batch = cls({ITEM: Listed(items)})
        batch._items = items
        return batch

    def __len__(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items())

    def items(self) -> Sequence[T]:
        """The items one by one, made of their columns if need be."""
        if self._items is None:
            columns = [column.values() for column in self.columns.values()]
            self._items = columns[0] if self.made_by is None else list(map(self.made_by, *columns))
        return self._items

    def column(self, name: str) -> Column:
        """One field of all items."""
        if name in self.columns:
            return self.columns[name]
        return Listed([getattr(item, name) for item in self.items()])

    def where(self, mask: "pa.BooleanArray") -> "Batch[T]":
        """The items at which the mask holds."""
        kept = {name: column.where(mask) for name, column in self.columns.items()}
        if self.made_by is None:
            column = kept[ITEM]
            return Batch.of(column.values()) if isinstance(column, Listed) else Batch(kept)
        return Batch(kept, self.made_by)

    def sliced(self, start: int, count: int) -> "Batch[T]":
        """So many items from one on."""
        if self.made_by is None and self._items is not None:
            return Batch.of(self._items[start : start + count])
        return Batch({name: column.sliced(start, count) for name, column in self.columns.items()}, self.made_by)

    def replaced(self, name: str, column: Column) -> "Batch[Any]":
        """The same items with another value in one field."""
        fielded = self.fielded()
        return Batch({**fielded.columns, name: column}, fielded.made_by)

    def fielded(self) -> "Batch[T]":
        """The items as columns, one for each field, where their class has fields."""
        if self.made_by is not None or not len(self):
            return self
        made_by: Any = type(self.items()[0])
        names = fields_of(made_by)
        if not names:
            return self
        return Batch({name: Listed([getattr(item, name) for item in self.items()]) for name in names}, made_by)

    def grouped(self, name: str) -> Iterator[tuple[Any, "Batch[T]"]]:
        """The items by the value of one field, in the order in which the values first come."""
        column = self.column(name)
        if isinstance(column, Constant):
            if len(column):
                yield column.value, self
            return
        groups: dict[Any, list[T]] = {}
        for value, item in zip(column.values(), self.items(), strict=True):
            groups.setdefault(value, []).append(item)
        for value, items in groups.items():
            yield value, Batch.of(items)


@functools.lru_cache(maxsize=1024)
def fields_of(payload: Any) -> tuple[str, ...]:
    """The fields that an item of this type is made of, in order; none where it is made otherwise."""
    made_by = get_origin(payload) or payload
    if not (isinstance(made_by, type) and dataclasses.is_dataclass(made_by)):
        return ()
    fields = dataclasses.fields(made_by)
    return tuple(field.name for field in fields) if all(field.init for field in fields) else ()
