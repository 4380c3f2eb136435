"""The search for the record on which a window fails, when all attempts at it have failed.

One that ends its worker is found by halves. One on which an operator raises behind an exchange is found by one more
attempt: items take their origins along only in such an attempt, or if an output names them.
"""

from collections.abc import Sequence

from dagkit.engine.aside.search import Search
from dagkit.engine.failures import OperatorFailed, RecordFatal, WindowLost, WorkerDied
from dagkit.engine.run.in_flight import InFlightWindow
from dagkit.engine.run.run_state import RunState
from dagkit.engine.run.setting_aside import MOST_ASIDE, set_aside, spot
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import all_in
from dagkit.engine.worker.protocol import Answer, Leaving
from dagkit.scaling.policy import LONGEST_MILLIS


def next_half(run: RunState, search: Search) -> WindowSchedule:
    """Schedule the next step of the search, and no other work."""
    allocation, made = search.next(run.queue, run.summary.slots, run.summary.elements)
    return WindowSchedule(allocation, LONGEST_MILLIS, CostEstimate(), tuple(made))


def is_halving(run: RunState, window: InFlightWindow) -> bool:
    """Whether a window is a step of the search that the next step can divide further: one failure is enough."""
    work = all_in(window.round.allocation)
    return run.search is not None and run.search.includes(work) and not run.search.is_down_to(work)


def leaves_next(run: RunState, window: InFlightWindow, error: OperatorFailed | WindowLost) -> Leaving:
    """Return the work that the next attempt at a window leaves, after all attempts at it have failed.

    Raise the failure if work is not the cause. Raise `RecordFatal` if the record is found and the application stops.
    """
    if not _is_searched(run, error) or window.assignment.leaves is Leaving.ALL:
        raise error
    work = all_in(window.round.allocation)
    if run.search is not None and run.search.is_down_to(work):
        (item,) = work
        if not run.summary.sets_aside or not item.has_end or len(run.decided.all_aside) >= MOST_ASIDE:
            raise _fatal(run, window, item, error) from error
    elif window.assignment.leaves is Leaving.NOTHING and run.summary.finds:
        return Leaving.FOUND
    if not work:
        raise error
    return Leaving.ALL


def may_locate(run: RunState, window: InFlightWindow, error: OperatorFailed) -> bool:
    """Whether another attempt may find the place of the record on which an operator failed."""
    failure = error.failure
    if window.unlocated is not None or run.summary.sets_aside:
        return False
    if not failure.record or failure.place or failure.slot is None:
        return False
    return run.program.reads and run.program.placing([failure.operator]).placed != run.program.placed


def last_failure(window: InFlightWindow, error: OperatorFailed | WindowLost) -> OperatorFailed | WindowLost:
    """The failure that ends the run, with the number of tries.

    After an attempt to locate the record, it is the one with a place, else the first.
    """
    if window.unlocated is not None and not (isinstance(error, OperatorFailed) and error.failure.place):
        error = window.unlocated
    return error.after(window.tries, window.attempts) if isinstance(error, OperatorFailed) else error


def _is_searched(run: RunState, error: OperatorFailed | WindowLost) -> bool:
    """Whether a record may be the cause. An exception names its record already: it is searched for to set it aside."""
    return isinstance(error, WorkerDied) or (run.summary.sets_aside and error.code == "operator-failed")


def search_after(run: RunState, window: InFlightWindow, answer: Answer) -> tuple[Answer, Search | None]:
    """Return the answer of a committed window without the work that is set aside, and the search that continues."""
    search, work = run.search, all_in(window.round.allocation)
    is_step = search is not None and search.includes(work)
    if window.assignment.leaves is Leaving.ALL and (is_step or search is None):
        if search is not None and search.is_down_to(work):
            return _set_aside(run, window, work, answer), None
        return answer, Search.of(work)
    if search is None or not is_step:  # a window that began before the search did
        return answer, search
    if any(report.put_off for report in answer.reports):
        return answer, None  # the rest is not there yet: later windows process it as usual
    return answer, search.after(work, answer.left)


def _set_aside(run: RunState, window: InFlightWindow, work: Sequence[WorkItem], answer: Answer) -> Answer:
    assert window.cause is not None, "a failure led to this attempt"
    return set_aside(run, window.window_id, work, _reason(window.cause), answer)


def _fatal(run: RunState, window: InFlightWindow, item: WorkItem, error: OperatorFailed | WindowLost) -> RecordFatal:
    return RecordFatal(item.into.operator, spot(run, item), item.name, window.window_id, _reason(error))


def _reason(error: OperatorFailed | WindowLost) -> str:
    return error.failure.message if isinstance(error, OperatorFailed) else error.problem.partition("\n")[0]
