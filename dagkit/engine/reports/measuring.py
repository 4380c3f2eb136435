"""Turn each committed window into statistics and metrics for observers."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from dagkit.api.attributes import OperatorContext
from dagkit.api.metrics import MetricsAggregator, aggregated
from dagkit.engine.facts import Fact
from dagkit.engine.program.program import Program
from dagkit.engine.reports.run_events import Measured, Queue, StageRun
from dagkit.engine.reports.statistics import Partitions, window_stats
from dagkit.engine.worker.protocol import Figures, Report
from dagkit.graph import Graph

_logger = logging.getLogger(__name__)


def aggregators_of(graph: Graph) -> Mapping[str, MetricsAggregator]:
    """The value of METRICS_AGGREGATOR of each operator that sets it, by operator name."""
    chosen = {node.name: graph.value(node, OperatorContext.METRICS_AGGREGATOR) for node in graph.nodes}
    return {name: aggregator for name, aggregator in chosen.items() if aggregator is not None}


def _stages(program: Program, reports: Iterable[Report]) -> Iterator[StageRun]:
    """Yield one entry for each report and each stage that it covers."""
    for report in reports:
        by_stage: dict[str, list[str]] = {}
        for name in report.figures:
            by_stage.setdefault(program.stage_of[name].name, []).append(name)
        for stage, operators in by_stage.items():
            assert report.began is not None, "a report with figures has a begin"
            blocks = {name: ranges for name in operators if (ranges := report.figures[name].stretches)}
            yield StageRun(stage, report.slot, tuple(operators), report.began, report.busy_millis, blocks)


class Measuring:
    """The measurements of one run."""

    def __init__(self, aggregators: Mapping[str, MetricsAggregator]) -> None:
        self._aggregators = aggregators
        self._silenced: set[str] = set()
        """Operators whose aggregator raised: their metrics are no longer aggregated."""

    def after(
        self,
        program: Program,
        window_id: int,
        reports: Iterable[Report],
        *,
        found: Mapping[str, Figures],
        queues: Sequence[Queue],
        facts: Sequence[Fact],
        began: datetime,
        ended: datetime,
        committed: datetime,
    ) -> Measured:
        """Measure a committed window: its work was over at `ended`, and it was in the ledger at `committed`."""
        reports, waiting = list(reports), {queue.operator: queue.blocks for queue in queues}
        operators = window_stats(program, window_id, reports, found=found, waiting=waiting, ended=committed)
        metrics = {name: self._metrics(program, name, window_id, partitions) for name, partitions in operators.items()}
        reported = {name: values for name, values in metrics.items() if values}
        stages = tuple(_stages(program, reports))
        return Measured(window_id, began, ended, committed, operators, reported, stages, tuple(queues), tuple(facts))

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
