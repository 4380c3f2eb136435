"""Commit windows: one append to the ledger commits a window; then its files are put in place."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.next_checkpoint import next_checkpoint, parts_of, state_after, worked_in
from dagkit.engine.checkpoint.work_records import unreported
from dagkit.engine.facts import Fact
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
        run = self._run
        try:
            answer = flight.answer.result()
        except Exception as error:
            run.journal.refuse_overtaken(error)
            if not isinstance(error, OperatorFailed | WindowLost):
                raise
            self._try_again(flight, error)
            return
        lacking = unreported(all_in(flight.round.allocation), answer.reports)
        if lacking:
            self._try_again(flight, WindowLost(f"window {flight.window_id} lacks a part of its report: {lacking}"))
            return
        answer = _with_due_times(answer, run.clock.now())
        run.probe(Point.STAGED, flight.window_id)
        if self._is_nothing(flight, answer):
            run.outputs.over(flight.window_id)
            run.pending_work.over(flight.round, worked_in(answer), run.summary)
            return
        run.publisher.started(flight)
        if not flight.promised:
            run.journal.promise(flight.upto, flight.promise)
        parts, worked = parts_of(answer), worked_in(answer)
        facts = [*flight.round.cuts, *split_at_the_end(flight.round.allocation, worked), *run.facts]
        try:
            checkpoint = self._next_checkpoint(flight, answer, facts)
            run.outputs.check(checkpoint.finished, parts)
        except DagkitError as error:
            run.journal.refuse_overtaken(error)
            raise
        ended = run.clock.now()
        run.journal.commit(checkpoint, parts)
        run.probe(Point.APPENDED, flight.window_id)
        run.checkpoint, run.state = checkpoint, checkpoint.state
        run.facts.clear()
        run.changing.committed(flight.window_id)
        now = run.clock.now()
        took = (now - flight.began).total_seconds() * 1000
        run.listeners.committed(flight.window_id, answer, now, took)
        run.pending_work.over(flight.round, worked, run.summary, whole_millis=took if flight.alone else None)
        run.outputs.commit(checkpoint)
        run.held = list(answer.delayed)
        run.beat = run.clock.now() + timedelta(milliseconds=run.summary.millis)
        run.driver_inputs.commit(flight.window_id)
        run.outputs.sweep()
        files, found, done = len(run.outputs.unfinished), run.driver_inputs.figures(flight.window_id), run.clock.now()
        run.publisher.committed(flight, answer, parts, files=files, queue=run.queue, now=done)
        queues = queues_of(run.queue, run.summary)
        run.publisher.measured(
            run.program, flight, answer, found=found, facts=checkpoint.facts, queues=queues, ended=ended, committed=done
        )

    def _is_nothing(self, flight: InFlightWindow, answer: Answer) -> bool:
        """Whether a window had no effect: it is not committed, and the next window takes its number."""
        run = self._run
        return (
            flight.asks
            and not flight.failures  # observers have seen the start of a failed one
            and not run.in_flight
            and not run.facts
            and not run.changing.is_made
            and run.summary.counts <= {1}
            and _found_nothing(flight.round.allocation, answer)
            and state_after(run.program, run.state, answer) == run.state
        )

    def _try_again(self, flight: InFlightWindow, error: OperatorFailed | WindowLost) -> None:
        """Submit the window again if its failure allows another attempt; otherwise raise the failure."""
        run = self._run
        again = flight.failed(error, run.program)
        run.publisher.started(flight)
        run.publisher.failed(flight, error, again=again)
        if not again:
            raise error
        run.in_flight.resubmit(flight, replace(flight.assignment, staging=run.new_staging(flight.window_id)))

    def _next_checkpoint(self, flight: InFlightWindow, answer: Answer, facts: Sequence[Fact]) -> Checkpoint:
        run = self._run
        return next_checkpoint(
            run.checkpoint.with_files(run.outputs.gathered(flight.window_id)),
            flight.taken,
            answer,
            program=run.program,
            window_id=flight.window_id,
            last=flight.assignment.last,
            queue=run.pending_work.all(),
            younger=[other.taken for other in run.in_flight],
            state=state_after(run.program, run.state, answer),
            ended=run.driver_inputs.exhausted,
            timed_inputs=run.summary.timed_inputs,
            coming=run.driver_inputs.coming(run.program),
            facts=facts,
            partitions=run.changing.shape.partitions,
            altered=run.changing.shape.altered,
            answered=run.changing.requests,
        )

    def finish(self) -> None:
        run = self._run
        window_id, path, durable = run.checkpoint.window, run.settings.application_path, run.settings.durable
        try:
            run.outputs.finish(
                lambda files: run.backend.put_in_place(files, path, durable=durable),
                lambda point: run.probe(point, window_id),
            )
        except DagkitError as error:
            run.journal.refuse_overtaken(error)
            raise
        run.probe(Point.FINISHED, window_id)


def _found_nothing(allocation: Allocation, answer: Answer) -> bool:
    """Whether all allocated work had nothing to do, and the window produced nothing else."""
    left = [each for report in answer.reports for each in report.left]
    wrote = any(report.parts for report in answer.reports)
    # compare stretches, so that an item that ended and a new item in its place count as work
    same = sorted(map(_stretch, left)) == sorted(map(_stretch, all_in(allocation)))
    return same and all(each.in_vain for each in left) and not wrote and not answer.delayed


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
