"""Commit windows: one append to the ledger commits a window; then its files and external outputs become visible."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from dagkit.engine.aside.decided import DecidedWork
from dagkit.engine.aside.search import Search
from dagkit.engine.changes.taps import rejected_in
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.next_checkpoint import next_checkpoint, state_after, worked_in
from dagkit.engine.checkpoint.outcome import InputStatus, RemainingWork, WindowOutcome
from dagkit.engine.checkpoint.row_account import breaches
from dagkit.engine.checkpoint.work_records import unreported
from dagkit.engine.failures import OperatorFailed, WindowLost
from dagkit.engine.points import Point
from dagkit.engine.receipts.receipt import write_receipts
from dagkit.engine.run.handovers import settle_handovers
from dagkit.engine.run.in_flight import InFlightWindow
from dagkit.engine.run.notify import queues_of
from dagkit.engine.run.run_state import RunState
from dagkit.engine.run.searching import is_halving, last_failure, leaves_next, may_locate, search_after
from dagkit.engine.run.setting_aside import leaves_unreadable, set_unreadable_aside
from dagkit.engine.work.item import Number, WorkItem
from dagkit.engine.work.split import Allocation, all_in, split_at_the_end
from dagkit.engine.worker.finalizers import call_back
from dagkit.engine.worker.instances import incomplete_keys
from dagkit.engine.worker.protocol import Answer, Leaving, Report
from dagkit.errors import DagkitError

_logger = logging.getLogger(__name__)


class Committer:
    """Commits the windows of one run, oldest first."""

    def __init__(self, run: RunState) -> None:
        self._run = run

    def commit(self, window: InFlightWindow) -> None:
        """Commit an ended window. If it failed, run it again, or raise its failure after the last attempt."""
        answer = self._answer(window)
        if answer is None:
            return
        self._run.probe(Point.STAGED, window.window_id)
        if self._is_nothing(window, answer):
            self._run.outputs.over(window.window_id)
            self._run.pending_work.over(window.round, worked_in(answer), self._run.summary)
            return
        self._run.publisher.started(window)
        if not window.promised:
            self._run.journal.promise(window.upto, window.promise)
        search = None
        if window.unreadable:
            answer = set_unreadable_aside(self._run, window, answer)
        if self._run.search is not None or window.assignment.leaves is Leaving.ALL:
            answer, search = search_after(self._run, window, answer)
        outcome = self._outcome(window, answer, search)
        checkpoint = self._checkpoint(outcome)
        ended = self._run.clock.now()
        self._run.journal.commit(checkpoint, answer.parts)
        self._run.probe(Point.APPENDED, window.window_id)
        self._continue_from(checkpoint, window, answer)
        if window.assignment.taps:
            samples = [*window.samples, *answer.samples]
            self._run.changing.taps.committed(window.window_id, samples, self._run.masking.hide)
        for breach in breaches(window.window_id, checkpoint.rows):
            _logger.warning("%s", breach)
        self._publish(outcome, window, ended)

    def _answer(self, window: InFlightWindow) -> Answer | None:
        """Return the complete answer of a window, or None if the window failed and was submitted again."""
        try:
            answer, share = window.answer.result(), window.round
            if answer.has_handovers:
                after = settle_handovers(window.window_id, share.allocation, answer)
                answer, share = after.answer, replace(share, allocation=after.allocation, handed=after.splits)
        except Exception as error:
            self._run.journal.refuse_overtaken(error)
            if not isinstance(error, OperatorFailed | WindowLost):
                raise
            self._try_again(window, error)
            return None
        if window.unlocated is not None:  # it did not fail again
            self._try_again(window, window.unlocated)
            return None
        lacking = unreported(all_in(share.allocation), answer.reports)
        if lacking:
            self._try_again(window, WindowLost(f"window {window.window_id} lacks a part of its report: {lacking}"))
            return None
        window.round = share
        return _with_due_times(answer, self._run.clock.now())

    def _outcome(self, window: InFlightWindow, answer: Answer, search: Search | None) -> WindowOutcome:
        """Return the outcome of a window with all decisions since the last commit."""
        splits = split_at_the_end(window.round.allocation, worked_in(answer))
        return WindowOutcome(
            program=self._run.program,
            window_id=window.window_id,
            consumed=window.consumed,
            answer=answer,
            state=state_after(self._run.program, self._run.state, answer),
            last=window.assignment.last,
            facts=(*window.round.cuts, *window.round.handed, *splits, *self._run.facts),
            decided=self._run.decided,
            search=search,
            flow=self._run.flow,
            launched=self._run.launched,
            began=window.began,
            ended=self._run.clock.now(),
        )

    def _checkpoint(self, outcome: WindowOutcome) -> Checkpoint:
        """Return the checkpoint of a window; raise if its files cannot be committed."""
        inputs = self._run.driver_inputs
        before = self._run.checkpoint.with_files(self._run.outputs.gathered(outcome.window_id))
        remaining = RemainingWork(self._run.pending_work.all(), [other.consumed for other in self._run.in_flight])
        younger = {name for other in self._run.in_flight for name in other.upto}
        status = InputStatus(inputs.exhausted, inputs.behind | younger, inputs.watermarks)
        try:
            checkpoint = next_checkpoint(before, outcome, remaining, status, self._run.changing.in_force)
            self._run.outputs.check(checkpoint.finished, outcome.answer.parts)
        except DagkitError as error:
            self._run.journal.refuse_overtaken(error)
            raise
        return checkpoint

    def _continue_from(self, checkpoint: Checkpoint, window: InFlightWindow, answer: Answer) -> None:
        """Make a committed checkpoint the one that the run continues from, and put its files in place."""
        self._run.checkpoint, self._run.state = checkpoint, checkpoint.state
        self._run.facts.clear()
        self._run.decided = DecidedWork(all_aside=checkpoint.aside)
        self._run.search = checkpoint.search
        self._run.changing.committed(window.window_id)
        now = self._run.clock.now()
        took = (now - window.began).total_seconds() * 1000
        self._run.listeners.committed(window.window_id, answer, now, took)
        whole_millis = took if window.alone else None
        self._run.pending_work.over(window.round, worked_in(answer), self._run.summary, whole_millis=whole_millis)
        self._run.outputs.commit(checkpoint)
        if window.assignment.staging is not None:
            self._run.woken_at = window.assignment.staging.began
        self._run.held = list(answer.delayed)
        self._run.beat = self._run.clock.now() + timedelta(milliseconds=self._run.summary.millis)
        self._run.driver_inputs.commit(window.window_id)
        call_back(callback for report in answer.reports for callback in report.finalizers)
        self._run.outputs.sweep(None if self._run.in_flight else self._incomplete_keys)

    def _incomplete_keys(self) -> Iterator[str]:
        """The keys of the files that slots write together, and that operators will adopt."""
        for name, (operator, *_) in self._run.program.operators.items():
            for saved in self._run.state.get(name, ()):
                yield from incomplete_keys(operator, saved)

    def _publish(self, outcome: WindowOutcome, window: InFlightWindow, ended: datetime) -> None:
        """Publish a committed window and its measurements; its work was over at `ended`."""
        files, queue = self._run.outputs.unplaced, self._run.queue
        found, now = self._run.driver_inputs.figures(window.window_id), self._run.clock.now()
        self._run.publisher.committed(
            window,
            outcome.answer,
            files=files,
            queue=queue,
            now=now,
            visible=self._run.next_wake,
            block=self._run.journal.chain.head.seq,
        )
        queues = queues_of(queue, self._run.summary)
        rejected = rejected_in(outcome.answer.samples, self._run.masking.hide)
        self._run.publisher.measured(
            window, outcome, found=found, queues=queues, rejected=rejected, ended=ended, committed=now
        )

    def _is_nothing(self, window: InFlightWindow, answer: Answer) -> bool:
        """Whether a window had no effect: it is not committed, and the next window takes its number."""
        return (
            window.asks
            and window.cause is None  # observers have seen the start of a failed one
            and not self._run.in_flight
            and not self._run.facts
            and not self._run.changing.is_made
            and not any((window.window_id - 1) % count for count in self._run.summary.counts)
            and _found_nothing(window.round.allocation, answer)
            and state_after(self._run.program, self._run.state, answer) == self._run.state
        )

    def _try_again(self, window: InFlightWindow, error: OperatorFailed | WindowLost) -> None:
        """Submit the window again if its failure allows another attempt; otherwise raise the failure."""
        self._run.masking.mask(error)
        again = window.failed(error, self._run.program) and not is_halving(self._run, window)
        self._run.publisher.started(window)
        leaves = window.assignment.leaves
        if not again and leaves_unreadable(self._run, window, error):
            again, window.failures = True, 0
        elif not again and isinstance(error, OperatorFailed) and may_locate(self._run, window, error):
            again, window.unlocated = True, error
        error = error if again else last_failure(window, error)
        try:
            leaves = leaves if again else leaves_next(self._run, window, error)
        except DagkitError:
            self._run.publisher.failed(window, error, again=False)
            raise
        self._run.publisher.failed(window, error, again=True)
        isolated = window.assignment.isolated
        if leaves is not window.assignment.leaves:
            window.failures = 0
            isolated = True
        if leaves is Leaving.ALL:
            window.unreadable.clear()
        staging = self._run.new_staging(window.window_id)
        assignment = replace(
            window.assignment,
            staging=staging,
            leaves=leaves,
            without=frozenset(window.unreadable),
            isolated=isolated,
            movable=frozenset(),
            locates=() if window.unlocated is None else (window.unlocated.failure.operator,),
        )
        self._run.in_flight.resubmit(window, assignment)

    def finish(self) -> None:
        """Put the complete files of committed windows in place, and deliver to external systems if they are there."""
        try:
            self._run.deliveries.attempt(self._finish)
        except DagkitError as error:
            self._run.journal.refuse_overtaken(error)
            raise

    def _finish(self) -> None:
        """Connect external systems, and finish the last window."""
        run, window_id = self._run, self._run.checkpoint.window
        run.deliveries.prepare(run.program, window_id + 1)
        if run.outputs.is_unfinished:
            run.outputs.finish(
                lambda files: run.backend.put_in_place(
                    files, run.settings.application_path, durable=run.settings.durable
                ),
                lambda output, parts: run.deliveries.deliver(run.program, window_id, output, parts),
                self._acknowledge,
                lambda point: run.probe(point, window_id),
            )
            run.probe(Point.FINISHED, window_id)

    def _acknowledge(self) -> None:
        """Write the receipts that are due with the last window."""
        run = self._run
        place, durable = run.settings.application_path, run.settings.durable
        write_receipts(run.checkpoint.receipted, place, run.journal.last_hash, run.checkpoint.window, durable=durable)


def _found_nothing(allocation: Allocation, answer: Answer) -> bool:
    """Whether all allocated work had nothing to do, and the window produced nothing else."""
    # compare stretches, so that an item that ended and a new item in its place count as work
    same = sorted(map(_stretch, answer.left)) == sorted(map(_stretch, all_in(allocation)))
    return same and all(item.in_vain for item in answer.left) and not answer.parts and not answer.delayed


def _with_due_times(answer: Answer, now: datetime) -> Answer:
    """Return the answer, received now, with the due time of each deferred item."""
    return replace(
        answer, reports=tuple(_with_due_time(report, now) if report.put_off else report for report in answer.reports)
    )


def _with_due_time(report: Report, now: datetime) -> Report:
    left = (
        item
        if put_off is None
        else replace(item, due=put_off.due(now), idle_since=_idle_since(item, now), waits_for=put_off.waits_for)
        for item in report.left
        for put_off in [report.put_off.get(item.end_key)]
    )
    return replace(report, left=tuple(left))


def _idle_since(item: WorkItem, now: datetime) -> datetime | None:
    return (item.idle_since or now) if item.in_vain and not item.unanswered else None


def _stretch(item: WorkItem) -> tuple[str, Number, int, int]:
    return item.into, item.number, item.start, item.end
