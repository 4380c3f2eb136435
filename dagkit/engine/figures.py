"""Figures: what the reports of a window come to, partition by partition, and the averages of the last windows. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dagkit.api.operators import Operator
from dagkit.api.stats import BatchedOperatorStats, OperatorStats, PortStats
from dagkit.api.work import SplittableOperator, work_port
from dagkit.engine.assignment import Figures, Report
from dagkit.engine.program import Program

AVERAGED_SECONDS = 10.0
"""Over how much time items, processor and latency are averaged; the last window always counts."""
AVERAGED_WINDOWS = 600
"""Windows at most that are remembered for that, however short they are."""

Partitions = Sequence[OperatorStats]
"""What each partition of one operator did in one window, in their order."""


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """What all partitions of all operators did in one window."""

    window_id: int
    began: datetime
    ended: datetime
    """When it was committed."""
    operators: Mapping[str, Partitions]
    latencies: Mapping[str, Sequence[float]]
    """From the start of the window in a slot to its end for each partition, in milliseconds."""


def window_figures(
    program: Program,
    window_id: int,
    reports: Iterable[Report],
    *,
    found: Mapping[str, Figures],
    waiting: Mapping[str, int],
    began: datetime,
    ended: datetime,
) -> WindowFigures:
    """The figures of a window, of its reports, of what input operators did for it, and of the length of each queue."""
    told: dict[str, dict[int, tuple[Figures, float]]] = {
        name: {0: (figures, figures.millis)} for name, figures in found.items()
    }
    for report in reports:
        for name, figures in report.figures.items():
            told.setdefault(name, {})[report.slot] = figures, report.busy_millis
    stats, latencies = {}, {}
    for name, by_slot in told.items():
        partitions = [(by_slot[slot], index) for index, slot in enumerate(sorted(by_slot))]
        shares = _shares(waiting.get(name, 0), len(partitions))
        stats[name] = tuple(
            _stats(
                program.operators[name][0],
                figures,
                window_id=window_id,
                busy_millis=busy,
                waiting=shares[index],
                ended=ended,
            )
            for (figures, busy), index in partitions
        )
        latencies[name] = tuple(figures.millis for (figures, _), _ in partitions)
    return WindowFigures(window_id, began, ended, stats, latencies)


def _stats(
    operator: Operator, figures: Figures, *, window_id: int, busy_millis: float, waiting: int, ended: datetime
) -> OperatorStats:
    queued = work_port(operator) if isinstance(operator, SplittableOperator) else None
    inputs = (
        PortStats(port, count, waiting, figures.read, ended) if port == queued else PortStats(port, count, 0, 0, ended)
        for port, count in figures.taken.items()
    )
    return OperatorStats(
        window_id=window_id,
        input_ports=tuple(inputs),
        output_ports=tuple(PortStats(port, count, end_window_timestamp=ended) for port, count in figures.sent.items()),
        cpu_nanos=figures.cpu_nanos,
        busy_millis=busy_millis,
        positions=figures.read,
        metrics=figures.metrics,
    )


def _shares(count: int, partitions: int) -> list[int]:
    """What each partition's share of a queue is; together they are the queue."""
    return [count // partitions + (index < count % partitions) for index in range(partitions)]


@dataclass(frozen=True, slots=True)
class _Passed:
    """A window as averages see it: how long it took, beside the one before it."""

    figures: WindowFigures
    seconds: float


@dataclass(frozen=True, slots=True)
class Averages:
    """The windows of the last seconds, and what they come to on the average."""

    _windows: tuple[_Passed, ...] = ()

    def after(self, window: WindowFigures) -> "Averages":
        """The averages once another window is committed.

        Where it overlapped with the one before, the time that they had in common counts once.
        """
        since = max([window.began, *(last.figures.ended for last in self._windows[-1:])])
        passed = _Passed(window, max(0.0, (window.ended - since).total_seconds()))
        recent = [
            each
            for each in self._windows[1 - AVERAGED_WINDOWS :]
            if (window.ended - each.figures.ended).total_seconds() < AVERAGED_SECONDS
        ]
        return Averages((*recent, passed))

    @property
    def last(self) -> WindowFigures | None:
        """The window that was committed last."""
        return self._windows[-1].figures if self._windows else None

    def stats(self) -> Mapping[str, Sequence[BatchedOperatorStats]]:
        """What listeners are told of the last window, by operator and partition; the queue's owner adds the backlog."""
        last = self.last
        if last is None:
            return {}
        return {name: tuple(self._of(last, name, partitions)) for name, partitions in last.operators.items()}

    def _of(self, last: WindowFigures, name: str, partitions: Partitions) -> Iterator[BatchedOperatorStats]:
        """Windows with another number of partitions are no measure of these."""
        alike = [each for each in self._windows if len(each.figures.operators.get(name, ())) == len(partitions)]
        seconds = sum(each.seconds for each in alike)
        for index, stats in enumerate(partitions):
            did = [each.figures.operators[name][index] for each in alike]
            latencies = [each.figures.latencies[name][index] for each in alike]
            told = BatchedOperatorStats(
                operator_id=index,
                current_window_id=last.window_id,
                last_windowed_stats=(stats,),
                latency_ma_millis=sum(latencies) / len(latencies),
                operator=name,
                partition=index,
                partitions=len(partitions),
                at=last.ended,
            )
            yield (
                told
                if not seconds
                else replace(
                    told,
                    tuples_processed_psma=sum(port.tuple_count for one in did for port in one.input_ports) / seconds,
                    tuples_emitted_psma=sum(port.tuple_count for one in did for port in one.output_ports) / seconds,
                    cpu_percentage_ma=sum(one.cpu_nanos for one in did) / seconds / 1e7,
                )
            )
