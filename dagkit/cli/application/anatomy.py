"""Describes an operator's class without making an instance: its ports, properties and annotations."""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, InstanceOf
from pydantic.fields import FieldInfo

from dagkit.api.application import Module
from dagkit.api.component import Component
from dagkit.api.metrics import MetricField, declared_metrics
from dagkit.api.operators import InputOperator, Operator
from dagkit.api.partitioning import Partitioner
from dagkit.api.ports import InputPort, OutputPort, input_ports, output_ports
from dagkit.cli.application.finding import line_of
from dagkit.errors import Where
from dagkit.plan.portable import portable
from dagkit.schema import spelled


@dataclass(frozen=True, slots=True)
class PortSheet:
    """A port, as the class declares it."""

    name: str
    side: str
    payload: str
    required: bool
    main: bool
    schema_required: bool
    key: str | None = None
    """The part of an item that chooses the partition."""
    unifier: str | None = None
    """The operator that merges the items of several partitions."""


@dataclass(frozen=True, slots=True)
class PropertySheet:
    """A property, as the class declares it."""

    name: str
    type: str
    required: bool
    default: Any
    constraints: tuple[str, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class MetricSheet:
    """A metric, as the class declares it."""

    name: str
    aggregators: tuple[str, ...]
    """The functions that combine the values of all partitions."""
    doc: str


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The description of an operator or a module that `describe` shows."""

    name: str
    class_: str
    kind: str
    role: str
    doc: str
    where: Where | None
    ports: tuple[PortSheet, ...]
    properties: tuple[PropertySheet, ...]
    metrics: tuple[MetricSheet, ...]
    annotations: Mapping[str, bool]


def anatomy_of(component: type[Component]) -> Anatomy:
    """Everything that the class declares."""
    return Anatomy(
        name=component.__name__,
        class_=f"{component.__module__}.{component.__qualname__}",
        kind=component.declared_kind(),
        role=_role(component),
        doc=inspect.cleandoc(component.__dict__.get("__doc__") or ""),
        where=line_of(component),
        ports=(*map(_port, input_ports(component).values()), *map(_port, output_ports(component).values())),
        properties=tuple(_properties(component)),
        metrics=tuple(_metrics(component)),
        annotations=_annotations(component),
    )


def _role(component: type[Component]) -> str:
    roles = ((Module, "module"), (InputOperator, "input operator"), (Operator, "operator"))
    return next((role for base, role in roles if issubclass(component, base)), "application")


def _annotations(component: type[Component]) -> Mapping[str, bool]:
    names = ("partitionable", "checkpointable_within_app_window", "stateless")
    if not issubclass(component, Operator):
        return {}
    annotations = {name: bool(getattr(component, name)) for name in names}
    return {**annotations, "partitions_itself": issubclass(component, Partitioner)}


def _port(port: InputPort[Any] | OutputPort[Any]) -> PortSheet:
    sheet = (spelled(port.payload), port.required, port.main, port.schema_required)
    if isinstance(port, InputPort):
        return PortSheet(port.name, "input", *sheet, key=port.keyed_by or _called(port.key))
    return PortSheet(port.name, "output", *sheet, unifier=port.unified_by or _called(port.unifier))


def _metrics(component: type[Component]) -> Iterator[MetricSheet]:
    docs = _field_docs(component)
    for metric in declared_metrics(component).values():
        by = ("sum",) if metric.aggregators is None else tuple(_called(each) or "" for each in metric.aggregators)
        declared = getattr(component, metric.name)
        doc = docs.get(metric.name, "") if isinstance(declared, MetricField) else inspect.getdoc(declared) or ""
        yield MetricSheet(metric.name, by, doc.partition("\n")[0])


def _called(function: Any) -> str | None:
    """The name of a class or function; for a lambda, its line."""
    if function is None:
        return None
    name = getattr(function, "__name__", None) or repr(function)
    return f"the function at {line_of(function)}" if name == "<lambda>" else name


def _properties(component: type[BaseModel], above: str = "", around: tuple[type, ...] = ()) -> Iterator[PropertySheet]:
    """Every field under its key, each followed by the fields of the model that it holds.

    Those that must be set come first, those that control the number of partitions last, and those of a class before
    those of its bases.
    """
    docs = _field_docs(component)
    bases = [base for base in component.__mro__ if issubclass(base, BaseModel) and base is not BaseModel]

    def place(each: tuple[str, FieldInfo]) -> tuple[bool, bool, int]:
        name, field = each
        at = max(at for at, base in enumerate(bases) if name in base.model_fields)
        return not field.is_required(), Partitioner in bases[at].__bases__, at

    for name, field in sorted(component.model_fields.items(), key=place):
        yield _property(f"{above}{name}", field, docs.get(name, ""))
        held = _model_in(field.annotation)
        # A model may contain itself.
        if held is not None and held not in (component, *around):
            yield from _properties(held, f"{above}{name}.", (component, *around))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, also if it may be None."""
    held = [kind for kind in (annotation, *get_args(annotation)) if inspect.isclass(kind) and kind is not type(None)]
    models = [kind for kind in held if issubclass(kind, BaseModel) and not issubclass(kind, Component)]
    return models[0] if models == held and len(models) == 1 else None


def _property(name: str, field: FieldInfo, doc: str) -> PropertySheet:
    return PropertySheet(
        name=name,
        type=spelled(field.annotation),
        required=field.is_required(),
        default=None if field.is_required() else portable(_default(field)),
        constraints=tuple(_constraint(note) for note in field.metadata if not _is_code(note)),
        doc=" ".join((field.description or doc).split()),
    )


def _default(field: FieldInfo) -> Any:
    """The default; None if it is computed from other properties."""
    if field.default_factory_takes_validated_data:
        return None
    return field.get_default(call_default_factory=True)


def _is_code(note: Any) -> bool:
    """Whether a note on a type is a function or a class that checks values, which means nothing to a reader."""
    return hasattr(note, "func") or isinstance(note, type | InstanceOf)


_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "multiple_of": "a multiple of"}


def _constraint(constraint: Any) -> str:
    """A constraint in short form: `> 0`, `min_length 1`."""
    constraints = {
        name: getattr(constraint, name)
        for name in getattr(constraint, "__slots__", None) or vars(type(constraint)).get("__dataclass_fields__", ())
        if getattr(constraint, name, None) is not None
    }
    if not constraints:
        return repr(constraint)
    return " and ".join(f"{_SIGNS.get(name, name)} {value}" for name, value in constraints.items())


def _field_docs(component: type) -> dict[str, str]:
    """The docstring below each field; a class overrides its bases."""
    docs: dict[str, str] = {}
    for ancestor in reversed(component.__mro__):
        if issubclass(ancestor, BaseModel) and ancestor is not BaseModel:
            docs.update(_strings_below_fields(ancestor))
    return docs


def _strings_below_fields(component: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(component)))
    except (OSError, TypeError, SyntaxError):  # a class defined in a notebook or by a call has no source
        return {}
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    return {
        target.id: below.value.value
        for above, below in itertools.pairwise(body)
        for target in _targets(above)
        if isinstance(target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def _targets(statement: ast.stmt) -> list[ast.expr]:
    """What a statement in the body of a class assigns to: a property, or a metric."""
    if isinstance(statement, ast.AnnAssign):
        return [statement.target]
    return statement.targets if isinstance(statement, ast.Assign) else []
