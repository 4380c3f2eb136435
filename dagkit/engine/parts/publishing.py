"""Publishes what each committed window did, from the parts of the run that know it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from dagkit.api.stats import WorkProgress
from dagkit.api.work import unit_of
from dagkit.engine.parts.discover import DriverInputs
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.notify import MOST_UNDERWAY
from dagkit.engine.parts.outputs import Outputs
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.run_part import EndedWindow, RunPart
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.parts.taps import rejected_in
from dagkit.engine.parts.wants import Action, Look
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.run_events import Committed, Queue
from dagkit.engine.record.statistics import Measuring, aggregators_of
from dagkit.engine.worker.protocol import Answer, Report


class Publishing(RunPart):
    """Publishes committed windows and their measurements."""

    def __init__(self, run: RunState, inputs: DriverInputs, queue: PendingWork, outputs: Outputs) -> None:
        self._run = run
        self._inputs = inputs
        self._queue = queue
        self._outputs = outputs
        self._measuring = Measuring(aggregators_of(run.plan.compilation.graph))

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
        run, began, answer, now = self._run, ended.window.began, ended.answer, self._run.now()
        queue, lengths = self._queue.queue, self._queue.queue.lengths()
        files, by_unit = self._outputs.unplaced, run.publisher.by_unit
        figures = [(name, each) for report in answer.reports for name, each in report.figures.items()]
        run.publisher.publish(
            Committed(
                window_id=ended.window_id,
                millis=(now - began).total_seconds() * 1000,
                positions=sum(report.positions for report in answer.reports),
                files=len(files),
                written=sum(part.length for part in answer.parts),
                waiting=len(queue),
                waiting_positions=queue.positions,
                underway=_underway_in(answer.reports),
                visible=self._outputs.next_wake,
                block=run.journal.chain.head.seq,
                read=by_unit((name, each.read) for name, each in figures),
                pending=by_unit((into.operator, length) for into, (_, length) in lengths.items()),
                received=sum(sum(each.taken.values()) for _, each in figures),
                completed=sum(part.length for pieces in files.values() for part in pieces),
            )
        )
        queues = [
            Queue(*run.summary.addresses[into].into, *length, unit_of(run.summary.elements[into].operator))
            for into, length in lengths.items()
        ]
        measured = self._measuring.after(
            ended.program,
            ended.window_id,
            answer.reports,
            found=self._inputs.figures(ended.window_id),
            queues=queues,
            facts=checkpoint.facts,
            began=began,
            ended=ended.at,
            committed=now,
        )
        run.publisher.publish(replace(measured, rejected=rejected_in(answer.samples, run.masking.hide)))
        self._report_waiting()


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
