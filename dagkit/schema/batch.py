"""Batches: many items of one payload type, stored as columns.

An operator that processes batches avoids a call and an object for each item. A batch is valid only until the call that
received it returns, because the next batch may reuse its memory.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dagkit.schema.columns import Column, Constant, Listed

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
        return cls.of(column.values()) if isinstance(column, Listed) else cls({ITEM: column})

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
            self._items = columns[0] if self.made_by is None else list(map(self.made_by, *columns))
        return self._items

    def column(self, name: str) -> Column:
        """One field of all items."""
        if name in self.columns:
            return self.columns[name]
        return Listed([getattr(item, name) for item in self.items()])

    def where(self, mask: "pa.BooleanArray") -> "Batch[T]":
        """The items for which the mask is true."""
        kept = {name: column.where(mask) for name, column in self.columns.items()}
        if self.made_by is None:
            return Batch.of_column(kept[ITEM])
        return Batch(kept, self.made_by)

    def sliced(self, start: int, count: int) -> "Batch[T]":
        """The items from `start` on, at most `count`."""
        if self.made_by is None and self._items is not None:
            return Batch.of(self._items[start : start + count])
        return Batch({name: column.sliced(start, count) for name, column in self.columns.items()}, self.made_by)

    def replaced(self, name: str, column: Column) -> "Batch[Any]":
        """The same items with other values in one field, as if by `dataclasses.replace` for each."""
        fielded = self.fielded()
        if fielded.made_by is None:
            items: Sequence[Any] = self.items()
            values = zip(items, column.values(), strict=True)
            return Batch.of([dataclasses.replace(item, **{name: value}) for item, value in values])
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
        return Batch({name: Listed([getattr(item, name) for item in self.items()]) for name in names}, made_by)

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


@functools.lru_cache(maxsize=1024)
def whole_by_fields(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, if calling it with them makes an equal object; empty for any other class."""
    makers = [cls for cls in kind.__mro__[:-1] if cls.__module__ not in ("typing", "abc")]
    if not makers or not all("__dataclass_fields__" in vars(cls) for cls in makers) or hasattr(kind, "__post_init__"):
        return ()
    if any(not _is_generated(vars(cls)[name]) for cls in makers for name in vars(cls).keys() & _OWN_WAYS):
        return ()
    fields = tuple(field.name for field in dataclasses.fields(kind))
    room = {name for cls in makers for name in vars(cls).get("__slots__", ())}
    if not room <= {*fields, "__dict__", "__weakref__"} or any(_is_computed(kind, name) for name in fields):
        return ()
    taken = [p for p in inspect.signature(kind).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return fields if tuple(p.name for p in taken) == fields else ()


_OWN_WAYS = {
    "__new__",
    "__init__",
    "__setattr__",
    "__getattribute__",
    "__getstate__",
    "__setstate__",
    "__reduce__",
    "__reduce_ex__",
}


def _is_generated(method: Any) -> bool:
    """Whether `dataclass` wrote the method: in a function of this name since Python 3.11; for slots, in its module."""
    code = getattr(method, "__code__", None)
    return code is not None and (code.co_qualname.startswith("__create_fn__.") or method.__module__ == "dataclasses")


def _is_computed(kind: type, field: str) -> bool:
    """Whether reading the field may give another value than the one it was set to."""
    kept = inspect.getattr_static(kind, field, None)
    return inspect.isdatadescriptor(kept) and not inspect.ismemberdescriptor(kept)
