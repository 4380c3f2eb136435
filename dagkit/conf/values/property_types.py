"""The types of properties: the fields of a model, the class of a value, which values a type accepts or keeps secret."""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    ImportString,
    PydanticSchemaGenerationError,
    Secret,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    ValidationError,
)

from dagkit.api.secrets import SecretByName
from dagkit.conf.grammar.names import bare
from dagkit.conf.grammar.property_keys import PropertyPath, Step, text_of
from dagkit.conf.sources.references import is_secret_name
from dagkit.errors import did_you_mean
from dagkit.ground.names_of_apex import FORMER_PROPERTIES, PROPERTIES

IMPORT: Any = ImportString
"""Annotated as Any, since type checkers read it as the type of the imported object."""


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
        wanted = IMPORT if any(isinstance(note, IMPORT) for note in info.metadata) else info.annotation
        found = Field(name, alias if alias and not by_name else name, wanted)
        for spelling in filter(None, (alias, name)):
            fields[bare(spelling)] = found
    former = {bare(name): fields[bare(now)] for name, now in FORMER_PROPERTIES.items() if now in model.model_fields}
    return former | fields


def field_named(model: type[BaseModel], name: str) -> Field | None:
    """The field that a key means, in camelCase or snake_case."""
    return fields_of(model).get(bare(name))


def plain(wanted: Any) -> Any:
    """The type without annotations, and without the None of an optional type.

    One annotation stays: `ImportString`, because pydantic would import what it names.
    """
    if any(isinstance(note, IMPORT) for note in getattr(wanted, "__metadata__", ())):
        return IMPORT
    while get_origin(wanted) is Annotated or hasattr(wanted, "__supertype__") or hasattr(wanted, "__value__"):
        wanted = getattr(wanted, "__supertype__", None) or getattr(wanted, "__value__", None) or get_args(wanted)[0]
    if is_union(wanted):
        members = [member for member in get_args(wanted) if member is not NoneType]
        return plain(members[0]) if len(members) == 1 else wanted
    return wanted


def is_union(wanted: Any) -> bool:
    return get_origin(wanted) in (Union, UnionType)


def class_in(wanted: Any) -> type | None:
    """The class of values of this type; None if there is no single class."""
    wanted = plain(wanted)
    origin = get_origin(wanted) or wanted
    return origin if inspect.isclass(origin) else None


def accepts(member: Any, value: Any) -> bool:
    """Whether pydantic accepts the value for a member of a union."""
    cls = class_in(member)
    # pydantic has no schema for many classes of authors, so their objects are accepted here.
    if cls is not None and isinstance(value, cls):
        return True
    try:
        TypeAdapter(member).validate_python(value)
    except (ValidationError, PydanticSchemaGenerationError):
        return False
    return True


def model_in(owner: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model that a property holds; None if it holds something else, or does not exist."""
    held = owner.model_fields[name].annotation if name in owner.model_fields else None
    return held if inspect.isclass(held) and issubclass(held, BaseModel) else None


def declared_type(owner: type[BaseModel], name: str) -> Any:
    """The type of a property with its constraints."""
    about = owner.model_fields[name]
    return Annotated[about.annotation, about]


def meant_property(owner: type[BaseModel], name: str, otherwise: str = "", value: Any = None) -> str:
    """What to write instead of a property that does not exist.

    That is its counterpart if Apex has it, else the part of that name, or the most similar property. A part that
    refuses the value is not meant; one that is required and accepts it may be.
    """
    counterpart = next((own for apex, own in PROPERTIES.items() if bare(apex) == bare(name)), None)
    if counterpart in owner.model_fields:
        return f"its counterpart is {counterpart!r}"
    for field in owner.model_fields:
        whole = model_in(owner, field)
        if whole is None or name not in whole.model_fields:
            continue
        parts = [name, *(part for part, about in whole.model_fields.items() if about.is_required())]
        part = next((part for part in parts if value is None or accepts(declared_type(whole, part), value)), None)
        if part is not None:
            return f"did you mean '{field}.{part}'? In code: {field}={whole.__name__}({part}=…)"
    return did_you_mean(name, owner.model_fields, otherwise)


# -- walking ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """The result of one step: the step as its class spells it, the declared type, and the current value."""

    step: Step
    wanted: Any
    held: Any


def walk(component: BaseModel, steps: Sequence[Step]) -> Iterator[Place]:
    """The place after each step. Type and value are None where they are not known."""
    wanted, held = type(component), component
    for step in steps:
        place = _below(wanted, held, step)
        yield place
        wanted, held = place.wanted, place.held


def _below(wanted: Any, held: Any, step: Step) -> Place:
    text = text_of(step)
    for model in (type(held), class_in(wanted)):
        found = field_named(model, text) if model is not None and issubclass(model, BaseModel) else None
        if found is not None:
            return Place(found.name, found.wanted, getattr(held, found.name, None))
    arguments = get_args(plain(wanted))
    part = held.get(text) if isinstance(held, Mapping) else None
    return Place(step, arguments[-1] if arguments else None, part)


def as_declared(component: BaseModel, path: PropertyPath) -> PropertyPath:
    """The path with each property spelled as its class declares it: `rotationWindows` is `rotation_windows`."""
    return PropertyPath(tuple(place.step for place in walk(component, path.steps)))


# -- secrets ----------------------------------------------------------------------------------------------------------

_SECRETS = (SecretStr, SecretBytes, Secret)


def keeps_secret(component: BaseModel, path: PropertyPath | str) -> bool:
    """Whether the value at the path is a secret by its type, or may contain one. False if there is no such property."""
    steps = path.split(".") if isinstance(path, str) else path.steps
    *_, last = walk(component, steps)
    for note in getattr(last.wanted, "__metadata__", ()):
        if isinstance(note, SecretByName):
            name = text_of(last.step)
            return is_secret_name(name) or name in note.also or isinstance(last.held, _SECRETS)
    return may_hold_secret(last.wanted) or may_hold_secret(type(last.held))


def may_hold_secret(wanted: Any) -> bool:
    """Whether values of this type, or parts of them, are secrets."""
    # A list, because an annotation need not be hashable.
    seen: list[Any] = []
    waiting = [wanted]
    while waiting:
        part = plain(waiting.pop())
        if part in seen:
            continue
        seen.append(part)
        cls = class_in(part)
        if cls is not None and issubclass(cls, _SECRETS):
            return True
        waiting += get_args(part) if is_union(part) or cls is None or get_args(part) else _parts(cls)
    return False


def _parts(cls: type) -> Iterator[Any]:
    """The types of the parts of an object of this class."""
    if issubclass(cls, BaseModel):
        yield from (field.annotation for field in cls.model_fields.values())
    elif dataclasses.is_dataclass(cls):
        yield from hints_of(cls).values()


def hints_of(cls: type) -> Mapping[str, Any]:
    """The types of the attributes of a class; none if one of them is known to type checkers only."""
    try:
        return get_type_hints(cls)
    except NameError:
        return {}
