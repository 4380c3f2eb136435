"""Objects as text, `Class[:argument[:property=value]…]` separated by commas, or as JSON that names a class.

The class is checked before it is called.
"""

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, TypeAdapter, ValidationError

from dagkit.api.component import Component
from dagkit.conf.grammar.names import bare, snake
from dagkit.conf.sources.user_files import TOO_DEEP, is_too_deep
from dagkit.conf.values.classes import ClassNotFound, find_class
from dagkit.conf.values.property_types import accepts, field_named, hints_of
from dagkit.errors import did_you_mean

CLASS_MARKS = ("@class", "class")
"""The keys under which JSON names the class of an object. Apex writes the first, plans the second."""


class Unfit(ValueError):
    """A value that does not fit. The message continues a sentence after "KEY is VALUE:"."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make an object: the name of its class, the argument of its constructor, and its properties."""

    class_name: str
    argument: str | None = None
    """None: call the constructor without arguments. A space is an argument, an empty text is not."""
    properties: tuple[tuple[str, Any], ...] = ()


_COLON = re.compile(r"(?<!\\):")
_COMMA = re.compile(r"(?<!\\),")
_ESCAPED = re.compile(r"\\([:,])")
_MODULE = re.compile(r"[A-Za-z_][\w.]*")
_CLASS = re.compile(r"[A-Z]\w*")


def parse_object(text: str) -> Recipe:
    """Parse a recipe. In values, colons and commas are escaped with a backslash."""
    class_name, *rest = (_ESCAPED.sub(r"\1", part) for part in _COLON.split(text))
    if not class_name.strip():
        raise Unfit("it must have the name of a class before the first colon")
    if _is_module_with_class(class_name, rest):
        class_name, *rest = f"{class_name}:{rest[0]}", *rest[1:]
    argument = rest[0] if rest and rest[0] else None
    properties = []
    for part in rest[1:]:
        name, equals, value = part.partition("=")
        if part and not (equals and name.strip()):
            raise Unfit(f"{part!r} is not property=value")
        if part:
            properties.append((name.strip(), value))
    return Recipe(class_name.strip(), argument, tuple(properties))


def _is_module_with_class(first: str, rest: list[str]) -> bool:
    """Whether the first colon is part of a name, as in `package.module:Class`: a lower-case word before a class."""
    last = first.rpartition(".")[2]
    return bool(rest and _MODULE.fullmatch(first) and last.islower() and _CLASS.fullmatch(rest[0]))


def split_list(text: str) -> list[str]:
    """The parts between commas, without surrounding spaces. An empty text has none."""
    return [_ESCAPED_COMMA.sub(",", part.strip()) for part in _COMMA.split(text)] if text.strip() else []


_ESCAPED_COMMA = re.compile(r"\\,")


def parse_objects(text: str) -> list[Recipe]:
    """Parse recipes that are separated by commas."""
    return [parse_object(part) for part in split_list(text)]


def object_in_json(data: Mapping[str, Any]) -> Recipe | None:
    """The recipe in a JSON object: `{"@class": name, …}`, `{"class": name, …}` or `{name: {…}}`; None otherwise."""
    for mark in CLASS_MARKS:
        if isinstance(data.get(mark), str):
            return Recipe(data[mark], None, tuple((k, v) for k, v in data.items() if k != mark))
    if len(data) == 1:
        ((name, properties),) = data.items()
        if isinstance(properties, Mapping) and _CLASS.fullmatch(re.split(r"[.$:]", name)[-1]):
            return Recipe(name, None, tuple(properties.items()))
    return None


def parse_json(text: str) -> Any:
    """Parse JSON. Raise `Unfit` if the text is not JSON."""
    try:
        value = json.loads(text)
    except ValueError as malformed:
        raise Unfit(f"it must be JSON: {malformed}") from malformed
    except RecursionError as malformed:
        raise Unfit(TOO_DEEP) from malformed
    if is_too_deep(value):
        raise Unfit(TOO_DEEP)
    return value


# -- making ------------------------------------------------------------------------------------------------------------


class Converting(Protocol):
    """Converts the values for an object, and knows where to look up its class."""

    @property
    def home(self) -> str | None: ...
    @property
    def data_only(self) -> bool: ...
    def convert(self, wanted: Any, raw: Any) -> Any: ...


class CodeRefused(Unfit):
    """A value names code where only data is allowed."""


def refuse_code(conversion: Converting) -> None:
    """Raise `CodeRefused` if values must be data."""
    if conversion.data_only:
        raise CodeRefused("a request may contain data only, no functions or classes")


def object_of(conversion: Converting, cls: type, _: tuple[Any, ...], raw: Any) -> Any:
    """An instance of a class, from a recipe, or from the fields of a model."""
    if _is_left_to_pydantic(cls) or isinstance(raw, cls):
        return raw
    if isinstance(raw, str) and raw.lstrip().startswith("{"):
        raw = parse_json(raw)
    if isinstance(raw, Mapping):
        recipe = object_in_json(raw)
        if recipe is None and issubclass(cls, BaseModel):
            return _built(cls, **arguments_of(conversion, cls, raw))
        if recipe is None and dataclasses.is_dataclass(cls):
            return _built(cls, **_dataclass_arguments(conversion, cls, raw))
        if recipe is None:
            raise Unfit(f"it must be JSON that names a class, a kind of {cls.__name__}")
    elif isinstance(raw, str):
        if not raw.strip():
            raise Unfit(f"it must be a kind of {cls.__name__}, as Class or Class:argument:property=value")
        recipe = parse_object(raw)
    else:
        return raw
    return _of_kind(cls, recipe, raw, conversion)


def _of_kind(cls: type, recipe: Recipe, raw: Any, conversion: Converting) -> Any:
    try:
        refuse_code(conversion)
        return make(conversion, recipe, cls)
    except (ClassNotFound, CodeRefused):
        # The text may be a value that pydantic reads, and no name of a class.
        if isinstance(raw, str) and accepts(cls, raw):
            return raw
        raise


def make(conversion: Converting, recipe: Recipe, kind: type, wants: str | None = None) -> Any:
    """Make the object that a recipe describes. Its class must be of this kind, which is checked before calling it."""
    cls = class_of_kind(conversion, recipe.class_name, kind, wants)
    if inspect.isabstract(cls):
        raise Unfit(f"{cls.__name__} is abstract; name a class that can be made")
    arguments = () if recipe.argument is None else (recipe.argument,)
    if issubclass(cls, BaseModel):
        return _built(cls, *arguments, **arguments_of(conversion, cls, dict(recipe.properties)))
    if dataclasses.is_dataclass(cls):
        return _built(cls, *arguments, **_dataclass_arguments(conversion, cls, dict(recipe.properties)))
    instance = _built(cls, *arguments)
    for name, raw in recipe.properties:
        set_on(conversion, instance, name, raw)
    return instance


def class_of_kind(conversion: Converting, name: str, kind: type, wants: str | None = None) -> type:
    """The class of this name. Raise `Unfit` unless it is of the given kind.

    A class that does not inherit from the kind, as with protocols, must belong to the author or to a library.
    """
    cls = find_class(name, conversion.home, is_called=False, imports=not conversion.data_only)
    if not _is_of_kind(cls, kind):
        raise Unfit(f"it must be {wants or f'a kind of {kind.__name__}'}, and {cls.__name__} is not one")
    # A subclass of the kind is harmless to call. `object` and protocols fit any class, so its origin decides.
    if kind is object or kind not in cls.__mro__:
        find_class(name, conversion.home, imports=not conversion.data_only)
    return cls


def arguments_of(conversion: Converting, model: type[BaseModel], raw: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments for a model's constructor, from names and values as files spell them."""
    arguments: dict[str, Any] = {}
    for name, value in raw.items():
        found = field_named(model, name)
        if found is None:
            raise Unfit(f"{model.__name__} has no property {name!r}; {did_you_mean(name, model.model_fields)}")
        arguments[found.argument] = conversion.convert(found.wanted, value)
    return arguments


def set_on(conversion: Converting, target: Any, name: str, raw: Any) -> None:
    """Set a property of an object that is not a model."""
    known = {bare(known): known for known in dir(target) if not known.startswith("_")}
    own = known.get(bare(name))
    if own is None or callable(getattr(type(target), own, None)):
        names = [n for n in known.values() if not callable(getattr(type(target), n, None))]
        raise Unfit(f"{type(target).__name__} has no property {name!r}; {did_you_mean(snake(name), names)}")
    wanted = hints_of(type(target)).get(own, type(getattr(target, own)))
    converted = _scalar(wanted, conversion.convert(wanted, raw))
    try:
        setattr(target, own, converted)
    except AttributeError as refused:
        raise Unfit(f"{name!r} of {type(target).__name__} cannot be set") from refused


def _dataclass_arguments(conversion: Converting, cls: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    known = {bare(f.name): f.name for f in dataclasses.fields(cls)}
    unknown = next((name for name in raw if bare(name) not in known), None)
    if unknown is not None:
        raise Unfit(f"{cls.__name__} has no property {unknown!r}; {did_you_mean(unknown, known.values())}")
    hints = hints_of(cls)
    named = {known[bare(name)]: value for name, value in raw.items()}
    return {name: _scalar(hints.get(name), conversion.convert(hints.get(name, Any), v)) for name, v in named.items()}


def _is_of_kind(cls: type, kind: type) -> bool:
    try:
        return issubclass(cls, kind)
    except TypeError:  # a protocol that is not checkable at run time
        return False


def _built(cls: type, *arguments: Any, **properties: Any) -> Any:
    try:
        instance = cls(*arguments, **properties)
    except ValidationError as invalid:
        raise Unfit(f"{cls.__name__} refuses it: {spoken(invalid)}") from invalid
    except TypeError as refused:
        problem = "takes no argument" if arguments else "cannot be made without an argument"
        raise Unfit(f"{cls.__name__} {problem}: {refused}") from refused
    except Exception as refused:
        raise Unfit(f"{cls.__name__} refuses it: {refused}") from refused
    # The constructor of a component never raises for invalid properties: it keeps them as faults.
    if isinstance(instance, Component) and instance.faults:
        raise Unfit(f"{cls.__name__} refuses it: {instance.faults[0].path}: {instance.faults[0].message}")
    return instance


def spoken(invalid: ValidationError) -> str:
    """The reasons of pydantic in one line, without the values, which may be secrets."""
    return "; ".join(
        f"{'.'.join(str(part) for part in error['loc'])}: {error['msg'][:1].lower()}{error['msg'][1:]}".removeprefix(
            ": "
        )
        for error in invalid.errors(include_url=False, include_input=False)
    )


def _scalar(wanted: Any, value: Any) -> Any:
    """Convert text to a number or a truth value for an attribute of a class without pydantic."""
    if wanted not in (bool, int, float) or not isinstance(value, str):
        return value
    try:
        return TypeAdapter(wanted).validate_python(value.strip())
    except ValidationError as invalid:
        raise Unfit(f"it must be {_SPOKEN_SCALARS[wanted]}") from invalid


_SPOKEN_SCALARS = {bool: "true or false", int: "a whole number", float: "a number"}


def _is_left_to_pydantic(cls: type) -> bool:
    """Whether pydantic can read values of the class: it belongs to Python, or brings its own validation."""
    if issubclass(cls, BaseModel):
        return False
    return cls.__module__.partition(".")[0] in sys.stdlib_module_names or hasattr(cls, "__get_pydantic_core_schema__")
