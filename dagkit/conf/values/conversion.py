"""Convert text, TOML and JSON values to values of a type. Values that pydantic can convert are left to it."""

import base64
import collections.abc
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel

from dagkit.conf.values.classes import ClassNotFound, find_class, find_function, find_object
from dagkit.conf.values.object_making import (
    Unfit,
    class_of_kind,
    make,
    object_of,
    parse_json,
    parse_object,
    refuse_code,
    split_list,
)
from dagkit.conf.values.property_types import IMPORT, accepts, class_in, is_union, plain


@dataclass(frozen=True, slots=True)
class Conversion:
    """The application's part in converting its settings."""

    codecs: Mapping[type, Callable[[str], Any]] = field(default_factory=dict)
    """The application's converters from text, by class."""
    home: str | None = None
    """The module in which class names without a module are looked up first."""
    data_only: bool = False
    """Whether values must be data, as in requests: no functions, classes, or objects by class."""

    def convert(self, wanted: Any, raw: Any) -> Any:
        """Convert the value as far as pydantic does not: numbers and booleans, for example, are only prepared for it.

        Raise `ValueError`, with a sentence for the user, if the value does not fit the type.
        """
        wanted = plain(wanted)
        if raw is None or wanted is Any or isinstance(wanted, TypeVar):
            return raw
        # A plan can be read as an application, and writes functions, classes and bytes as such objects.
        if isinstance(raw, Mapping) and (mark := next(iter(raw), None)) in _PORTABLE:
            return _PORTABLE[mark](self, raw)
        if is_union(wanted):
            return self._member(get_args(wanted), raw)
        if get_origin(wanted) is Literal:
            return next((value for value in get_args(wanted) if str(value) == str(raw)), raw)
        cls = class_in(wanted)
        if cls is None:
            return raw
        if cls is IMPORT:
            return _imported(self, raw)
        if isinstance(raw, str) and cls in self.codecs:
            return self._decoded(cls, raw)
        return next((form(self, cls, get_args(wanted), raw) for bases, form in _FORMS if issubclass(cls, bases)), raw)

    def _decoded(self, cls: type, raw: str) -> Any:
        try:
            return self.codecs[cls](raw)
        except Exception as refused:
            raise Unfit(f"the converter for {cls.__name__} refuses it: {refused}") from refused

    def _member(self, members: tuple[Any, ...], raw: Any) -> Any:
        """Convert to the first member of a union that accepts the value. Text stays text if the union has `str`."""
        if isinstance(raw, str) and str in members:
            return raw
        refusals: list[ValueError] = []
        for member in members:
            try:
                value = self.convert(member, raw)
            except ValueError as refusal:
                refusals.append(refusal)
            else:
                if accepts(member, value):
                    return value
        if refusals:
            raise refusals[0]
        return raw


# -- forms -----------------------------------------------------------------------------------------------------------


def _enum(_: Conversion, cls: Any, __: tuple[Any, ...], raw: Any) -> Any:
    """Convert by value, or by name, as Apex writes it."""
    if isinstance(raw, str):
        for member in cls:
            if raw.strip() in (member.name, str(member.value)):
                return member
    return raw


def _text(_: Conversion, __: type, ___: tuple[Any, ...], raw: Any) -> Any:
    if isinstance(raw, bool):
        return str(raw).lower()
    return str(raw) if isinstance(raw, int | float) else raw


def _number(_: Conversion, __: type, ___: tuple[Any, ...], raw: Any) -> Any:
    return raw.strip() if isinstance(raw, str) else raw


def _mapping(conversion: Conversion, _: type, arguments: tuple[Any, ...], raw: Any) -> Any:
    """Convert JSON, or `key=value,key=value`."""
    if isinstance(raw, str):
        raw = parse_json(raw) if raw.lstrip().startswith("{") else dict(_pairs(raw))
    if not isinstance(raw, Mapping):
        raise Unfit("it must be key=value pairs separated by commas, or a JSON object")
    of_key, of_value = arguments if len(arguments) == 2 else (Any, Any)
    return {conversion.convert(of_key, k): conversion.convert(of_value, v) for k, v in raw.items()}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in split_list(text):
        key, equals, value = part.partition("=")
        if not equals:
            raise Unfit(f"it must be key=value pairs separated by commas, and {part!r} is not a pair")
        yield key.strip(), value.strip()


def _collection(conversion: Conversion, cls: type, arguments: tuple[Any, ...], raw: Any) -> Any:
    """Convert JSON, or values separated by commas."""
    if isinstance(raw, str):
        raw = parse_json(raw) if raw.lstrip().startswith("[") else split_list(raw)
    if not isinstance(raw, list | tuple | set | frozenset):
        raise Unfit("it must be values separated by commas, or a JSON list")
    kinds = _kinds(cls, arguments)
    values = [conversion.convert(kinds[min(index, len(kinds) - 1)], value) for index, value in enumerate(raw)]
    try:
        return cls(values) if cls in (set, frozenset, tuple) else values
    except TypeError as unhashable:
        raise Unfit("its values must be hashable, not lists or objects") from unhashable


def _kinds(cls: type, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a for a in arguments if a is not Ellipsis) if cls is tuple and arguments else arguments[:1] or (Any,)


def _class(conversion: Conversion, _: type, arguments: tuple[Any, ...], raw: Any) -> Any:
    bound = class_in(arguments[0]) if arguments else None
    if isinstance(raw, str):
        refuse_code(conversion)
        return find_class(raw, conversion.home) if bound is None else class_of_kind(conversion, raw, bound)
    found = raw
    if bound is not None and not (inspect.isclass(found) and issubclass(found, bound)):
        raise Unfit(f"it must be a kind of {bound.__name__}")
    return found


def _imported(conversion: Conversion, raw: Any) -> Any:
    """The object that an `ImportString` names. pydantic accepts objects in place of names."""
    if not isinstance(raw, str):
        return raw
    refuse_code(conversion)
    return find_object(raw, conversion.home)


def _function(conversion: Conversion, _: type, __: tuple[Any, ...], raw: Any) -> Any:
    """Find `module:function`, or make a callable object."""
    if not isinstance(raw, str):
        return raw
    refuse_code(conversion)
    try:
        return find_function(raw, conversion.home)
    except ClassNotFound:
        if ":" not in raw or "=" not in raw:
            raise
    return make(conversion, parse_object(raw), _Callable, "something that can be called")


def _callable(conversion: Conversion, cls: type, arguments: tuple[Any, ...], raw: Any) -> Any:
    """A function if any callable is accepted. For a class that is callable, an object of that class."""
    return (_function if cls is _Callable else object_of)(conversion, cls, arguments, raw)


_Callable: Any = collections.abc.Callable
Form = Callable[[Conversion, type, tuple[Any, ...], Any], Any]
_FORMS: tuple[tuple[Any, Form], ...] = (
    (Enum, _enum),
    (str, _text),
    ((int, float), _number),
    ((bytes, bytearray), lambda _, __, ___, raw: raw),
    (type, _class),
    (collections.abc.Mapping, _mapping),
    ((list, tuple, set, frozenset, collections.deque, collections.abc.Sequence, collections.abc.Set), _collection),
    (BaseModel, object_of),
    (_Callable, _callable),
    (object, object_of),
)


# -- what plans write ------------------------------------------------------------------------------------------------


def _portable_function(conversion: Conversion, raw: Mapping[str, Any]) -> Any:
    refuse_code(conversion)
    name = str(raw["$function"])
    # A lambda is called `<lambda>`, and what is defined in a function has `<locals>` in its name.
    if "<" in name:
        raise Unfit(f"{name} has no name that a file could refer to")
    return find_function(name, conversion.home)


_PORTABLE: Mapping[Any, Callable[[Conversion, Mapping[str, Any]], Any]] = {
    "$function": _portable_function,
    "$class": lambda conversion, raw: _class(conversion, type, (), str(raw["$class"])),
    "$bytes": lambda _, raw: base64.b64decode(str(raw["$bytes"])),
}
