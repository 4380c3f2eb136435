"""Payload types: which may be assigned to which, what a type variable stands for, and how a type is spelled.

Payloads are immutable once emitted, so every generic is covariant here: a `list[Dog]` may flow where a `list[Animal]`
is read.
"""

import dataclasses
import enum
import inspect
import itertools
import types
import typing
from collections import ChainMap, Counter, OrderedDict, abc, defaultdict, deque
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar, Union, get_args, get_origin

Bindings = Mapping[TypeVar, Any]
"""The type that each type variable of an operator stands for."""

# Type checkers accept these as subtypes although the classes do not inherit.
_PROMOTIONS: Mapping[type, tuple[type, ...]] = {int: (float, complex), float: (complex,), bytearray: (bytes,)}


def assignable(source: Any, sink: Any) -> bool:
    """Whether every value of type `source` may be read as `sink`. `Any` and free type variables fit every type."""
    source, sink = _plain(source), _plain(sink)
    if Any in (source, sink) or sink is object or source == sink or source in (typing.Never, typing.NoReturn):
        return True
    if any(_is_union(side) and Any in map(_plain, get_args(side)) for side in (source, sink)):
        return True
    if _is_union(source):
        return all(assignable(member, sink) for member in get_args(source))
    if isinstance(source, TypeVar) or isinstance(sink, TypeVar):
        return _agrees_with_variable(source, sink)
    if get_origin(source) is Literal and len(get_args(source)) > 1:
        return all(assignable(Literal[value], sink) for value in get_args(source))
    if _is_union(sink):
        return any(assignable(source, member) for member in get_args(sink))
    if get_origin(source) is Literal:
        (value,) = get_args(source)
        return _in_literal(value, sink) if get_origin(sink) is Literal else assignable(type(value), sink)
    if get_origin(sink) is Literal:
        return bool(_all_values(source)) and all(_in_literal(value, sink) for value in _all_values(source))
    return _class_assignable(source, sink)


def bind(pattern: Any, actual: Any, bindings: dict[TypeVar, Any]) -> None:
    """Bind the type variables of `pattern` to the matching parts of `actual`. Existing bindings stay."""
    pattern, actual = _plain(pattern), _plain(actual)
    if isinstance(pattern, TypeVar):
        if not _has_variables(actual):
            _bind_variable(pattern, actual, bindings)
    elif _is_union(pattern):
        _bind_union(get_args(pattern), actual, bindings)
    elif _has_variables(pattern) and isinstance(class_of(actual), type):
        inner, outer = _arguments(pattern), _arguments_as(actual, class_of(pattern))
        if _is_variadic(inner) and outer:
            inner, outer = inner[:1], (_element(outer),)
        if len(inner) == len(outer):
            for part, given in zip(inner, outer, strict=True):
                bind(part, given, bindings)


def substitute(pattern: Any, bindings: Bindings) -> Any:
    """The pattern with every bound variable replaced. Free variables stay."""
    if isinstance(pattern, TypeVar):
        return bindings.get(pattern, pattern)
    parameters = _parameters(pattern)
    if not any(parameter in bindings for parameter in parameters) or not _has_variables(pattern):
        return pattern
    return pattern[tuple(bindings.get(p, p) for p in parameters)]


def arguments_of_class(kind: type) -> dict[TypeVar, Any]:
    """The type arguments that the author wrote, as in `Filter[Line]()` or `class Lines(Filter[Line])`."""
    bindings: dict[TypeVar, Any] = {}
    for ancestor in kind.__mro__:
        metadata = getattr(ancestor, "__pydantic_generic_metadata__", None) or {}
        origin = metadata.get("origin")
        if origin is not None:
            parameters = origin.__pydantic_generic_metadata__["parameters"]
            for parameter, argument in zip(parameters, metadata["args"], strict=True):
                # A variable of a subclass stands for what that class was given.
                bound = substitute(argument, bindings)
                if not isinstance(bound, TypeVar):
                    bindings.setdefault(parameter, bound)
    return bindings


def is_known(payload: Any) -> bool:
    """Whether a type restricts its values, and has no free variables."""
    return _plain(payload) not in (Any, object) and not _has_variables(_plain(payload))


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
    """The type with its module, so that two classes of one name differ; builtins have no module."""
    module = getattr(payload, "__module__", "")
    if get_origin(payload) is not None or isinstance(payload, TypeVar) or module in ("builtins", "typing", ""):
        return spelled(payload)
    return f"{module}.{spelled(payload)}"


def fields_of_authors(payload: Any) -> tuple[str, ...]:
    """The fields of the record classes in a type that an author wrote, each with its type: `price: float`.

    Without those of classes whose module is dagkit's own: they change with dagkit, and not with the application.
    """
    payload = _plain(payload)
    inner = itertools.chain.from_iterable(map(fields_of_authors, _arguments(payload)))
    cls = class_of(payload)
    if not isinstance(cls, type) or cls.__module__.partition(".")[0] in _OWN_PACKAGES:
        return tuple(inner)
    return (*(f"{name}: {_written(each)}" for name, each in _fields_of_record(cls).items()), *inner)


def _fields_of_record(cls: type) -> Mapping[str, Any]:
    """The fields of a class of records with their annotations; empty for any other class."""
    if dataclasses.is_dataclass(cls):
        return {field.name: field.type for field in dataclasses.fields(cls)}
    if fields := getattr(cls, "__pydantic_fields__", None):  # annotations have constants of the class, too
        return {name: field.annotation for name, field in fields.items()}
    return inspect.get_annotations(cls) if typing.is_typeddict(cls) or hasattr(cls, "_fields") else {}


def _written(annotation: Any) -> str:
    """An annotation, which may be text."""
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else spelled(annotation)


_OWN_PACKAGES = ("dagkit", "dagkit_operators")


def _spelled_argument(argument: Any) -> str:
    if argument is Ellipsis:
        return "..."
    if isinstance(argument, list):
        return f"[{', '.join(_spelled_argument(a) for a in argument)}]"
    return spelled(argument)


def _plain(payload: Any) -> Any:
    """The type without wrappers that do not change its values: Annotated, NewType and aliases.

    A forward reference, written as text, is not resolved and counts as `Any`.
    """
    while True:
        if isinstance(payload, str | typing.ForwardRef):
            return Any
        if payload is typing.LiteralString:
            return str
        if get_origin(payload) in (typing.Required, typing.NotRequired) or get_origin(payload) is Annotated:
            payload = get_args(payload)[0]
        elif isinstance(payload, typing.NewType):
            payload = payload.__supertype__
        elif hasattr(payload, "__value__"):
            payload = payload.__value__
        else:
            return type(None) if payload is None else payload


def _is_union(payload: Any) -> bool:
    return get_origin(payload) in (Union, types.UnionType)


def _of_model(payload: Any) -> Mapping[str, Any]:
    """What pydantic records about a generic model, whose subscripts are classes and not aliases."""
    return (isinstance(payload, type) and getattr(payload, "__pydantic_generic_metadata__", None)) or {}


def class_of(payload: Any) -> Any:
    """The class without its type arguments."""
    return _of_model(payload).get("origin") or get_origin(payload) or payload


def _arguments(payload: Any) -> tuple[Any, ...]:
    """The type arguments. A generic model without any has its own type variables."""
    model = _of_model(payload)
    return get_args(payload) or model.get("args") or model.get("parameters") or ()


def _parameters(payload: Any) -> tuple[Any, ...]:
    return tuple(_of_model(payload).get("parameters", ())) or getattr(payload, "__parameters__", ())


def _has_variables(payload: Any) -> bool:
    """Whether a type argument is a variable. A bare generic has none: its arguments count as `Any`."""
    subscribed = get_origin(payload) is not None or bool(_of_model(payload))
    return isinstance(payload, TypeVar) or bool(_parameters(payload) and subscribed)


def _agrees_with_variable(source: Any, sink: Any) -> bool:
    """Whether the bound or the constraints of a free variable allow the other type."""
    variable, other = (sink, source) if isinstance(sink, TypeVar) else (source, sink)
    if isinstance(other, TypeVar):
        return True
    allowed = variable.__constraints__ or ((variable.__bound__,) if variable.__bound__ is not None else ())
    return not allowed or any(assignable(other, choice) or assignable(choice, other) for choice in allowed)


def _bind_variable(variable: TypeVar, actual: Any, bindings: dict[TypeVar, Any]) -> None:
    """Bind the variable if its bound allows the type, or to the first of its constraints that does; else do nothing."""
    if variable.__constraints__:
        fitting = [choice for choice in variable.__constraints__ if assignable(actual, choice)]
        if fitting:
            bindings.setdefault(variable, fitting[0])
    elif variable.__bound__ is None or assignable(actual, variable.__bound__):
        bindings.setdefault(variable, actual)


def _bind_union(members: tuple[Any, ...], actual: Any, bindings: dict[TypeVar, Any]) -> None:
    """Bind T to int for `T | None` fed by `int | None`: members without variables take their types first."""
    fixed = [m for m in members if not _has_variables(m)]
    given = get_args(actual) if _is_union(actual) else (actual,)
    rest = [g for g in given if not any(assignable(g, m) for m in fixed)]
    if rest:
        for member in members:
            if _has_variables(member):
                bind(member, Union[tuple(rest)], bindings)  # noqa: UP007 - built from a tuple


def _in_literal(value: object, sink: Any) -> bool:
    return any(v == value and type(v) is type(value) for v in get_args(sink))


def _all_values(payload: Any) -> tuple[object, ...]:
    """Every value of the type, if it has finitely many (bool, enums); else empty."""
    if payload is bool:
        return (True, False)
    # Members of a flag can be combined, so it has more values than members.
    counted = isinstance(payload, type) and issubclass(payload, enum.Enum) and not issubclass(payload, enum.Flag)
    return tuple(payload.__members__.values()) if counted else ()


def _class_assignable(source: Any, sink: Any) -> bool:
    source_class, sink_class = class_of(source), class_of(sink)
    if not (isinstance(source_class, type) and isinstance(sink_class, type)):
        return bool(source_class == sink_class)
    if not (_is_subclass(source_class, sink_class) or _is_promoted(source_class, sink_class)):
        return False
    return _arguments_assignable(source, sink)


def _is_promoted(source: type, sink: type) -> bool:
    return any(issubclass(source, narrow) and sink in wider for narrow, wider in _PROMOTIONS.items())


def _is_subclass(source: type, sink: type) -> bool:
    if getattr(sink, "_is_protocol", False):
        return all(_has_member(source, member) for member in _protocol_members(sink))
    try:
        return issubclass(source, sink)
    except TypeError:  # issubclass refuses a TypedDict, which is a dict with known keys
        return typing.is_typeddict(sink) and _typeddict_covers(source, sink)


def _has_member(source: type, member: str) -> bool:
    """Whether instances have the member. Fields of dataclasses and models may only be annotated, not on the class."""
    return hasattr(source, member) or any(member in vars(c).get("__annotations__", {}) for c in source.__mro__)


class _Memberless(Protocol):
    pass


# Names that every protocol class has, so that they are no requirement of the protocol.
_HOUSEKEEPING = frozenset(vars(_Memberless)) | {"__annotations__", "__orig_bases__", "__slots__", "__hash__"}


def _protocol_members(protocol: type) -> set[str]:
    protocols = [c for c in protocol.__mro__ if getattr(c, "_is_protocol", False) and c is not Protocol]
    names = {name for c in protocols for name in (*vars(c), *vars(c).get("__annotations__", {}))}
    return {name for name in names - _HOUSEKEEPING if not name.startswith("_") or name.endswith("__")}


def _typeddict_covers(source: type, sink: type) -> bool:
    if not typing.is_typeddict(source):
        return False
    have, want = source.__annotations__, sink.__annotations__
    if not sink.__required_keys__ <= source.__required_keys__:  # type: ignore[attr-defined]
        return False
    return all(key in have and assignable(have[key], want[key]) for key in want)


def _arguments_assignable(source: Any, sink: Any) -> bool:
    """Whether the arguments fit. Those of a bare generic count as `Any`, and so do arguments that differ in number."""
    if get_origin(source) is get_origin(sink) is tuple:
        return _tuple_assignable(get_args(source), get_args(sink))
    if get_origin(sink) is tuple and _fields(source):
        return _tuple_assignable(_fields(source), get_args(sink))
    wanted, given = _arguments(sink), _arguments_as(source, class_of(sink))
    # `...` stands for any arguments, so only the results are compared.
    if class_of(sink) is abc.Callable and wanted and given and Ellipsis in (wanted[0], given[0]):
        wanted, given = wanted[1:], given[1:]
    if len(wanted) != len(given):
        return True
    return all(assignable(g, w) for g, w in zip(given, wanted, strict=True))


def _arguments_as(source: Any, sink_class: Any) -> tuple[Any, ...]:
    """The arguments that `source` gives the generic `sink_class`: a `class Words(list[str])` is a `Sequence[str]`."""
    source_class, given = class_of(source), _arguments(source)
    if source_class is sink_class:
        return given
    if sink_class in _ONE_PARAMETER and (elements := _elements(source_class, given)):
        return elements
    if sink_class in _TWO_PARAMETERS and source_class in _TWO_PARAMETERS:
        return (*given, int) if source_class is Counter and given else given
    bindings = dict(zip(_parameters(source_class), given, strict=False))
    for base in vars(source_class).get("__orig_bases__", source_class.__bases__):
        if isinstance(class_of(base), type) and class_of(base) not in (Generic, Protocol):
            found = _arguments_as(substitute(base, bindings), sink_class)
            if found:
                return found
    return ()


def _elements(source_class: type, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types of what iterating over a built-in class gives."""
    if source_class in _ELEMENTS:
        return (_ELEMENTS[source_class],)
    if (source_class is tuple and given) or _fields(source_class):
        return (_element(given or _fields(source_class)),)
    if source_class is abc.ItemsView and given:
        return (types.GenericAlias(tuple, given),)
    return given[:1] if source_class in _ONE_PARAMETER | _TWO_PARAMETERS | _FIRST_OF_SEVERAL else ()


def _fields(payload: Any) -> tuple[Any, ...]:
    """The types of the fields of a NamedTuple, in order; empty if they are not annotated."""
    if not (isinstance(payload, type) and issubclass(payload, tuple)):
        return ()
    rows = [c for c in payload.__mro__ if "_fields" in vars(c) and "__annotations__" in vars(c)]
    annotated: Mapping[str, Any] = vars(rows[0])["__annotations__"] if rows else {}
    return tuple(annotated.get(name, Any) for name in getattr(payload, "_fields", ())) if annotated else ()


_ELEMENTS: Mapping[type, type] = {str: str, bytes: int, bytearray: int, memoryview: int, range: int}

_ONE_PARAMETER: frozenset[Any] = frozenset(
    {list, set, frozenset, deque}
    | {abc.Sequence, abc.MutableSequence, abc.Set, abc.MutableSet, abc.Collection, abc.Container}
    | {abc.Iterable, abc.Iterator, abc.Reversible}
)

_TWO_PARAMETERS: frozenset[Any] = frozenset(
    {dict, OrderedDict, defaultdict, Counter, ChainMap, abc.Mapping, abc.MutableMapping}
)

_FIRST_OF_SEVERAL: frozenset[Any] = frozenset({abc.Generator, abc.KeysView, abc.ValuesView})
"""Classes whose first type argument is what iterating gives, whatever the others are."""


def _is_variadic(arguments: tuple[Any, ...]) -> bool:
    return len(arguments) == 2 and arguments[1] is Ellipsis


def _element(arguments: tuple[Any, ...]) -> Any:
    """The type of any element of a tuple with these arguments."""
    return arguments[0] if _is_variadic(arguments) else Union[arguments]  # noqa: UP007 - built from a tuple


def _tuple_assignable(given: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    if _is_variadic(wanted):
        return all(assignable(g, wanted[0]) for g in given if g is not Ellipsis)
    if _is_variadic(given):
        return False
    return len(given) == len(wanted) and all(assignable(g, w) for g, w in zip(given, wanted, strict=True))
