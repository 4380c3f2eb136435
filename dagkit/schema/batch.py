"""Batches: many items of one payload type at once, column by column.

An operator that takes batches is spared a call and an object for each item. A batch is good until the call that it was
handed to returns: its memory may be used again for the next one.
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

    @classmethod
    def of_column(cls, column: Column) -> "Batch[T]":
        """The batch of the items that a column holds, which stay in it where it is no list."""
        return cls.of(column.values()) if isinstance(column, Listed) else cls({ITEM: column})

    def __len__(self) -> int:
        for column in self.columns.values():
            return len(column)
        return 0

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
            return Batch.of_column(kept[ITEM])
        return Batch(kept, self.made_by)

    def sliced(self, start: int, count: int) -> "Batch[T]":
        """So many items from one on."""
        if self.made_by is None and self._items is not None:
            return Batch.of(self._items[start : start + count])
        return Batch({name: column.sliced(start, count) for name, column in self.columns.items()}, self.made_by)

    def replaced(self, name: str, column: Column) -> "Batch[Any]":
        """The same items with another value in one field, as `dataclasses.replace` makes them one by one."""
        fielded = self.fielded()
        if fielded.made_by is None:
            items: Sequence[Any] = self.items()
            values = zip(items, column.values(), strict=True)
            return Batch.of([dataclasses.replace(item, **{name: value}) for item, value in values])
        return Batch({**fielded.columns, name: column}, fielded.made_by)

    def fielded(self) -> "Batch[T]":
        """The items as columns, one for each field, where all are of one class that its fields make whole."""
        kinds = set(map(type, self.items())) if self.made_by is None else set()
        if len(kinds) != 1:
            return self
        (made_by,) = kinds
        names = whole_by_fields(made_by)
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
def whole_by_fields(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, if calling it with them makes an equal object; none for any other class."""
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
    """Whether `dataclass` wrote the method: inside a function of this name, from Python 3.11 on; for slots, itself."""
    code = getattr(method, "__code__", None)
    return code is not None and (code.co_qualname.startswith("__create_fn__.") or method.__module__ == "dataclasses")


def _is_computed(kind: type, field: str) -> bool:
    """Whether what is read from the field may be something else than what it was set to."""
    kept = inspect.getattr_static(kind, field, None)
    return inspect.isdatadescriptor(kept) and not inspect.ismemberdescriptor(kept)
