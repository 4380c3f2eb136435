"""Partitions of an operator, the keys that each owns, and the partitioners that decide them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, PositiveInt

from dagkit.api.stats import BatchedOperatorStats

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The keys that a partition owns at one input: it gets the items whose masked routing code is in `keys`."""

    mask: int
    keys: frozenset[int]

    def owns(self, code: int) -> bool:
        return (code & self.mask) in self.keys


@dataclass(frozen=True, slots=True)
class Partition:
    """One physical instance of an operator."""

    operator: Any
    keys: Mapping[str, PartitionKeys] = field(default_factory=dict)
    """The keys that it owns, by input; at an input without keys it gets every item."""
    load: int = 0
    """The last load that the listeners reported. Below zero: it has capacity left. Above zero: it is overloaded."""
    stats: BatchedOperatorStats | None = None
    """Its last statistics; None before the first window, when the partitioner defines the initial partitions."""


@dataclass(frozen=True, slots=True)
class PartitioningContext:
    """The information that a partitioner gets, besides the partitions."""

    parallel_count: int = 0
    """The number of partitions that a parallel-partitioned operator must have; zero if it may choose."""
    input_ports: tuple[str, ...] = ()
    """The connected input ports that can have keys, in the order of declaration."""
    wanted: int = 0
    """The number of partitions that a listener or the user requests; zero if neither does."""


class Partitioner(ABC):
    """Decides the partitions of an operator, first at compile time, and again when a listener requests a change."""

    @abstractmethod
    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        """Return the new partitions. A partition that is returned unchanged keeps running as it is.

        The compiler calls it with one partition. While the application runs, the engine calls it on the driver with
        the current partitions.
        """

    def partitioned(self, partitions: Mapping[int, Partition]) -> None:
        """Called after a change, with the partitions of the next window, by physical ID."""


def mask_for(count: int) -> int:
    """The smallest mask of ones that distinguishes `count` partitions."""
    return (1 << (count - 1).bit_length()) - 1


def assign_keys(count: int) -> list[PartitionKeys]:
    """All keys of the mask, assigned in turn: of three partitions, the first owns {0, 3}, then {1} and {2}."""
    mask = mask_for(count)
    return [PartitionKeys(mask, frozenset(range(index, mask + 1, count))) for index in range(count)]


class StatelessPartitioner(BaseModel, Partitioner):
    """Creates a number of equal partitions, which share the keys of the first input. Load splits or merges them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    partition_count: PositiveInt = 1

    # Files give the number as text, and without its name: `StatelessPartitioner:8`.
    def __init__(self, partition_count: int | str = 1, /, **properties: Any) -> None:
        super().__init__(**{"partition_count": partition_count, **properties})

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        if context.parallel_count:
            return _matched(partitions, context.parallel_count)
        if context.wanted:
            return _keyed(as_many(partitions, context.wanted), context)
        if is_first_call(partitions):
            return _keyed([partitions[0]] * self.partition_count, context)
        return _rebalanced_keys(partitions, context.input_ports[0]) if context.input_ports else partitions


def is_first_call(partitions: Sequence[Partition]) -> bool:
    """Whether these are the initial partitions: one, which has not run."""
    first = partitions[0]
    return len(partitions) == 1 and first.stats is None and not first.keys and not first.load


def as_many(partitions: Sequence[Partition], count: int) -> list[Partition]:
    """The first `count` partitions; if there are fewer, copies of the first are added."""
    return [*partitions[:count], *[Partition(partitions[0].operator)] * (count - len(partitions))]


def _keyed(partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
    if not context.input_ports:
        return [replace(partition, keys={}) for partition in partitions]
    port = context.input_ports[0]
    assigned = assign_keys(len(partitions))
    return [replace(partition, keys={port: keys}, load=0) for partition, keys in zip(partitions, assigned, strict=True)]


def _matched(partitions: Sequence[Partition], count: int) -> list[Partition]:
    """Exactly `count` partitions: surplus ones are removed from the front, and missing ones are copies of the first."""
    kept = list(partitions[max(0, len(partitions) - count) :])
    return kept + [Partition(partitions[0].operator) for _ in range(count - len(kept))]


def _rebalanced_keys(partitions: Sequence[Partition], port: str) -> list[Partition]:
    """Merge idle siblings, whose keys differ only in the top bit of the mask, and split loaded partitions."""
    result: list[Partition] = []
    idle: dict[tuple[int, int], Partition] = {}
    for partition in partitions:
        keys = partition.keys[port]
        if partition.load > 0:
            result += [_owning(partition, port, part) for part in _split(keys)]
        elif partition.load < 0 and keys.mask and len(keys.keys) == 1:
            (key,) = keys.keys
            sibling = idle.pop((keys.mask, key ^ ((keys.mask + 1) >> 1)), None)
            if sibling is None:
                idle[keys.mask, key] = partition
            else:
                narrower = keys.mask >> 1
                result.append(_owning(partition, port, PartitionKeys(narrower, frozenset({key & narrower}))))
        else:
            result.append(partition)
    return result + list(idle.values())


def _split(keys: PartitionKeys) -> list[PartitionKeys]:
    if len(keys.keys) > 1:
        return [PartitionKeys(keys.mask, frozenset({key})) for key in sorted(keys.keys)]
    (key,) = keys.keys
    wider = (keys.mask << 1) | 1
    return [PartitionKeys(wider, frozenset({key})), PartitionKeys(wider, frozenset({key | (wider ^ keys.mask)}))]


def _owning(partition: Partition, port: str, keys: PartitionKeys) -> Partition:
    return replace(partition, keys={**partition.keys, port: keys}, load=0)
