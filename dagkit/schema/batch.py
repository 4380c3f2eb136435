"""Batches: many items of one payload type, stored as columns.

An operator that processes batches avoids a call and an object for each item. A batch is valid only until the call that
received it returns, because the next batch may reuse its memory.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dagkit.schema.columns import Column, Constant, Listed, Starts
from dagkit.schema.objects import objects_of, whole_by_fields

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
ITEM = "item"
"""The name of the only column of a batch whose items are not split into fields."""


class Batch(Generic[T]):
    """Items, either as objects or as columns of their fields."""

    __slots__ = ("_items", "columns", "made_by")

    def __init__(self, columns: Mapping[str, Column], made_by: Callable[..., T] | None = None) -> None:
        self.columns = columns
        """The columns by field, in the order of the parameters of `made_by`."""
        self.made_by = made_by
        """Creates an item from its fields. None if the only column holds the items themselves."""
        self._items: Sequence[T] | None = None

    @classmethod
    def of(cls, items: Sequence[T]) -> "Batch[T]":
        """A batch of existing items."""
        batch = cls({ITEM: Listed(items)})
        batch._items = items
        return batch

    @classmethod
    def of_column(cls, column: Column) -> "Batch[T]":
        """A batch whose items are the values of a column. They stay in the column unless it is a list."""
        batch = cls({ITEM: column})
        if isinstance(column, Listed):
            batch._items = column.listed
        return batch

    def __len__(self) -> int:
        for column in self.columns.values():
            return len(column)
        return 0

    def __iter__(self) -> Iterator[T]:
        return iter(self.items())

    def items(self) -> Sequence[T]:
        """The items as objects. If the batch holds only columns, the first call creates them."""
        if self._items is None:
            columns = [column.values() for column in self.columns.values()]
            self._items = columns[0] if self.made_by is None else objects_of(self.made_by, columns)
        return self._items

    def column(self, name: str) -> Column:
        """One field of all items."""
        if name in self.columns:
            return self.columns[name]
        return Listed([getattr(item, name) for item in self.items()], self.places)

    def places(self) -> Sequence[int] | None:
        """The byte offset of each item in the input that was read, or of the part that holds it; None: unknown."""
        known = (column.places() for column in self.columns.values())
        return next((places for places in known if places is not None), None)

    def placed(self, starts: Starts, part_start: int | None = None) -> "Batch[T]":
        """The same items, read from elsewhere. `starts` computes the offset of each, when they are needed."""
        placed = {
            name: column if isinstance(column, Constant) else column.placed(starts, part_start)
            for name, column in self.columns.items()
        }
        return Batch.of_column(placed[ITEM]) if self.made_by is None else Batch(placed, self.made_by)

    def where(self, mask: "pa.BooleanArray") -> "Batch[T]":
        """The items for which the mask is true."""
        columns = {name: column.where(mask) for name, column in self.columns.items()}
        if self.made_by is None:
            return Batch.of_column(columns[ITEM])
        return Batch(columns, self.made_by)

    def sliced(self, start: int, count: int) -> "Batch[T]":
        """The items from `start` on, at most `count`."""
        if self.made_by is None and self._items is not None:
            column = self.columns[ITEM]
            return Batch.of_column(Listed(self._items, column.starts, column.part_start()).sliced(start, count))
        return Batch({name: column.sliced(start, count) for name, column in self.columns.items()}, self.made_by)

    def replaced(self, name: str, column: Column) -> "Batch[Any]":
        """The same items with other values in one field, as if by `dataclasses.replace` for each."""
        fielded = self.fielded()
        if fielded.made_by is None:
            items: Sequence[Any] = self.items()
            values = zip(items, column.values(), strict=True)
            made = [dataclasses.replace(item, **{name: value}) for item, value in values]
            return Batch.of_column(Listed(made, column.places))
        return Batch({**fielded.columns, name: column}, fielded.made_by)

    def fielded(self) -> "Batch[T]":
        """The items as one column for each field, if all are of one class that `whole_by_fields` accepts; else self."""
        kinds = set(map(type, self.items())) if self.made_by is None else set()
        if len(kinds) != 1:
            return self
        (made_by,) = kinds
        names = whole_by_fields(made_by)
        if not names:
            return self
        return Batch({name: self.column(name) for name in names}, made_by)

    def grouped(self, name: str) -> Iterator[tuple[Any, "Batch[T]"]]:
        """The items grouped by the value of one field, in the order in which the values first appear."""
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
