"""Adapters: convert values of a type to JSON and back."""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol, TypeVar, get_args, get_origin

from pydantic import JsonValue, PydanticSchemaGenerationError, TypeAdapter

from dagkit.api.tagged import Unwritable, is_tagged, tagged, untagged


class Adapter(Protocol):
    """Converts values of one type to JSON and back."""

    def dump(self, value: Any) -> JsonValue:
        """The value as JSON. Raise Unwritable if it could not be restored unchanged."""

    def load(self, data: JsonValue) -> Any:
        """The value, from the JSON that `dump` returned. It may share members with this JSON: see `copied`."""


def copied(data: JsonValue) -> JsonValue:
    """A copy of saved JSON, to load values from if the JSON stays in use.

    pydantic passes on members without a declared type as they are, and a change of the value would change them.
    """
    if isinstance(data, dict):
        return {name: copied(member) for name, member in data.items()}
    return [copied(member) for member in data] if isinstance(data, list) else data


class Untyped:
    """Converts values by their own class. It also serves numbers and text, because pydantic cannot write every text."""

    def dump(self, value: Any) -> JsonValue:
        data: JsonValue = tagged(value)
        return data

    def load(self, data: JsonValue) -> Any:
        return untagged(data)


class Typed:
    """Converts values of a type that pydantic supports. Members without a declared type are written by their class."""

    def __init__(self, declared: Any) -> None:
        try:
            self._adapter: TypeAdapter[Any] | None = TypeAdapter(declared)
        except PydanticSchemaGenerationError:
            self._adapter = None
        self._open = _is_open(declared)

    @property
    def has_schema(self) -> bool:
        """Whether pydantic supports the type. If not, no value of it can be saved."""
        return self._adapter is not None

    def dump(self, value: Any) -> JsonValue:
        if self._adapter is None:
            raise Unwritable(value)
        data: JsonValue = tagged(value) if self._open else self._dumped(value)
        # Read at once: pydantic writes some values, such as those of a subclass, in a form that it reads as others.
        try:
            restored = self.load(data)
        except (ValueError, TypeError) as error:
            raise Unwritable(value) from error
        if not is_same(restored, value):
            raise Unwritable(value)
        return data

    def load(self, data: JsonValue) -> Any:
        assert self._adapter is not None, "only a type that pydantic supports was written"
        return self._adapter.validate_python(untagged(data) if self._open else data)

    def _dumped(self, value: Any) -> Any:
        assert self._adapter is not None, "dump refuses a type that pydantic does not support"
        try:
            return self._adapter.dump_python(value, mode="json", warnings="none")
        except (ValueError, TypeError) as error:
            raise Unwritable(value) from error


def is_same(restored: Any, value: Any) -> bool:
    """Whether a restored value equals the saved one. Objects without an `__eq__` are compared by their attributes."""
    if type(restored) is not type(value):
        return False
    # Member by member, because `[1] == [True]` in Python, but neither may be restored as the other.
    if isinstance(value, list | tuple):
        return len(restored) == len(value) and all(map(is_same, restored, value))
    if isinstance(value, dict):
        return restored.keys() == value.keys() and all(is_same(restored[key], item) for key, item in value.items())
    if restored == value:
        return True
    if isinstance(value, float):
        return math.isnan(restored) and math.isnan(value)
    return not _defines_equality(value) and is_same(vars(restored), vars(value))


def _defines_equality(value: Any) -> bool:
    return not hasattr(value, "__dict__") or any("__eq__" in vars(cls) for cls in type(value).__mro__[:-1])


def adapter_of(declared: Any) -> Adapter:
    """The adapter of a type. It is cached, because each window asks for it."""
    try:
        hash(declared)
    # An annotation may hold an object that cannot be hashed.
    except TypeError:
        return _adapter(declared)
    return _adapter_once(declared)


def _adapter(declared: Any) -> Adapter:
    untyped = declared in (str, int, float, bool, Any, object) or isinstance(declared, TypeVar)
    return Untyped() if untyped else Typed(declared)


_adapter_once = lru_cache(maxsize=256)(_adapter)


def _is_open(declared: Any) -> bool:
    """Whether values are written with their types, by `tagged`: bytes, and builtin containers of values that need it.

    Values of undeclared type need it, and floats, because JSON has no inf.
    """
    parts = list(_parts(declared))
    return all(part in _BUILTIN or is_tagged(part) for part in parts) and any(part in _TAGGED for part in parts)


def _parts(declared: Any) -> Iterator[Any]:
    """The classes that a type consists of; Any for members whose type is not declared."""
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is None:
        yield Any if declared in _CONTAINERS or isinstance(declared, TypeVar) else declared
    else:
        yield origin
        for argument in arguments:
            yield from _parts(argument)


_CONTAINERS = (list, dict, tuple, set, frozenset)
_TAGGED = (Any, object, bytes, float)
"""Types whose values JSON cannot represent without a tag."""
_BUILTIN = (*_CONTAINERS, *_TAGGED, str, int, float, bool, None, type(None), ...)
