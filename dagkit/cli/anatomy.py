"""What can be said of a class of operators without making one: its ports, properties and annotations."""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo

from dagkit.api.application import Module
from dagkit.api.component import Component
from dagkit.api.operators import InputOperator, Operator
from dagkit.api.ports import InputPort, OutputPort, input_ports, output_ports
from dagkit.cli.finding import line_of
from dagkit.errors import Where
from dagkit.plan.portable import portable
from dagkit.schema import spelled


@dataclass(frozen=True, slots=True)
class PortSheet:
    """A port as its class declares it."""

    name: str
    side: str
    payload: str
    required: bool
    main: bool
    schema_required: bool


@dataclass(frozen=True, slots=True)
class PropertySheet:
    """A property as its class declares it."""

    name: str
    type: str
    required: bool
    default: Any
    constraints: tuple[str, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class Anatomy:
    """An operator or a module, as `describe` shows it."""

    name: str
    class_: str
    kind: str
    role: str
    doc: str
    where: Where | None
    ports: tuple[PortSheet, ...]
    properties: tuple[PropertySheet, ...]
    annotations: Mapping[str, bool]


def anatomy_of(component: type[Component]) -> Anatomy:
    """Everything that the class says of itself."""
    docs = _field_docs(component)
    return Anatomy(
        name=component.__name__,
        class_=f"{component.__module__}.{component.__qualname__}",
        kind=component.declared_kind(),
        role=_role(component),
        doc=inspect.cleandoc(component.__dict__.get("__doc__") or ""),
        where=line_of(component),
        ports=(*map(_port, input_ports(component).values()), *map(_port, output_ports(component).values())),
        properties=tuple(_property(name, field, docs) for name, field in component.model_fields.items()),
        annotations=_annotations(component),
    )


def _role(component: type[Component]) -> str:
    roles = ((Module, "module"), (InputOperator, "input operator"), (Operator, "operator"))
    return next((role for base, role in roles if issubclass(component, base)), "application")


def _annotations(component: type[Component]) -> Mapping[str, bool]:
    names = ("partitionable", "checkpointable_within_app_window", "stateless")
    return {name: bool(getattr(component, name)) for name in names} if issubclass(component, Operator) else {}


def _port(port: InputPort[Any] | OutputPort[Any]) -> PortSheet:
    side = "input" if isinstance(port, InputPort) else "output"
    return PortSheet(port.name, side, spelled(port.payload), port.required, port.main, port.schema_required)


def _property(name: str, field: FieldInfo, docs: Mapping[str, str]) -> PropertySheet:
    return PropertySheet(
        name=name,
        type=spelled(field.annotation),
        required=field.is_required(),
        default=None if field.is_required() else portable(_default(field)),
        constraints=tuple(_constraint(each) for each in field.metadata),
        doc=" ".join((field.description or docs.get(name, "")).split()),
    )


def _default(field: FieldInfo) -> Any:
    """The default, or nothing to show where it follows from the other properties."""
    if field.default_factory_takes_validated_data:
        return None
    return field.get_default(call_default_factory=True)


_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "multiple_of": "a multiple of"}


def _constraint(constraint: Any) -> str:
    """A constraint as people write it: `> 0`, `min_length 1`."""
    said = {
        name: getattr(constraint, name)
        for name in getattr(constraint, "__slots__", None) or vars(type(constraint)).get("__dataclass_fields__", ())
        if getattr(constraint, name, None) is not None
    }
    if not said:
        return repr(constraint)
    return " and ".join(f"{_SIGNS.get(name, name)} {value}" for name, value in said.items())


def _field_docs(component: type) -> dict[str, str]:
    """The string below each field, as the bases and then the class itself have it."""
    docs: dict[str, str] = {}
    for ancestor in reversed(component.__mro__):
        if issubclass(ancestor, Component):
            docs.update(_strings_below_fields(ancestor))
    return docs


def _strings_below_fields(component: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(component)))
    except (OSError, TypeError, SyntaxError):  # a class made in a notebook or by a call has no source
        return {}
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    return {
        above.target.id: below.value.value
        for above, below in itertools.pairwise(body)
        if isinstance(above, ast.AnnAssign)
        and isinstance(above.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }
