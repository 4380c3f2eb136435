"""Statistics of operators, and the listeners that receive them.

Before each window, and every HEARTBEAT_INTERVAL_MILLIS while the application is idle, the engine calls each listener
of an operator once for each partition, in the order of the partitions. The first call comes before the first window:
the backlog is known, and nothing has been measured.

The listeners of an operator are the objects in STATS_LISTENERS, and the operator itself if it is a StatsListener. They
live on the driver as long as the launch, so they can keep values between two calls.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from pydantic import JsonValue

from dagkit.ground.amounts import BYTE
from dagkit.ranges import Progress

_N = TypeVar("_N", int, float)


def by_unit(amounts: Iterable[tuple[str, _N]]) -> dict[str, _N]:
    """The sum of the amounts of each unit, without those that are 0."""
    sums: dict[str, _N] = {}
    for unit, amount in amounts:
        if amount:
            sums[unit] = sums[unit] + amount if unit in sums else amount
    return sums


@dataclass(frozen=True, slots=True)
class PortStats:
    """The items that passed one port in one window."""

    port: str
    tuple_count: int = 0
    queue_size: int = 0
    """Blocks and items that wait. The partitions of a reader share one queue; each reports its share of the length."""
    bytes: int = 0
    end_window_timestamp: datetime | None = None
    """The time at which the window ended at this port."""


@dataclass(frozen=True, slots=True)
class WorkProgress:
    """The progress of unfinished work on an element, or on a part of one, at the end of a window."""

    source: str
    """The name of the element in the ledger."""
    completed: float
    """The work that is done: positions, or the unit of the operator's `size` if its restrictions are not offsets."""
    remaining: float | None
    """The work that is left; None if it has no end."""

    @property
    def fraction(self) -> float | None:
        """The fraction of the work that is done; None if it has no end."""
        return None if self.remaining is None else Progress(self.completed, self.remaining).fraction_completed


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """The statistics of one partition in one window."""

    window_id: int
    input_ports: tuple[PortStats, ...] = ()
    """The connected input ports, in the order of declaration."""
    output_ports: tuple[PortStats, ...] = ()
    cpu_nanos: int = 0
    """CPU time of the whole stage that the operator is fused into."""
    busy_millis: float = 0.0
    """Time for which the operator worked, including waits for disks and networks. Of operators that are fused, it is
    estimated by samples; together they have the time of their slot."""
    positions: int = 0
    """The number of positions of blocks that were read, in `unit`."""
    unit: str = BYTE
    """The noun for one position."""
    reads: bool = True
    """Whether positions are those of what it reads; an operator that divides files for others reads none."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """The metrics of the operator, by name."""
    underway: tuple[WorkProgress, ...] = ()
    """The work that was begun and is not finished, without what no slot has begun."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The unfinished work of all partitions of an operator."""

    blocks: int = 0
    """Blocks that were discovered and are not read to their end, including those in a window that runs."""
    positions: int = 0
    """The total length of these blocks; for files, in bytes. Blocks without an end do not count."""
    pieces: int = 0
    """The number of slots that could work at the same time. A block that can be split counts more than once."""
    endless: int = 0
    """Blocks without an end. Each keeps a slot busy."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of the cluster, and the measured costs of windows."""

    cores: int = 1
    """Slots that the cluster can run at the same time now."""
    most_cores: int = 1
    """Slots that the cluster could run at the same time if it grew to its limit."""
    positions_per_second: float | None = None
    """The measured speed of one busy slot; None until it is measured."""
    window_millis: float = 0.0
    """The overhead of a window."""
    slot_millis: float = 0.0
    """The overhead of each slot in a window."""


@dataclass(frozen=True, slots=True)
class BatchedOperatorStats:
    """The statistics of one partition since the last call, and the backlog of all partitions."""

    operator_id: int
    current_window_id: int
    """The last window that was committed."""
    last_windowed_stats: Sequence[OperatorStats] = ()
    """The windows since the last call of the listener; empty before the first window."""
    tuples_processed_psma: float = 0.0
    """Items per second, as a moving average."""
    tuples_emitted_psma: float = 0.0
    cpu_percentage_ma: float = 0.0
    latency_ma_millis: float = 0.0
    """From the start of a window until it ends at this operator."""
    operator: str = ""
    """The operator's name in the application."""
    partition: int = 0
    """The number of this partition, counted from zero. In the last call of a round it is `partitions - 1`."""
    partitions: int = 1
    """The number of partitions now."""
    at: datetime | None = None
    """The time of the report, by the clock of the launch."""
    backlog: Backlog | None = None
    """None if the operator is not a reader, because only readers have a queue of blocks."""
    capacity: Capacity = Capacity()


@dataclass(frozen=True, slots=True)
class Response:
    """The changes that a listener requests."""

    repartition_required: bool = False
    """Whether the engine calls the partitioner."""
    load_indicator: int = 0
    """Below zero: this partition has capacity left. Above: it is overloaded. It becomes `Partition.load`."""
    repartition_note: str = ""
    """A short reason for the change, for the ledger."""
    partitions: int | None = None
    """The requested number of partitions, if any. It becomes `PartitioningContext.wanted`."""
    policy: str = ""
    """The name of what decided, for the ledger; empty for the class of the listener."""
    inputs: Mapping[str, JsonValue] | None = None
    """The inputs of the decision, if one was made. The ledger records them even if nothing changes."""


class DataQueueSize:
    """Marks a listener whose queue sizes exclude control tuples. It has no effect: here no control tuples wait."""


class StatsListener(ABC):
    """Receives the statistics of each partition, and may request other partitions."""

    @abstractmethod
    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        """Return the changes to make, given the statistics of one partition. Called on the driver."""
