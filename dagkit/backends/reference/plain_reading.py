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
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Event, Lock, Thread
from typing import Any, Protocol

from dagkit.api.operators import sending
from dagkit.api.stats import WorkProgress
from dagkit.api.work import SplittableOperator
from dagkit.engine.files.staging import Staging
from dagkit.engine.program.entrances import code_of
from dagkit.engine.program.failures import Failure, OperatorFailed
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.handover import Handover
from dagkit.engine.work.item import Deferral, WorkItem, parted
from dagkit.engine.work.record import Recorder
from dagkit.engine.worker.protocol import Leaving, Stretch, WindowTask, WorkDone
from dagkit.engine.worker.tracing import Trace, TracedPlace, TracedReading
from dagkit.ranges import Deferred, Progress, RestrictionTracker, WorkUnclaimed
from dagkit.ranges.restriction import fail_claims
from dagkit.schema.batch import Batch

LOOKS_AGAIN_SECONDS = 0.005
"""How soon the second thread checks again if the operator had claimed nothing yet."""


class Board(Protocol):
    """Handovers in a window. Its partitions run one after the other: one gives work to those that run later."""

    def asks(self) -> bool:
        """Return whether a partition is to give work away; called after each item that it sends."""

    def offer(self, handover: Handover) -> None:
        """Keep work for a later partition."""

    def taken(self, into: str) -> Handover | None:
        """Return and remove the oldest work for an input; None if there is none."""


@dataclass(slots=True)
class _Present:
    """The element that a partition processes."""

    element: Any = None
    """None between two elements."""
    order: int = 0
    """The start of the element in its source, if it is a stretch of a source."""
    rows: int = 0
    """How many items were sent for it."""
    item: WorkItem | None = None
    """Its item, without what was handed over."""
    tracker: RestrictionTracker[Any, Any] | None = None
    ends: float | None = None
    """The time at which its rest is split off; None: never."""
    taken: Any = None
    """The range that was split off."""
    failure: Exception | None = None
    """The error of the tracker in a split by the second thread."""


class PlainReading:
    """The work of one partition of a splittable operator in one window, and its results."""

    def __init__(
        self,
        elements: Elements,
        slot: int,
        task: WindowTask,
        staging: Staging | None,
        *,
        board: Board | None = None,
        trace: Trace | None = None,
    ) -> None:
        """Take the board where work is handed over, if it is, and the trace of a traced attempt."""
        self.elements = elements
        self.slot = slot
        self.task = task
        self.staging = staging
        self.board = board
        self.done = WorkDone()
        self.recorder = Recorder(reads=self.operator.reads_positions)
        self.now = _Present()
        self._began = time.monotonic()
        self._traced = None if trace is None else TracedReading(trace)
        self._splitting = Lock()
        self._waiting: deque[WorkItem] = deque()
        """The work that is not begun."""

    @property
    def operator(self) -> SplittableOperator[Any, Any]:
        return self.elements.operator

    def work(self, given: Iterable[WorkItem], arrived: Sequence[Any]) -> None:
        """Process the allocated work, and the elements that other operators sent in this window."""
        new = [part for number, one in enumerate(arrived) for part in self._parts(one, number)]
        mine = [each for each in given if each.into == self.elements.into]
        attempt = self.task.attempt
        if attempt.leaves is Leaving.NOTHING:
            mine += new
        else:
            self.done.left += new
        if attempt.leaves is Leaving.ALL:
            self.done.left += mine
            mine = []
        mine, left = parted(mine, attempt.without_work)
        self.done.left += left
        self.done.left += [each for each in mine if (each.into, each.source) in attempt.without]
        mine = [each for each in mine if (each.into, each.source) not in attempt.without]
        # Work without an end comes last: it takes all the time that is left, by turns.
        bounded = sorted((each for each in mine if each.has_end), key=lambda each: (each.number, each.start))
        endless = sorted(
            (each for each in mine if not each.has_end), key=lambda each: (each.done.turn, each.number, each.start)
        )
        lasts = self.task.lasts_millis
        until = None if lasts is None else time.monotonic() + lasts / 1000
        self._waiting.extend([*bounded, *endless])
        done = self.done
        while (each := self._next()) is not None:
            # A window begins one item at least, or a short one would never finish anything.
            if done.begun and _is_over(until):
                done.left.append(each)
            else:
                self._work_on(each, _turn_of(until, 1 if each.has_end else 1 + len(self._waiting)))
        done.record = self.recorder.record()

    @property
    def place(self) -> TracedPlace | None:
        """The place of the items that are sent now, in a traced attempt."""
        origin = None if self._traced is None else self._traced.origin
        return None if origin is None else origin.place

    @property
    def item(self) -> WorkItem | None:
        """The item that is processed; None between two items."""
        return None if self.now.element is None else self.now.item

    def _next(self) -> WorkItem | None:
        """The next item, if need be one that an earlier partition gave."""
        done = self.done
        handover = None if self._waiting or self.board is None else self.board.taken(self.elements.into)
        if handover is not None:
            done.took.append(handover.token)
            self._waiting.extend(handover.work)
        return self._waiting.popleft() if self._waiting else None

    def _hand_over(self) -> None:
        """Give half of the remaining work away if the board asks for it; called after each item that is sent."""
        if self.board is None or not self.board.asks():
            return
        now = self.now
        bounded = [each for each in self._waiting if each.has_end]
        work = bounded[len(bounded) // 2 :]
        if work:
            given = set(map(id, work))  # others may be equal
            self._waiting = deque(each for each in self._waiting if id(each) not in given)
            for each in work:
                self.recorder.hand_over(each)
            self._offer(work, None)
        elif now.item is not None and now.item.has_end:
            self._halve(now.item)

    def _halve(self, each: WorkItem) -> None:
        with self._splitting:
            now = self.now
            if now.tracker is None or now.taken is not None or not now.tracker.is_started():
                return
            pieces = self.elements.halved(each, now.element, now.tracker)
        if pieces is not None:
            self.recorder.hand_over(each)
            now.item = pieces[0]
            self._offer([pieces[1]], each.start)

    def _offer(self, work: Iterable[WorkItem], cut_from: int | None) -> None:
        assert self.board is not None, "the board asked"
        done = self.done
        handover = Handover(secrets.token_hex(8), self.elements.into, self.slot, tuple(work), cut_from)
        done.gave.append(handover)
        self.board.offer(handover)

    def progress(self) -> tuple[int, Progress | None]:
        """How many elements were begun, and how far the last one has come; called by another thread."""
        tracker = self.now.tracker
        return self.done.begun, None if tracker is None else tracker.current_progress()

    def take_turn(self) -> None:
        """Split off the range that is not claimed if the time is over; called after each item that is sent."""
        now = self.now
        if not _is_over(now.ends):
            return
        with self._splitting:
            if now.tracker is not None and now.taken is None and now.tracker.is_started():
                split = now.tracker.try_split(0.0)
                now.taken = None if split is None else split.residual

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
                    self.now.failure = error
                    if self.now.tracker is not None:
                        fail_claims(self.now.tracker, error)
                    return
                wait = LOOKS_AGAIN_SECONDS

        thread = Thread(target=take_turns, name="reference-clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        if self.now.failure is not None:
            raise self.now.failure

    def _parts(self, element: Any, number: int) -> Iterator[WorkItem]:
        task, into = self.task, self.elements.into
        known = task.seen[into.operator][0].get(into.port) if into.operator in task.seen else None
        for part in self.elements.work_of(element, (task.window_id, self.slot, number), not_before=known):
            self.recorder.find(part)
            yield part

    def _work_on(self, each: WorkItem, ends: float | None) -> None:
        element, operator, now, done = self.elements.back(each), self.operator, self.now, self.done
        name = self.elements.name
        now.element, now.item = element, each
        tracker = self.elements.tracker(each, element)
        with code_of(name):
            times = operator.watermark(element, each.times.reached)
        now.order, now.rows, now.ends, now.taken = 0 if each.element_id is None else each.start, 0, ends, None
        now.tracker = tracker
        done.begun += 1
        if self._traced is not None:
            self._traced.begin(each, element, tracker)
        if self.staging is not None:
            self.staging.order = now.order
        began = time.monotonic()
        with code_of(name), nullcontext() if ends is None else self._interrupted(ends):
            self._send(operator.process(element, tracker))
        self._check_done(tracker)
        if self._traced is not None:
            self._traced.end()
        # Without what was handed over meanwhile.
        each = now.item
        ended = time.monotonic()
        if self.staging is not None and each.element_id is not None:
            self.staging.close_element(each.element_id)
            self.staging.order = 0
        now.element, now.order, now.tracker = None, 0, None
        reached = None
        if times is not None:
            with code_of(name):
                times.current_watermark()
                reached = times.estimator_state()
        with code_of(name):
            deferred = tracker.deferred()
        residual = now.taken if deferred is None else deferred.residual
        rest = None if residual is None else self.elements.rest_of(each, element, tracker, residual)
        stop = each.end if rest is None else rest.start
        self.recorder.do(each, stop, now.rows, operator, tracker.skipped())
        source = self.elements.source_to_report(each, rest)
        if reached is not None and source is not None:
            done.reached[source] = max(filter(None, (done.reached.get(source), reached)))
        self._count(each, stop, tracker, began, ended)
        if rest is not None:
            done.underway.append(WorkProgress(each.name, rest.done.completed, rest.amount if rest.has_end else None))
            self._leave(each, rest, deferred, reached, (ended - began) * 1000)

    def _send(self, made: Iterator[Any] | None) -> None:
        send = sending(self.operator, "process")
        for one in made or ():
            self.now.rows += len(one) if isinstance(one, Batch) else 1
            send(one if isinstance(one, Batch) else iter((one,)))
            self.take_turn()
            self._hand_over()

    def _count(
        self, each: WorkItem, stop: int, tracker: RestrictionTracker[Any, Any], began: float, ended: float
    ) -> None:
        whole, done = stop == each.end, self.done
        length = each.length if whole else stop - each.start
        if self.operator.reads_positions and each.restriction is None:
            done.positions += each.known_length if whole else length  # the end may be unknown
            done.positions -= sum(gap.stop - gap.start for gap in tracker.skipped())
        done.amount += each.amount if whole else length * each.density
        if each.source is not None:
            after, millis = (began - self._began) * 1000, (ended - began) * 1000
            done.stretches.append(Stretch(each.source, each.start, stop, after, millis))

    def _leave(
        self,
        each: WorkItem,
        rest: WorkItem,
        deferred: Deferred[Any] | None,
        reached: datetime | None,
        millis: float,
    ) -> None:
        length, done = rest.start - each.start, self.done
        left = replace(
            rest,
            done=rest.done._replace(positions=length, millis=millis, apart=0, turn=self.task.window_id),
            deferral=Deferral(
                in_vain=deferred is not None and not length,
                idle_since=None if length else each.deferral.idle_since,
                unanswered=deferred is not None and deferred.unanswered,
            ),
            times=rest.times._replace(reached=reached),
        )
        done.left.append(left)
        if deferred is not None:
            done.put_off[rest.end_key] = deferred

    def _check_done(self, tracker: RestrictionTracker[Any, Any]) -> None:
        """Raise unless each position was claimed, split off or deferred."""
        try:
            tracker.check_done()
        except WorkUnclaimed as unclaimed:
            name = self.elements.name
            element = f"{self.now.element!r:.80}"
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
