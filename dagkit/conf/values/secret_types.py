"""Properties that are secrets by their types, such as pydantic's `SecretStr`, whatever their names."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from dagkit.api.secrets import SecretByName
from dagkit.conf.grammar.property_keys import MapKey, PropertyPath
from dagkit.conf.sources.references import is_secret_name
from dagkit.conf.values.property_types import class_in, is_union, plain
from dagkit.conf.values.property_walk import walk

_SECRETS = (SecretStr, SecretBytes, Secret)


def keeps_secret(component: BaseModel, path: PropertyPath | str) -> bool:
    """Whether the value at the path is a secret by its type, or may contain one. False if there is no such property."""
    steps = path.split(".") if isinstance(path, str) else path.steps
    *_, last = walk(component, steps)
    for note in getattr(last.wanted, "__metadata__", ()):
        if isinstance(note, SecretByName):
            name = last.step.text if isinstance(last.step, MapKey) else str(last.step)
            return is_secret_name(name) or name in note.also or isinstance(last.held, _SECRETS)
    return may_hold_secret(last.wanted) or may_hold_secret(type(last.held))


def may_hold_secret(wanted: Any) -> bool:
    """Whether values of this type, or parts of them, are secrets."""
    seen: list[Any] = []
    left = [wanted]
    while left:
        one = plain(left.pop())
        if one in seen:
            continue
        seen.append(one)
        cls = class_in(one)
        if cls is not None and issubclass(cls, _SECRETS):
            return True
        left += get_args(one) if is_union(one) or cls is None or get_args(one) else _parts(cls)
    return False


def _parts(cls: type) -> Iterator[Any]:
    """The types of the parts of an object of this class."""
    if issubclass(cls, BaseModel):
        yield from (field.annotation for field in cls.model_fields.values())
    elif dataclasses.is_dataclass(cls):
        yield from _hints(cls)


def _hints(cls: type) -> Iterable[Any]:
    try:
        return get_type_hints(cls).values()
    except NameError:  # a type that only a type checker knows
        return ()
