"""Commit windows: one append to the ledger commits a window. The parts of the run decide what it contains."""

from typing import Any

from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.run_part import EndedWindow
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.program.points import Point
from dagkit.engine.record.checkpoint import Checkpoint, WindowTimes
from dagkit.engine.run.run_parts import RunParts
from dagkit.engine.worker.protocol import Answer
from dagkit.errors import DagkitError


class Committer:
    """Commits the windows of one run, oldest first."""

    def __init__(self, run: RunState, parts: RunParts) -> None:
        self._run = run
        self._parts = parts

    def commit(self, window: InFlightWindow) -> None:
        """Commit an ended window. If it failed, run it again, or raise its failure after the last attempt."""
        run = self._run
        try:
            answer = self._answer(window)
        except (OperatorFailed, WindowLost) as error:
            self._run_again(window, error)
            return
        run.probe(Point.STAGED, window.window_id)
        if self._is_nothing(window, answer):
            for part in self._parts:
                part.drop(window, answer)
            return
        # A window that polls was not published when it began: each poll in vain would be a start without an end.
        run.publisher.started(window)
        # A window is promised when it has become the oldest. If the driver dies before, it is planned again: none of
        # its output was visible.
        if not window.is_promised:
            assert window.promise is not None, "its work is allocated"
            run.journal.promise(window.upto, window.promise)
        ended = EndedWindow(window, answer, run.program, run.checkpoint, run.now())
        checkpoint = self._checkpoint(ended)
        run.journal.commit(checkpoint, answer.parts)
        run.probe(Point.APPENDED, window.window_id)
        run.checkpoint = checkpoint
        # two passes: authors' code, which may fail, is called once every part continues from the committed window
        for part in self._parts:
            part.committed(ended, checkpoint)
        for part in self._parts:
            part.announce(ended, checkpoint)

    def _answer(self, window: InFlightWindow) -> Answer:
        """Return the answer of a window. Raise if it must run again; raise SequenceTaken if a driver has taken over."""
        journal = self._run.journal
        try:
            answer = window.answer.result()
            for part in reversed(self._parts):
                answer = part.receive(window, answer)
        except Exception as error:
            # a driver that has taken over sweeps what this one staged: then the failure is only its consequence
            journal.refuse_overtaken(error)
            raise
        return answer

    def _is_nothing(self, window: InFlightWindow, answer: Answer) -> bool:
        """Whether a window had no effect: it is not committed, and the next window takes its number."""
        is_known = window.attempts.cause is not None  # observers have seen the start of a failed one
        # a younger window in flight has the next number already
        if not window.polls or is_known or self._run.in_flight:
            return False
        return not any(part.is_changed_by(window, answer) for part in self._parts)

    def _checkpoint(self, ended: EndedWindow) -> Checkpoint:
        """Return the checkpoint of a window; raise if it cannot be committed."""
        journal = self._run.journal
        saved: dict[str, Any] = {}
        try:
            for part in self._parts:
                saved |= part.after(ended, saved)
        except DagkitError as error:
            # If another driver has swept the pieces of this window, it is reported, and not that they are missing.
            journal.refuse_overtaken(error)
            raise
        times = WindowTimes(launched=self._run.launched, began=ended.window.began, reported=ended.at)
        return Checkpoint(window=ended.window_id, times=times, **saved)

    def _run_again(self, window: InFlightWindow, error: OperatorFailed | WindowLost) -> None:
        """Submit the window again if its failure allows another attempt; otherwise raise the failure."""
        run, task = self._run, window.task
        run.masking.mask(error)
        for part in self._parts:
            task = part.again(window, task, error)
        run.in_flight.resubmit(window, task)
