"""Laws of the properties: every operator is configured as its class demands, and is told apart from all others."""

from collections.abc import Iterator

from dagkit.api.component import Component
from dagkit.api.config import Origin
from dagkit.errors import Code, Diagnostic, Where, did_you_mean
from dagkit.graph import Graph


def properties_hold(graph: Graph) -> Iterator[Diagnostic]:
    """An operator runs with the properties that its class declares, or not at all."""
    for node in graph.nodes:
        yield from property_faults(node.name, node.operator, node.where, node.property_origins)


def property_faults(
    name: str, component: Component, where: Where | None, origins: dict[str, Origin] | object = None
) -> Iterator[Diagnostic]:
    """What is wrong with the properties of one component, each at the line that set it."""
    known = origins if isinstance(origins, dict) else {}
    fields = type(component).model_fields
    for fault in component.faults:
        origin = known.get(fault.path) or known.get(fault.path.split(".")[0])
        code: Code = "property-invalid"
        help_ = f"set {fault.path} where {name} is made, or in a property file"
        if "extra inputs" in fault.message:
            code, help_ = "property-unknown", did_you_mean(fault.path, fields)
        yield Diagnostic(
            code,
            f"{name}.{fault.path} is {'missing' if fault.missing else 'wrong'}: {fault.message}"
            if code == "property-invalid"
            else f"{name} has no property {fault.path!r}",
            help_,
            (origin.where if origin else None) or where,
        )


def kinds_name_one_class(graph: Graph) -> Iterator[Diagnostic]:
    """Plans and ledgers know an operator by its kind; two classes of one kind would be mistaken for each other."""
    first: dict[str, type] = {}
    for node in graph.nodes:
        operator = _declaring(type(node.operator))
        known = first.setdefault(type(node.operator).declared_kind(), operator)
        if known is not operator:
            yield Diagnostic(
                "kind-duplicated",
                f"{node.name} is a {operator.__module__}.{operator.__qualname__}, of the same kind "
                f"{type(node.operator).declared_kind()!r} as {known.__module__}.{known.__qualname__}",
                f'give one of them a kind of its own, as in kind = "{operator.__name__.lower()}/2"',
                node.where,
            )


def _declaring(operator: type) -> type:
    """The class as the author wrote it: `Filter[Line]` is `Filter`."""
    origin: type | None = (getattr(operator, "__pydantic_generic_metadata__", None) or {}).get("origin")
    return origin or operator
