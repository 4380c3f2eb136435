"""Text, and what TOML and JSON hold, as values of a type. What pydantic turns into the type by itself is left to it."""

import base64
import collections.abc
import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ImportString, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from dagkit.api.component import Component
from dagkit.conf.grammar.names import bare, snake
from dagkit.conf.values.classes import ClassNotFound, find_class, find_function, find_object
from dagkit.conf.values.object_text import Recipe, Unfit, object_in_json, parse_json, parse_object, split_list
from dagkit.errors import did_you_mean

_IMPORT: Any = ImportString
"""A type checker takes it for the type of what is imported."""


class Field(NamedTuple):
    """A property of a model: its own name, the name its constructor takes, and its type."""

    name: str
    argument: str
    wanted: Any


@cache
def fields_of(model: type[BaseModel]) -> dict[str, Field]:
    """The fields of a model under every spelling, without case and underscores."""
    fields: dict[str, Field] = {}
    by_name = model.model_config.get("populate_by_name") or model.model_config.get("validate_by_name")
    for name, info in model.model_fields.items():
        alias = info.validation_alias if isinstance(info.validation_alias, str) else info.alias
        wanted = _IMPORT if any(isinstance(each, _IMPORT) for each in info.metadata) else info.annotation
        found = Field(name, alias if alias and not by_name else name, wanted)
        for spelling in filter(None, (alias, name)):
            fields[bare(spelling)] = found
    return fields


def field_named(model: type[BaseModel], name: str) -> Field | None:
    """The field that a key means, in camelCase or snake_case."""
    return fields_of(model).get(bare(name))


def plain(wanted: Any) -> Any:
    """The type without annotations, and without the None of an optional one.

    Of the annotations one counts: pydantic would import what an `ImportString` names.
    """
    if any(isinstance(each, _IMPORT) for each in getattr(wanted, "__metadata__", ())):
        return _IMPORT
    while get_origin(wanted) is Annotated or hasattr(wanted, "__supertype__") or hasattr(wanted, "__value__"):
        wanted = getattr(wanted, "__supertype__", None) or getattr(wanted, "__value__", None) or get_args(wanted)[0]
    if is_union(wanted):
        members = [member for member in get_args(wanted) if member is not NoneType]
        return plain(members[0]) if len(members) == 1 else wanted
    return wanted


def is_union(wanted: Any) -> bool:
    return get_origin(wanted) in (Union, UnionType)


def class_in(wanted: Any) -> type | None:
    """The class that values of this type have, as far as there is one."""
    wanted = plain(wanted)
    origin = get_origin(wanted) or wanted
    return origin if inspect.isclass(origin) else None


class CodeRefused(Unfit):
    """A value names code where only data may stand."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What an application brings to the conversion of its settings."""

    codecs: Mapping[type, Callable[[str], Any]] = field(default_factory=dict)
    """Its own converters from text, by class."""
    home: str | None = None
    """The module in which plain class names are looked for first."""
    data_only: bool = False
    """Whether values name no code, as those of requests: no function, no class, and no object by its class."""

    def convert(self, wanted: Any, raw: Any) -> Any:
        """The value as this type; `ValueError` says in a sentence what it wants."""
        wanted = plain(wanted)
        if raw is None or wanted is Any or isinstance(wanted, TypeVar):
            return raw
        if isinstance(raw, Mapping) and (mark := next(iter(raw), None)) in _PORTABLE:
            return _PORTABLE[mark](self, raw)
        if is_union(wanted):
            return self._member(get_args(wanted), raw)
        if get_origin(wanted) is Literal:
            return next((value for value in get_args(wanted) if str(value) == str(raw)), raw)
        cls = class_in(wanted)
        if cls is None:
            return raw
        if cls is _IMPORT:
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
        """As the first member of a union that takes it; a text that may stay one does."""
        if isinstance(raw, str) and str in members:
            return raw
        refusals: list[ValueError] = []
        for member in members:
            try:
                value = self.convert(member, raw)
            except ValueError as refusal:
                refusals.append(refusal)
            else:
                if _accepts(member, value):
                    return value
        if refusals:
            raise refusals[0]
        return raw

    def make(self, recipe: Recipe, kind: type, wants: str | None = None) -> Any:
        """The object of this kind that a recipe describes. Its class is checked before anything of it is called."""
        cls = self.class_of_kind(recipe.class_name, kind, wants)
        if inspect.isabstract(cls):
            raise Unfit(f"{cls.__name__} is abstract; name a class that can be made")
        arguments = () if recipe.argument is None else (recipe.argument,)
        if issubclass(cls, BaseModel):
            return _built(cls, *arguments, **self.arguments(cls, dict(recipe.properties)))
        if dataclasses.is_dataclass(cls):
            return _built(cls, *arguments, **_dataclass_arguments(self, cls, dict(recipe.properties)))
        made = _built(cls, *arguments)
        for name, raw in recipe.properties:
            self.set_on(made, name, raw)
        return made

    def class_of_kind(self, name: str, kind: type, wants: str | None = None) -> type:
        """The class of this name, which is of that kind.

        One that is of the kind by its methods alone, as of a protocol, must be the author's, or a library's.
        """
        cls = find_class(name, self.home, is_called=False, imports=not self.data_only)
        if not _is_of_kind(cls, kind):
            raise Unfit(f"it wants {wants or f'a kind of {kind.__name__}'}, and {cls.__name__} is none")
        if kind is object or kind not in cls.__mro__:
            find_class(name, self.home, imports=not self.data_only)
        return cls

    def arguments(self, model: type[BaseModel], raw: Mapping[str, Any]) -> dict[str, Any]:
        """What the model's constructor takes, from names and values as files write them."""
        arguments: dict[str, Any] = {}
        for name, value in raw.items():
            found = field_named(model, name)
            if found is None:
                raise Unfit(f"{model.__name__} has no property {name!r}; {did_you_mean(name, model.model_fields)}")
            arguments[found.argument] = self.convert(found.wanted, value)
        return arguments

    def refuse_code(self) -> None:
        """Raise `CodeRefused` where values name no code."""
        if self.data_only:
            raise CodeRefused("a request carries data, and names neither a function nor a class")

    def set_on(self, made: Any, name: str, raw: Any) -> None:
        """Set a property of an object that is no model."""
        known = {bare(known): known for known in dir(made) if not known.startswith("_")}
        own = known.get(bare(name))
        if own is None or callable(getattr(type(made), own, None)):
            names = [n for n in known.values() if not callable(getattr(type(made), n, None))]
            raise Unfit(f"{type(made).__name__} has no property {name!r}; {did_you_mean(snake(name), names)}")
        wanted = _hints(type(made)).get(own, type(getattr(made, own)))
        converted = _scalar(wanted, self.convert(wanted, raw))
        try:
            setattr(made, own, converted)
        except AttributeError as refused:
            raise Unfit(f"{name!r} of {type(made).__name__} cannot be set") from refused


def _is_of_kind(cls: type, kind: type) -> bool:
    try:
        return issubclass(cls, kind)
    except TypeError:  # a protocol that cannot be asked at run time
        return False


def _built(cls: type, *arguments: Any, **properties: Any) -> Any:
    try:
        made = cls(*arguments, **properties)
    except ValidationError as invalid:
        raise Unfit(f"{cls.__name__} refuses it: {spoken(invalid)}") from invalid
    except TypeError as refused:
        problem = "takes no argument" if arguments else "cannot be made without an argument"
        raise Unfit(f"{cls.__name__} {problem}: {refused}") from refused
    except Exception as refused:
        raise Unfit(f"{cls.__name__} refuses it: {refused}") from refused
    if isinstance(made, Component) and made.faults:
        raise Unfit(f"{cls.__name__} refuses it: {made.faults[0].path}: {made.faults[0].message}")
    return made


def spoken(invalid: ValidationError) -> str:
    """What pydantic refuses, in a line and without the values, which may be secrets."""
    return "; ".join(
        f"{'.'.join(str(part) for part in error['loc'])}: {error['msg'][:1].lower()}{error['msg'][1:]}".removeprefix(
            ": "
        )
        for error in invalid.errors(include_url=False, include_input=False)
    )


def _hints(cls: type) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except NameError:
        return {}


def _scalar(wanted: Any, value: Any) -> Any:
    """A text as the number or truth value that a plain attribute has; pydantic is not there to do it."""
    if wanted not in (bool, int, float) or not isinstance(value, str):
        return value
    try:
        return TypeAdapter(wanted).validate_python(value.strip())
    except ValidationError as invalid:
        raise Unfit(f"it wants {_SPOKEN_SCALARS[wanted]}") from invalid


_SPOKEN_SCALARS = {bool: "true or false", int: "a whole number", float: "a number"}


def _accepts(member: Any, value: Any) -> bool:
    """Whether a member of a union takes the value, as pydantic judges it."""
    cls = class_in(member)
    if cls is not None and isinstance(value, cls):
        return True
    try:
        TypeAdapter(member).validate_python(value)
    except (ValidationError, PydanticSchemaGenerationError):
        return False
    return True


# -- forms -----------------------------------------------------------------------------------------------------------


def _enum(_: Conversion, cls: Any, __: tuple[Any, ...], raw: Any) -> Any:
    """By value, or by name as Apex writes it."""
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
    """JSON, or `key=value,key=value`."""
    if isinstance(raw, str):
        raw = parse_json(raw) if raw.lstrip().startswith("{") else dict(_pairs(raw))
    if not isinstance(raw, Mapping):
        raise Unfit("it wants key=value pairs with commas, or a JSON object")
    of_key, of_value = arguments if len(arguments) == 2 else (Any, Any)
    return {conversion.convert(of_key, k): conversion.convert(of_value, v) for k, v in raw.items()}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in split_list(text):
        key, equals, value = part.partition("=")
        if not equals:
            raise Unfit(f"it wants key=value pairs with commas, and {part!r} is none")
        yield key.strip(), value.strip()


def _collection(conversion: Conversion, cls: type, arguments: tuple[Any, ...], raw: Any) -> Any:
    """JSON, or values with commas."""
    if isinstance(raw, str):
        raw = parse_json(raw) if raw.lstrip().startswith("[") else split_list(raw)
    if not isinstance(raw, list | tuple | set | frozenset):
        raise Unfit("it wants values with commas, or a JSON list")
    kinds = _kinds(cls, arguments)
    values = [conversion.convert(kinds[min(index, len(kinds) - 1)], value) for index, value in enumerate(raw)]
    try:
        return cls(values) if cls in (set, frozenset, tuple) else values
    except TypeError as unhashable:
        raise Unfit("it wants values that can be told apart, not lists or objects") from unhashable


def _kinds(cls: type, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a for a in arguments if a is not Ellipsis) if cls is tuple and arguments else arguments[:1] or (Any,)


def _class(conversion: Conversion, _: type, arguments: tuple[Any, ...], raw: Any) -> Any:
    bound = class_in(arguments[0]) if arguments else None
    if isinstance(raw, str):
        conversion.refuse_code()
        return find_class(raw, conversion.home) if bound is None else conversion.class_of_kind(raw, bound)
    found = raw
    if bound is not None and not (inspect.isclass(found) and issubclass(found, bound)):
        raise Unfit(f"it wants a kind of {bound.__name__}")
    return found


def _imported(conversion: Conversion, raw: Any) -> Any:
    """What an `ImportString` names; pydantic takes what it is given instead."""
    if not isinstance(raw, str):
        return raw
    conversion.refuse_code()
    return find_object(raw, conversion.home)


def _function(conversion: Conversion, _: type, __: tuple[Any, ...], raw: Any) -> Any:
    """`module:function`, or an object that can be called."""
    if not isinstance(raw, str):
        return raw
    conversion.refuse_code()
    try:
        return find_function(raw, conversion.home)
    except ClassNotFound:
        if ":" not in raw or "=" not in raw:
            raise
    return conversion.make(parse_object(raw), _Callable, "something that can be called")


def _object(conversion: Conversion, cls: type, _: tuple[Any, ...], raw: Any) -> Any:
    """An instance of a class: by its recipe, or of a model by its fields."""
    if _is_left_to_pydantic(cls) or isinstance(raw, cls):
        return raw
    if isinstance(raw, str) and raw.lstrip().startswith("{"):
        raw = parse_json(raw)
    if isinstance(raw, Mapping):
        recipe = object_in_json(raw)
        if recipe is None and issubclass(cls, BaseModel):
            return _built(cls, **conversion.arguments(cls, raw))
        if recipe is None and dataclasses.is_dataclass(cls):
            return _built(cls, **_dataclass_arguments(conversion, cls, raw))
        if recipe is None:
            raise Unfit(f"it wants JSON that names a class, a kind of {cls.__name__}")
    elif isinstance(raw, str):
        if not raw.strip():
            raise Unfit(f"it wants a kind of {cls.__name__}, as Class or Class:argument:property=value")
        recipe = parse_object(raw)
    else:
        return raw
    return _of_kind(cls, recipe, raw, conversion)


def _of_kind(cls: type, recipe: Recipe, raw: Any, conversion: Conversion) -> Any:
    try:
        conversion.refuse_code()
        return conversion.make(recipe, cls)
    except (ClassNotFound, CodeRefused):
        if isinstance(raw, str) and _accepts(cls, raw):
            return raw
        raise


def _dataclass_arguments(conversion: Conversion, cls: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    known = {bare(f.name): f.name for f in dataclasses.fields(cls)}
    unknown = next((name for name in raw if bare(name) not in known), None)
    if unknown is not None:
        raise Unfit(f"{cls.__name__} has no property {unknown!r}; {did_you_mean(unknown, known.values())}")
    hints = _hints(cls)
    named = {known[bare(name)]: value for name, value in raw.items()}
    return {name: _scalar(hints.get(name), conversion.convert(hints.get(name, Any), v)) for name, v in named.items()}


def _is_left_to_pydantic(cls: type) -> bool:
    """Whether a class comes with Python or brings its own validation, so that pydantic knows how to read it."""
    if issubclass(cls, BaseModel):
        return False
    return cls.__module__.partition(".")[0] in sys.stdlib_module_names or hasattr(cls, "__get_pydantic_core_schema__")


def _callable(conversion: Conversion, cls: type, arguments: tuple[Any, ...], raw: Any) -> Any:
    """A function where any callable will do; a class of one's own that can be called is a class first."""
    return (_function if cls is _Callable else _object)(conversion, cls, arguments, raw)


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
    (BaseModel, _object),
    (_Callable, _callable),
    (object, _object),
)


# -- what plans write ------------------------------------------------------------------------------------------------


def _portable_function(conversion: Conversion, raw: Mapping[str, Any]) -> Any:
    conversion.refuse_code()
    name = str(raw["$function"])
    if "<" in name:
        raise Unfit(f"{name} is a function without a name of its own, which no file can name")
    return find_function(name, conversion.home)


_PORTABLE: Mapping[Any, Callable[[Conversion, Mapping[str, Any]], Any]] = {
    "$function": _portable_function,
    "$class": lambda conversion, raw: _class(conversion, type, (), str(raw["$class"])),
    "$bytes": lambda _, raw: base64.b64decode(str(raw["$bytes"])),
}
