"""How one operator becomes several: partitions, the keys they own, and who decides."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, PositiveInt

from dagkit.api.stats import BatchedOperatorStats

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The keys that a partition owns at one input: an item goes where its code, masked, is among the keys."""

    mask: int
    keys: frozenset[int]

    def owns(self, code: int) -> bool:
        return (code & self.mask) in self.keys


@dataclass(frozen=True, slots=True)
class Partition:
    """One physical instance of an operator."""

    operator: Any
    keys: Mapping[str, PartitionKeys] = field(default_factory=dict)
    """What it owns at each keyed input; an input without keys gets every item."""
    load: int = 0
    """Below zero: could do more. Above: overloaded. As the listeners had it last."""
    stats: BatchedOperatorStats | None = None
    """What it did last; None before the first window, when it is asked what there shall be to begin with."""


@dataclass(frozen=True, slots=True)
class PartitioningContext:
    """What a partitioner may know."""

    parallel_count: int = 0
    """The count that a parallel-partitioned operator must take over; zero where it is free."""
    input_ports: tuple[str, ...] = ()
    """The connected input ports that may be keyed, in the order in which the class declares them."""
    wanted: int = 0
    """The count that a listener or the user asks for; zero if neither does."""


class Partitioner(ABC):
    """Decides the partitions of an operator, at first and whenever its statistics ask for a change."""

    @abstractmethod
    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        """The partitions there shall be; a partition handed back unchanged is left alone.

        Asked first with one partition, before there is a plan, and later, while the application runs, with those that
        there are.
        """

    def partitioned(self, partitions: Mapping[int, Partition]) -> None:
        """Called with the partitions from the next window on, by physical id."""


def mask_for(count: int) -> int:
    """The narrowest mask of ones that distinguishes `count` partitions."""
    return (1 << (count - 1).bit_length()) - 1


def deal_keys(count: int) -> list[PartitionKeys]:
    """Every key of the mask, dealt in turn: three partitions own {0, 3}, {1} and {2}."""
    mask = mask_for(count)
    return [PartitionKeys(mask, frozenset(range(index, mask + 1, count))) for index in range(count)]


class StatelessPartitioner(BaseModel, Partitioner):
    """A fixed number of alike partitions, which share the keys of the first input; load splits and merges them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    partition_count: PositiveInt = 1

    def __init__(self, partition_count: int | str = 1, /, **properties: Any) -> None:
        super().__init__(**{"partition_count": partition_count, **properties})

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        if context.parallel_count:
            return _matched(partitions, context.parallel_count)
        if context.wanted:
            return _keyed(as_many(partitions, context.wanted), context)
        if is_first_call(partitions):
            return _keyed([partitions[0]] * self.partition_count, context)
        if not context.input_ports:
            return _rebalanced_inputs(partitions)
        return _rebalanced_keys(partitions, context.input_ports[0])


def is_first_call(partitions: Sequence[Partition]) -> bool:
    """Whether these are what a partitioner begins with: the operator alone, which has not run."""
    first = partitions[0]
    return len(partitions) == 1 and first.stats is None and not first.keys and not first.load


def as_many(partitions: Sequence[Partition], count: int) -> list[Partition]:
    """The first of the partitions, and copies of the first of all where there are too few."""
    return [*partitions[:count], *[Partition(partitions[0].operator)] * (count - len(partitions))]


def _keyed(partitions: Sequence[Partition], context: PartitioningContext) -> list[Partition]:
    if not context.input_ports:
        return [replace(partition, keys={}) for partition in partitions]
    port = context.input_ports[0]
    dealt = deal_keys(len(partitions))
    return [replace(partition, keys={port: keys}, load=0) for partition, keys in zip(partitions, dealt, strict=True)]


def _matched(partitions: Sequence[Partition], count: int) -> list[Partition]:
    """As many as the partitions they follow: those at the head go first, copies of the first come last."""
    kept = list(partitions[max(0, len(partitions) - count) :])
    return kept + [Partition(partitions[0].operator) for _ in range(count - len(kept))]


def _rebalanced_inputs(partitions: Sequence[Partition]) -> list[Partition]:
    """Input operators own no keys: two idle ones become one, a loaded one becomes two."""
    result: list[Partition] = []
    idle: list[Partition] = []
    for partition in partitions:
        if partition.load < 0:
            idle.append(partition)
            if len(idle) == 2:
                result.append(replace(idle.pop(0), load=0))
                idle.clear()
        elif partition.load > 0:
            result += [replace(partition, load=0), replace(partition, load=0)]
        else:
            result.append(partition)
    return result + idle


def _rebalanced_keys(partitions: Sequence[Partition], port: str) -> list[Partition]:
    """Idle siblings, whose keys differ in the top bit of the mask alone, are merged; loaded ones are split."""
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
