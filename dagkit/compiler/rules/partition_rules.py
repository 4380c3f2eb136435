"""Laws of partitions: which operators may have several, and what parallel chains require."""

from collections.abc import Iterator

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.operators import Operator
from dagkit.api.partitioning import Partitioner
from dagkit.errors import Diagnostic
from dagkit.graph import Graph, Node


def an_unpartitionable_operator_mirrors_no_partitions(graph: Graph) -> Iterator[Diagnostic]:
    """PARTITION_PARALLEL would give the operator as many partitions as the operator that feeds it."""
    for node in _unpartitionable(graph):
        for port in node.input_ports:
            if node.port_value(port, PortContext.PARTITION_PARALLEL):
                yield Diagnostic(
                    "partition-forbidden",
                    f"{node.name} may not be partitioned, but PARTITION_PARALLEL is set on {node.name}.{port}",
                    f"remove PARTITION_PARALLEL, or set partitionable = True on {type(node.operator).__name__}",
                    node.inputs[port][PortContext.PARTITION_PARALLEL].origin.where or node.where,
                )


def an_unpartitionable_operator_has_no_partitioner(graph: Graph) -> Iterator[Diagnostic]:
    """A partitioner would make several partitions. Setting PARTITIONER to None disables the operator's own."""
    for node in _unpartitionable(graph):
        setting = graph.set_on(node, OperatorContext.PARTITIONER)
        partitions_itself = setting is None and isinstance(node.operator, Partitioner)
        if partitions_itself or (setting is not None and setting.value is not None):
            has = "is its own Partitioner" if partitions_itself else "has a PARTITIONER"
            yield Diagnostic(
                "partition-forbidden",
                f"{node.name} may not be partitioned, but it {has}",
                f"set PARTITIONER of {node.name} to None, or partitionable = True on {type(node.operator).__name__}",
                (setting.origin.where if setting else None) or node.where,
            )


def parallel_inputs_come_from_one_group(graph: Graph) -> Iterator[Diagnostic]:
    """Partition i of a mirror takes what partition i sends, so all that it mirrors must have the same partitions."""
    heads = parallel_heads(graph)
    for node in graph.nodes:
        groups = {heads[source]: source for source in reversed(_parallel_sources(graph, node))}
        if len(groups) > 1:
            yield Diagnostic(
                "parallel-unrelated",
                f"{node.name} mirrors the partitions of {' and of '.join(sorted(groups.values()))}, "
                "which do not follow one operator",
                "set PARTITION_PARALLEL on one of these inputs only, or also on those of the operators that feed them",
                node.where,
            )


def parallel_inputs_keep_their_partition(graph: Graph) -> Iterator[Diagnostic]:
    """Inside a parallel chain no item changes partition, so a codec there has nothing to route."""
    for node in graph.nodes:
        for port in node.input_ports:
            codec = node.inputs.get(port, {}).get(PortContext.STREAM_CODEC)
            if codec is not None and codec.value is not None and node.port_value(port, PortContext.PARTITION_PARALLEL):
                yield Diagnostic(
                    "parallel-rekeyed",
                    f"{node.name}.{port} is PARTITION_PARALLEL, so its STREAM_CODEC cannot route anything",
                    "remove the codec, or remove PARTITION_PARALLEL to have the items keyed",
                    codec.origin.where or node.where,
                )


def parallel_heads(graph: Graph) -> dict[str, str]:
    """The head of each operator's parallel chain: the operator whose partitions it mirrors, or itself."""
    heads: dict[str, str] = {}
    for node in graph.nodes:
        trail: dict[str, None] = {}
        name = node.name
        while name not in heads and name not in trail:
            trail[name] = None
            followed = _followed(graph, graph.by_name[name])
            if followed is None:
                heads[name] = name
            else:
                name = followed
        head = heads[name] if name in heads else _head_of_loop(graph, list(trail), name)
        heads.update(dict.fromkeys(trail, head))
    return heads


def _followed(graph: Graph, node: Node) -> str | None:
    """The operator that a mirror follows: a delay, which comes from downstream, only if nothing else feeds it."""
    sources = _parallel_sources(graph, node)
    return next((s for s in sources if not graph.by_name[s].is_delay), sources[0] if sources else None)


def _head_of_loop(graph: Graph, trail: list[str], name: str) -> str:
    """The head of mirrors in a loop: the first by name, delays last. The order of declaration must not matter."""
    return min(trail[trail.index(name) :], key=lambda n: (graph.by_name[n].is_delay, n))


def _parallel_sources(graph: Graph, node: Node) -> list[str]:
    """The operators that feed the parallel inputs of a node, in the order of declaration."""
    sources: list[str] = []
    for port in node.input_ports:
        if node.port_value(port, PortContext.PARTITION_PARALLEL):
            sources += [s.source.node for s in graph.streams_into(node.name, port) if s.source is not None]
    return sources


def _unpartitionable(graph: Graph) -> Iterator[Node]:
    return (node for node in graph.nodes if isinstance(node.operator, Operator) and not node.operator.partitionable)
