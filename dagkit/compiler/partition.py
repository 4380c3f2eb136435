"""Partitioning: as how many each operator runs, which keys each partition owns, and who said so."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from dagkit.api.attributes import Locality, OperatorContext, PortContext
from dagkit.api.configuration import DEFAULT, Origin, Source
from dagkit.api.operators import InputOperator, Operator
from dagkit.api.partitioning import Partition, Partitioner, PartitioningContext, PartitionKeys
from dagkit.api.state import KeyedState, declared_state
from dagkit.api.traces import told
from dagkit.api.work import SplittableOperator, work_port
from dagkit.compiler.alike import told_once
from dagkit.compiler.rules.partition_rules import parallel_heads
from dagkit.errors import Diagnostic, Severity, Where, did_you_mean
from dagkit.graph import Graph, Node
from dagkit.plan.model import Why


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The partitions of one operator."""

    partitions: tuple[Partition, ...]
    why: Why
    head: str
    """The operator whose partitions it mirrors; itself where it mirrors none."""

    @property
    def count(self) -> int:
        return len(self.partitions)

    def keyed_on(self, port: str) -> bool:
        return any(port in partition.keys for partition in self.partitions)


def partition(
    graph: Graph, order: Sequence[str], known: Mapping[str, Partitioning] | None = None
) -> tuple[Mapping[str, Partitioning], list[Diagnostic]]:
    """The partitions of every operator, upstream first, so that a mirror knows what it mirrors.

    What is known stays as it is, but for mirrors of what has another count now.
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
    faults += (fault for node in graph.nodes for fault in _unkeyed(graph, node, settled[node.name]))
    faults += _unkept_localities(graph, settled)
    return settled, told_once(faults, graph)


def _unkept_localities(graph: Graph, settled: Mapping[str, Partitioning]) -> Iterator[Diagnostic]:
    """Ends that work in different processes, or exchange items, share neither a thread nor a container."""
    for stream, source, sink in graph.edges():
        if (
            stream.locality not in (Locality.THREAD_LOCAL, Locality.CONTAINER_LOCAL)
            or graph.by_name[source.node].is_delay
        ):
            continue
        reason = None
        if isinstance(graph.by_name[source.node].operator, InputOperator):
            reason = f"{source.node} finds work on the driver, and {sink.node} does it on the workers"
        elif not graph.by_name[sink.node].port_value(sink.port, PortContext.PARTITION_PARALLEL) and (
            settled[source.node].count > 1 or settled[sink.node].count > 1
        ):
            reason = f"items change partitions between {source.node} and {sink.node}"
        if reason is not None:
            yield Diagnostic(
                "locality-ignored",
                f"{stream.locality} of stream {stream.name!r} has no effect here: {reason}",
                "remove it when the application runs nowhere else",
                stream.locality_origin.where or stream.where,
                Severity.ADVISORY,
            )


def _unkeyed(graph: Graph, node: Node, partitioning: Partitioning) -> Iterator[Diagnostic]:
    """Several partitions of which none owns keys all get every item, or share what the driver deals at random."""
    if partitioning.count == 1 or any(partition.keys for partition in partitioning.partitions):
        return
    mirror = partitioning.head != node.name
    for port in keyable(graph, node):
        dealt = _fed_by_driver(graph, node.name, port) or takes_work(node, port)
        keyed_by = _keyed_by(node, port, mirror=mirror)
        if keyed_by is None and (dealt or mirror):
            continue
        gets = "any of them gets any item" if dealt else f"each item reaches all {partitioning.count} of them"
        _, origin = partitioner_of(graph, node)
        yield Diagnostic(
            "partition-unkeyed",
            f"no partition of {node.name} owns keys of {node.name}.{port}, so {gets}"
            + (f", whatever its {keyed_by} says" if keyed_by else ""),
            "give each Partition keys, as in keys={port: owned} of deal_keys(count); StatelessPartitioner does so",
            (origin.where if origin else None) or node.where,
            Severity.WARNING if keyed_by is None else Severity.ERROR,
        )


def takes_work(node: Node, port: str) -> bool:
    """Whether what comes in there is work that can be split, and goes to any partition."""
    return isinstance(node.operator, SplittableOperator) and port == work_port(node.operator)


def _fed_by_driver(graph: Graph, node: str, port: str) -> bool:
    sources = [stream.source.node for stream in graph.streams_into(node, port) if stream.source is not None]
    return all(isinstance(graph.by_name[source].operator, InputOperator) for source in sources)


def _keyed_by(node: Node, port: str, *, mirror: bool) -> str | None:
    """What says that the items of this input are to find their partition by a key."""
    if node.port_value(port, PortContext.STREAM_CODEC) is not None:
        return "STREAM_CODEC"
    if node.input_ports[port].key is not None:
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
    partitions, fault = asked(partitioner, (alone,), context, node, origin)
    if fault is None and mirrored and len(partitions) != mirrored:
        fault = _mismatch(node, head, mirrored, len(partitions))
    if fault is not None:
        faults.append(fault)
        return Partitioning((alone,) * max(1, mirrored), Why(source="default", text="default"), head)
    return Partitioning(partitions, parallel_why if mirrored else _why(node, partitioner, origin), head)


def partitioner_of(graph: Graph, node: Node) -> tuple[Partitioner | None, Origin | None]:
    """The PARTITIONER attribute where anybody set it, `None` included; else the operator, if it is one itself."""
    if OperatorContext.PARTITIONER in node.attributes or OperatorContext.PARTITIONER in graph.attributes:
        setting = graph.setting(node, OperatorContext.PARTITIONER)
        return (setting.value if isinstance(setting.value, Partitioner) else None), setting.origin
    return (node.operator if isinstance(node.operator, Partitioner) else None), None


def asked(
    partitioner: Partitioner,
    partitions: Sequence[Partition],
    context: PartitioningContext,
    node: Node,
    origin: Origin | None,
) -> tuple[tuple[Partition, ...], Diagnostic | None]:
    """What the partitioner answers, and what is wrong with the answer."""
    said = f"the {type(partitioner).__name__} of {node.name}"
    where = (origin.where if origin else None) or node.where
    help_ = "define_partitions must give back at least one Partition"
    try:
        given: Any = partitioner.define_partitions(partitions, context)
        answer = () if given is None else tuple(given)
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - the author's code may raise anything: it is reported
        return (), Diagnostic("partition-invalid", f"{said} raised {told(raised)}", help_, where)
    if not answer:
        return (), Diagnostic("partition-invalid", f"{said} gave no partitions", help_, where)
    return answer, invalid(node, answer, said, where)


def invalid(node: Node, answer: Sequence[Any], said: str = "", where: Where | None = None) -> Diagnostic | None:
    """What is wrong with the partitions that somebody gave an operator."""
    wrong = next(_no_partitions(answer), None) or next(_wrong_keys(answer, node), None)
    if wrong is None:
        return None
    whose = said or f"whoever partitioned {node.name}"
    return Diagnostic("partition-invalid", f"{whose} {wrong[0]}", wrong[1], where or node.where)


def _no_partitions(answer: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """What is no Partition, or is made of something else than an operator and keys, and what to do."""
    for given in answer:
        if not isinstance(given, Partition):
            yield f"gave {_described(given)}, not Partition", "give back a list of Partition(operator, keys)"
        elif not isinstance(given.operator, Operator):
            yield f"gave a Partition of {_described(given.operator)}, not of an operator", "write Partition(operator)"
        elif not isinstance(_untyped(given.keys), Mapping):
            yield f"gave keys of {_described(given.keys)}, not by port", "write keys={port: PartitionKeys(mask, keys)}"


def _untyped(value: Any) -> Any:
    """The value as authors gave it, who need not have kept to the type."""
    return value


def _described(given: object) -> str:
    return (
        "None" if given is None else f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    )


def _wrong_keys(partitions: Sequence[Partition], node: Node) -> Iterator[tuple[str, str]]:
    """What is wrong with the keys of partitions, and what to do: authors write these too."""
    owned: list[tuple[Any, Any]] = [entry for partition in partitions for entry in partition.keys.items()]
    for port, keys in owned:
        if port not in node.input_ports:
            yield f"keys {port!r}, which is no input of {node.name}", did_you_mean(str(port), node.input_ports)
        elif not isinstance(keys, PartitionKeys):
            yield f"keys {port!r} by {_described(keys)}, not PartitionKeys", "write PartitionKeys(mask, keys)"
        elif not isinstance(_untyped(keys.mask), int):
            yield f"keys {port!r} with a mask of {_described(keys.mask)}, not int", "write PartitionKeys(mask, keys)"
        elif not _are_whole_numbers(keys.keys):
            help_ = "write PartitionKeys(mask, keys), keys a frozenset of whole numbers"
            yield f"keys {port!r} by {_described(keys.keys)}, not frozenset of int", help_
    for port in dict.fromkeys(port for port, _ in owned):
        wrong = _not_shared_out([partition.keys.get(port) for partition in partitions])
        if wrong is not None:
            yield f"keys {port!r} so that {wrong}", "let deal_keys(count) share them out, one entry for each partition"


def _are_whole_numbers(keys: object) -> bool:
    return isinstance(keys, AbstractSet | Sequence) and all(isinstance(key, int) for key in keys)


def _not_shared_out(owners: Sequence[PartitionKeys | None]) -> str | None:
    """Why some items would be lost or doubled; each code must have one owner, and masks may differ."""
    owning = [keys for keys in owners if keys is not None]
    if len(owning) < len(owners):
        return f"{len(owners) - len(owning)} of {len(owners)} partitions have none of them"
    if any(keys.mask < 0 for keys in owning):
        return "a mask is below zero"
    reached = [(keys.mask, frozenset(key for key in keys.keys if key & ~keys.mask == 0)) for keys in owning]
    for (mask, some), (other_mask, others) in combinations(reached, 2):
        common = mask & other_mask
        if {key & common for key in some} & {key & common for key in others}:
            return "two partitions own the same, whose items would be doubled"
    if sum(Fraction(len(keys), 1 << mask.bit_count()) for mask, keys in reached) < 1:
        return "some have no owner, and their items would be lost"
    return None


def _mismatch(node: Node, head: str, wanted: int, got: int) -> Diagnostic:
    lost = "some would get nothing" if got > wanted else "the items of some would be lost"
    return Diagnostic(
        "parallel-count-mismatch",
        f"{node.name} mirrors the {wanted} partitions of {head}, but its partitioner makes {got}: {lost}",
        "let define_partitions follow context.parallel_count, or remove PARTITION_PARALLEL",
        node.where,
    )


def keyable(graph: Graph, node: Node) -> tuple[str, ...]:
    """The connected inputs that may be keyed, as the class declares them: the order of wiring must not matter."""
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
