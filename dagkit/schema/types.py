"""Payload types: which may be assigned to which, what a type variable stands for, and how a type is spelled.

Payloads are immutable once emitted, so every generic is covariant here: a `list[Dog]` may flow where a `list[Animal]`
is read.
"""

import types
import typing
from collections import abc, deque
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

Bindings = Mapping[TypeVar, Any]
"""What each type variable of an operator stands for."""

# The numeric tower that every type checker grants although the classes do not inherit.
_PROMOTIONS: Mapping[type, tuple[type, ...]] = {int: (float, complex), float: (complex,), bytearray: (bytes,)}


def assignable(source: Any, sink: Any) -> bool:
    """Whether every value of type `source` may be read as `sink`; `Any` and free type variables agree with all."""
    source, sink = _plain(source), _plain(sink)
    if Any in (source, sink) or sink is object or source == sink:
        return True
    if _is_union(source):
        return all(assignable(member, sink) for member in get_args(source))
    if isinstance(source, TypeVar) or isinstance(sink, TypeVar):
        return _agrees_with_variable(source, sink)
    if _is_union(sink):
        return any(assignable(source, member) for member in get_args(sink))
    if get_origin(source) is Literal:
        return all(assignable(type(value), sink) or _in_literal(value, sink) for value in get_args(source))
    if get_origin(sink) is Literal:
        return False
    return _class_assignable(source, sink)


def bind(pattern: Any, actual: Any, bindings: dict[TypeVar, Any]) -> None:
    """Learn from `actual` what the type variables of `pattern` stand for; what is bound already stays."""
    pattern, actual = _plain(pattern), _plain(actual)
    if isinstance(pattern, TypeVar):
        if not _has_variables(actual):
            bindings.setdefault(pattern, actual)
        return
    inner, outer = get_args(pattern), get_args(actual)
    if _is_union(pattern):
        _bind_union(inner, actual, bindings)
    elif len(inner) == len(outer):
        for part, given in zip(inner, outer, strict=True):
            bind(part, given, bindings)


def substitute(pattern: Any, bindings: Bindings) -> Any:
    """The pattern with every bound variable replaced; a free one stays."""
    if isinstance(pattern, TypeVar):
        return bindings.get(pattern, pattern)
    parameters = getattr(pattern, "__parameters__", ())
    if not parameters or not hasattr(pattern, "__getitem__") or isinstance(pattern, type):
        return pattern
    return pattern[tuple(bindings.get(p, p) for p in parameters)]


def spelled(payload: Any) -> str:
    """The type as an author would write it, without module paths."""
    if isinstance(payload, TypeVar):
        return payload.__name__
    if payload is None or payload is type(None):
        return "None"
    if _is_union(payload):
        return " | ".join(spelled(member) for member in get_args(payload))
    origin = get_origin(payload)
    if origin is Annotated:
        return spelled(get_args(payload)[0])
    if origin is Literal:
        return f"Literal[{', '.join(repr(value) for value in get_args(payload))}]"
    if origin is not None:
        return f"{spelled(origin)}[{', '.join(_spelled_argument(argument) for argument in get_args(payload))}]"
    return getattr(payload, "__qualname__", None) or getattr(payload, "__name__", None) or repr(payload)


def identity(payload: Any) -> str:
    """The type with its module, so that two classes of one name are told apart; builtins stay bare."""
    module = getattr(payload, "__module__", "")
    if get_origin(payload) is not None or isinstance(payload, TypeVar) or module in ("builtins", "typing", ""):
        return spelled(payload)
    return f"{module}.{spelled(payload)}"


def _spelled_argument(argument: Any) -> str:
    if argument is Ellipsis:
        return "..."
    if isinstance(argument, list):
        return f"[{', '.join(_spelled_argument(a) for a in argument)}]"
    return spelled(argument)


def _plain(payload: Any) -> Any:
    """The type without what does not change its values: Annotated, NewType, Final and aliases."""
    while True:
        if get_origin(payload) is Annotated:
            payload = get_args(payload)[0]
        elif isinstance(payload, typing.NewType):
            payload = payload.__supertype__
        elif hasattr(payload, "__value__"):
            payload = payload.__value__
        else:
            return type(None) if payload is None else payload


def _is_union(payload: Any) -> bool:
    return get_origin(payload) in (Union, types.UnionType)


def _has_variables(payload: Any) -> bool:
    return isinstance(payload, TypeVar) or bool(getattr(payload, "__parameters__", ()) and get_origin(payload))


def _agrees_with_variable(source: Any, sink: Any) -> bool:
    """A free variable takes whatever its bound or its constraints allow."""
    variable, other = (sink, source) if isinstance(sink, TypeVar) else (source, sink)
    if isinstance(other, TypeVar):
        return True
    allowed = variable.__constraints__ or ((variable.__bound__,) if variable.__bound__ is not None else ())
    return not allowed or any(assignable(other, choice) or assignable(choice, other) for choice in allowed)


def _bind_union(members: tuple[Any, ...], actual: Any, bindings: dict[TypeVar, Any]) -> None:
    """`T | None` fed by `int | None` learns that T is int: what the plain members take is not T's."""
    fixed = [m for m in members if not _has_variables(m)]
    given = get_args(actual) if _is_union(actual) else (actual,)
    rest = [g for g in given if not any(assignable(g, m) for m in fixed)]
    if rest:
        for member in members:
            if _has_variables(member):
                bind(member, Union[tuple(rest)], bindings)  # noqa: UP007 - built from a tuple


def _in_literal(value: object, sink: Any) -> bool:
    return get_origin(sink) is Literal and any(v == value and type(v) is type(value) for v in get_args(sink))


def _class_assignable(source: Any, sink: Any) -> bool:
    source_class, sink_class = get_origin(source) or source, get_origin(sink) or sink
    if not (isinstance(source_class, type) and isinstance(sink_class, type)):
        return bool(source_class == sink_class)
    if not (_is_subclass(source_class, sink_class) or sink_class in _PROMOTIONS.get(source_class, ())):
        return False
    return _arguments_assignable(source, sink, source_class, sink_class)


def _is_subclass(source: type, sink: type) -> bool:
    if getattr(sink, "_is_protocol", False):
        return all(hasattr(source, member) for member in _protocol_members(sink))
    try:
        return issubclass(source, sink)
    except TypeError:  # a TypedDict refuses the question: it is a dict with given keys
        return typing.is_typeddict(sink) and _typeddict_covers(source, sink)


def _protocol_members(protocol: type) -> set[str]:
    own = (
        set(vars(c)) | set(getattr(c, "__annotations__", {}))
        for c in protocol.__mro__
        if getattr(c, "_is_protocol", False)
    )
    return {
        name
        for names in own
        for name in names
        if not name.startswith("_") or name in ("__iter__", "__len__", "__call__")
    }


def _typeddict_covers(source: type, sink: type) -> bool:
    have, want = getattr(source, "__annotations__", {}), getattr(sink, "__annotations__", {})
    return all(key in have and assignable(have[key], want[key]) for key in want)


def _arguments_assignable(source: Any, sink: Any, source_class: type, sink_class: type) -> bool:
    """Whether the arguments agree; a bare generic on either side stands for `Any`, and so does an unlike arity."""
    wanted = get_args(sink)
    given = get_args(source) if source_class is sink_class else _arguments_through_bases(source, sink_class)
    if not wanted or not given:
        return True
    if sink_class is tuple:
        return _tuple_assignable(given, wanted)
    if len(wanted) != len(given):
        return True
    return all(assignable(g, w) for g, w in zip(given, wanted, strict=True))


def _arguments_through_bases(source: Any, sink_class: type) -> tuple[Any, ...]:
    """The arguments that `source` gives the generic base `sink_class`, so that `class Words(list[str])` is known."""
    source_class = get_origin(source) or source
    bindings = dict(zip(getattr(source_class, "__parameters__", ()), get_args(source), strict=False))
    for base in getattr(source_class, "__orig_bases__", ()):
        filled = substitute(base, bindings)
        if get_origin(filled) is sink_class:
            return get_args(filled)
        deeper = _arguments_through_bases(filled, sink_class)
        if deeper:
            return deeper
    return get_args(source) if source_class in _ONE_PARAMETER and sink_class in _ONE_PARAMETER else ()


_ONE_PARAMETER: frozenset[Any] = frozenset(
    {list, set, frozenset, deque, abc.Sequence, abc.Iterable, abc.Collection, abc.Set, abc.MutableSequence}
)


def _tuple_assignable(given: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    if len(wanted) == 2 and wanted[1] is Ellipsis:
        return all(assignable(g, wanted[0]) for g in given if g is not Ellipsis)
    if len(given) == 2 and given[1] is Ellipsis:
        return False
    return len(given) == len(wanted) and all(assignable(g, w) for g, w in zip(given, wanted, strict=True))
