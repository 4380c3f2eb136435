"""`dagkit describe`: an operator's ports and properties, or the list of operators or attributes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import rich_click as click

from dagkit.api.attributes import BY_SCOPE, Attribute, Described, Instance, Scope, Standing
from dagkit.api.component import Component
from dagkit.cli.application.anatomy import Anatomy, PortSheet, PropertySheet, anatomy_of
from dagkit.cli.application.opening import opened
from dagkit.cli.application.operator_lookup import Library, is_file_of_operators, libraries, library_in, operator_named
from dagkit.cli.application.options import Asked, configured, spoken
from dagkit.cli.terminal.output import Output
from dagkit.cli.terminal.pages import as_json, entry, heading, paragraph, section, table
from dagkit.compiler import Compilation
from dagkit.errors import ApplicationNotFound, did_you_mean
from dagkit.graph import Graph, Node
from dagkit.plan.configuration_lines import Value, property_values
from dagkit.plan.portable import portable
from dagkit.schema import spelled


@click.command()
@click.argument("operator", required=False)
@click.option(
    "--in",
    "target",
    metavar="APP",
    type=click.Path(),
    help="OPERATOR is a name in this application; without it, list its operators.",
)
@click.option("--attributes", is_flag=True, help="List every attribute with its support and default.")
@configured
@spoken
def describe(
    *,
    operator: str | None,
    target: str | None,
    attributes: bool,
    configuring: Callable[[str], Asked],
    output: Output,
) -> None:
    """Show what an operator does, its ports, properties and annotations.

    OPERATOR is the name of a library's operator, a dotted path, `module:Class` or `file.py:Class`. For a `file.py`
    alone, list its operators; without OPERATOR, list those of all installed libraries. With `--in`, it is a name in
    that application, and the values of its properties are shown with their origins.
    """
    if attributes:
        _list_attributes(output)
    elif operator is None and target is not None:
        _list_placed(configuring(target), output)
    elif operator is None:
        _list_operators(libraries(), output)
    elif target is None and is_file_of_operators(operator):
        with library_in(operator) as library:
            _list_operators([library], output)
    elif target is None:
        with operator_named(operator) as found:
            _show(anatomy_of(found), {}, output)
    else:
        _show_placed(configuring(target), operator, output)


# -- one operator ----------------------------------------------------------------------------------------------------


def _show_placed(asked: Asked, name: str, output: Output) -> None:
    """Show the operator or module of this name in the application, with its configured values."""
    with opened(asked, output) as application:
        compilation = application.compiled("resolved")
        nodes = _nodes(compilation)
        if name not in nodes:
            near = did_you_mean(name, nodes)
            raise ApplicationNotFound(f"no operator of {asked.target} is called {name!r}", near)
        _show(anatomy_of(type(nodes[name].operator)), property_values(nodes[name]), output)
        application.conclude(compilation, output)


def _list_placed(asked: Asked, output: Output) -> None:
    """List the operators and modules of the application by name."""
    with opened(asked, output) as application:
        compilation = application.compiled("resolved")
        rows = [
            (name, type(node.operator).__name__, _first_line(type(node.operator)), str(node.where))
            for name, node in _nodes(compilation).items()
        ]
        if output.as_json:
            listed = [{"name": n, "class": cls, "summary": summary, "where": at} for n, cls, summary, at in rows]
            output.document("dagkit.operators/1", {"application": compilation.application, "operators": listed})
        else:
            output.result(table(("operator", "class", "what it does", "placed at"), rows))
        application.conclude(compilation, output)


def _nodes(compilation: Compilation) -> dict[str, Node]:
    """Every operator and module of the last form, by name."""
    graphs = [form for form in compilation.steps.values() if isinstance(form, Graph)]
    return {node.name: node for graph in graphs for node in graph.nodes}


def _show(anatomy: Anatomy, values: Mapping[str, Value], output: Output) -> None:
    if output.as_json:
        fields = asdict(anatomy)
        fields["class"] = fields.pop("class_")
        fields["where"] = str(anatomy.where) if anatomy.where else None
        fields["attributes"] = list(BY_SCOPE[Scope.OPERATOR])
        fields["port_attributes"] = list(BY_SCOPE[Scope.PORT])
        if values:
            fields["values"] = {name: asdict(value) for name, value in values.items()}
        output.document("dagkit.operator/1", fields)
    else:
        output.result(*_page(anatomy, values))


def _page(anatomy: Anatomy, values: Mapping[str, Value]) -> list[Any]:
    parts: list[Any] = [heading(anatomy.name, f"{anatomy.kind}, {anatomy.role}")]
    parts += [paragraph(anatomy.doc)] if anatomy.doc else []
    parts += [paragraph(f"{anatomy.class_} at {anatomy.where}" if anatomy.where else anatomy.class_)]
    parts += _port_section(anatomy)
    parts += _property_section(anatomy, values)
    metrics = [(metric.name, ", ".join(metric.aggregators), metric.doc) for metric in anatomy.metrics]
    parts += section("Metrics", ("name", "of all partitions", "meaning"), metrics)
    annotations = [(name.replace("_", " "), "yes" if holds else "no") for name, holds in anatomy.annotations.items()]
    parts += section("Annotations", ("annotation", "holds"), annotations)
    return [*parts, "", heading("Attributes", "dagkit describe --attributes lists them")]


def _port_section(anatomy: Anatomy) -> list[Any]:
    rows = [(p.side, p.name, p.payload, "required" if p.required else "optional", _with(p)) for p in anatomy.ports]
    columns = ("side", "name", "items", "stream", "with")
    used = len(columns) if any(row[-1] for row in rows) else len(columns) - 1
    return section("Ports", columns[:used], [row[:used] for row in rows])


def _with(port: PortSheet) -> str:
    settings = (("key", port.key), ("unifier", port.unifier))
    return ", ".join(f"{name}={value}" for name, value in settings if value)


def _property_section(anatomy: Anatomy, values: Mapping[str, Value]) -> list[Any]:
    entries = [entry(p.name, "; ".join(_facts(anatomy, p, values)), p.doc) for p in anatomy.properties]
    return ["", heading("Properties"), *entries] if entries else []


def _facts(anatomy: Anatomy, described: PropertySheet, values: Mapping[str, Value]) -> Iterator[str]:
    """The type of a property, its limits, its default, and its value with the origin unless that is the default."""
    yield described.type
    if described.constraints:
        yield f"must be {', '.join(described.constraints)}"
    has_parts = any(other.name.startswith(f"{described.name}.") for other in anatomy.properties)
    yield "required" if described.required else f"default {_shown(described.default, has_parts=has_parts)}"
    whole, *parts = described.name.split(".")
    if whole in values and values[whole].origin != "default":
        value = values[whole].value
        for part in parts:
            value = value.get(part) if isinstance(value, Mapping) else None
        yield f"value {_shown(value, has_parts=has_parts)}" + ("" if parts else f", set by {values[whole].origin}")


def _shown(value: object, *, has_parts: bool) -> str:
    """A value; of an object whose parts are listed, too, only its class."""
    if has_parts and isinstance(value, Mapping):
        return str(value.get("class", "…")).rpartition(".")[2]
    return as_json(value)


# -- lists -----------------------------------------------------------------------------------------------------------


def _list_operators(shown: Sequence[Library], output: Output) -> None:
    rows = [
        (library.package, name, _first_line(operator))
        for library in shown
        for name, operator in library.operators.items()
    ]
    if output.as_json:
        listed = [{"package": package, "name": name, "summary": summary} for package, name, summary in rows]
        output.document("dagkit.operators/1", {"operators": listed})
    else:
        output.result(table(("library", "operator", "what it does"), rows))


def _first_line(operator: type[Component]) -> str:
    return (operator.__dict__.get("__doc__") or "").strip().partition("\n")[0]


def _list_attributes(output: Output) -> None:
    if output.as_json:
        listed = [_attribute_fields(a) for catalogue in BY_SCOPE.values() for a in catalogue.values()]
        output.document("dagkit.attributes/1", {"attributes": listed})
        return
    parts: list[Any] = []
    for scope, title in _TITLES:
        rows = [_attribute_row(attribute) for attribute in BY_SCOPE[scope].values()]
        parts += section(title, ("name", "standing", "type", "default", "meaning"), rows)
    output.result(*parts[1:], "", *(paragraph(line) for line in _STANDINGS))


_TITLES: Sequence[tuple[Scope, str]] = (
    (Scope.APPLICATION, "Attributes of an application"),
    (Scope.OPERATOR, "Attributes of an operator"),
    (Scope.PORT, "Attributes of a port"),
)
_STANDINGS = (
    f"{Standing.HONOURED}: has the same meaning as in Apex",
    f"{Standing.HINT}: maps to the nearest feature of Spark",
    f"{Standing.ADVISORY}: accepted and reported, without effect",
)


def _attribute_row(attribute: Attribute[Any]) -> tuple[str, ...]:
    fields = _attribute_fields(attribute)
    return fields["name"], fields["standing"], fields["type"], as_json(fields["default"]), fields["meaning"]


def _attribute_fields(attribute: Attribute[Any]) -> dict[str, Any]:
    return {
        "scope": attribute.scope.value,
        "name": attribute.name,
        "standing": attribute.standing.value,
        "type": _held(attribute.holds),
        "default": portable(attribute.default),
        "meaning": attribute.meaning,
    }


def _held(holds: Any) -> str:
    if isinstance(holds, Instance):
        return f"{holds.of}, …" if holds.many else holds.of
    return f"{holds.of} as JSON" if isinstance(holds, Described) else spelled(holds)
