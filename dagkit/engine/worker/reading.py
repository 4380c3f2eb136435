"""Process the work of a splittable operator in a slot, and stop when the window is over."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from dagkit.api.ports import Outlet
from dagkit.api.stats import WorkProgress
from dagkit.api.work import SplittableOperator
from dagkit.engine.files.staging import Staging
from dagkit.engine.program.entrances import code_of, failing_among, find_record, found_by_sender, made_by, sliced
from dagkit.engine.program.failures import Failure, OperatorFailed, offsets_in
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.handover import BoardLink
from dagkit.engine.work.item import Deferral, WorkItem, parted
from dagkit.engine.worker.instances import GATHERED_ITEMS
from dagkit.engine.worker.protocol import Leaving, Stretch, WindowTask, WorkDone
from dagkit.engine.worker.tracing import Trace, TracedReading
from dagkit.engine.worker.work_in_hand import WorkInHand
from dagkit.ranges import Deferred, OffsetRange, Progress, RestrictionTracker, WatermarkEstimator, WorkUnclaimed
from dagkit.schema.batch import Batch

MOST_RANGES = 1000
"""How many blocks a slot reports one by one; of a window with more, only sums cover the others."""


@dataclass(slots=True)
class Current:
    """The present item of a slot."""

    element: Any = None
    """The element, for failure messages; None between two items."""
    item: WorkItem | None = None
    """The item of the element, or of the last one."""
    rows: int = 0
    """How many items were sent for the element."""
    offset: int | None = None
    """Where the record starts on which an operator failed; None before a failure."""
    tracker: RestrictionTracker[Any, Any] | None = None


class Reading:
    """The work of one splittable operator in one slot and window."""

    def __init__(
        self,
        elements: Elements,
        slot: int,
        task: WindowTask,
        given: Iterable[WorkItem],
        *,
        staging: Staging | None = None,
        flush: Callable[[], None] = lambda: None,
        link: BoardLink | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.elements = elements
        self.done = WorkDone()
        self.now = Current()
        self.in_hand = WorkInHand(elements, slot, self.done, link=link or BoardLink())
        self._given = [each for each in given if each.into == elements.into]
        self._arrived: list[Any] = []
        """The elements that other operators of this slot sent."""
        self._slot = slot
        self._task = task
        self._staging = staging
        self._flush = flush
        self._traced = None if trace is None else TracedReading(trace, flush)
        self._made = time.monotonic()

    @property
    def operator(self) -> SplittableOperator[Any, Any]:
        return self.elements.operator

    @property
    def taken(self) -> int:
        """How many elements other operators of this slot sent."""
        return len(self._arrived)

    def take(self, element: Any) -> None:
        """Accept an element from another operator; it is processed after all input of this window has arrived."""
        self._arrived.append(element)

    def work(self) -> Iterator[None]:
        """Process all work, or as much as fits the window; yield so that the caller can send the results.

        Work with an end comes first. Work without an end shares the remaining time.
        """
        recorder = self.in_hand.recorder
        work = sorted(self._begun(list(self._new())), key=attrgetter("order"))
        with self.in_hand.opened(work, self._task.lasts_millis):
            while (each := self.in_hand.next()) is not None:
                yield from self._work_on(each)
                yield
            self.done.left += self.in_hand.rest()
        self.done.record = recorder.record()

    def progress(self) -> tuple[int, int, Progress | None]:
        """A value that changes while work is processed; called by another thread."""
        now = self.now
        tracker = now.tracker
        return self.done.begun, now.rows, None if tracker is None else tracker.current_progress()

    @property
    def origin(self) -> Any:
        """The element that is processed; in a traced attempt, with its place."""
        return self.now.element if self._traced is None else self._traced.origin

    @property
    def item(self) -> WorkItem | None:
        """The item that is processed; None between two items."""
        return None if self.now.element is None else self.now.item

    def _begun(self, new: list[WorkItem]) -> list[WorkItem]:
        """The work that this attempt begins; it leaves the rest."""
        attempt = self._task.attempt
        work, left = parted(self._of_leaving(new), attempt.without_work)
        self.done.left += left
        without = attempt.without
        if not without:
            return work
        self.done.left += [each for each in work if (each.into, each.source) in without]
        return [each for each in work if (each.into, each.source) not in without]

    def _of_leaving(self, new: list[WorkItem]) -> list[WorkItem]:
        attempt = self._task.attempt
        match attempt.leaves:
            case Leaving.ALL:
                self.done.left += [*self._given, *new]
                return []
            case Leaving.FOUND:
                self.done.left += new
                return self._given
            case _:
                return [*self._given, *new]

    def _new(self) -> Iterator[WorkItem]:
        """The work that came from other operators, numbered by window, slot and order of arrival."""
        into, task, recorder = self.elements.into, self._task, self.in_hand.recorder
        seen, _ = task.seen.get(into.operator, ({}, None))
        not_before = seen.get(into.port)
        for index, element in enumerate(self._arrived):
            number = task.window_id, self._slot, index
            for each in self.elements.work_of(element, number, not_before=not_before):
                recorder.find(each)
                yield each

    def _work_on(self, each: WorkItem) -> Iterator[None]:
        element, done, recorder = self.elements.back(each), self.done, self.in_hand.recorder
        with self.elements.code():
            times = self.operator.watermark(element, each.times.reached)
        staging = self._staging if each.element_id is not None else None
        if staging is not None:
            staging.order = each.start
        began = time.monotonic()
        each, rest, deferred, skipped = yield from self._processed(each, element)
        # Single items may still wait for a batch: they belong to the files of this element, which are closed below.
        self._flush()
        if self._traced is not None:
            self._traced.end()
        if staging is not None:
            assert each.element_id is not None, "only stretches of sources are staged by their start"
            staging.close_element(each.element_id)
            staging.order = 0
        reached = None if times is None else _reached(times)
        stop = each.end if rest is None else rest.start
        recorder.do(each, stop, self.now.rows, self.operator, skipped)
        source = self.elements.source_to_report(each, rest)
        if source is not None and reached is not None:
            done.reached[source] = max(reached, done.reached.get(source, reached))
        ended = time.monotonic()
        millis = (ended - began) * 1000
        if each.source is not None and len(done.stretches) < MOST_RANGES:
            done.stretches.append(Stretch(each.source, each.start, stop, (began - self._made) * 1000, millis))
        length = each.length if rest is None else rest.start - each.start
        if self.operator.reads_positions and each.restriction is None:
            done.positions += each.known_length if rest is None else length  # the end may be unknown
            # The gaps were claimed and not read, as the offsets of removed messages are.
            done.positions -= sum(gap.stop - gap.start for gap in skipped)
        if rest is None:
            done.amount += each.amount
            return
        done.amount += length * each.density
        left = replace(
            rest,
            done=rest.done._replace(positions=length, millis=millis, apart=0, turn=self._task.window_id),
            deferral=Deferral(
                in_vain=deferred is not None and not length,
                idle_since=None if length else each.deferral.idle_since,
                unanswered=deferred is not None and deferred.unanswered,
            ),
            times=rest.times._replace(reached=reached),
        )
        done.left.append(left)
        if len(done.underway) < MOST_RANGES:
            done.underway.append(WorkProgress(each.name, rest.done.completed, rest.amount if rest.has_end else None))
        if deferred is not None:
            done.put_off[left.end_key] = deferred

    def _processed(
        self, each: WorkItem, element: Any
    ) -> Generator[None, None, tuple[WorkItem, WorkItem | None, Deferred[Any] | None, Sequence[OffsetRange]]]:
        """Process an item. Return it without work that was handed over, its rest, the rest's deferral, and gaps."""
        name, in_hand, now = self.elements.name, self.in_hand, self.now
        now.element, now.item, now.rows = element, each, 0
        self.done.begun += 1
        made = self._made_whole(each)
        if made is not None:
            yield from made_by(name, self._send(made))
            now.element = None
            return in_hand.end(), None, None, ()
        tracker = now.tracker = self.elements.tracker(each, element)
        if self._traced is not None:
            self._traced.begin(each, element, tracker)
        in_hand.begin(each, element, tracker, 1 if each.has_end else 1 + in_hand.waiting)
        with code_of(name):
            made = self.operator.process(element, tracker)
        if made is not None:
            yield from made_by(name, self._send(made))
        self._check_done(tracker)
        now.element = now.tracker = None
        with code_of(name):
            # What the tracker raised at the deadline is raised here, as a failure of the operator.
            deferred, taken = tracker.deferred(), in_hand.deadline.residual()
        each, residual = in_hand.end(), taken if deferred is None else deferred.residual
        if residual is None:
            return each, None, deferred, tracker.skipped()
        return each, self.elements.rest_of(each, element, tracker, residual), deferred, tracker.skipped()

    def _made_whole(self, each: WorkItem) -> Iterator[Any] | None:
        """The results for a small element, without claims; None if its work is to be claimed."""
        # Of the 0.27 ms for a file of 1 KiB, opening it twice and claiming its first 16 lines were most. With this,
        # 20,000 such files take 0.51 to 0.61 of the workers' time. A window waits for no longer than for a claim, 5 ms.
        # Rejected: many files in one batch, which has no one element that a failure could name.
        if (
            self._traced is not None
            or each.element_id is None
            or each.restriction is not None
            or not self.in_hand.is_quick(each)
        ):
            return None
        self.in_hand.begin(each, self.now.element, None)
        with self.elements.code():
            return self.operator.process_whole(self.now.element)

    def _check_done(self, tracker: RestrictionTracker[Any, Any]) -> None:
        """Raise `OperatorFailed` unless all work was claimed, given back or deferred."""
        try:
            tracker.check_done()
        except WorkUnclaimed as unclaimed:
            operator, window = self.elements.name, self._task.window_id
            element = f"{self.now.element!r:.80}"
            message = f"{type(self.operator).__name__}.process returned, and of {element} {unclaimed.problem}"
            raise OperatorFailed(Failure(operator, window, self._slot, message), unclaimed) from unclaimed

    def _send(self, made: Iterator[Any]) -> Iterator[None]:
        """Send the results, and yield after each batch and after some items. Raise the tracker's failure, if any."""
        # Without these turns, results waited until the end of the block or the window: 102 MiB at most where 400 MB
        # went over an exchange, and 2 MiB with them. The failure is that of a split at the deadline: work without an
        # end does not return.
        now, outlet, deadline = self.now, self.elements.outlet, self.in_hand.deadline
        for number, one in enumerate(made, start=1):
            assert outlet is not None, f"{type(self.operator).__name__}.process yields, and has no main output"
            now.rows += len(one) if isinstance(one, Batch) else 1
            if isinstance(one, Batch):
                self._send_batch(outlet, one)
                deadline.check()
                yield
            else:
                outlet.emit(one)
                if number % GATHERED_ITEMS == 0:
                    deadline.check()
                    yield

    def _send_batch(self, outlet: Outlet[Any], batch: Batch[Any]) -> None:
        try:
            for part in (batch,) if self._traced is None else self._traced.sent(batch):
                with found_by_sender():
                    outlet.emit_batch(part)
        except Exception as error:
            self.now.offset = self._failing_offset(outlet, batch, error)
            raise

    def _failing_offset(self, outlet: Outlet[Any], batch: Batch[Any], error: Exception) -> int | None:
        """The start of the record that an operator failed on; None if unknown."""
        offsets, failing = offsets_in(batch), None
        if offsets is not None:
            failing = failing_among(len(batch), lambda part: outlet.emit_batch(sliced(batch, part)), error)
        find_record(error)
        return None if offsets is None or failing is None else offsets[failing]


def _reached(times: WatermarkEstimator) -> datetime | None:
    """Return the estimator's state after its watermark, from which the next estimator resumes."""
    times.current_watermark()
    return times.estimator_state()
