"""Repartitioning: compile the same graph with other partitions of some operators. Nothing else changes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from dagkit.api.operators import Operator
from dagkit.api.partitioning import Partition, PartitioningContext, StatelessPartitioner
from dagkit.api.stats import BatchedOperatorStats
from dagkit.compiler.fuse import fuse
from dagkit.compiler.order import order, running_order
from dagkit.compiler.partition import Partitioning, keyable, partition, partitioner_of
from dagkit.compiler.partition_answers import ask, invalid
from dagkit.compiler.steps import Compilation
from dagkit.errors import ApplicationFaults, Diagnostic, did_you_mean, errors_among
from dagkit.graph import Graph, Node


def repartitioned(compilation: Compilation, partitions: Mapping[str, Sequence[Partition]]) -> Compilation:
    """The compilation with these partitions of these operators. Their mirrors follow; all other counts stay.

    Raise `ApplicationFaults` if that breaks a rule.
    """
    graph, before = compilation.graph, compilation.partitioned
    faults = [invalid(graph.by_name[name], new) for name, new in partitions.items()]
    if any(faults):
        raise ApplicationFaults(compilation.application, [fault for fault in faults if fault])
    changed = {name: replace(before[name], partitions=tuple(new)) for name, new in partitions.items()}
    return relowered(compilation, graph, {**before, **changed})


def relowered(compilation: Compilation, graph: Graph, known: Mapping[str, Partitioning]) -> Compilation:
    """The compilation of a checked graph, with its known partitions."""
    partitioned, faults = partition(graph, running_order(graph), known)
    if errors_among(faults):
        raise ApplicationFaults(compilation.application, faults)
    fused = fuse(graph, partitioned)
    steps = {**compilation.steps, "checked": graph, "fused": fused, "ordered": order(fused)}
    return replace(compilation, steps=steps, partitioned=partitioned)


def redefined(
    compilation: Compilation,
    operator: str,
    *,
    wanted: int = 0,
    loads: Sequence[int] = (),
    stats: Sequence[BatchedOperatorStats] = (),
) -> tuple[Partition, ...]:
    """The partitions that an operator's partitioner makes, given how many are wanted, their loads and statistics.

    Raise `ApplicationFaults` if the partitions of the operator may not change, or its partitioner returns invalid ones.
    """
    graph, now = compilation.graph, compilation.partitioned
    fault = _unchangeable(graph, now, operator)
    if fault is not None:
        raise ApplicationFaults(compilation.application, [fault])
    node = graph.by_name[operator]
    partitioner, origin = partitioner_of(graph, node)
    known = zip_longest(now[operator].partitions, loads, stats)
    current = [replace(old, load=load or 0, stats=seen) for old, load, seen in known]
    context = PartitioningContext(input_ports=keyable(graph, node), wanted=wanted)
    partitions, fault = ask(partitioner or StatelessPartitioner(max(1, wanted)), current, context, node, origin)
    if fault is None and wanted and len(partitions) != wanted:
        fault = Diagnostic(
            "partition-invalid",
            f"{operator} is to have {wanted} partitions, but its {type(partitioner).__name__} makes {len(partitions)}",
            "let define_partitions return context.wanted partitions, or request as many as it makes",
            (origin.where if origin else None) or node.where,
        )
    if fault is not None:
        raise ApplicationFaults(compilation.application, [fault])
    return tuple(replace(new, load=0, stats=None) for new in partitions)


def _unchangeable(graph: Graph, now: Mapping[str, Partitioning], operator: str) -> Diagnostic | None:
    """Why the partitions of this operator may not change; None if they may."""
    if operator not in graph.by_name:
        help_ = did_you_mean(operator, graph.by_name)
        return Diagnostic("partition-forbidden", f"there is no operator {operator!r}", help_, graph.where)
    node = graph.by_name[operator]
    problem = _why_not(node, now[operator])
    return None if problem is None else Diagnostic("partition-forbidden", *problem, node.where)


def _why_not(node: Node, now: Partitioning) -> tuple[str, str] | None:
    name, head = node.name, now.head
    if node.is_input:
        return f"{name} runs once, on the driver", "give the operators downstream of it more partitions"
    if head != name:
        return f"{name} mirrors the partitions of {head}, by PARTITION_PARALLEL", f"change those of {head} instead"
    if isinstance(node.operator, Operator) and not node.operator.partitionable:
        help_ = f"set partitionable = True on {type(node.operator).__name__}, if several may share its work"
        return f"{name} may not be partitioned", help_
    return None
