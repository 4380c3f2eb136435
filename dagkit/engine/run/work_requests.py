"""Performs requests on work when a window starts: gives up pending work, or puts work back that was set aside."""

from collections.abc import Iterable, Sequence

from dagkit.api.files import output_files
from dagkit.engine.aside.decided import WorkAside, decided_of
from dagkit.engine.changes.requests import GiveUp, OnWork, Refused
from dagkit.engine.checkpoint.next_checkpoint import is_among
from dagkit.engine.facts import Decided, Decision
from dagkit.engine.history.history import is_named
from dagkit.engine.run.run_state import RunState
from dagkit.engine.work.item import PromisedItem, WindowPromise, WorkItem
from dagkit.errors import RunFailure
from dagkit.ranges import OFFSET_INFINITY


def perform_on_work(run: RunState, asks: OnWork) -> Sequence[Decided]:
    """Perform a request, and return the facts; raise `Refused` if it concerns no work. No window is in flight."""
    aside = [each for each in run.decided.all_aside if asked_part(asks, each.item) == each.item]
    if isinstance(asks, GiveUp):
        return _given_up(run, asks, aside)
    retried = [item for item in run.decided.retried if asked_part(asks, item) == item]  # the promise contains it
    if not aside and not retried:
        raise Refused("no such work was set aside", "`dagkit work ls` lists the work that was set aside")
    for each in aside:
        _refuse_complete(run, each.item)
        _refuse_read_again(run, each.item)
    _retry(run, aside)
    return _facts(run, asks, [*retried, *(each.item for each in aside)])


def retry_promised(run: RunState, promise: WindowPromise) -> None:
    """Put back what was set aside and a promised window is to process: a launch that was killed had put it back."""

    def is_promised(item: WorkItem) -> bool:
        promised = (each for stretches in promise.deal.get(item.into, ()) for each in stretches)
        return any(number == item.number and start < item.end and item.start < end for number, start, end in promised)

    _retry(run, [each for each in run.decided.all_aside if is_promised(each.item)])


def _retry(run: RunState, aside: Sequence[WorkAside]) -> None:
    run.decided = run.decided.retrying(aside)
    run.pending_work.queue.add(each.item for each in aside)


def _refuse_complete(run: RunState, item: WorkItem) -> None:
    """Refuse to retry a part of a block whose output files are complete: its records would replace the files."""
    after = run.program.after(item.into.operator)
    declared = [each for name in after for each in output_files(type(run.program.operators[name][0])).values()]
    is_complete = item.element_id is not None and is_among(item.element_id, run.checkpoint.read)
    if is_complete and any(each.of_blocks for each in declared):
        raise Refused(
            f"the output files of block {item.element_id} are complete without this work",
            "process it in another application, then give it up here",
        )


def _refuse_read_again(run: RunState, item: WorkItem) -> None:
    """Refuse to retry an element that its operator will get again, as a file that has changed since."""
    elements = run.summary.elements[item.into]
    try:
        elements.operator.refuse_retry(elements.back(item))
    except RunFailure as failure:
        raise Refused(failure.problem, failure.help) from failure


def _given_up(run: RunState, asks: GiveUp, aside: Sequence[WorkAside]) -> Sequence[Decided]:
    if run.promise is not None:  # the operator's own pieces can be given up one by one
        promise, upto = run.promise
        run.pending_work.queue.divide(promise.divided)
        run.promise = promise.model_copy(update={"divided": ()}), upto
    pending = run.pending_work.removed(lambda item: asked_part(asks, item))
    if not pending and not aside:
        raise Refused("no such work waits", "`dagkit work ls` lists the work that waits, as the ledger names it")
    if run.promise is not None:
        promise, upto = run.promise
        run.promise = _without(promise, pending), upto
    run.search = None if run.search is None else run.search.after(pending)
    run.decided = run.decided.giving_up(pending, aside)
    return _facts(run, asks, [*pending, *(each.item for each in aside)])


def asked_part(asks: OnWork, item: WorkItem) -> WorkItem | None:
    """Return the part of an item that a request concerns; None if there is none. Shares are not divided."""
    named = not asks.names or any(
        name in (item.source, item.name) or is_named(item.source or "", name) for name in asks.names
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


def _facts(run: RunState, asks: OnWork, items: Iterable[WorkItem]) -> Sequence[Decided]:
    decision: Decision = "given-up" if isinstance(asks, GiveUp) else "retried"
    return [decided_of(item, decision, asks.reason, run.clock.now(), by=asks.by) for item in items]
