"""Ordering: make a plan of the fused graph, upstream first, ties by name, so that equal graphs give equal plans."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.compiler.fuse import Fused
from dagkit.compiler.unify import unifiers
from dagkit.graph import Graph, Node, Stream
from dagkit.ground.moved_classes import recorded_module
from dagkit.plan.fingerprint import canonical
from dagkit.plan.model import (
    Keys,
    Plan,
    PlannedEnd,
    PlannedOperator,
    PlannedPartition,
    PlannedPort,
    PlannedSink,
    PlannedStream,
    Role,
    Routing,
)
from dagkit.plan.portable import portable_attributes, portable_properties
from dagkit.schema import class_of, fields_of_authors, spelled


def running_order(graph: Graph) -> list[str]:
    """The operators, upstream first, ties by name. If there is an undelayed loop, by name only."""
    import networkx as nx  # noqa: PLC0415 - most commands compile nothing

    if nx.is_directed_acyclic_graph(graph.forward):
        return list(nx.lexicographical_topological_sort(graph.forward))
    return sorted(graph.forward.nodes)


def order(fused: Fused) -> Plan:
    """The plan of a fused graph."""
    graph = fused.graph
    position = {name: index for index, name in enumerate(running_order(graph))}
    home = {operator: stage.name for stage in fused.stages for operator in stage.operators}
    routings = {(wire.sink.node, wire.sink.port): wire.routing for wire in fused.wires}
    return Plan(
        application=graph.application,
        attributes=portable_attributes(graph.attributes),
        operators=tuple(_operator(fused, graph.by_name[name], home[name]) for name in position),
        streams=tuple(_stream(fused, stream, routings) for stream in sorted(graph.streams, key=lambda s: s.name)),
        stages=tuple(sorted(fused.stages, key=lambda stage: position[stage.operators[0]])),
        cuts=tuple(sorted(fused.cuts, key=lambda cut: (position[cut.source.operator], str(cut.source), str(cut.sink)))),
    )


def _operator(fused: Fused, node: Node, stage: str) -> PlannedOperator:
    partitioning = fused.partitioned[node.name]
    # An operator that is its own PARTITIONER would be written twice, with all its properties.
    attributes = {
        a: s for a, s in node.attributes.items() if a is not OperatorContext.PARTITIONER or s.value is not node.operator
    }
    properties = portable_properties(node.operator, node.property_origins)
    return PlannedOperator(
        name=node.name,
        kind=type(node.operator).declared_kind(),
        class_=_class_name(node),
        role=_role(node),
        properties=properties,
        attributes=portable_attributes(attributes),
        ports=tuple(_ports(fused.graph, node)),
        partitions=tuple(
            PlannedPartition(
                index=index,
                keys={
                    port: Keys(mask=k.mask, keys=tuple(sorted(k.keys))) for port, k in sorted(partition.keys.items())
                },
                properties=_own_properties(node, partition.operator, properties),
            )
            for index, partition in enumerate(partitioning.partitions)
        ),
        why=partitioning.why,
        parallel_with=partitioning.head if partitioning.head != node.name else None,
        stage=stage,
    )


def _own_properties(node: Node, operator: Any, shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """The properties of a partition that differ from those of its operator. A secret appears as the reference to it."""
    if operator is node.operator or not isinstance(operator, BaseModel):
        return {}
    own = portable_properties(operator, node.property_origins)
    return {
        name: value
        for name, value in own.items()
        if name not in shared or canonical(value) != canonical(shared[name])  # where 1 differs from true
    }


def _class_name(node: Node) -> str:
    cls = class_of(type(node.operator))
    return f"{recorded_module(cls.__module__, cls.__qualname__)}.{cls.__qualname__}"


def _role(node: Node) -> Role:
    if node.is_delay:
        return Role.DELAY
    return Role.INPUT if node.is_input else Role.OPERATOR


def _ports(graph: Graph, node: Node) -> Sequence[PlannedPort]:
    sides: tuple[tuple[Literal["input", "output"], Any, Any, Any], ...] = (
        ("input", node.input_ports, node.inputs, graph.streams_into),
        ("output", node.output_ports, node.outputs, graph.streams_from),
    )
    return [
        PlannedPort(
            name=port.name,
            type=side,
            payload=spelled(node.payload(port)),
            connected=bool(streams(node.name, port.name)),
            attributes=portable_attributes(settings.get(port.name, {})),
        )
        for side, ports, settings, streams in sides
        for port in ports.values()
    ]


def _stream(fused: Fused, stream: Stream, routings: Mapping[tuple[str, str], Routing]) -> PlannedStream:
    assert stream.source is not None, "a checked graph has no stream without a source"
    payload = fused.graph.by_name[stream.source.node].payload(stream.source.declared)
    return PlannedStream(
        name=stream.name,
        source=PlannedEnd(operator=stream.source.node, port=stream.source.port),
        sinks=tuple(
            PlannedSink(
                operator=sink.node,
                port=sink.port,
                routing=routings[sink.node, sink.port],
                parallel=fused.graph.by_name[sink.node].port_value(sink.port, PortContext.PARTITION_PARALLEL),
            )
            for sink in sorted(stream.sinks, key=str)
        ),
        locality=stream.locality.value if stream.locality else None,
        payload=spelled(payload),
        fields=fields_of_authors(payload),
        unifiers=unifiers(fused.graph, stream, fused.partitioned),
    )
