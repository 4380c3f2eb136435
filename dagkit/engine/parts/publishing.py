"""Publishes what each committed window did, from the parts of the run that know it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import inf

from dagkit.api.stats import WorkProgress
from dagkit.api.work import unit_of
from dagkit.engine.parts.discover import DriverInputs
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.outputs import Outputs
from dagkit.engine.parts.run_part import Action, EndedWindow, Look, RunPart
from dagkit.engine.parts.run_state import MOST_UNDERWAY, RunState
from dagkit.engine.parts.searching import RecordSearch
from dagkit.engine.parts.taps import rejected_in
from dagkit.engine.program.operator_output import append
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.run_events import Committed, FoundNothing, Measured, Queue
from dagkit.engine.record.statistics import AggregatedMetrics, aggregators_of, stage_runs, window_stats
from dagkit.engine.record.work_history import aside_in
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.worker.protocol import Answer, Report


class Publishing(RunPart):
    """Publishes committed windows and their measurements."""

    def __init__(
        self, run: RunState, inputs: DriverInputs, queue: WorkQueue, outputs: Outputs, search: RecordSearch
    ) -> None:
        self._run = run
        self._publisher = run.publisher
        self._inputs = inputs
        self._queue = queue
        self._outputs = outputs
        self._search = search
        self._metrics = AggregatedMetrics(aggregators_of(run.plan.graph))

    def perform(self, action: Action) -> None:
        if isinstance(action, Look):
            self._report_waiting()

    def drop(self, window: InFlightWindow, answer: Answer) -> None:
        if window.is_published:
            self._publisher.publish(FoundNothing(window.window_id))
        # A poll in vain is not committed, and may still bring another reason.
        self._report_waiting()

    def _report_waiting(self) -> None:
        """Report why input that is there is not read yet, if that has changed."""
        waiting = [
            *self._search.waits_for,
            *self._inputs.waits_for,
            *((item.into.operator, reason) for item in self._queue.deferred if (reason := item.deferral.waits_for)),
        ]
        self._publisher.waiting([f"{name}: {reason}" for name, reason in dict.fromkeys(waiting)])

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        run = self._run
        now, launch = run.now(), run.launch
        append(launch.log, (line for report in ended.answer.reports for line in report.printed))
        queues = self._queues()
        self._publisher.publish(self._committed(ended, checkpoint, queues, now))
        self._publisher.publish(self._measured(ended, checkpoint, queues, now))
        self._report_waiting()

    def _queues(self) -> Sequence[Queue]:
        summary = self._run.summary
        return [
            Queue(*summary.addresses[address].into, pending.blocks, pending.positions, unit, pending.endless)
            for address, pending in self._queue.pending(self._inputs.backlog_counts()).items()
            for unit in [unit_of(summary.elements[address].operator)]
        ]

    def _committed(
        self, ended: EndedWindow, checkpoint: Checkpoint, queues: Sequence[Queue], now: datetime
    ) -> Committed:
        journal, answer, by_unit = self._run.journal, ended.answer, self._publisher.by_unit
        files = self._outputs.unplaced
        figures = [(name, each) for report in answer.reports for name, each in report.figures.items()]
        return Committed(
            window_id=ended.window_id,
            millis=(now - ended.window.began).total_seconds() * 1000,
            read=by_unit((name, each.read) for name, each in figures),
            files=len(files),
            written=sum(part.length for part in answer.parts),
            queues=queues,
            underway=_underway_in(answer.reports),
            visible=self._outputs.next_wake,
            block=journal.last_block,
            received=sum(sum(each.taken.values()) for _, each in figures),
            completed=sum(part.length for pieces in files.values() for part in pieces),
            aside=aside_in(checkpoint),
        )

    def _measured(self, ended: EndedWindow, checkpoint: Checkpoint, queues: Sequence[Queue], now: datetime) -> Measured:
        run, program, window_id, answer = self._run, ended.program, ended.window_id, ended.answer
        operators = window_stats(
            program,
            window_id,
            answer.reports,
            found=self._inputs.figures(window_id),
            waiting={each.operator: each.blocks for each in queues},
            ended=now,
        )
        return Measured(
            window_id,
            ended.window.began,
            ended.at,
            now,
            operators,
            self._metrics.of(program, window_id, operators),
            stages=tuple(stage_runs(program, answer.reports)),
            queues=queues,
            facts=checkpoint.facts,
            rejected=rejected_in(answer.samples, run.masking.hide),
        )


def _underway_in(reports: Iterable[Report]) -> Mapping[str, Sequence[WorkProgress]]:
    """The work that a window began and did not finish, by operator.

    The least complete comes first, work without an end last, at most MOST_UNDERWAY of an operator.
    """
    found: dict[str, list[WorkProgress]] = {}
    for report in reports:
        for name, figures in report.figures.items():
            if figures.underway:
                found.setdefault(name, []).extend(figures.underway)
    return {name: sorted(work, key=_how_far)[:MOST_UNDERWAY] for name, work in found.items()}


def _how_far(work: WorkProgress) -> float:
    return inf if work.fraction is None else work.fraction
