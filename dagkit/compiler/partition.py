"""Partitioning: how many partitions each operator has, which keys each owns, and what decided it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.configuration import DEFAULT, Origin, Source
from dagkit.api.partitioning import Partition, Partitioner, PartitioningContext
from dagkit.api.state import KeyedState, declared_state
from dagkit.api.work import SplittableOperator, work_port
from dagkit.compiler.alike import merge_alike
from dagkit.compiler.partition_answers import ask
from dagkit.compiler.rules.affinity_rules import localities_have_an_effect
from dagkit.compiler.rules.partition_rules import parallel_heads
from dagkit.errors import Diagnostic, Severity
from dagkit.graph import Graph, Node
from dagkit.plan.model import Why
from dagkit.schema import assignable, is_known, spelled, substitute


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partitions of one operator."""

    partitions: tuple[Partition, ...]
    why: Why
    head: str
    """The operator whose partitions it mirrors; the operator itself if it mirrors none."""

    @property
    def count(self) -> int:
        return len(self.partitions)

    def keyed_on(self, port: str) -> bool:
        return any(port in partition.keys for partition in self.partitions)


def partition(
    graph: Graph, order: Sequence[str], known: Mapping[str, Partitioning] | None = None
) -> tuple[Mapping[str, Partitioning], list[Diagnostic]]:
    """The partitions of every operator. Mirrors come after the operators that they mirror.

    Known partitions stay, except those of mirrors whose head now has another count.
    """
    heads, known = parallel_heads(graph), known or {}
    settled: dict[str, Partitioning] = {}
    faults: list[Diagnostic] = []
    for name in sorted(order, key=lambda n: heads[n] != n):
        node, head = graph.by_name[name], heads[name]
        mirrored = settled[head].count if head != name else 0
        before = known.get(name)
        if before is not None and before.head == head and mirrored in (0, before.count):
            settled[name] = before
        else:
            settled[name] = _partitioned(graph, node, head, mirrored, faults)
    faults += _inputs_of_several(graph, settled)
    faults += (fault for node in graph.nodes for fault in _unkeyed(graph, node, settled[node.name]))
    faults += (fault for node in graph.nodes for fault in _state_by_other_keys(graph, node, settled[node.name]))
    faults += localities_have_an_effect(graph, {name: found.count for name, found in settled.items()})
    return settled, merge_alike(faults, graph)


def _inputs_of_several(graph: Graph, settled: Mapping[str, Partitioning]) -> Iterator[Diagnostic]:
    """Report the partitions of an input operator, which runs once, unless other operators mirror their number."""
    mirrored = {found.head for name, found in settled.items() if found.head != name}
    for node in graph.nodes:
        # A PARTITIONER of the application is for the other operators, and also reaches this one.
        is_own = OperatorContext.PARTITIONER in node.attributes or OperatorContext.PARTITIONER not in graph.attributes
        count = settled[node.name].count
        if node.is_input and count > 1 and is_own and node.name not in mirrored:
            _, origin = partitioner_of(graph, node)
            yield Diagnostic(
                "partition-forbidden",
                f"{node.name} runs once, on the driver, but its partitioner makes {count} partitions",
                f"set PARTITIONER of {node.name} to None; to read in parts, add an operator for each part",
                (origin.where if origin else None) or node.where,
                # A pattern of names may set it for other operators, too.
                Severity.WARNING,
            )


def _unkeyed(graph: Graph, node: Node, partitioning: Partitioning) -> Iterator[Diagnostic]:
    """Report partitions without keys: each of them gets every item, or an arbitrary share of what the driver sends."""
    if partitioning.count == 1 or any(partition.keys for partition in partitioning.partitions):
        return
    mirror = partitioning.head != node.name
    for port in keyable(graph, node):
        distributed = _fed_by_driver(graph, node.name, port) or takes_work(node, port)
        keyed_by = _keyed_by(node, port, mirror=mirror)
        if keyed_by is None and (distributed or mirror):
            continue
        gets = (
            "any partition may get any item" if distributed else f"each item reaches all {partitioning.count} of them"
        )
        _, origin = partitioner_of(graph, node)
        yield Diagnostic(
            "partition-unkeyed",
            f"no partition of {node.name} owns keys of {node.name}.{port}, so {gets}"
            + (f", whatever its {keyed_by} says" if keyed_by else ""),
            "give each Partition keys={port: owned}, for owned in assign_keys(count), as StatelessPartitioner does",
            (origin.where if origin else None) or node.where,
            Severity.WARNING if keyed_by is None else Severity.ERROR,
        )


def _state_by_other_keys(graph: Graph, node: Node, partitioning: Partitioning) -> Iterator[Diagnostic]:
    """Report state by key whose keys are parts of items that go to partitions as a whole: a key may be in several."""
    states = [
        (name, state) for name, state in declared_state(type(node.operator)).items() if isinstance(state, KeyedState)
    ]
    routed = [port for port in keyable(graph, node) if partitioning.keyed_on(port)]
    if not states or partitioning.count == 1:
        return
    for port in routed:
        declared, item = node.input_ports[port], node.payload(node.input_ports[port])
        if declared.is_keyed or node.port_value(port, PortContext.STREAM_CODEC) is not None or not is_known(item):
            continue
        for name, state in states:
            key = substitute(state.held[0], node.bindings)
            if is_known(key) and not assignable(item, key):
                yield Diagnostic(
                    "state-unkeyed",
                    f"{node.name}.{name} has keys of {spelled(key)}, but the items of {node.name}.{port} "
                    f"({spelled(item)}) go to its {partitioning.count} partitions as a whole, so that several of them "
                    "may keep a value of one key",
                    f"declare {port} with key=, a function from the item to that key",
                    node.where,
                    Severity.WARNING,
                )


def takes_work(node: Node, port: str) -> bool:
    """Whether items at this input are work that can be split, and that any partition may do."""
    return isinstance(node.operator, SplittableOperator) and port == work_port(node.operator)


def _fed_by_driver(graph: Graph, node: str, port: str) -> bool:
    sources = [stream.source.node for stream in graph.streams_into(node, port) if stream.source is not None]
    return all(graph.by_name[source].is_input for source in sources)


def _keyed_by(node: Node, port: str, *, mirror: bool) -> str | None:
    """The setting by which items of this input go to partitions by key; None if there is none."""
    if node.port_value(port, PortContext.STREAM_CODEC) is not None:
        return "STREAM_CODEC"
    if node.input_ports[port].is_keyed:
        return "key="
    states = declared_state(type(node.operator)).items()
    keyed = next((name for name, state in states if isinstance(state, KeyedState)), None)
    return None if keyed is None or mirror else f"KeyedState {keyed!r}"


def _partitioned(graph: Graph, node: Node, head: str, mirrored: int, faults: list[Diagnostic]) -> Partitioning:
    partitioner, origin = partitioner_of(graph, node)
    parallel_why = Why(source="parallel", text=f"mirrors {head}, by PARTITION_PARALLEL ({_parallel_origin(node)})")
    alone = Partition(node.operator)
    if partitioner is None:
        if mirrored:
            return Partitioning((alone,) * mirrored, parallel_why, head)
        return Partitioning((alone,), Why(source="default", text="default"), head)
    context = PartitioningContext(parallel_count=mirrored, input_ports=keyable(graph, node))
    partitions, fault = ask(partitioner, (alone,), context, node, origin)
    if fault is None and mirrored and len(partitions) != mirrored:
        fault = _mismatch(node, head, mirrored, len(partitions))
    if fault is not None:
        faults.append(fault)
        return Partitioning((alone,) * max(1, mirrored), Why(source="default", text="default"), head)
    return Partitioning(partitions, parallel_why if mirrored else _why(node, partitioner, origin), head)


def partitioner_of(graph: Graph, node: Node) -> tuple[Partitioner | None, Origin | None]:
    """The PARTITIONER attribute with its origin if it is set, even to `None`; else the operator, if a Partitioner."""
    setting = graph.set_on(node, OperatorContext.PARTITIONER)
    if setting is not None:
        return (setting.value if isinstance(setting.value, Partitioner) else None), setting.origin
    return (node.operator if isinstance(node.operator, Partitioner) else None), None


def _mismatch(node: Node, head: str, wanted: int, got: int) -> Diagnostic:
    lost = "some would get nothing" if got > wanted else "the items of some would be lost"
    return Diagnostic(
        "parallel-count-mismatch",
        f"{node.name} mirrors the {wanted} partitions of {head}, but its partitioner makes {got}: {lost}",
        "let define_partitions return context.parallel_count partitions, or remove PARTITION_PARALLEL",
        node.where,
    )


def keyable(graph: Graph, node: Node) -> tuple[str, ...]:
    """The connected inputs that may be keyed, in the order of the class: the order of wiring must not matter."""
    # Apex keys the input that was wired first, so two programs that draw one graph in another order differ. Here equal
    # graphs have equal plans and fingerprints. An author who reorders the ports of a class changes plans.
    return tuple(
        port
        for port in node.input_ports
        if graph.streams_into(node.name, port) and not node.port_value(port, PortContext.PARTITION_PARALLEL)
    )


def _why(node: Node, partitioner: Partitioner, origin: Origin | None) -> Why:
    if origin is None:
        return Why(source="operator", text=f"{type(node.operator).__name__} partitions itself")
    described = f"{type(partitioner).__name__} set by"
    if origin.source is Source.CODE:
        return Why(source="code", text=f"{described} {origin}")
    return Why(source="property", text=f"{described} {origin}")


def _parallel_origin(node: Node) -> Origin:
    for settings in node.inputs.values():
        if PortContext.PARTITION_PARALLEL in settings and settings[PortContext.PARTITION_PARALLEL].value:
            return settings[PortContext.PARTITION_PARALLEL].origin
    return DEFAULT
