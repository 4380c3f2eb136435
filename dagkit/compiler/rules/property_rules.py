"""Laws of properties: every operator is configured as its class requires, and its kind identifies its class."""

import re
from collections.abc import Iterable, Iterator, Mapping

from dagkit.api.adapters import Typed, adapter_of
from dagkit.api.component import Component, Fault
from dagkit.api.configuration import Origin
from dagkit.api.operators import Operator
from dagkit.api.secrets import MASK, secrets_in, without_credentials
from dagkit.api.state import declared_state
from dagkit.conf.sources.references import without_secret
from dagkit.conf.values.property_types import keeps_secret, meant_property, model_in
from dagkit.errors import Diagnostic, Severity, Where
from dagkit.graph import Graph
from dagkit.schema import class_of, spelled, substitute


def properties_hold(graph: Graph) -> Iterator[Diagnostic]:
    """An operator runs only with valid properties."""
    for node in graph.nodes:
        yield from property_faults(node.name, node.operator, node.where, node.property_origins)


def property_faults(
    name: str, component: Component, placed: Where | None, origins: Mapping[str, Origin]
) -> Iterator[Diagnostic]:
    """The faults in the properties of one component, each at the line that set the value."""
    for fault in component.faults:
        if fault.missing and any(path.startswith(f"{fault.path}.") for path in origins):
            continue  # its parts were set and do not fit together: setting them reported why
        origin = _origin_of(fault, component, origins)
        where = (origin.where if origin else None) or placed
        if fault.unknown:
            help_ = meant_property(type(component), fault.path, value=component.given.get(fault.path))
            yield Diagnostic("property-unknown", f"{name} has no property {fault.path!r}", help_, where)
            continue
        verb, what = "set" if fault.missing else "fix", fault.path or "the properties"
        whole = model_in(type(component), fault.path) if fault.missing else None
        kind = f", a {whole.__name__}," if whole is not None else ""
        help_ = f"{verb} {what}{kind} where {name} is made{', or in a property file' if fault.missing else ''}"
        if origin is not None and origin.key is not None:
            help_ = f"fix the value of {origin.key}" + (f" at {origin.where}" if origin.where else "")
        yield Diagnostic("property-invalid", _problem(name, component, fault, origins), help_, where)


def every_state_can_be_written(graph: Graph) -> Iterator[Diagnostic]:
    """State is saved as JSON with every window, so its type needs a JSON form."""
    for node in graph.nodes:
        for name, state in declared_state(type(node.operator)).items():
            for held in state.held:
                adapter = adapter_of(substitute(held, node.bindings))
                if isinstance(adapter, Typed) and not adapter.has_schema:
                    kind = type(node.operator).__name__
                    yield Diagnostic(
                        "state-invalid",
                        f"{kind}.{name} of {node.name} holds {spelled(held)}, which has no JSON form, so no window "
                        "could save it",
                        f"make {spelled(held)} a dataclass or a pydantic model of values that have one",
                        node.where,
                    )


def waived_guarantees_are_reported(graph: Graph) -> Iterator[Diagnostic]:
    """A setting by which an operator guarantees less is a choice, and readers of the plan must see what it gives up."""
    for node in graph.nodes:
        # What an operator gives up depends on its properties, so these must be valid.
        if isinstance(node.operator, Operator) and not node.operator.faults:
            for what in node.operator.gives_up():
                yield Diagnostic(
                    "guarantee-waived",
                    f"{node.name}: {what}",
                    "leave the property at its default unless this is intended",
                    node.where,
                    Severity.ADVISORY,
                )


def _origin_of(fault: Fault, component: Component, origins: Mapping[str, Origin]) -> Origin | None:
    """The origin of an invalid value: of the property, of its parent, or of a part of it that the fault names."""
    exact = origins.get(fault.path) or origins.get(fault.path.split(".")[0])
    within = {path: origin for path, origin in origins.items() if not fault.path or path.startswith(f"{fault.path}.")}
    named = (origin for path, origin in within.items() if path.split(".")[-1] in fault.message)
    set_in_code = type(component).model_fields.keys() - {path.split(".")[0] for path in origins}
    is_of_code = not fault.path and not set_in_code.isdisjoint(re.findall(r"\w+", fault.message))
    return exact or next(named, None if is_of_code else next(iter(within.values()), None))


def _problem(name: str, component: Component, fault: Fault, origins: Mapping[str, Origin]) -> str:
    """The problem, with the value unless it is a secret or contains one."""
    if fault.missing:
        return f"{name}.{fault.path} is missing: {fault.message}"
    top = fault.path.split(".")[0]
    secrets = [o for path, o in origins.items() if o.shown is not None and (not top or path.split(".")[0] == top)]
    if not fault.path:
        return f"{name} is wrong: {_without_secrets(fault.message, component, origins)}"
    if not secrets and keeps_secret(component, fault.path):
        return f"{name}.{fault.path} cannot be {MASK}: {without_secret(fault.message, fault.value, MASK)}"
    if not secrets:
        return f"{name}.{fault.path} cannot be {without_credentials(_shown(fault.value)):.80}: {fault.message}"
    exact = origins.get(fault.path)
    shown = exact.shown if exact is not None and exact.shown is not None else "what was set"
    return f"{name}.{fault.path} cannot be {shown}: {without_secret(fault.message, fault.value, shown)}"


def _without_secrets(message: str, component: Component, origins: Mapping[str, Origin]) -> str:
    """The message without the secrets that configuration set."""
    for path, origin in origins.items():
        for secret in _texts_at(component, path) if origin.shown is not None else ():
            message = without_secret(message, secret, origin.shown)
    return message


def _texts_at(component: Component, path: str) -> Iterable[str]:
    """The text that configuration set at a path; if the path leads to none, all texts of the property."""
    name, _, below = path.partition(".")
    value = component.given.get(name)
    if below and isinstance(value, Mapping) and below in value:
        value = value[below]
    return secrets_in(value, lambda _: True)


def _shown(value: object) -> str:
    """A value as a message shows it; a function by its name, without its address in memory."""
    name = getattr(value, "__name__", None) if callable(value) else None
    return repr(value) if name is None else "this lambda" if name == "<lambda>" else str(name)


def kinds_name_one_class(graph: Graph) -> Iterator[Diagnostic]:
    """Plans and ledgers identify an operator by its kind, so two classes must not have the same kind."""
    first: dict[str, type] = {}
    for node in graph.nodes:
        operator = class_of(type(node.operator))  # one kind for `Filter[Line]` and `Filter[Word]`
        declared = operator.__dict__.get("kind")
        if declared is not None and not isinstance(declared, str):
            yield Diagnostic(
                "property-invalid",
                f"the kind of {node.name} is {declared!r:.80}, which is not text",
                f'give it a name and a version, as in kind = "{operator.__name__.lower()}/1"',
                node.where,
            )
            continue
        known = first.setdefault(type(node.operator).declared_kind(), operator)
        if known is not operator:
            yield Diagnostic(
                "kind-duplicated",
                f"{node.name} is a {operator.__module__}.{operator.__qualname__}, of the same kind "
                f"{type(node.operator).declared_kind()!r} as {known.__module__}.{known.__qualname__}",
                f'give one of them a kind of its own, as in kind = "{operator.__name__.lower()}/2"',
                node.where,
            )
