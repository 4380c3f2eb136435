"""The statistics of a window for each partition, and moving averages over the last windows. Pure."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from dagkit.api.operators import Operator
from dagkit.api.ports import input_ports, output_ports
from dagkit.api.stats import BYTE, OperatorStats, PortStats
from dagkit.api.work import SplittableOperator, unit_of, work_port
from dagkit.engine.program.program import Program
from dagkit.engine.worker.protocol import Figures, Report

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
    by_operator: dict[str, dict[int, tuple[Figures, float]]] = {
        name: {0: (figures, figures.millis)} for name, figures in found.items()
    }
    for report in reports:
        for name, figures in report.figures.items():
            by_operator.setdefault(name, {})[report.slot] = figures, report.busy_millis
    stats = {}
    for name, by_slot in by_operator.items():
        operator, count = program.operators[name][0], len(by_slot)
        shares = [waiting.get(name, 0) // count + (index < waiting.get(name, 0) % count) for index in range(count)]
        stats[name] = tuple(
            stats_of(operator, figures, window_id=window_id, busy_millis=busy, ended=ended, waiting=share)
            for (_, (figures, busy)), share in zip(sorted(by_slot.items()), shares, strict=True)
        )
    return stats


def stats_of(
    operator: Operator, figures: Figures, *, window_id: int, busy_millis: float, ended: datetime, waiting: int = 0
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
        busy_millis=busy_millis,
        positions=figures.read,
        unit=unit,
        reads=not isinstance(operator, SplittableOperator) or operator.reads_positions,
        metrics=figures.metrics,
        underway=figures.underway,
    )


@dataclass(frozen=True, slots=True)
class _Window:
    """The figures of one window that averages need."""

    ended: datetime
    taken: int
    sent: int
    cpu_nanos: int
    latency_millis: float
    positions: int

    @property
    def began(self) -> datetime:
        return self.ended - timedelta(milliseconds=self.latency_millis)


@dataclass
class Lately:
    """The moving averages of one partition, or of all partitions of an operator."""

    began: datetime
    """When the run began: averages never reach back before it."""
    _windows: deque[_Window] = field(default_factory=deque)

    def add(self, stats: OperatorStats, ended: datetime, latency_millis: float) -> None:
        """Add a committed window."""
        taken = sum(port.tuple_count for port in stats.input_ports)
        sent = sum(port.tuple_count for port in stats.output_ports)
        self._windows.append(_Window(ended, taken, sent, stats.cpu_nanos, latency_millis, stats.positions))
        while self._windows[0].ended <= ended - AVERAGED:
            self._windows.popleft()

    @property
    def processed_per_second(self) -> float:
        return self._per_second(sum(window.taken for window in self._windows))

    @property
    def emitted_per_second(self) -> float:
        return self._per_second(sum(window.sent for window in self._windows))

    @property
    def positions_per_second(self) -> float:
        return self._per_second(sum(window.positions for window in self._windows))

    @property
    def cpu_percentage(self) -> float:
        return self._per_second(sum(window.cpu_nanos for window in self._windows)) / 1e7

    @property
    def latency_millis(self) -> float:
        """The average latency of a window; 0 before the first."""
        return sum(window.latency_millis for window in self._windows) / max(1, len(self._windows))

    def _per_second(self, total: float) -> float:
        if not self._windows:
            return 0.0
        ended = self._windows[-1].ended
        first = min(window.began for window in self._windows)  # a window counts whole, so the time it took does, too
        seconds = (ended - max(self.began, min(first, ended - AVERAGED))).total_seconds()
        return total / seconds if seconds > 0 else 0.0
