"""The JSON form of properties and attributes in plans, without secrets and without pickles."""

import base64
import copyreg
import dataclasses
import datetime as dt
import functools
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum
from pathlib import PurePath
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from dagkit.api.secrets import MASK
from dagkit.conf.sources.references import is_secret_name
from dagkit.ground.moved_classes import recorded_module
from dagkit.plan.fingerprint import canonical


def portable(value: Any) -> Any:
    """The value as plain JSON data, equal for equal values in every process. If that fails, its class."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return _plain(value)
    around = _AROUND.get()
    if id(value) in around:
        return {"$again": _name(type(value))}
    if not around:
        # An iterator, so that all values within this one use up the same number.
        _LEFT.set(iter(range(MOST)))
    if len(around) == DEEPEST or next(_LEFT.get(), None) is None:
        return {"class": _name(type(value))}
    within = _AROUND.set(around | {id(value)})
    try:
        return next((form for kinds, form in _FORMS if isinstance(value, kinds)), _object)(value)
    except Exception:  # noqa: BLE001 - reading an author's object may raise anything
        return {"class": _name(type(value))}
    finally:
        _AROUND.reset(within)


DEEPEST = 60
"""The greatest depth of nested values. JSON is read and written by recursion, whose limit is not far above."""

MOST = 100_000
"""The greatest number of values within one. Sharing at every level would otherwise make them exponentially many."""

_UNWRITABLE = re.compile("[\ud800-\udfff]")
"""Lone surrogates, which stand for bytes of a file name that are not text. JSON cannot hold them."""

_AROUND: ContextVar[frozenset[int]] = ContextVar("around", default=frozenset())
"""The identities of the values around the current one, to stop at a value that contains itself."""

_LEFT: ContextVar[Iterator[int]] = ContextVar("left")
"""Yields once for each value that may still be written."""


def _plain(value: Any) -> Any:
    """The value as an instance of a built-in class. Other classes, like those of numpy, inherit from float and str."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        return {"$text": ascii(str(value))} if _UNWRITABLE.search(value) else str(value)
    return value if value is None or isinstance(value, bool) else int(value)


def portable_properties(component: BaseModel, origins: Mapping[str, Any]) -> dict[str, Any]:
    """The properties by name. A value that came from a secret, at any depth, appears as the reference to it.

    A property that a later version of a class has is left out if its `exclude_if` says so. Otherwise ledgers of the
    version before would hold another fingerprint.
    """
    hidden = {path: origin.shown for path, origin in origins.items() if origin.shown is not None}
    shown = {}
    for name, field in type(component).model_fields.items():
        value = getattr(component, name, None)
        if field.exclude_if is None or not field.exclude_if(value):
            shown[name] = _hiding(portable(value), name, hidden)
    return shown


def portable_attributes(settings: Mapping[Any, Any]) -> dict[str, Any]:
    """The attributes that were set, by simple name. A secret appears as the reference to it."""
    return {
        attribute.name: portable(setting.value) if setting.origin.shown is None else setting.origin.shown
        for attribute, setting in sorted(settings.items(), key=lambda s: s[0].name)
    }


def _hiding(value: Any, path: str, hidden: Mapping[str, str]) -> Any:
    """The value with each secret, found by its path, replaced by the reference to it."""
    if path in hidden:
        return hidden[path]
    if isinstance(value, Mapping):
        pairs = value.get("$map")
        if isinstance(pairs, list):  # paths contain keys as text, whatever their type
            return {"$map": [[key, _hiding(part, f"{path}.{key}", hidden)] for key, part in pairs]}
        return {key: _hiding(part, f"{path}.{key}", hidden) for key, part in value.items()}
    if isinstance(value, list):
        return [_hiding(part, f"{path}.{index}", hidden) for index, part in enumerate(value)]
    return value


def _model(value: BaseModel) -> dict[str, Any]:
    fields = {name: _named(name, getattr(value, name, None)) for name in type(value).model_fields}
    extra = {name: portable(more) for name, more in sorted((value.__pydantic_extra__ or {}).items())}
    return {"class": _name(type(value)), **fields, **extra}


def _named(name: Any, value: Any) -> Any:
    """A value under a name, as plain data, masked if it is a secret."""
    return portable(_masked(name, value))


def _masked(name: Any, value: Any) -> Any:
    """A value under a name. Text is masked if its name is that of a secret, as messages mask it."""
    is_secret = isinstance(name, str) and isinstance(value, str | bytes) and bool(value) and is_secret_name(name)
    return MASK if is_secret else value


def _mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    """An object if all keys are distinct texts; else a list of pairs, so that 1 and "1" stay different."""
    pairs = sorted(([portable(k), _named(k, v)] for k, v in value.items()), key=canonical)
    texts = {k for k, _ in pairs if isinstance(k, str)}
    return dict(pairs) if len(texts) == len(pairs) else {"$map": pairs}


def _sequence(value: Sequence[Any]) -> list[Any]:
    """A list, also for a named tuple: its fields are masked by their names."""
    names = getattr(value, "_fields", ()) if isinstance(value, tuple) else ()
    return list(map(_named, names, value)) if names else [portable(part) for part in value]


def _function(value: Any) -> dict[str, str]:
    """A function by its name; a lambda or a local function also by a digest of its code."""
    # All lambdas have one name, and source text changes with a comment. So a change in the body of a named
    # function does not show: give a changed one another name. Bytecode belongs to one version of Python, so plans with
    # lambdas differ between versions.
    name = f"{value.__module__}:{value.__qualname__}"
    return {"$function": name, "digest": _digest(value)} if "<" in name else {"$function": name}


def _method(value: MethodType) -> dict[str, Any]:
    return {"$function": f"{value.__module__}:{value.__qualname__}", "of": portable(value.__self__)}


def _partial(value: "functools.partial[Any]") -> dict[str, Any]:
    return {"$partial": portable(value.func), "args": portable(value.args), "keywords": portable(value.keywords)}


def _digest(function: FunctionType) -> str:
    """A digest of the function's code, its defaults and the values that it closes over."""
    closed_over = [portable(_held(cell)) for cell in function.__closure__ or ()]
    defaults = portable(function.__defaults__), portable(function.__kwdefaults__)
    return hashlib.sha256(repr((_code(function.__code__), *defaults, closed_over)).encode()).hexdigest()[:16]


def _held(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable has no value yet
        return None


def _code(code: CodeType) -> tuple[Any, ...]:
    return code.co_code, tuple(_constant(c) for c in code.co_consts), code.co_names, code.co_varnames


def _constant(value: Any) -> Any:
    """A constant in code. Members of a set are sorted, since their order differs between processes."""
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, frozenset):
        return "set", sorted(repr(member) for member in value)
    return tuple(_constant(member) for member in value) if isinstance(value, tuple) else repr(value)


def _object(value: Any) -> dict[str, Any]:
    """Any other object: by its attributes, or, if it pickles in its own way, by the arguments that rebuild it."""
    if get_origin(value) is not None:  # a type with brackets, or a union
        return {"$class": portable(get_origin(value)), "of": portable(get_args(value))}
    named = {"class": _name(type(value))}
    held = getattr(value, "__dict__", None)
    try:
        made = value.__reduce_ex__(2)
    except Exception:  # noqa: BLE001 - a lock, an open file, or a class that forbids pickling
        return {**named, **_state(held)} if isinstance(held, dict) else named
    if isinstance(made, str):
        return {**named, "made": made}
    state, *items = (*made, None, None, None)[2:5]
    inside = [portable(list(part)) for part in items if part is not None]
    more = {"items": inside} if any(inside) else {}
    is_usual = made[0] is copyreg.__newobj__ and len(made[1]) == 1  # type: ignore[attr-defined]
    if is_usual and isinstance(held, dict) and (state is None or isinstance(state, dict)):
        return {**named, **_state(state or {}), **more}
    if dataclasses.is_dataclass(value) and isinstance(state, list):
        # Python saves a frozen dataclass with slots as the values of its fields, without their names.
        names = [field.name for field in dataclasses.fields(value)]
        state = list(map(_masked, names, state)) if len(names) == len(state) else state
    return {**named, "made": portable((made[1], state)[: len(made) - 1]), **more}


def _state(held: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes by name. Private ones appear only as a digest: they may hold values made from a secret."""
    public = {str(name): _named(name, v) for name, v in sorted(held.items()) if not str(name).startswith("_")}
    private = {str(name): portable(v) for name, v in held.items() if str(name).startswith("_")}
    return {**public, "$private": hashlib.sha256(canonical(private).encode()).hexdigest()[:16]} if private else public


def _name(cls: type) -> str:
    module = recorded_module(cls.__module__, cls.__qualname__)
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


# The first form that fits counts. Members of an Enum may be texts or tuples, too, so it stands first.
_FORMS: tuple[tuple[Any, Any], ...] = (
    (Enum, lambda value: portable(value.value)),
    (SecretStr | SecretBytes | Secret, lambda _: MASK),
    (PurePath, lambda value: portable(str(value))),
    (dt.timedelta, lambda value: value.total_seconds()),
    (dt.date | dt.time, lambda value: value.isoformat()),
    (bytes | bytearray, lambda value: {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}),
    (BaseModel, _model),
    (type, lambda value: {"$class": _name(value)}),
    (ModuleType, lambda value: {"$module": value.__name__}),
    (FunctionType, _function),
    (MethodType, _method),
    (BuiltinFunctionType, _function),
    (MethodDescriptorType, lambda value: {"$function": f"builtins:{value.__qualname__}"}),
    (functools.partial, _partial),
    (re.Pattern, lambda value: {"$pattern": value.pattern, "flags": value.flags}),
    (Mapping, _mapping),
    (set | frozenset, lambda value: sorted((portable(v) for v in value), key=repr)),
    (list | tuple, _sequence),
)
