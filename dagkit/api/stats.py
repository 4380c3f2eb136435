"""What operators report and who listens."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PortStats:
    """What passed one port in one window."""

    port: str
    tuple_count: int = 0
    queue_size: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """What one partition did in one window."""

    window_id: int
    input_ports: tuple[PortStats, ...] = ()
    output_ports: tuple[PortStats, ...] = ()
    cpu_nanos: int = 0


@dataclass(frozen=True, slots=True)
class BatchedOperatorStats:
    """What one partition did since the listener was last asked."""

    operator_id: int
    current_window_id: int
    last_windowed_stats: Sequence[OperatorStats] = ()
    tuples_processed_psma: float = 0.0
    tuples_emitted_psma: float = 0.0
    cpu_percentage_ma: float = 0.0
    latency_ma_millis: float = 0.0


@dataclass(frozen=True, slots=True)
class Response:
    """What a listener wants done."""

    repartition_required: bool = False
    load_indicator: int = 0
    repartition_note: str = ""


class StatsListener(ABC):
    """Told each partition's statistics, and may ask for other partitions."""

    @abstractmethod
    def process_stats(self, stats: BatchedOperatorStats) -> Response:
        """What to do, given what one partition did."""
