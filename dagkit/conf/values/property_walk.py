"""Walk from a component along the steps of a property's path, as far as types are known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel

from dagkit.conf.grammar.property_keys import MapKey, PropertyPath, Step
from dagkit.conf.values.property_types import class_in, field_named, plain


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
    text = step.text if isinstance(step, MapKey) else str(step)
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
