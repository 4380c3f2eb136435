"""Commit windows: one append to the ledger commits a window; then its files are put in place."""

from dataclasses import replace
from datetime import datetime, timedelta

from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.next_checkpoint import next_checkpoint, state_after, worked_in
from dagkit.engine.checkpoint.outcome import InputStatus, RemainingWork, WindowOutcome
from dagkit.engine.checkpoint.work_records import unreported
from dagkit.engine.failures import OperatorFailed, WindowLost
from dagkit.engine.points import Point
from dagkit.engine.run.in_flight import InFlightWindow
from dagkit.engine.run.notify import queues_of
from dagkit.engine.run.run_state import RunState
from dagkit.engine.work.item import Number, WorkItem
from dagkit.engine.work.split import Allocation, all_in, split_at_the_end
from dagkit.engine.worker.protocol import Answer, Report
from dagkit.errors import DagkitError


class Committer:
    """Commits the windows of one run, oldest first."""

    def __init__(self, run: RunState) -> None:
        self._run = run

    def commit(self, flight: InFlightWindow) -> None:
        """Commit an ended window. If it failed, run it again, or raise its failure after the last attempt."""
        answer = self._answer(flight)
        if answer is None:
            return
        self._run.probe(Point.STAGED, flight.window_id)
        if self._is_nothing(flight, answer):
            self._run.outputs.over(flight.window_id)
            self._run.pending_work.over(flight.round, worked_in(answer), self._run.summary)
            return
        self._run.publisher.started(flight)
        if not flight.promised:
            self._run.journal.promise(flight.upto, flight.promise)
        outcome = self._outcome(flight, answer)
        checkpoint = self._checkpoint(outcome)
        ended = self._run.clock.now()
        self._run.journal.commit(checkpoint, answer.parts)
        self._run.probe(Point.APPENDED, flight.window_id)
        self._continue_from(checkpoint, flight, answer)
        self._publish(outcome, flight, ended)

    def _answer(self, flight: InFlightWindow) -> Answer | None:
        """Return the complete answer of a window, or None if the window failed and was submitted again."""
        try:
            answer = flight.answer.result()
        except Exception as error:
            self._run.journal.refuse_overtaken(error)
            if not isinstance(error, OperatorFailed | WindowLost):
                raise
            self._try_again(flight, error)
            return None
        lacking = unreported(all_in(flight.round.allocation), answer.reports)
        if lacking:
            self._try_again(flight, WindowLost(f"window {flight.window_id} lacks a part of its report: {lacking}"))
            return None
        return _with_due_times(answer, self._run.clock.now())

    def _outcome(self, flight: InFlightWindow, answer: Answer) -> WindowOutcome:
        """Return the outcome of a window with all decisions since the last commit."""
        splits = split_at_the_end(flight.round.allocation, worked_in(answer))
        return WindowOutcome(
            program=self._run.program,
            window_id=flight.window_id,
            consumed=flight.consumed,
            answer=answer,
            state=state_after(self._run.program, self._run.state, answer),
            last=flight.assignment.last,
            facts=(*flight.round.cuts, *splits, *self._run.facts),
        )

    def _checkpoint(self, outcome: WindowOutcome) -> Checkpoint:
        """Return the checkpoint of a window; raise if its files cannot be committed."""
        inputs = self._run.driver_inputs
        before = self._run.checkpoint.with_files(self._run.outputs.gathered(outcome.window_id))
        remaining = RemainingWork(self._run.pending_work.all(), [other.consumed for other in self._run.in_flight])
        status = InputStatus(inputs.exhausted, inputs.coming(outcome.program), self._run.summary.timed_inputs)
        try:
            checkpoint = next_checkpoint(before, outcome, remaining, status, self._run.changing.in_force)
            self._run.outputs.check(checkpoint.finished, outcome.answer.parts)
        except DagkitError as error:
            self._run.journal.refuse_overtaken(error)
            raise
        return checkpoint

    def _continue_from(self, checkpoint: Checkpoint, flight: InFlightWindow, answer: Answer) -> None:
        """Make a committed checkpoint the one that the run continues from, and put its files in place."""
        self._run.checkpoint, self._run.state = checkpoint, checkpoint.state
        self._run.facts.clear()
        self._run.changing.committed(flight.window_id)
        now = self._run.clock.now()
        took = (now - flight.began).total_seconds() * 1000
        self._run.listeners.committed(flight.window_id, answer, now, took)
        whole_millis = took if flight.alone else None
        self._run.pending_work.over(flight.round, worked_in(answer), self._run.summary, whole_millis=whole_millis)
        self._run.outputs.commit(checkpoint)
        self._run.held = list(answer.delayed)
        self._run.beat = self._run.clock.now() + timedelta(milliseconds=self._run.summary.millis)
        self._run.driver_inputs.commit(flight.window_id)
        self._run.outputs.sweep()

    def _publish(self, outcome: WindowOutcome, flight: InFlightWindow, ended: datetime) -> None:
        """Publish a committed window and its measurements; its work was over at `ended`."""
        files, queue = len(self._run.outputs.unfinished), self._run.queue
        found, now = self._run.driver_inputs.figures(flight.window_id), self._run.clock.now()
        self._run.publisher.committed(flight, outcome.answer, files=files, queue=queue, now=now)
        queues = queues_of(queue, self._run.summary)
        self._run.publisher.measured(flight, outcome, found=found, queues=queues, ended=ended, committed=now)

    def _is_nothing(self, flight: InFlightWindow, answer: Answer) -> bool:
        """Whether a window had no effect: it is not committed, and the next window takes its number."""
        return (
            flight.asks
            and not flight.failures  # observers have seen the start of a failed one
            and not self._run.in_flight
            and not self._run.facts
            and not self._run.changing.is_made
            and self._run.summary.counts <= {1}
            and _found_nothing(flight.round.allocation, answer)
            and state_after(self._run.program, self._run.state, answer) == self._run.state
        )

    def _try_again(self, flight: InFlightWindow, error: OperatorFailed | WindowLost) -> None:
        """Submit the window again if its failure allows another attempt; otherwise raise the failure."""
        again = flight.failed(error, self._run.program)
        self._run.publisher.started(flight)
        self._run.publisher.failed(flight, error, again=again)
        if not again:
            raise error
        assignment = replace(flight.assignment, staging=self._run.new_staging(flight.window_id))
        self._run.in_flight.resubmit(flight, assignment)

    def finish(self) -> None:
        """Put the complete files of committed windows in place."""
        window_id, settings = self._run.checkpoint.window, self._run.settings
        try:
            self._run.outputs.finish(
                lambda files: self._run.backend.put_in_place(
                    files, settings.application_path, durable=settings.durable
                ),
                lambda point: self._run.probe(point, window_id),
            )
        except DagkitError as error:
            self._run.journal.refuse_overtaken(error)
            raise
        self._run.probe(Point.FINISHED, window_id)


def _found_nothing(allocation: Allocation, answer: Answer) -> bool:
    """Whether all allocated work had nothing to do, and the window produced nothing else."""
    # compare stretches, so that an item that ended and a new item in its place count as work
    same = sorted(map(_stretch, answer.left)) == sorted(map(_stretch, all_in(allocation)))
    return same and all(each.in_vain for each in answer.left) and not answer.parts and not answer.delayed


def _with_due_times(answer: Answer, now: datetime) -> Answer:
    """Return the answer, received now, with the due time of each deferred item."""
    return replace(
        answer, reports=tuple(_with_due_time(each, now) if each.put_off else each for each in answer.reports)
    )


def _with_due_time(report: Report, now: datetime) -> Report:
    due = {end: put_off.due(now) for end, put_off in report.put_off.items()}
    left = (each.model_copy(update={"due": due.get(each.end_key, each.due)}) for each in report.left)
    return replace(report, left=tuple(left))


def _stretch(each: WorkItem) -> tuple[str, Number, int, int]:
    return each.into, each.number, each.start, each.end
