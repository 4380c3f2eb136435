"""`dagkit explain`: the steps from the application to its plan."""

from collections.abc import Iterator
from typing import Any, assert_never

import rich_click as click

from dagkit.api.ports import InputPort, OutputPort
from dagkit.cli.application.opening import opened
from dagkit.cli.application.options import Asked, application, spoken
from dagkit.cli.compiling.plan import cut_section, page, stage_section
from dagkit.cli.terminal.output import Output, diagnostic_fields
from dagkit.cli.terminal.pages import as_json, heading, paragraph, section, table
from dagkit.compiler import STEPS, Compilation, Step
from dagkit.compiler.fuse import Fused
from dagkit.graph import Graph, Node, Settings
from dagkit.ground.amounts import counted
from dagkit.plan import Plan, write_plan
from dagkit.plan.configuration_lines import Value, attribute_values, property_values
from dagkit.schema import spelled

Port = InputPort[Any] | OutputPort[Any]

MEANINGS: dict[Step, str] = {
    "drawn": "the graph that populate_dag built",
    "expanded": "modules are replaced by their operators",
    "resolved": "properties, attributes and payload types are final",
    "checked": "all rules hold",
    "fused": "operators are grouped into stages; every cut has its reason",
    "ordered": "the plan, in execution order",
}
"""The state after each step."""


@click.command()
@click.option("--step", metavar="STEP", type=click.Choice(STEPS), help="Print the form after this step.")
@application
@spoken
def explain(*, asked: Asked, step: Step | None, output: Output) -> None:
    """Show the steps from the application to its plan, or the form after one of them.

    STEP is `drawn`, `expanded`, `resolved`, `checked`, `fused` or `ordered`. The forms before `checked` are also shown
    for an application with errors, together with the errors.
    """
    with opened(asked, output) as app:
        compilation = app.compiled(step) if step else app.as_far_as_it_goes()
        if step is None:
            _list_steps(compilation, output)
        elif step not in compilation.steps:  # its form, such as a plan, exists only without errors
            raise app.blamed(compilation.application, compilation.notes)
        elif output.as_json:
            _print_json(step, compilation.steps[step], output)
        else:
            output.result(heading(compilation.application, f"{step}: {MEANINGS[step]}"))
            output.result(*_page(compilation.steps[step]))
        app.conclude(compilation, output)


def _list_steps(compilation: Compilation, output: Output) -> None:
    rows = [(step, MEANINGS[step], _size(form)) for step, form in compilation.steps.items()]
    if output.as_json:
        listed = [{"step": step, "meaning": meaning, "holds": holds} for step, meaning, holds in rows]
        diagnostics = [diagnostic_fields(note) for note in compilation.notes]
        body = {"application": compilation.application, "steps": listed, "diagnostics": diagnostics}
        output.document("dagkit.steps/1", body)
    else:
        output.result(heading(compilation.application), table(("step", "state after it", "holds"), rows))


def _size(form: Graph | Fused | Plan) -> str:
    match form:
        case Graph():
            modules = sum(node.is_module for node in form.nodes)
            held = [counted(len(form.nodes) - modules, "operator"), counted(len(form.streams), "stream")]
            return ", ".join(held + ([counted(modules, "module")] if modules else []))
        case Fused():
            return f"{counted(len(form.stages), 'stage')}, {counted(len(form.cuts), 'cut')}"
        case Plan():
            return f"{counted(len(form.stages), 'stage')}, {counted(form.levels, 'level')}"
    assert_never(form)


# -- pages -----------------------------------------------------------------------------------------------------------


def _page(form: Graph | Fused | Plan) -> list[Any]:
    match form:
        case Graph():
            return _graph_page(form)
        case Fused():
            wires = [(w.stream.name, w.source, w.sink, w.routing.value) for w in form.wires]
            return [
                *stage_section(form),
                *section("Wires", ("stream", "from", "to", "routing"), wires),
                *cut_section(form),
            ]
        case Plan():
            return page(form, ())
    assert_never(form)


def _graph_page(graph: Graph) -> list[Any]:
    parts: list[Any] = [paragraph(_size(graph))]
    operators = [(n.name, type(n.operator).__qualname__, _payloads(n), n.where) for n in graph.nodes]
    parts += section("Operators", ("name", "class", "ports", "placed at"), operators)
    streams = [
        (s.name, s.source or "nothing", ", ".join(map(str, s.sinks)) or "nothing", s.locality or "", s.where)
        for s in graph.streams
    ]
    parts += section("Streams", ("name", "from", "to", "locality", "drawn at"), streams)
    parts += section("Properties", ("operator", "property", "value", "set by"), list(_properties(graph)))
    parts += section("Attributes", ("of", "attribute", "value", "set by"), list(_attributes(graph)))
    return parts


def _payloads(node: Node) -> str:
    ports: list[Port] = [*node.input_ports.values(), *node.output_ports.values()]
    return ", ".join(f"{port.name}: {spelled(node.payload(port))}" for port in ports)


def _properties(graph: Graph) -> Iterator[tuple[object, ...]]:
    """The properties that were set; `dagkit describe` shows the defaults."""
    for node in graph.nodes:
        for name, value in _given(node).items():
            yield node.name, name, as_json(value.value), value.origin


def _given(node: Node) -> dict[str, Value]:
    return {name: value for name, value in property_values(node).items() if name in node.operator.given}


def _attributes(graph: Graph) -> Iterator[tuple[object, ...]]:
    for bearer, settings in _bearers(graph):
        for name, value in attribute_values(settings):
            yield bearer, name, as_json(value.value), value.origin


def _bearers(graph: Graph) -> Iterator[tuple[str, Settings]]:
    yield graph.application, graph.attributes
    for node in graph.nodes:
        yield node.name, node.attributes
        for port, settings in (*node.inputs.items(), *node.outputs.items()):
            yield f"{node.name}.{port}", settings
        for port, settings in node.unifiers.items():
            yield f"unifier of {node.name}.{port}", settings


# -- documents -------------------------------------------------------------------------------------------------------


def _print_json(step: Step, form: Graph | Fused | Plan, output: Output) -> None:
    match form:
        case Graph():
            output.document("dagkit.graph/1", {"step": step, **_graph_fields(form)})
        case Fused():
            stages = [stage.model_dump(mode="json") for stage in form.stages]
            cuts = [cut.model_dump(mode="json") for cut in form.cuts]
            wires = [
                {"stream": w.stream.name, "source": str(w.source), "sink": str(w.sink), "routing": w.routing.value}
                for w in form.wires
            ]
            fields = {"application": form.graph.application, "stages": stages, "wires": wires, "cuts": cuts}
            output.document("dagkit.fused/1", {"step": step, **fields})
        case Plan():
            output.result(write_plan(form))


def _graph_fields(graph: Graph) -> dict[str, Any]:
    return {
        "application": graph.application,
        "attributes": _attribute_fields(graph.attributes),
        "operators": [_node_fields(node) for node in graph.nodes],
        "streams": [
            {
                "name": stream.name,
                "source": str(stream.source) if stream.source else None,
                "sinks": [str(sink) for sink in stream.sinks],
                "locality": stream.locality,
                "where": str(stream.where),
            }
            for stream in graph.streams
        ],
    }


def _node_fields(node: Node) -> dict[str, Any]:
    ports: list[Port] = [*node.input_ports.values(), *node.output_ports.values()]
    return {
        "name": node.name,
        "class": f"{type(node.operator).__module__}.{type(node.operator).__qualname__}",
        "kind": type(node.operator).declared_kind(),
        "module": node.is_module,
        "where": str(node.where),
        "properties": {name: value.value for name, value in _given(node).items()},
        "origins": {path: str(origin) for path, origin in node.property_origins.items()},
        "attributes": _attribute_fields(node.attributes),
        "ports": [
            {
                "name": port.name,
                "type": "input" if port.name in node.input_ports else "output",
                "payload": spelled(node.payload(port)),
                "required": port.required,
                "attributes": _attribute_fields(
                    (node.inputs if port.name in node.input_ports else node.outputs).get(port.name, {})
                ),
            }
            for port in ports
        ],
    }


def _attribute_fields(settings: Settings) -> dict[str, Any]:
    return {name: value.value for name, value in attribute_values(settings)}
