"""Performs requests on work when a window starts: gives up pending work, or puts work back that was set aside."""

from collections.abc import Iterable, Sequence
from functools import partial

from dagkit.api.files import output_files
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.reconfiguring import Reconfiguration
from dagkit.engine.parts.requests import GiveUp, OnWork, Refused
from dagkit.engine.parts.run_part import RunPart
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.parts.searching import RecordSearch
from dagkit.engine.parts.setting_aside import Aside
from dagkit.engine.program.facts import Decided, Decision
from dagkit.engine.record.source_names import is_named
from dagkit.engine.record.whole_files import is_among
from dagkit.engine.work.aside import WorkAside, decided_of
from dagkit.engine.work.item import PromisedItem, WindowPromise, WorkItem
from dagkit.errors import RunFailure
from dagkit.ranges import OFFSET_INFINITY


class WorkRequests(RunPart):
    """Requests on work, which are performed when the next window starts; no other window is in flight."""

    def __init__(
        self, run: RunState, queue: PendingWork, changes: Reconfiguration, aside: Aside, search: RecordSearch
    ) -> None:
        self._run = run
        self._queue = queue
        self._changes = changes
        self._aside = aside
        self._search = search

    def before(self, window: InFlightWindow) -> None:
        if window.promise is not None:
            self._retry_promised(window.promise)
        # Before the work is allocated, and in a promised window, too: that may be the one which fails at this work.
        self._changes.perform_on_work(partial(self._perform, window))

    def _retry_promised(self, promise: WindowPromise) -> None:
        """Put back what was set aside and the window is to process: a launch that was killed had put it back."""

        def is_promised(item: WorkItem) -> bool:
            promised = (each for stretches in promise.deal.get(item.into, ()) for each in stretches)
            return any(n == item.number and start < item.end and item.start < end for n, start, end in promised)

        decided = self._aside.decided
        self._aside.retry([each for each in decided.all_aside if is_promised(each.item)])

    def _perform(self, window: InFlightWindow, asks: OnWork) -> Sequence[Decided]:
        """Perform a request, and return the facts; raise `Refused` if it concerns no work."""
        decided = self._aside.decided
        aside = [each for each in decided.all_aside if asked_part(asks, each.item) == each.item]
        if isinstance(asks, GiveUp):
            return self._give_up(window, asks, aside)
        retried = [item for item in decided.retried if asked_part(asks, item) == item]  # the promise contains it
        if not aside and not retried:
            raise Refused("no such work was set aside", "`dagkit work ls` lists the work that was set aside")
        for each in aside:
            self._refuse_complete(each.item)
            self._refuse_read_again(each.item)
        self._aside.retry(aside)
        return self._facts(asks, [*retried, *(each.item for each in aside)])

    def _refuse_complete(self, item: WorkItem) -> None:
        """Refuse to retry a part of a block whose output files are complete: its records would replace the files."""
        program, last = self._run.program, self._run.checkpoint
        after = program.after(item.into.operator)
        declared = [each for name in after for each in output_files(type(program.operators[name][0])).values()]
        is_complete = item.element_id is not None and is_among(item.element_id, last.output.read)
        if is_complete and any(each.of_blocks for each in declared):
            raise Refused(
                f"the output files of block {item.element_id} are complete without this work",
                "process it in another application, then give it up here",
            )

    def _refuse_read_again(self, item: WorkItem) -> None:
        """Refuse to retry an element that its operator will get again, as a file that has changed since."""
        summary = self._run.summary
        elements = summary.elements[item.into]
        try:
            elements.operator.refuse_retry(elements.back(item))
        except RunFailure as failure:
            raise Refused(failure.problem, failure.help) from failure

    def _give_up(self, window: InFlightWindow, asks: GiveUp, aside: Sequence[WorkAside]) -> Sequence[Decided]:
        if window.promise is not None:  # the operator's own pieces can be given up one by one
            queue = self._queue.queue
            queue.divide(window.promise.divided)
            window.promise = window.promise.model_copy(update={"divided": ()})
        pending = self._queue.removed(lambda item: asked_part(asks, item))
        if not pending and not aside:
            raise Refused("no such work waits", "`dagkit work ls` lists the work that waits, as the ledger names it")
        if window.promise is not None:
            window.promise = _without(window.promise, pending)
        self._search.give_up(pending)
        self._aside.give_up(pending, aside)
        return self._facts(asks, [*pending, *(each.item for each in aside)])

    def _facts(self, asks: OnWork, items: Iterable[WorkItem]) -> Sequence[Decided]:
        decision: Decision = "given-up" if isinstance(asks, GiveUp) else "retried"
        return [decided_of(item, decision, asks.reason, self._run.now(), by=asks.by) for item in items]


def asked_part(asks: OnWork, item: WorkItem) -> WorkItem | None:
    """Return the part of an item that a request concerns; None if there is none. Shares are not divided."""
    named = not asks.names or any(
        name in (item.source, item.name, item.element) or is_named(item.source or "", name) for name in asks.names
    )
    if not named or asks.operator not in (None, item.into.operator):
        return None
    start = max(item.start, asks.start)
    end = min(item.end, OFFSET_INFINITY if asks.end is None else asks.end)
    if start >= end:
        return None
    if item.restriction is not None:
        return item if (start, end) == (item.start, item.end) else None
    return item.part(start, end)


def _without(promise: WindowPromise, gone: Iterable[WorkItem]) -> WindowPromise:
    """Return a promise without work that no longer waits."""
    deal = dict(promise.deal)
    for item in gone:
        if item.into in deal:
            deal[item.into] = tuple(
                tuple(rest for stretch in stretches for rest in _rests(stretch, item)) for stretches in deal[item.into]
            )
    return promise.model_copy(update={"deal": deal})


def _rests(stretch: PromisedItem, gone: WorkItem) -> Iterable[PromisedItem]:
    """The rests of a promised stretch before and after an item that no longer waits."""
    number, start, end = stretch
    if number != gone.number or gone.end <= start or end <= gone.start:
        return [stretch]
    return [(number, low, high) for low, high in ((start, gone.start), (gone.end, end)) if low < high]
