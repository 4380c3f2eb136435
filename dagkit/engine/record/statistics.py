"""The statistics of a window for each partition, moving averages over the last windows, and the capacity of slots."""

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from dagkit.api.attributes import OperatorContext
from dagkit.api.metrics import MetricsAggregator, aggregated
from dagkit.api.operators import REJECTED, Operator
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.stats import Capacity, OperatorStats, PortStats
from dagkit.api.work import SplittableOperator, reads_positions, unit_of, work_port
from dagkit.engine.program.program import Program
from dagkit.engine.record.run_events import StageRun
from dagkit.engine.record.snapshot import PartitionShare, Rates
from dagkit.engine.worker.protocol import Cores, Figures, Report
from dagkit.graph import Graph
from dagkit.ground.amounts import BYTE

_logger = logging.getLogger(__name__)

AVERAGED = timedelta(seconds=10)
"""The period that moving averages cover; the last window always counts."""

Partitions = Sequence[OperatorStats]
"""The statistics of each partition of one operator in one window, in partition order."""


def window_stats(
    program: Program,
    window_id: int,
    reports: Iterable[Report],
    *,
    found: Mapping[str, Figures],
    waiting: Mapping[str, int],
    ended: datetime,
) -> Mapping[str, Partitions]:
    """The statistics of a window by operator, from slot reports, the figures of driver inputs and queue lengths."""
    by_operator: dict[str, dict[int, Figures]] = {name: {0: figures} for name, figures in found.items()}
    for report in reports:
        for name, figures in report.figures.items():
            by_operator.setdefault(name, {})[report.slot] = figures
    stats = {}
    for name, by_slot in by_operator.items():
        operator, count = program.operators[name][0], len(by_slot)
        shares = [waiting.get(name, 0) // count + (index < waiting.get(name, 0) % count) for index in range(count)]
        stats[name] = tuple(
            stats_of(operator, figures, window_id=window_id, ended=ended, waiting=share)
            for (_, figures), share in zip(sorted(by_slot.items()), shares, strict=True)
        )
    return stats


def stats_of(
    operator: Operator, figures: Figures, *, window_id: int, ended: datetime, waiting: int = 0
) -> OperatorStats:
    """The statistics of one partition in one window, by port; `waiting` is its share of the queue."""
    queued, unit = work_port(operator) if isinstance(operator, SplittableOperator) else None, unit_of(operator)
    inputs = {port: PortStats(port, count, end_window_timestamp=ended) for port, count in figures.taken.items()}
    outputs = {port: PortStats(port, count, end_window_timestamp=ended) for port, count in figures.sent.items()}
    if queued in inputs:
        inputs[queued] = replace(inputs[queued], queue_size=waiting, bytes=figures.read if unit == BYTE else 0)
    return OperatorStats(
        window_id=window_id,
        input_ports=tuple(inputs[port] for port in input_ports(type(operator)) if port in inputs),
        output_ports=tuple(outputs[port] for port in output_ports(type(operator)) if port in outputs),
        cpu_nanos=figures.cpu_nanos,
        busy_millis=figures.busy_millis,
        positions=figures.read,
        unit=unit,
        reads=reads_positions(operator),
        metrics=figures.metrics,
        underway=figures.underway,
    )


def rejected_by(stats: OperatorStats) -> int:
    """How many items a partition rejected in a window."""
    return sum(port.tuple_count for port in stats.output_ports if port.port == REJECTED)


@dataclass(frozen=True, slots=True)
class _Window:
    """The figures of one window that averages need."""

    began: datetime
    ended: datetime
    taken: int
    sent: int
    rejected: int
    cpu_nanos: int
    latency_millis: float
    positions: int
    busy_millis: float


@dataclass
class Lately:
    """The moving averages of one partition, or of all partitions of an operator."""

    began: datetime | None = None
    """When the run began: averages never reach back before it. None: when the first window began."""
    _windows: deque[_Window] = field(default_factory=deque)

    def add(self, stats: OperatorStats, ended: datetime, latency_millis: float) -> None:
        """Add a committed window."""
        taken = sum(port.tuple_count for port in stats.input_ports)
        sent = sum(port.tuple_count for port in stats.output_ports)
        busy = stats.busy_millis
        rejected = rejected_by(stats)
        began = ended - timedelta(milliseconds=latency_millis)
        self.began = self.began or began
        self._windows.append(
            _Window(began, ended, taken, sent, rejected, stats.cpu_nanos, latency_millis, stats.positions, busy)
        )
        while self._windows[0].ended <= ended - AVERAGED:
            self._windows.popleft()

    @property
    def processed_per_second(self) -> float:
        return self._per_second(sum(window.taken for window in self._windows))

    @property
    def emitted_per_second(self) -> float:
        return self._per_second(sum(window.sent for window in self._windows))

    @property
    def rejected_share(self) -> float | None:
        """The share of what was received, or of what was sent if that is more, that was rejected; None if that is 0."""
        most = max(sum(window.taken for window in self._windows), sum(window.sent for window in self._windows))
        return sum(window.rejected for window in self._windows) / most if most else None

    @property
    def positions_per_second(self) -> float:
        return self._per_second(sum(window.positions for window in self._windows))

    @property
    def cpu_percentage(self) -> float:
        return self._per_second(sum(window.cpu_nanos for window in self._windows)) / 1e7

    @property
    def busy_slots(self) -> float:
        """How many slots the operator kept busy on average."""
        return self._per_second(sum(window.busy_millis for window in self._windows)) / 1000

    @property
    def latency_millis(self) -> float:
        """The average latency of a window; 0 before the first."""
        return sum(window.latency_millis for window in self._windows) / max(1, len(self._windows))

    def rates(self, partitions: int) -> Rates:
        """The rates of an operator with so many partitions, not divided among them."""
        return Rates(
            received_per_second=self.processed_per_second,
            sent_per_second=self.emitted_per_second,
            positions_per_second=self.positions_per_second,
            busy=min(1.0, self.busy_slots / partitions),
        )

    def _per_second(self, total: float) -> float:
        if not self._windows or self.began is None:
            return 0.0
        ended = self._windows[-1].ended
        first = min(window.began for window in self._windows)  # a window counts whole, so the time it took does, too
        seconds = (ended - max(self.began, min(first, ended - AVERAGED))).total_seconds()
        return total / seconds if seconds > 0 else 0.0


@dataclass
class Balance:
    """How the work of an operator was divided among its partitions in the period that averages cover."""

    _windows: deque[tuple[datetime, Partitions]] = field(default_factory=deque)
    _busy: list[float] = field(default_factory=list)
    _taken: list[int] = field(default_factory=list)
    """The sums over these windows, by partition."""

    def add(self, partitions: Partitions, ended: datetime) -> None:
        """Add a committed window. With another number of partitions, the division starts over."""
        if len(self._busy) != len(partitions):
            self._windows.clear()
            self._busy, self._taken = [0.0] * len(partitions), [0] * len(partitions)
        self._windows.append((ended, partitions))
        self._count(partitions, 1)
        while self._windows[0][0] <= ended - AVERAGED:
            self._count(self._windows.popleft()[1], -1)

    def _count(self, partitions: Partitions, sign: int) -> None:
        for index, stats in enumerate(partitions):
            self._busy[index] += sign * stats.busy_millis
            taken = stats.positions or sum(port.tuple_count for port in stats.input_ports)
            self._taken[index] += sign * taken

    def shares(self) -> Iterator[PartitionShare]:
        """Each partition with its share of the busy time, and of the positions or items; longest busy first."""
        # Windows were added and taken away, so rounding may leave a sum below zero.
        busy, taken = max(1e-9, sum(self._busy)), max(1, sum(self._taken))
        for index in sorted(range(len(self._busy)), key=lambda index: -self._busy[index]):
            yield PartitionShare(
                partition=index, busy=max(0.0, self._busy[index] / busy), taken=self._taken[index] / taken
            )


# -- events ------------------------------------------------------------------------------------------------------------


def aggregators_of(graph: Graph) -> Mapping[str, MetricsAggregator]:
    """The value of METRICS_AGGREGATOR of each operator that sets it, by operator name."""
    chosen = {node.name: graph.value(node, OperatorContext.METRICS_AGGREGATOR) for node in graph.nodes}
    return {name: aggregator for name, aggregator in chosen.items() if aggregator is not None}


def stage_runs(program: Program, reports: Iterable[Report]) -> Iterator[StageRun]:
    """Yield one entry for each report and each stage that it covers."""
    for report in reports:
        by_stage: dict[str, list[str]] = {}
        for name in report.figures:
            by_stage.setdefault(program.stage_of[name].name, []).append(name)
        for stage, operators in by_stage.items():
            assert report.began is not None, "a report with figures has a begin"
            blocks = {
                into.operator: done.stretches
                for into, done in report.done.items()
                if done.stretches and into.operator in operators
            }
            yield StageRun(stage, report.slot, tuple(operators), report.began, report.busy_millis, blocks)


class AggregatedMetrics:
    """The metrics of operators in the windows of one run, aggregated over their partitions."""

    def __init__(self, aggregators: Mapping[str, MetricsAggregator]) -> None:
        self._aggregators = aggregators
        self._silenced: set[str] = set()
        """Operators whose aggregator raised: their metrics are no longer aggregated."""

    def of(self, program: Program, window_id: int, operators: Mapping[str, Partitions]) -> Mapping[str, Any]:
        """The metrics of the operators that declare any, from the statistics of their partitions."""
        metrics = {name: self._metrics(program, name, window_id, partitions) for name, partitions in operators.items()}
        return {name: values for name, values in metrics.items() if values}

    def _metrics(self, program: Program, name: str, window_id: int, partitions: Partitions) -> Mapping[str, Any]:
        if name in self._silenced:
            return {}
        operator, values = program.operators[name][0], [stats.metrics for stats in partitions]
        try:
            return aggregated(operator, self._aggregators.get(name), window_id, values)
        except Exception:  # the window is committed: a faulty metric must not end the run
            _logger.exception("the metrics of %s cannot be aggregated, and are no longer reported", name)
            self._silenced.add(name)
            return {}


NEWEST = 0.3
"""The weight of the newest window in a moving average over windows."""


@dataclass
class WindowCosts:
    """The overhead of the last windows: their duration without the work of their busiest slot."""

    _last: deque[float] = field(default_factory=lambda: deque(maxlen=5))

    def committed(self, whole_millis: float, busiest_millis: float) -> None:
        """Record a committed window and its whole duration."""
        self._last.append(max(0.0, whole_millis - busiest_millis))

    @property
    def least(self) -> float:
        """The lowest overhead: a run's first window starts workers, and others wait for other load of the machine."""
        return min(self._last, default=0.0)


@dataclass
class ReadingSpeed:
    """The reading speed of one busy slot of an operator."""

    per_milli: float | None = None
    """Positions per millisecond; None before the first read."""

    def read(self, positions: float, busy_millis: float) -> None:
        """Record the positions that all slots read in one window, and their busy time in total."""
        if positions and busy_millis:
            newest = positions / busy_millis
            self.per_milli = newest if self.per_milli is None else NEWEST * newest + (1 - NEWEST) * self.per_milli


def capacity_of(cores: Cores, speed: ReadingSpeed, costs: WindowCosts) -> Capacity:
    """Return the capacity to work off the backlog of one operator."""
    return Capacity(
        cores=cores.now,
        most_cores=cores.most,
        positions_per_second=None if speed.per_milli is None else speed.per_milli * 1000,
        window_millis=costs.least,
    )
