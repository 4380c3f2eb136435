"""Objects from columns of their fields.

The `__init__` of a frozen dataclass sets each field by a call, because an assignment would raise. That takes five times
as long as assigning, and longer than all else that happens to a message of a topic. So objects are made by a class that
has the same slots and is not frozen, and then get their own class.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any


def objects_of(made_by: Callable[..., Any], columns: Sequence[Sequence[Any]]) -> list[Any]:
    """Make an object of each row: by calling `made_by`, or in a faster way with the same result."""
    twin = _twin_of(made_by) if isinstance(made_by, type) else None
    if twin is None or len(columns) != len(whole_by_fields(twin)):
        return list(map(made_by, *columns))
    objects = list(map(twin, *columns))
    for item in objects:
        item.__class__ = made_by
    return objects


@functools.lru_cache(maxsize=1024)
def _twin_of(kind: type) -> type | None:
    """A class whose objects can become objects of a frozen dataclass; None if it is no such class."""
    names = whole_by_fields(kind)
    if not names or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined] # mypy does not know dataclasses
        return None
    twin = dataclasses.make_dataclass(kind.__name__, names, slots=True)
    try:
        twin(*names).__class__ = kind
    except TypeError:  # the objects of both classes differ in memory
        return None
    return twin


@functools.lru_cache(maxsize=1024)
def whole_by_fields(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass, if calling it with them makes an equal object; empty for any other class."""
    # What a class does itself when it is made, set or read, an exchange would do a second time: `Loud("HI!")` would
    # arrive as `Loud("HI!!")`.
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
