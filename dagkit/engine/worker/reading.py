"""Process the work of a splittable operator in a slot, and stop when the window is over."""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from dagkit.api.operators import main_outlet
from dagkit.api.ports import Outlet
from dagkit.api.stats import WorkProgress
from dagkit.api.work import SplittableOperator
from dagkit.engine.files.staging import Staging
from dagkit.engine.program.entrances import code_of, failing_among, find_record, found_by_sender, made_by
from dagkit.engine.program.failures import Failure, OperatorFailed, offsets_in
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.handover import BoardLink, NoBoard
from dagkit.engine.work.item import WorkItem, parted
from dagkit.engine.work.record import Recorder
from dagkit.engine.work.split import ItemEnd
from dagkit.engine.worker.deadline import Deadline
from dagkit.engine.worker.instances import GATHERED_ITEMS
from dagkit.engine.worker.protocol import Leaving, Stretch, WindowTask
from dagkit.engine.worker.tracing import Trace, TracedReading
from dagkit.engine.worker.work_in_hand import WorkInHand
from dagkit.ranges import Deferred, OffsetRange, Progress, RestrictionTracker, WatermarkEstimator, WorkUnclaimed
from dagkit.schema.batch import Batch

MOST_RANGES = 1000
"""How many blocks a slot reports one by one; of a window with more, only sums cover the others."""


class Reading:
    """The work of one splittable operator in one slot and window."""

    def __init__(
        self,
        elements: Elements,
        slot: int,
        assignment: WindowTask,
        given: Iterable[WorkItem],
        *,
        staging: Callable[[], Staging | None] = lambda: None,
        flush: Callable[[], None] = lambda: None,
        link: BoardLink | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.elements = elements
        self.operator: SplittableOperator[Any, Any] = elements.operator
        self.left: list[WorkItem] = []
        self.put_off: dict[ItemEnd, Deferred[Any]] = {}
        """Deferred work, keyed by the end of its range."""
        self.positions = 0
        """How many positions were read."""
        self.worked = 0.0
        """The amount of that work, in the unit of the operator."""
        self.reached: dict[str, datetime] = {}
        """The latest watermark, by source."""
        self.underway: list[WorkProgress] = []
        """How far the items have come that have a rest."""
        self.begun = 0
        """How many elements, or parts of elements, were begun."""
        self.taken = 0
        """How many elements other operators of this slot sent."""
        self.stretches: list[Stretch] = []
        self.element: Any = None
        """The element being processed, for failure messages."""
        self._item: WorkItem | None = None
        """That of the last element."""
        self.order = 0
        """Where the element starts, if it belongs to a block: its output belongs there in the block's files."""
        self.rows = 0
        """How many items were sent for the element."""
        self.offset: int | None = None
        """Where the record starts on which an operator failed; None before a failure."""
        self.recorder = Recorder(reads=elements.operator.reads_positions)
        self.in_hand: WorkInHand | None = None
        """Set when the work begins."""
        self._given = [each for each in given if each.into == elements.into]
        self._arrived: deque[Any] = deque()
        self._slot = slot
        self._assignment = assignment
        self._staging = staging
        self._flush = flush
        self._link = link or NoBoard()
        self._traced = None if trace is None else TracedReading(trace, flush)
        self._outlet = main_outlet(self.operator)
        self._made = time.monotonic()
        self._tracker: RestrictionTracker[Any, Any] | None = None
        """That of the element."""
        self.deadline: Deadline | None = None
        """Set when the work begins: each operator of a slot gets the whole time of the window."""

    def take(self, element: Any) -> None:
        """Accept an element from another operator; it is processed after all input of this window has arrived."""
        self._arrived.append(element)
        self.taken += 1

    def work(self) -> Iterator[None]:
        """Process all work, or as much as fits the window; yield so that the caller can send the results.

        Work with an end comes first. Work without an end shares the remaining time.
        """
        work = sorted(self._begun(list(self._new())), key=attrgetter("order"))
        self.deadline = Deadline(self._assignment.lasts_millis)
        self.in_hand = WorkInHand(
            self.elements, self._slot, self.recorder, work, deadline=self.deadline, link=self._link
        )
        try:
            with self.in_hand as in_hand:
                while (each := in_hand.next()) is not None:
                    yield from self._work_on(each, in_hand, self.deadline)
                    yield
                self.left += in_hand.rest()
        finally:
            self.deadline.end()

    def progress(self) -> tuple[int, int, Progress | None]:
        """A value that changes while work is processed; called by another thread."""
        tracker = self._tracker
        return self.begun, self.rows, None if tracker is None else tracker.current_progress()

    @property
    def origin(self) -> Any:
        """The element that is processed; in a traced attempt, with its place."""
        return self.element if self._traced is None else self._traced.origin

    @property
    def item(self) -> WorkItem | None:
        """The item that is processed; None between two items."""
        return None if self.element is None else self._item

    def _begun(self, new: list[WorkItem]) -> list[WorkItem]:
        """The work that this attempt begins; it leaves the rest."""
        work, left = parted(self._of_leaving(new), self._assignment.without_work)
        self.left += left
        if not self._assignment.without:
            return work
        self.left += [each for each in work if (each.into, each.source) in self._assignment.without]
        return [each for each in work if (each.into, each.source) not in self._assignment.without]

    def _of_leaving(self, new: list[WorkItem]) -> list[WorkItem]:
        match self._assignment.leaves:
            case Leaving.ALL:
                self.left += [*self._given, *new]
                return []
            case Leaving.FOUND:
                self.left += new
                return self._given
            case _:
                return [*self._given, *new]

    def _new(self) -> Iterator[WorkItem]:
        """The work that came from other operators, numbered by window, slot and order of arrival."""
        into = self.elements.into
        seen, _ = self._assignment.seen.get(into.operator, ({}, None))
        not_before = seen.get(into.port)
        for index, element in enumerate(self._arrived):
            number = self._assignment.window_id, self._slot, index
            for each in self.elements.work_of(element, number, not_before=not_before):
                self.recorder.find(each)
                yield each
        self._arrived.clear()

    def _work_on(self, each: WorkItem, in_hand: WorkInHand, deadline: Deadline) -> Iterator[None]:
        element, name = self.elements.back(each), self.elements.into.operator
        with code_of(name):
            times = self.operator.watermark(element, each.reached)
        staging = self._staging() if each.element_id is not None else None
        self.order = 0 if each.element_id is None else each.start
        if staging is not None:
            staging.order = self.order
        began = time.monotonic()
        each, rest, deferred, skipped = yield from self._processed(each, element, in_hand, deadline)
        self._flush()
        if self._traced is not None:
            self._traced.end()
        if staging is not None:
            assert each.element_id is not None, "only what is a stretch of a source is staged by where it starts"
            staging.close_element(each.element_id)
            staging.order = 0
        self.order = 0
        reached = None if times is None else _reached(times)
        self.recorder.do(each, each.end if rest is None else rest.start, self.rows, self.operator, skipped)
        self._reach(self.elements.source_to_report(each, rest), reached)
        ended = time.monotonic()
        if each.source is not None and len(self.stretches) < MOST_RANGES:
            stop = each.end if rest is None else rest.start
            after, millis = (began - self._made) * 1000, (ended - began) * 1000
            self.stretches.append(Stretch(each.source, each.start, stop, after, millis))
        done = each.length if rest is None else rest.start - each.start
        if self.operator.reads_positions and each.restriction is None:
            self.positions += each.positions if rest is None else done  # the end may be unknown
            self.positions -= sum(gap.stop - gap.start for gap in skipped)
        if rest is None:
            self.worked += each.amount
            return
        self.worked += done * each.density
        left = replace(
            rest,
            due=None,
            in_vain=deferred is not None and not done,
            unanswered=deferred is not None and deferred.unanswered,
            turn=self._assignment.window_id,
            reached=reached,
            idle_since=None if done else each.idle_since,
            done_positions=done,
            done_millis=(ended - began) * 1000,
            done_apart=0,
        )
        self.left.append(left)
        if len(self.underway) < MOST_RANGES:
            self.underway.append(WorkProgress(each.name, rest.completed, rest.amount if rest.has_end else None))
        if deferred is not None:
            self.put_off[self.left[-1].end_key] = deferred

    def _reach(self, source: str | None, reached: datetime | None) -> None:
        if source is not None and reached is not None:
            self.reached[source] = max(reached, self.reached.get(source, reached))

    def _processed(
        self, each: WorkItem, element: Any, in_hand: WorkInHand, deadline: Deadline
    ) -> Generator[None, None, tuple[WorkItem, WorkItem | None, Deferred[Any] | None, Sequence[OffsetRange]]]:
        """Process an item. Return it without what was handed over, its rest, why that was deferred, and gaps."""
        name = self.elements.into.operator
        self.element, self._item, self.rows = element, each, 0
        self.begun += 1
        made = self._made_whole(each, in_hand)
        if made is not None:
            yield from made_by(name, self._send(made, deadline))
            self.element = None
            return in_hand.end(), None, None, ()
        tracker = self._tracker = self.elements.tracker(each, element)
        if self._traced is not None:
            self._traced.begin(each, element, tracker)
        in_hand.begin(each, element, tracker, 1 if each.has_end else 1 + in_hand.waiting)
        with code_of(name):
            made = self.operator.process(element, tracker)
        if made is not None:
            yield from made_by(name, self._send(made, deadline))
        self._check_done(tracker)
        self.element = self._tracker = None
        with code_of(name):
            deferred, taken = tracker.deferred(), deadline.residual()
        each, residual = in_hand.end(), taken if deferred is None else deferred.residual
        if residual is None:
            return each, None, deferred, tracker.skipped()
        rest = self.elements.rest_of(each, element, tracker, residual)
        completed = each.completed + self.elements.done_of(each, element, tracker, rest)
        return each, replace(rest, completed=completed), deferred, tracker.skipped()

    def _made_whole(self, each: WorkItem, in_hand: WorkInHand) -> Iterator[Any] | None:
        """What the operator makes of a small element without claims; None if its work is to be claimed."""
        # Of the 0.27 ms for a file of 1 KiB, opening it twice and claiming its first 16 lines were most. With this,
        # 20,000 such files take 0.51 to 0.61 of the workers' time. A window waits for no longer than for a claim, 5 ms.
        # Rejected: many files in one batch, which has no one element that a failure could name.
        if (
            self._traced is not None
            or each.element_id is None
            or each.restriction is not None
            or not in_hand.is_quick(each)
        ):
            return None
        in_hand.begin(each, self.element, None)
        with code_of(self.elements.into.operator):
            return self.operator.process_whole(self.element)

    def _check_done(self, tracker: RestrictionTracker[Any, Any]) -> None:
        """Raise `OperatorFailed` unless all work was claimed, given back or deferred."""
        try:
            tracker.check_done()
        except WorkUnclaimed as unclaimed:
            operator, window = self.elements.into.operator, self._assignment.window_id
            element = f"{self.element!r:.80}"
            message = f"{type(self.operator).__name__}.process returned, and of {element} {unclaimed.problem}"
            raise OperatorFailed(Failure(operator, window, self._slot, message), unclaimed) from unclaimed

    def _send(self, made: Iterator[Any], deadline: Deadline) -> Iterator[None]:
        """Send the results, and yield after each batch and after some items, since waiting results take memory.

        Raise what the tracker raised at the deadline: the operator may have no end.
        """
        for number, one in enumerate(made, start=1):
            assert self._outlet is not None, f"{type(self.operator).__name__}.process yields, and has no main output"
            self.rows += len(one) if isinstance(one, Batch) else 1
            if isinstance(one, Batch):
                self._send_batch(self._outlet, one)
                deadline.check()
                yield
            else:
                self._outlet.emit(one)
                if number % GATHERED_ITEMS == 0:
                    deadline.check()
                    yield

    def _send_batch(self, outlet: Outlet[Any], batch: Batch[Any]) -> None:
        try:
            for part in (batch,) if self._traced is None else self._traced.sent(batch):
                with found_by_sender():
                    outlet.emit_batch(part)
        except Exception as error:
            self.offset = self._failing_offset(outlet, batch, error)
            raise

    def _failing_offset(self, outlet: Outlet[Any], batch: Batch[Any], error: Exception) -> int | None:
        """The start of the record that an operator failed on; None if unknown."""
        offsets, failing = offsets_in(batch), None
        if offsets is not None:
            failing = failing_among(len(batch), lambda index: outlet.emit_batch(batch.sliced(index, 1)), error)
        find_record(error)
        return None if offsets is None or failing is None else offsets[failing]


def _reached(times: WatermarkEstimator) -> datetime | None:
    """Return the estimator's state after its watermark, from which the next estimator resumes."""
    times.current_watermark()
    return times.estimator_state()
