"""The search for the record on which a window fails.

If a record may have ended its worker, slots note in the next attempt what they process. If that fails, too, the attempt
after it leaves the stretch of work that they noted, and all other work is committed: later windows search the stretch.
A record on which an operator raises behind an exchange is found by one more attempt: items take their origins along
only in such an attempt, or if an output names them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from operator import attrgetter

from dagkit.api.work import unit_of
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.run_part import EndedWindow, RunPart, Saved, Want, Wants
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.parts.setting_aside import Aside
from dagkit.engine.program.failures import OperatorFailed, Spot, WindowLost, WorkerDied, record_fatal
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.status_file import LaunchMarker
from dagkit.engine.work.aside import Search, cut_out, is_indivisible
from dagkit.engine.work.cost import CostEstimate
from dagkit.engine.work.item import WorkItem, parted
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.worker.protocol import Answer, Leaving, WindowTask
from dagkit.engine.worker.tracing import TracedPlace, folder_for_traces, remove_traces, traced
from dagkit.errors import DagkitError
from dagkit.ground.amounts import in_units
from dagkit.ranges import OFFSET_INFINITY
from dagkit.scaling.policy import LONGEST_MILLIS

MOST_SUSPECTS = 16
"""How many stretches an attempt at a window leaves; after more, it leaves all work."""
TRACED_LASTS = 4
"""How many times as long a window may last whose slots note what they process: they are slower until they fail."""


class RecordSearch(RunPart):
    """The next attempt at a window that failed, and the search for the record that ends its worker."""

    def __init__(self, run: RunState, queue: PendingWork, aside: Aside) -> None:
        self._run = run
        self._queue = queue
        self._aside = aside
        self._marker = LaunchMarker(run.journal.store)
        last = run.checkpoint
        self.search = last.suspects.search
        self._next: Search | None = None
        """The search after the window that is committed now."""
        self._gives_way = False
        """Whether the last window was a step of the search: the next one is for other work."""

    @property
    def waits_for(self) -> Iterator[tuple[str, str]]:
        """The work in which a record is searched for, by operator. The figures stand still meanwhile."""
        search, summary = self.search, self._run.summary
        for into, work in () if search is None else search.suspects.items():
            has_end = all(end < OFFSET_INFINITY for _, _, end in work)
            amount = {unit_of(summary.elements[into].operator): sum(end - start for _, start, end in work)}
            where = in_units(amount) if has_end else "work without an end"
            yield into.operator, f"the record that fails is searched for, in {where}"

    def begin(self) -> None:
        settings = self._run.settings
        if settings.runs_in_driver:
            self._marker.begin()

    def close(self) -> None:
        self._marker.end()

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        search = self.search  # a traced step takes all suspect work, so that other work may run beside it
        if search is not None and not (search.is_traced and self._gives_way):
            yield Want.ALONE, now

    def before(self, window: InFlightWindow) -> None:
        """Schedule a step of the search, or other work. Isolate a window that may end its worker."""
        search, summary = self.search, self._run.summary
        timeout = summary.timeout_millis
        is_promised = window.promise is not None
        if search is not None and not is_promised:
            window.schedule = self._next_schedule(window.window_id, search)
        # the reference backend runs such a window in a forked child, which the record may end without the driver
        isolated = search is not None or timeout is not None or self._marker.was_killed
        window.task = window.task.trying(isolated=isolated, timeout_millis=timeout)
        if search is None:
            # the process of the last launch was killed while this window ran, perhaps by a record of it
            is_traced = is_promised and self._marker.was_killed
        else:
            is_traced = search.is_traced and (is_promised or self._gives_way)
        if is_traced:
            window.task = self._with_traces(window, window.task)

    def _next_schedule(self, window_id: int, search: Search) -> WindowSchedule:
        """Return the next step of the search, without other work, or other work. They take turns."""
        queue, summary = self._queue.queue, self._run.summary
        # the suspect work leaves the queue meanwhile, so that the scheduler allocates only other work
        suspects = queue.removed(search.suspect_part)
        self._gives_way = not self._run.in_flight and not (self._gives_way and len(queue))
        others = None if self._gives_way else self._queue.next_schedule(window_id)
        queue.add(suspects)
        if others is not None:
            return others
        allocation, made = search.next(queue, summary.slots, summary.elements)
        return WindowSchedule(allocation, LONGEST_MILLIS, CostEstimate(), tuple(made))

    def _with_traces(self, window: InFlightWindow, task: WindowTask) -> WindowTask:
        """Return a task whose slots note what they process, if there is a folder for the notes."""
        program, settings = self._run.program, self._run.settings
        with suppress(OSError):
            folder = folder_for_traces(settings.application_path, window.window_id)
            # Origins go to all operators: behind an exchange, a slot notes the claim that its items came from.
            return task.trying(traces=folder, locates=tuple(program.stage_of))
        return task.trying(traces=None)  # the folder of the attempt before is gone

    # ---- a window that failed

    def again(self, window: InFlightWindow, task: WindowTask, error: OperatorFailed | WindowLost) -> WindowTask:
        attempts, publisher = window.attempts, self._run.publisher
        places = _noted(task)
        if attempts.put_off is not None:  # a server does not answer: no record is to blame
            return task if task.attempt.traces is None else self._with_traces(window, task)
        publisher.started(window)
        try:
            again = self._is_tried_again(window, error, places)
            error = error if again else _last_failure(window, error)
            leaves = task.attempt.leaves if again else self._leaves_next(window, error)
        except DagkitError:
            publisher.failed(window, error, again=False)
            raise
        publisher.failed(window, error, again=True)
        # The next attempt leaves other work, so failures before it do not count against it.
        if leaves is not task.attempt.leaves:
            attempts.failures = 0
        # All work of the window becomes suspect, and is searched in the queue: none of it may be set aside, too.
        if leaves is Leaving.ALL:
            attempts.unreadable.clear()
        unlocated = attempts.unlocated
        task = task.trying(
            leaves=leaves,
            without=frozenset(attempts.unreadable),
            without_work=attempts.without_work,
            isolated=task.attempt.isolated or attempts.is_traced or leaves is not task.attempt.leaves,
            locates=() if unlocated is None else (unlocated.failure.operator,),
            traces=None,
        )
        if not attempts.is_traced:
            return task
        lasts = None if task.lasts_millis is None else TRACED_LASTS * window.schedule.lasts_millis
        # A folder for each attempt: slots of the attempt before, which Spark may not have ended yet, write to theirs.
        return self._with_traces(window, replace(task, lasts_millis=lasts))

    def _is_tried_again(
        self, window: InFlightWindow, error: OperatorFailed | WindowLost, places: Sequence[TracedPlace]
    ) -> bool:
        """Whether another attempt follows with the same work, but for sources and stretches that are left now.

        `places` are what slots were processing when the attempt failed.
        """
        attempts = window.attempts
        again = attempts.failed(error, self._run.program) and not self._is_halving(window)
        if not again and self._aside.leaves_unreadable(window, error):
            attempts.failures = 0
            return True
        if self._is_searched(window, error) and not self._goes_by_halves(window):
            attempt = window.task.attempt
            # Spark loses workers for other reasons than a record, too, and an attempt without notes pays nothing for
            # them.
            if attempt.traces is None and not attempts.is_traced:
                attempts.is_traced = True
                return True
            if self._leaves_traced(window, error, places):
                attempts.failures = 0
                return True
            if places:  # of work that the window finds
                return False
        if not again and isinstance(error, OperatorFailed) and self._may_locate(window, error):
            attempts.unlocated = error
            return True
        return again

    def _leaves_traced(
        self, window: InFlightWindow, error: OperatorFailed | WindowLost, places: Sequence[TracedPlace]
    ) -> bool:
        """Whether the next attempt at a window leaves more work: the stretches in which slots ended.

        Raise `record-fatal` if such a stretch is the record, and the record stops the run.
        """
        attempts = window.attempts
        found = [(item, place) for place in places if (item := self._suspect_at(window, place)) is not None]
        if not found or len(attempts.suspects) + len(found) > MOST_SUSPECTS:
            return False
        for item, place in found:
            if self._is_the_record(window, item):
                self._refuse_fatal(window, item, error, place.operator)
                attempts.records.append((item, place.operator))
            attempts.suspects.append(item)
        return True

    def _suspect_at(self, window: InFlightWindow, place: TracedPlace) -> WorkItem | None:
        """The work at a place, as its operator lets it be divided; None if the window found it, or leaves it."""
        work, _ = parted(window.work, window.attempts.without_work)
        summary = self._run.summary
        for item in work:
            is_there = item.start <= place.start and place.end <= item.end
            if (item.into, item.number) == (place.into, place.number) and is_there:
                elements = summary.elements[item.into]
                return item if item.is_shares else cut_out(item, elements, place.low, place.high)
        return None

    def _is_the_record(self, window: InFlightWindow, item: WorkItem) -> bool:
        """Whether an indivisible piece failed in a step of the search before any other work."""
        if not self._is_step(window) or self._goes_by_halves(window):
            return False
        work, _ = parted(window.work, window.attempts.without_work)
        first = min((each for each in work if each.into == item.into), key=attrgetter("order"))
        # A piece that failed before any other work has failed by itself. One death is enough: the window from which the
        # search began has failed twice at this place.
        is_first = (first.number, first.start, first.end) == (item.number, item.start, item.end)
        summary = self._run.summary
        return is_first and is_indivisible(item, summary.elements[item.into])

    def _is_step(self, window: InFlightWindow) -> bool:
        """Whether a window processes suspect work only."""
        return self.search is not None and bool(window.work) and self.search.includes(window.work)

    def _goes_by_halves(self, window: InFlightWindow) -> bool:
        return self.search is not None and not self.search.is_traced and self._is_step(window)

    def _is_halving(self, window: InFlightWindow) -> bool:
        """Whether a window is a step of the search that the next step can divide further: one failure is enough."""
        return self._goes_by_halves(window) and not self._is_down_to(window)

    def _is_down_to(self, window: InFlightWindow) -> bool:
        """Whether the work of a window is all suspect work, and could not be divided."""
        return self.search is not None and self.search.is_down_to(window.work)

    def _leaves_next(self, window: InFlightWindow, error: OperatorFailed | WindowLost) -> Leaving:
        """Return the work that the next attempt at a window leaves, after all attempts at it have failed.

        Raise the failure if work is not its cause. Raise `record-fatal` if the record is found and stops the run.
        """
        if not self._is_searched(window, error):
            raise error
        summary = self._run.summary
        if self._is_down_to(window):
            (item,) = window.work
            self._refuse_fatal(window, item, error)
        # first without what the window itself finds: the work that it was given is then committed
        elif window.leaves is Leaving.NOTHING and summary.finds:
            return Leaving.FOUND
        if not window.work:
            raise error
        return Leaving.ALL

    def _refuse_fatal(
        self, window: InFlightWindow, item: WorkItem, error: OperatorFailed | WindowLost, culprit: str = ""
    ) -> None:
        """Raise `record-fatal` unless the record that ends its worker can be set aside.

        `culprit` is the operator that ended its process; empty if it is unknown.
        """
        summary = self._run.summary
        if not summary.sets_aside or not item.has_end or self._aside.is_full:
            place, reader, program = self._aside.spot(item), item.into.operator, self._run.program
            chain = [reader, *(name for name in program.operators if name in program.after(reader))]
            culprits = [culprit] if culprit else chain
            raise record_fatal(reader, culprits, place, window.window_id, _reason(error)) from error

    def _may_locate(self, window: InFlightWindow, error: OperatorFailed) -> bool:
        """Whether another attempt may find the place of the record on which an operator failed."""
        failure, program, summary = error.failure, self._run.program, self._run.summary
        if window.attempts.unlocated is not None or summary.sets_aside:
            return False
        if not failure.record or failure.spot.place or failure.slot is None:
            return False
        # an attempt in which nothing more would be placed would find no place either
        return program.reads and program.placing([failure.operator]).placed != program.placed

    def _is_searched(self, window: InFlightWindow, error: OperatorFailed | WindowLost) -> bool:
        """Whether a record may be the cause, and another attempt may find it.

        An exception names its record already: it is searched for to set it aside.
        """
        summary = self._run.summary
        may_be = isinstance(error, WorkerDied) or (summary.sets_aside and error.code == "operator-failed")
        return may_be and window.leaves is not Leaving.ALL

    # ---- a window that ended

    def receive(self, window: InFlightWindow, answer: Answer) -> Answer:
        """Set work aside that was found, and continue the search. Raise a failure if an attempt did not locate it."""
        attempts = window.attempts
        _noted(window.task)  # the attempt ended: its notes are only removed
        if attempts.unlocated is not None:  # it did not fail again
            raise attempts.unlocated
        if attempts.unreadable:
            answer = self._aside.set_unreadable_aside(window, answer)
        answer, self._next = self._search_after(window, answer)
        return answer

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        return {"search": self._next}

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        self.search = checkpoint.suspects.search

    def give_up(self, work: Iterable[WorkItem]) -> None:
        """Search no more in work that was given up."""
        self.search = None if self.search is None else self.search.after(work)

    def _search_after(self, window: InFlightWindow, answer: Answer) -> tuple[Answer, Search | None]:
        search, work, attempts = self.search, window.work, window.attempts
        is_step = self._is_step(window)
        if window.leaves is Leaving.ALL and (is_step or search is None):
            if search is not None and search.is_down_to(work):
                return self._set_aside(window, work, answer), None
            return answer, Search.of(work)
        for item, culprit in attempts.records:
            answer = self._set_aside(window, [item], answer, culprit)
        records = [record for record, _ in attempts.records]
        suspects = [item for item in attempts.suspects if item not in records]
        if search is None or not is_step:  # a window of other work
            return answer, Search.of(suspects, is_traced=True) if search is None else search.joined(suspects)
        if any(done.put_off for report in answer.reports for done in report.done.values()):
            # the rest is not there yet: later windows process it as usual
            return answer, Search.of(suspects, is_traced=True)
        return answer, search.after(work, answer.left)

    def _set_aside(self, window: InFlightWindow, work: Sequence[WorkItem], answer: Answer, culprit: str = "") -> Answer:
        assert window.attempts.cause is not None, "a failure led to this attempt"
        reason = _reason(window.attempts.cause)
        return self._aside.set_aside(window.window_id, work, f"{culprit}: {reason}" if culprit else reason, answer)


def _noted(task: WindowTask) -> Sequence[TracedPlace]:
    """Return what the slots of an attempt noted and did not end, and remove their notes."""
    traces = task.attempt.traces
    if traces is None:
        return ()
    try:
        return traced(traces)
    finally:
        remove_traces(traces)


def _last_failure(window: InFlightWindow, error: OperatorFailed | WindowLost) -> OperatorFailed | WindowLost:
    """The failure that ends the run, with the number of tries.

    After an attempt to locate the record, it is the one with a place, else the first.
    """
    attempts = window.attempts
    spot = error.failure.spot if isinstance(error, OperatorFailed) else Spot()
    if attempts.unlocated is not None and not spot.place:
        error = attempts.unlocated
    return error.after(attempts.tries, attempts.count) if isinstance(error, OperatorFailed) else error


def _reason(error: OperatorFailed | WindowLost) -> str:
    return error.failure.message if isinstance(error, OperatorFailed) else error.problem.partition("\n")[0]
