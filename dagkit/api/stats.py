"""What operators report, and who listens.

Before each window, and every HEARTBEAT_INTERVAL_MILLIS while there is nothing to do, the engine calls each listener of
an operator with the statistics of each partition, in the order of the partitions. The first call comes before the
first window, when there is a backlog and nothing was measured yet.
Listeners are the objects in STATS_LISTENERS, and the operator itself where it is one: always the logical operator, on
the driver, so that what it keeps between two calls is there at the next.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class PortStats:
    """What passed one port in one window."""

    port: str
    tuple_count: int = 0
    queue_size: int = 0
    """Blocks and items that wait. One queue serves all partitions of a reader, and each reports its share of it:
    the shares add up to the queue."""
    bytes: int = 0
    end_window_timestamp: datetime | None = None
    """When the window ended here."""


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """What one partition did in one window."""

    window_id: int
    input_ports: tuple[PortStats, ...] = ()
    """The connected ones, in the order in which the class declares them."""
    output_ports: tuple[PortStats, ...] = ()
    cpu_nanos: int = 0
    """Of the processor, by the stage that the operator is fused into."""
    busy_millis: float = 0.0
    """Time in which the slot was at work, waiting for disks and networks included."""
    positions: int = 0
    """How many positions of blocks were read: bytes, where a file is read."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """The metrics that the operator declares, by name."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for all partitions of an operator together."""

    blocks: int = 0
    """All that were found and not read to their end, those on their way in a window included."""
    positions: int = 0
    """How long they are together: bytes, where files are read. What has no end counts nothing here."""
    pieces: int = 0
    """How many slots could work on it at the same time: blocks count more than once where they can be cut."""
    endless: int = 0
    """Blocks without an end, each of which keeps a slot busy for ever."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """With what a backlog can be worked off."""

    cores: int = 1
    """Slots that the cluster runs at the same time now."""
    most_cores: int = 1
    """Slots that it could run at the same time, were they asked for."""
    positions_per_second: float | None = None
    """What one busy slot reads, as far as it was measured."""
    window_millis: float = 0.0
    """What a window costs besides its work."""
    slot_millis: float = 0.0
    """What each slot of a window costs besides its work."""


@dataclass(frozen=True, slots=True)
class BatchedOperatorStats:
    """What one partition did since the listener was last asked, and what lies before all of them."""

    operator_id: int
    current_window_id: int
    """The last window that was committed."""
    last_windowed_stats: Sequence[OperatorStats] = ()
    """The windows since the listener was last asked; none before the first."""
    tuples_processed_psma: float = 0.0
    """Items in a second, as a moving average."""
    tuples_emitted_psma: float = 0.0
    cpu_percentage_ma: float = 0.0
    latency_ma_millis: float = 0.0
    """From the start of a window to its end here."""
    operator: str = ""
    """The operator's name in the application."""
    partition: int = 0
    partitions: int = 1
    """How many there are now; `partition` counts from zero, and the last call of a round has `partitions - 1`."""
    at: datetime | None = None
    """The time of the report, by the clock of the launch."""
    backlog: Backlog | None = None
    """None where nothing waits in a queue for this operator: it is no reader."""
    capacity: Capacity = Capacity()


@dataclass(frozen=True, slots=True)
class Response:
    """What a listener wants done."""

    repartition_required: bool = False
    """Whether the partitioner is to be asked again."""
    load_indicator: int = 0
    """Below zero: this partition could do more. Above: it is overloaded. A partitioner finds it in `Partition.load`."""
    repartition_note: str = ""
    """Why, in a few words; it is kept in the ledger."""
    partitions: int | None = None
    """How many there are to be, where the listener knows: `PartitioningContext.wanted` of the partitioner."""
    policy: str = ""
    """What decided, where it is not the listener's class."""
    inputs: Mapping[str, JsonValue] | None = None
    """The inputs of the decision, if there was one; the ledger keeps them even if nothing changes."""


class DataQueueSize:
    """Marks a listener whose queue sizes leave out control tuples; here none wait, so it makes no difference."""


class StatsListener(ABC):
    """Gets each partition's statistics, and may ask for other partitions."""

    @abstractmethod
    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        """What to do, given what one partition did."""
