"""The search for the record on which a window fails, when all attempts at it have failed.

One that ends its worker is found by halves. One on which an operator raises behind an exchange is found by one more
attempt: items take their origins along only in such an attempt, or if an output names them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from dagkit.engine.aside.search import Search
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.failures import OperatorFailed, RecordFatal, WindowLost, WorkerDied
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.launch_marker import LaunchMarker
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.run_part import EndedWindow, RunPart, Saved
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.parts.setting_aside import Aside
from dagkit.engine.parts.wants import Want, Wants
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.worker.protocol import Answer, Leaving, WindowTask
from dagkit.errors import DagkitError
from dagkit.scaling.policy import LONGEST_MILLIS


class RecordSearch(RunPart):
    """The next attempt at a window that failed, and the search for the record that ends its worker."""

    def __init__(self, run: RunState, queue: PendingWork, aside: Aside) -> None:
        self._run = run
        self._queue = queue
        self._aside = aside
        self._marker = LaunchMarker(run.journal.store)
        self.search = run.checkpoint.search
        self._next: Search | None = None
        """The search after the window that is committed now."""

    def begin(self) -> None:
        if self._run.settings.runs_in_driver:
            self._marker.begin()

    def close(self) -> None:
        self._marker.end()

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        if self.search is not None:
            yield Want.ALONE, now

    def before(self, window: InFlightWindow) -> None:
        """Schedule the next step of the search, and no other work. Isolate a window that may end its worker."""
        summary, timeout = self._run.summary, self._run.summary.timeout_millis
        if self.search is not None and window.promise is None:
            allocation, made = self.search.next(self._queue.queue, summary.slots, summary.elements)
            window.schedule = WindowSchedule(allocation, LONGEST_MILLIS, CostEstimate(), tuple(made))
        isolated = self.search is not None or timeout is not None or self._marker.was_killed
        window.task = replace(window.task, isolated=isolated, timeout_millis=timeout)

    # ---- a window that failed

    def again(self, window: InFlightWindow, task: WindowTask, error: OperatorFailed | WindowLost) -> WindowTask:
        if window.put_off is not None:
            return task
        attempts, publisher = window.attempts, self._run.publisher
        again = attempts.failed(error, self._run.program) and not self._is_halving(window)
        publisher.started(window)
        if not again and self._aside.leaves_unreadable(window, error):
            again, attempts.failures = True, 0
        elif not again and isinstance(error, OperatorFailed) and self._may_locate(window, error):
            again, attempts.unlocated = True, error
        error = error if again else _last_failure(window, error)
        try:
            leaves = task.leaves if again else self._leaves_next(window, error)
        except DagkitError:
            publisher.failed(window, error, again=False)
            raise
        publisher.failed(window, error, again=True)
        if leaves is not task.leaves:
            attempts.failures = 0
        if leaves is Leaving.ALL:
            attempts.unreadable.clear()
        return replace(
            task,
            leaves=leaves,
            without=frozenset(attempts.unreadable),
            isolated=task.isolated or leaves is not task.leaves,
            locates=() if attempts.unlocated is None else (attempts.unlocated.failure.operator,),
        )

    def _is_halving(self, window: InFlightWindow) -> bool:
        """Whether a window is a step of the search that the next step can divide further: one failure is enough."""
        search = self.search
        return search is not None and search.includes(window.work) and not search.is_down_to(window.work)

    def _leaves_next(self, window: InFlightWindow, error: OperatorFailed | WindowLost) -> Leaving:
        """Return the work that the next attempt at a window leaves, after all attempts at it have failed.

        Raise the failure if work is not its cause. Raise `RecordFatal` if the record is found and stops the run.
        """
        summary, work = self._run.summary, window.work
        if not self._is_searched(error) or window.task.leaves is Leaving.ALL:
            raise error
        if self.search is not None and self.search.is_down_to(work):
            (item,) = work
            if not summary.sets_aside or not item.has_end or self._aside.is_full:
                place, window_id = self._aside.spot(item), window.window_id
                raise RecordFatal(item.into.operator, place, item.name, window_id, _reason(error)) from error
        elif window.task.leaves is Leaving.NOTHING and summary.finds:
            return Leaving.FOUND
        if not work:
            raise error
        return Leaving.ALL

    def _may_locate(self, window: InFlightWindow, error: OperatorFailed) -> bool:
        """Whether another attempt may find the place of the record on which an operator failed."""
        failure, program = error.failure, self._run.program
        if window.attempts.unlocated is not None or self._run.summary.sets_aside:
            return False
        if not failure.record or failure.place or failure.slot is None:
            return False
        return program.reads and program.placing([failure.operator]).placed != program.placed

    def _is_searched(self, error: OperatorFailed | WindowLost) -> bool:
        """Whether a record may be the cause. An exception names its record already: it is searched to set it aside."""
        sets_aside = self._run.summary.sets_aside
        return isinstance(error, WorkerDied) or (sets_aside and error.code == "operator-failed")

    # ---- a window that ended

    def receive(self, window: InFlightWindow, answer: Answer) -> Answer:
        """Set work aside that was found, and continue the search. Raise a failure if an attempt did not locate it."""
        attempts = window.attempts
        if attempts.unlocated is not None:  # it did not fail again
            raise attempts.unlocated
        if attempts.unreadable:
            answer = self._aside.set_unreadable_aside(window, answer)
        answer, self._next = self._search_after(window, answer)
        return answer

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        return {"search": self._next}

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        self.search = checkpoint.search

    def give_up(self, work: Iterable[WorkItem]) -> None:
        """Search no more in work that was given up."""
        self.search = None if self.search is None else self.search.after(work)

    def _search_after(self, window: InFlightWindow, answer: Answer) -> tuple[Answer, Search | None]:
        search, work = self.search, window.work
        is_step = search is not None and search.includes(work)
        if window.task.leaves is Leaving.ALL and (is_step or search is None):
            if search is not None and search.is_down_to(work):
                assert window.attempts.cause is not None, "a failure led to this attempt"
                return self._aside.set_aside(window.window_id, work, _reason(window.attempts.cause), answer), None
            return answer, Search.of(work)
        if search is None or not is_step:  # a window that began before the search did
            return answer, search
        if any(report.put_off for report in answer.reports):
            return answer, None  # the rest is not there yet: later windows process it as usual
        return answer, search.after(work, answer.left)


def _last_failure(window: InFlightWindow, error: OperatorFailed | WindowLost) -> OperatorFailed | WindowLost:
    """The failure that ends the run, with the number of tries.

    After an attempt to locate the record, it is the one with a place, else the first.
    """
    attempts = window.attempts
    if attempts.unlocated is not None and not (isinstance(error, OperatorFailed) and error.failure.place):
        error = attempts.unlocated
    return error.after(attempts.tries, attempts.count) if isinstance(error, OperatorFailed) else error


def _reason(error: OperatorFailed | WindowLost) -> str:
    return error.failure.message if isinstance(error, OperatorFailed) else error.problem.partition("\n")[0]
