"""Which properties hold secrets by their types, such as pydantic's `SecretStr`, whatever they are called."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from dagkit.conf.grammar.property_keys import MapKey, PropertyPath
from dagkit.conf.values.conversion import class_in, field_named, is_union, plain

_SECRETS = (SecretStr, SecretBytes, Secret)


def keeps_secret(component: BaseModel, path: PropertyPath | str) -> bool:
    """Whether what the path leads to is a secret by its type, or may hold one; a path without a property does not."""
    steps = path.split(".") if isinstance(path, str) else [_text(step) for step in path.steps]
    wanted: Any = type(component)
    held: Any = component
    for step in steps:
        wanted, held = _below(wanted, held, step)
    return may_hold_secret(wanted) or may_hold_secret(type(held))


def _text(step: Any) -> str:
    return step.text if isinstance(step, MapKey) else str(step)


def _below(wanted: Any, held: Any, step: str) -> tuple[Any, Any]:
    """The type and the value one step below a value, as far as they are known."""
    for model in (type(held), class_in(wanted)):
        found = field_named(model, step) if model is not None and issubclass(model, BaseModel) else None
        if found is not None:
            return found.wanted, getattr(held, found.name, None)
    arguments = get_args(plain(wanted))
    return (arguments[-1] if arguments else None), None


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
    """The types of what an object of this class consists of."""
    if issubclass(cls, BaseModel):
        yield from (field.annotation for field in cls.model_fields.values())
    elif dataclasses.is_dataclass(cls):
        yield from _hints(cls)


def _hints(cls: type) -> Iterable[Any]:
    try:
        return get_type_hints(cls).values()
    except NameError:  # a type that only a type checker knows
        return ()
