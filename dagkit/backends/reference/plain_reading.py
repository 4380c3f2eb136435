"""The reading of a splittable operator in the reference: element by element, in one thread.

After each item of the operator, the reading checks the clock: once the time of the window is over, it splits off the
range that is not claimed. A second thread checks the clock, too, because an operator may wait for its source, or claim
for ever without yielding an item.
"""

import secrets
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Event, Lock, Thread
from typing import Any

from dagkit.api.operators import sending
from dagkit.api.stats import WorkProgress
from dagkit.api.work import SplittableOperator
from dagkit.backends.reference.plain_board import PlainBoard
from dagkit.engine.files.staging import Staging
from dagkit.engine.program.entrances import code_of
from dagkit.engine.program.failures import Failure, OperatorFailed
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.handover import Handover
from dagkit.engine.work.item import WorkItem, parted
from dagkit.engine.work.record import Recorder
from dagkit.engine.work.split import ItemEnd
from dagkit.engine.worker.protocol import Leaving, Stretch, WindowTask
from dagkit.engine.worker.tracing import Trace, TracedPlace, TracedReading
from dagkit.ranges import Deferred, Progress, RestrictionTracker, WorkUnclaimed
from dagkit.ranges.restriction import fail_claims
from dagkit.schema.batch import Batch

LOOKS_AGAIN_SECONDS = 0.005
"""How soon the second thread checks again if the operator had claimed nothing yet."""


@dataclass
class PlainReading:
    """The work of one partition of a splittable operator in one window, and its results."""

    elements: Elements
    slot: int
    task: WindowTask
    staging: Staging | None
    board: PlainBoard | None = None
    """Where work is handed over; None if the work of this input is not."""
    trace: Trace | None = None
    """Where it notes what it processes; None if the attempt is not traced."""
    left: list[WorkItem] = field(default_factory=list)
    """The work that was not done: rests of elements, and whole ones."""
    put_off: dict[ItemEnd, Deferred[Any]] = field(default_factory=dict)
    """Deferred work, keyed by the end of its range."""
    underway: list[WorkProgress] = field(default_factory=list)
    """The progress in the items that have a rest."""
    positions: int = 0
    """How many positions were read."""
    worked: float = 0.0
    """The amount of work done, in the unit of the operator."""
    begun: int = 0
    """How many elements, or parts of elements, were begun."""
    reached: dict[str, datetime] = field(default_factory=dict)
    """The latest watermark, by source."""
    stretches: list[Stretch] = field(default_factory=list)
    element: Any = None
    """The element that is processed; None between two elements."""
    order: int = 0
    """The start of that element in its source, if it is a stretch of a source."""
    rows: int = 0
    """How many items were sent for that element."""
    gave: list[Handover] = field(default_factory=list)
    took: list[str] = field(default_factory=list)
    """The tokens of the handovers that it took."""
    recorder: Recorder = field(init=False)
    """The work that was found and done, for the ledger."""

    def __post_init__(self) -> None:
        self.recorder = Recorder(reads=self.operator.reads_positions)
        self._began = time.monotonic()
        self._ends: float | None = None
        """The time at which the rest of the element is split off; None: never."""
        self._tracker: RestrictionTracker[Any, Any] | None = None
        self._taken: Any = None
        """The range that was split off the element."""
        self._failure: Exception | None = None
        """The error of the tracker in a split by the second thread."""
        self._traced = None if self.trace is None else TracedReading(self.trace)
        self._splitting = Lock()
        self._waiting: deque[WorkItem] = deque()
        """The work that is not begun."""
        self._each: WorkItem | None = None
        """The item that is processed, without what was handed over."""

    @property
    def operator(self) -> SplittableOperator[Any, Any]:
        return self.elements.operator

    def work(self, given: Iterable[WorkItem], arrived: Sequence[Any]) -> None:
        """Process the allocated work, and the elements that other operators sent in this window."""
        new = [part for number, one in enumerate(arrived) for part in self._parts(one, number)]
        mine = [each for each in given if each.into == self.elements.into]
        if self.task.leaves is Leaving.NOTHING:
            mine += new
        else:
            self.left += new
        if self.task.leaves is Leaving.ALL:
            self.left += mine
            mine = []
        mine, left = parted(mine, self.task.without_work)
        self.left += left
        self.left += [each for each in mine if (each.into, each.source) in self.task.without]
        mine = [each for each in mine if (each.into, each.source) not in self.task.without]
        bounded = sorted((each for each in mine if each.has_end), key=lambda each: (each.number, each.start))
        endless = sorted(
            (each for each in mine if not each.has_end), key=lambda each: (each.turn, each.number, each.start)
        )
        lasts = self.task.lasts_millis
        until = None if lasts is None else time.monotonic() + lasts / 1000
        self._waiting.extend([*bounded, *endless])
        while (each := self._next()) is not None:
            if self.begun and _is_over(until):
                self.left.append(each)
            else:
                self._work_on(each, _turn_of(until, 1 if each.has_end else 1 + len(self._waiting)))

    @property
    def place(self) -> TracedPlace | None:
        """The place of the items that are sent now, in a traced attempt."""
        return None if self._traced is None or self._traced.origin is None else self._traced.origin.place

    @property
    def item(self) -> WorkItem | None:
        """The item that is processed; None between two items."""
        return None if self.element is None else self._each

    def _next(self) -> WorkItem | None:
        """The next item, if need be one that an earlier partition gave."""
        handover = None if self._waiting or self.board is None else self.board.taken(self.elements.into)
        if handover is not None:
            self.took.append(handover.token)
            self._waiting.extend(handover.work)
        return self._waiting.popleft() if self._waiting else None

    def hand_over(self) -> None:
        """Give half of the remaining work away if the board asks for it; called after each item that is sent."""
        if self.board is None or not self.board.asks():
            return
        bounded = [each for each in self._waiting if each.has_end]
        work = bounded[len(bounded) // 2 :]
        if work:
            self._waiting = deque(each for each in self._waiting if each not in work)
            for each in work:
                self.recorder.hand_over(each)
            self._offer(work, None)
        elif self._each is not None and self._each.has_end:
            self._halve(self._each)

    def _halve(self, each: WorkItem) -> None:
        with self._splitting:
            tracker = self._tracker
            if tracker is None or self._taken is not None or not tracker.is_started():
                return
            pieces = self.elements.halved(each, self.element, tracker)
        if pieces is not None:
            self.recorder.hand_over(each)
            self._each = pieces[0]
            self._offer([pieces[1]], each.start)

    def _offer(self, work: Iterable[WorkItem], cut_from: int | None) -> None:
        assert self.board is not None, "the board asked"
        self.gave.append(Handover(secrets.token_hex(8), self.elements.into, self.slot, tuple(work), cut_from))
        self.board.offer(self.gave[-1])

    def progress(self) -> Progress | None:
        """How far the element has come; called by another thread."""
        tracker = self._tracker
        return None if tracker is None else tracker.current_progress()

    def take_turn(self) -> None:
        """Split off the range that is not claimed if the time is over; called after each item that is sent."""
        if not _is_over(self._ends):
            return
        with self._splitting:
            tracker = self._tracker
            if tracker is not None and self._taken is None and tracker.is_started():
                split = tracker.try_split(0.0)
                self._taken = None if split is None else split.residual

    @contextmanager
    def _interrupted(self, ends: float) -> Iterator[None]:
        """Let a second thread split, too, once the time is over."""
        done = Event()

        def take_turns() -> None:
            wait = max(0.0, ends - time.monotonic())
            while not done.wait(wait):
                try:
                    self.take_turn()
                except Exception as error:  # noqa: BLE001 - the thread of the operator raises it
                    self._failure = error
                    if self._tracker is not None:
                        fail_claims(self._tracker, error)
                    return
                wait = LOOKS_AGAIN_SECONDS

        thread = Thread(target=take_turns, name="reference-clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        if self._failure is not None:
            raise self._failure

    def _parts(self, element: Any, number: int) -> Iterator[WorkItem]:
        operator, port = self.elements.into.operator, self.elements.into.port
        known = self.task.seen[operator][0].get(port) if operator in self.task.seen else None
        for part in self.elements.work_of(element, (self.task.window_id, self.slot, number), not_before=known):
            self.recorder.find(part)
            yield part

    def _work_on(self, each: WorkItem, ends: float | None) -> None:
        element, operator = self.elements.back(each), self.operator
        name = self.elements.into.operator
        self.element, self._each = element, each
        tracker = self.elements.tracker(each, element)
        with code_of(name):
            times = operator.watermark(element, each.reached)
        self.element, self.order, self.begun = element, 0 if each.element_id is None else each.start, self.begun + 1
        self._tracker, self._ends, self._taken, self.rows, self._each = tracker, ends, None, 0, each
        if self._traced is not None:
            self._traced.begin(each, element, tracker)
        if self.staging is not None:
            self.staging.order = self.order
        began = time.monotonic()
        with code_of(name), nullcontext() if ends is None else self._interrupted(ends):
            self._send(operator.process(element, tracker))
        self._check_done(tracker)
        if self._traced is not None:
            self._traced.end()
        each = self._each
        ended = time.monotonic()
        if self.staging is not None and each.element_id is not None:
            self.staging.close_element(each.element_id)
            self.staging.order = 0
        self.element, self.order, self._tracker = None, 0, None
        reached = None
        if times is not None:
            with code_of(name):
                times.current_watermark()
                reached = times.estimator_state()
        with code_of(name):
            deferred = tracker.deferred()
        residual = self._taken if deferred is None else deferred.residual
        rest = None if residual is None else self.elements.rest_of(each, element, tracker, residual)
        stop = each.end if rest is None else rest.start
        self.recorder.do(each, stop, self.rows, self.operator, tracker.skipped())
        self.positions -= sum(gap.stop - gap.start for gap in tracker.skipped())
        source = self.elements.source_to_report(each, rest)
        if reached is not None and source is not None:
            self.reached[source] = max(filter(None, (self.reached.get(source), reached)))
        self._count(each, stop, began, ended)
        if rest is not None:
            completed = each.completed + self.elements.done_of(each, element, tracker, rest)
            self.underway.append(WorkProgress(each.name, completed, rest.amount if rest.has_end else None))
            rest = replace(rest, completed=completed)
            self._leave(each, rest, deferred, reached, (ended - began) * 1000)

    def _send(self, made: Iterator[Any] | None) -> None:
        send = sending(self.operator, "process")
        for one in made or ():
            self.rows += len(one) if isinstance(one, Batch) else 1
            send(one if isinstance(one, Batch) else iter((one,)))
            self.take_turn()
            self.hand_over()

    def _count(self, each: WorkItem, stop: int, began: float, ended: float) -> None:
        whole = stop == each.end
        done = each.length if whole else stop - each.start
        if self.operator.reads_positions and each.restriction is None:
            self.positions += each.positions if whole else done  # the end may be unknown
        self.worked += each.amount if whole else done * each.density
        if each.source is not None:
            after, millis = (began - self._began) * 1000, (ended - began) * 1000
            self.stretches.append(Stretch(each.source, each.start, stop, after, millis))

    def _leave(
        self,
        each: WorkItem,
        rest: WorkItem,
        deferred: Deferred[Any] | None,
        reached: datetime | None,
        millis: float,
    ) -> None:
        done = rest.start - each.start
        left = replace(
            rest,
            due=None,
            in_vain=deferred is not None and not done,
            unanswered=deferred is not None and deferred.unanswered,
            turn=self.task.window_id,
            reached=reached,
            idle_since=None if done else each.idle_since,
            done_positions=done,
            done_millis=millis,
            done_apart=0,
        )
        self.left.append(left)
        if deferred is not None:
            self.put_off[rest.end_key] = deferred

    def _check_done(self, tracker: RestrictionTracker[Any, Any]) -> None:
        """Raise unless each position was claimed, split off or deferred."""
        try:
            tracker.check_done()
        except WorkUnclaimed as unclaimed:
            name = self.elements.into.operator
            element = f"{self.element!r:.80}"
            message = f"{type(self.operator).__name__}.process returned, and of {element} {unclaimed.problem}"
            raise OperatorFailed(Failure(name, self.task.window_id, self.slot, message), unclaimed) from unclaimed


def _is_over(until: float | None) -> bool:
    return until is not None and time.monotonic() >= until


def _turn_of(until: float | None, turns: int) -> float | None:
    """The end of the first of several turns that share the remaining time."""
    if until is None or turns == 1:
        return until
    now = time.monotonic()
    return now + max(0.0, until - now) / turns
