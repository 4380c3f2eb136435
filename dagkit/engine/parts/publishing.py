"""Publishes what each committed window did, from the parts of the run that know it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import inf

from dagkit.api.stats import WorkProgress
from dagkit.api.work import unit_of
from dagkit.engine.parts.discover import DriverInputs
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.outputs import Outputs
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.run_part import Action, EndedWindow, Look, RunPart
from dagkit.engine.parts.run_state import MOST_UNDERWAY, RunState
from dagkit.engine.parts.taps import rejected_in
from dagkit.engine.program.operator_output import append
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.run_events import Committed, Measured, Queue
from dagkit.engine.record.statistics import AggregatedMetrics, aggregators_of, stage_runs, window_stats
from dagkit.engine.worker.protocol import Answer, Report


class Publishing(RunPart):
    """Publishes committed windows and their measurements."""

    def __init__(self, run: RunState, inputs: DriverInputs, queue: PendingWork, outputs: Outputs) -> None:
        self._run = run
        self._inputs = inputs
        self._queue = queue
        self._outputs = outputs
        self._metrics = AggregatedMetrics(aggregators_of(run.plan.compilation.graph))

    def perform(self, action: Action) -> None:
        if isinstance(action, Look):
            self._report_waiting()

    def drop(self, window: InFlightWindow, answer: Answer) -> None:
        self._report_waiting()

    def _report_waiting(self) -> None:
        """Report why input that is there is not read yet, if that has changed."""
        deferred = self._queue.queue.deferred
        waiting = [
            *self._inputs.waits_for,
            *((item.into.operator, item.waits_for) for item in deferred if item.waits_for),
        ]
        self._run.publisher.waiting([f"{name}: {reason}" for name, reason in dict.fromkeys(waiting)])

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        now = self._run.now()
        append(self._run.launch.log, (line for report in ended.answer.reports for line in report.printed))
        self._run.publisher.publish(self._committed(ended, now))
        self._run.publisher.publish(self._measured(ended, checkpoint, now))
        self._report_waiting()

    def _committed(self, ended: EndedWindow, now: datetime) -> Committed:
        run, answer, queue = self._run, ended.answer, self._queue.queue
        files, by_unit = self._outputs.unplaced, run.publisher.by_unit
        figures = [(name, each) for report in answer.reports for name, each in report.figures.items()]
        return Committed(
            window_id=ended.window_id,
            millis=(now - ended.window.began).total_seconds() * 1000,
            positions=sum(report.positions for report in answer.reports),
            files=len(files),
            written=sum(part.length for part in answer.parts),
            waiting=len(queue),
            waiting_positions=queue.positions,
            underway=_underway_in(answer.reports),
            visible=self._outputs.next_wake,
            block=run.journal.chain.head.seq,
            read=by_unit((name, each.read) for name, each in figures),
            pending=by_unit((into.operator, length) for into, (_, length) in queue.lengths().items()),
            received=sum(sum(each.taken.values()) for _, each in figures),
            completed=sum(part.length for pieces in files.values() for part in pieces),
        )

    def _measured(self, ended: EndedWindow, checkpoint: Checkpoint, now: datetime) -> Measured:
        run, program, window_id, answer = self._run, ended.program, ended.window_id, ended.answer
        queues = [
            Queue(*run.summary.addresses[into].into, *length, unit_of(run.summary.elements[into].operator))
            for into, length in self._queue.queue.lengths().items()
        ]
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
