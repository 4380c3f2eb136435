"""Check the answers of partitioners: partitions of the right type, whose keys give each item exactly one owner."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

from dagkit.api.configuration import Origin
from dagkit.api.operators import Operator
from dagkit.api.partitioning import Partition, Partitioner, PartitioningContext, PartitionKeys
from dagkit.api.traces import summary
from dagkit.errors import Diagnostic, Where, did_you_mean
from dagkit.graph import Node


def ask(
    partitioner: Partitioner,
    partitions: Sequence[Partition],
    context: PartitioningContext,
    node: Node,
    origin: Origin | None,
) -> tuple[tuple[Partition, ...], Diagnostic | None]:
    """Ask the partitioner for partitions. Return them, and the fault if they are invalid or it raised."""
    subject = f"the {type(partitioner).__name__} of {node.name}"
    where = (origin.where if origin else None) or node.where
    help_ = "define_partitions must return at least one Partition"
    try:
        returned: Any = partitioner.define_partitions(partitions, context)
        answer = () if returned is None else tuple(returned)
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - the author's code may raise anything: it is reported
        return (), Diagnostic("partition-invalid", f"{subject} raised {summary(raised)}", help_, where)
    if not answer:
        return (), Diagnostic("partition-invalid", f"{subject} returned no partitions", help_, where)
    fault = invalid(node, answer, subject, where)
    return (answer if fault else _with_shared_keys(node, answer, context)), fault


def _with_shared_keys(
    node: Node, partitions: Sequence[Partition], context: PartitioningContext
) -> tuple[Partition, ...]:
    """The partitions, which own at some inputs the keys that they own at another one."""
    sharing = {port: node.input_ports[port].keys_of for port in context.input_ports}
    return tuple(
        replace(
            partition,
            keys={
                **partition.keys,
                **{port: partition.keys[other] for port, other in sharing.items() if other and other in partition.keys},
            },
        )
        for partition in partitions
    )


def invalid(node: Node, answer: Sequence[Any], subject: str = "", where: Where | None = None) -> Diagnostic | None:
    """The first fault in partitions that were given to an operator; None if they are valid."""
    wrong = next(_no_partitions(answer), None) or next(_wrong_keys(answer, node), None)
    if wrong is None:
        return None
    subject = subject or f"the new partitioning of {node.name}"
    return Diagnostic("partition-invalid", f"{subject} {wrong[0]}", wrong[1], where or node.where)


def _no_partitions(answer: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """A problem and its help for each part that is not a Partition of an operator and keys by port."""
    for partition in answer:
        if not isinstance(partition, Partition):
            yield f"returned {_described(partition)}, not Partition", "return a list of Partition(operator, keys)"
        elif not isinstance(partition.operator, Operator):
            yield (
                f"returned a Partition of {_described(partition.operator)}, not an operator",
                "write Partition(operator)",
            )
        elif not isinstance(_untyped(partition.keys), Mapping):
            help_ = "write keys={port: PartitionKeys(mask, keys)}"
            yield f"returned keys of {_described(partition.keys)}, not by port", help_


def _untyped(value: Any) -> Any:
    """The value without its declared type, which an author's code may have ignored."""
    return value


def _described(value: object) -> str:
    return (
        "None" if value is None else f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    )


def _wrong_keys(partitions: Sequence[Partition], node: Node) -> Iterator[tuple[str, str]]:
    """A problem and its help for each fault in the keys of partitions, which authors may write by hand."""
    owned: list[tuple[Any, Any]] = [entry for partition in partitions for entry in partition.keys.items()]
    for port, keys in owned:
        if port not in node.input_ports:
            yield f"keys {port!r}, which is not an input of {node.name}", did_you_mean(str(port), node.input_ports)
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
            yield f"keys {port!r} so that {wrong}", "use assign_keys(count), which returns one entry for each partition"


def _are_whole_numbers(keys: object) -> bool:
    return isinstance(keys, AbstractSet | Sequence) and all(isinstance(key, int) for key in keys)


def _not_shared_out(owners: Sequence[PartitionKeys | None]) -> str | None:
    """Why some items would be lost or doubled; None if each code has exactly one owner. Masks may differ."""
    owning = [keys for keys in owners if keys is not None]
    if len(owning) < len(owners):
        return f"{len(owners) - len(owning)} of {len(owners)} partitions have none of them"
    if any(keys.mask < 0 for keys in owning):
        return "a mask is negative"
    # No masked code equals a key with a bit outside of the mask, so such a key owns nothing.
    reached = [(keys.mask, frozenset(key for key in keys.keys if key & ~keys.mask == 0)) for keys in owning]
    for (mask, some), (other_mask, others) in combinations(reached, 2):
        # Two keys own a common code if they agree in all bits that both masks have.
        common = mask & other_mask
        if {key & common for key in some} & {key & common for key in others}:
            return "two partitions own the same key, and its items would be doubled"
    # Exact: a sum of floats may miss 1.
    if sum(Fraction(len(keys), 1 << mask.bit_count()) for mask, keys in reached) < 1:
        return "some keys have no owner, and their items would be lost"
    return None
