"""Lowering: a compiled application becomes the program that its workers run."""

from collections.abc import Mapping
from typing import Any

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.files import FileFinder
from dagkit.api.operators import InputOperator
from dagkit.api.running import Context
from dagkit.api.state import declared_state
from dagkit.compiler import Compilation
from dagkit.compiler.fuse import Fused, Wire
from dagkit.compiler.partition import takes_work
from dagkit.compiler.rules.file_rules import all_items_into, followers_of, written_by
from dagkit.compiler.unify import slides
from dagkit.engine.program.program import Keying, Port, Program, Sliding, StageProgram, Target
from dagkit.graph import Graph, Node
from dagkit.plan.model import Place, Plan, Routing
from dagkit.schema import is_known


def program_of(compilation: Compilation) -> Program:
    """The program of a compiled application."""
    fused = compilation.steps["fused"]
    assert isinstance(fused, Fused), "an application is compiled to the end before it runs"
    graph, plan = fused.graph, compilation.plan
    keyings = {(node.name, port): keying_of(node, port) for node in graph.nodes for port in node.input_ports}
    links, targets = _wiring(fused, plan, keyings)
    program = Program(
        application=graph.application,
        stages=tuple(
            StageProgram(
                stage.name,
                stage.operators,
                stage.level,
                stage.slots,
                links.get(stage.name, {}),
                targets.get(stage.name, {}),
            )
            for stage in plan.stages
            if stage.place is Place.WORKERS
        ),
        sources={
            name: {port: ends for (source, port), ends in targets.get(stage.name, {}).items() if source == name}
            for stage in plan.stages
            if stage.place is Place.DRIVER
            for name in stage.operators
        },
        operators={name: tuple(p.operator for p in known.partitions) for name, known in fused.partitioned.items()},
        windows={node.name: _window_of(graph, node) for node in graph.nodes},
        sliders={
            (node.name, port.name): _sliding(graph, node, port.name)
            for node in graph.nodes
            if slides(graph, node)
            for port in node.output_ports.values()
        },
        keyings=keyings,
        contexts=_contexts(fused),
        outputs={
            (node.name, port.name): node.payload(port)
            for node in graph.nodes
            if isinstance(node.operator, InputOperator)
            for port in node.output_ports.values()
        },
        types={
            node.name: node.bindings for node in graph.nodes if node.bindings and declared_state(type(node.operator))
        },
    )
    return program.placing(node.name for node in graph.nodes if _names_origins(graph, node))


def _wiring(
    fused: Fused, plan: Plan, keyings: Mapping[Port, Keying]
) -> tuple[Mapping[str, Mapping[Port, Port]], Mapping[str, Mapping[Port, tuple[Target, ...]]]]:
    """The wires within each stage, and the targets of those that leave it."""
    home = {operator: stage for stage in plan.stages for operator in stage.operators}
    links: dict[str, dict[Port, Port]] = {}
    targets: dict[str, dict[Port, tuple[Target, ...]]] = {}
    for number, wire in enumerate(numbered(fused)):
        source, sink = (wire.source.node, wire.source.port), (wire.sink.node, wire.sink.port)
        stage = home[source[0]]
        if stage is home[sink[0]]:
            links.setdefault(stage.name, {})[source] = sink
        else:
            leaving = targets.setdefault(stage.name, {})
            target = _target(fused, number, wire, home[sink[0]].level, keyings[sink])
            leaving[source] = (*leaving.get(source, ()), target)
    return links, targets


def _attributes(graph: Graph, node: Node) -> Mapping[str, Any]:
    settings = {**graph.attributes, **node.attributes}
    return {
        attribute.qualified: setting.value
        for attribute, setting in settings.items()
        if isinstance(setting.value, bool | int | float | str | None)
    }


def _contexts(fused: Fused) -> dict[str, Context]:
    graph, written = fused.graph, written_by(fused.graph)
    return {
        node.name: Context(
            application=graph.application,
            operator=node.name,
            partitions=fused.partitioned[node.name].count,
            attributes=_attributes(graph, node),
            is_followed=bool(followers_of(graph, node)),
            written=written,
            known_items=all_items_into(graph, node) if isinstance(node.operator, FileFinder) else None,
        )
        for node in graph.nodes
    }


def _window_of(graph: Graph, node: Node) -> int:
    """The streaming windows between `begin_window` and `end_window`; if windows slide, those of a pane."""
    count: int = graph.value(node, OperatorContext.APPLICATION_WINDOW_COUNT)
    return _sliding(graph, node, "").pane if slides(graph, node) else count


def _sliding(graph: Graph, node: Node, port: str) -> Sliding:
    step = graph.value(node, OperatorContext.SLIDE_BY_WINDOW_COUNT)
    assert step is not None, "only what slides has a slider"
    return Sliding(
        length=graph.value(node, OperatorContext.APPLICATION_WINDOW_COUNT),
        step=step,
        port=f"{node.name}.{port}",
        payload=node.payload(node.output_ports[port]) if port else Any,
    )


def _names_origins(graph: Graph, node: Node) -> bool:
    ports = node.output_ports.values()
    return any(port.names_origins and graph.streams_from(node.name, port.name) for port in ports)


def numbered(fused: Fused) -> list[Wire]:
    """The wires in the order of their numbers."""
    return sorted(fused.wires, key=lambda wire: (str(wire.source), str(wire.sink)))


def keying_of(node: Node, port: str) -> Keying:
    """The keying of an input of this node."""
    declared = node.input_ports[port]
    return Keying(node.port_value(port, PortContext.STREAM_CODEC), *declared.key_in(node.operator))


def _target(fused: Fused, number: int, wire: Wire, level: int, keying: Keying) -> Target:
    receiver, port = fused.partitioned[wire.sink.node], wire.sink.port
    is_work = takes_work(fused.graph.by_name[wire.sink.node], port)
    keyed, senders = receiver.keyed_on(port) and not is_work, fused.partitioned[wire.source.node].count
    delayed = wire.routing is Routing.DELAYED
    routing = routing_after_delay(senders, receiver.count, keyed=keyed) if delayed else wire.routing
    # An element is processed once, so its receivers share the elements instead of getting a copy each.
    routing = Routing.DISTRIBUTED if is_work and routing is Routing.BROADCAST else routing
    slid = slides(fused.graph, fused.graph.by_name[wire.source.node])
    sender = fused.graph.by_name[wire.source.node]
    unifier = sender.output_ports[wire.source.port].unifier_in(sender.operator)
    return Target(
        wire=number,
        into=(wire.sink.node, port),
        routing=routing,
        slots=receiver.count,
        level=level,
        keying=keying,
        payload=_payload(fused.graph, wire),
        keys=tuple(partition.keys[port] for partition in receiver.partitions) if keyed else (),
        # A sliding window sends the items of several panes, which a unifier merges even for a single sender.
        unifier=unifier if slid or (senders > 1 and routing is not Routing.STRAIGHT) else None,
        delayed=delayed,
        queued=is_work,
    )


def _payload(graph: Graph, wire: Wire) -> Any:
    """The type of the items of a wire: that of the sender, or if it is unknown, that of the receiver."""
    sent = graph.by_name[wire.source.node].payload(wire.source.declared)
    return sent if is_known(sent) else graph.by_name[wire.sink.node].payload(wire.sink.declared)


def routing_after_delay(senders: int, receivers: int, *, keyed: bool) -> Routing:
    """The routing of items that a delay held, in the next window."""
    if keyed:
        return Routing.KEYED
    return Routing.STRAIGHT if senders == receivers else Routing.BROADCAST
