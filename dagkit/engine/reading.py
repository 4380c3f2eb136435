"""Reading: how a slot works through what splittable operators are given, and stops when the window is over."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dagkit.api.operators import Operator, main_outlet
from dagkit.api.ports import Outlet
from dagkit.api.work import Block, SplittableOperator
from dagkit.engine.assignment import Left
from dagkit.engine.live import Take
from dagkit.engine.staging import Staging
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit.schema.batch import Batch
from dagkit.schema.columns import Lines

Tracker = RestrictionTracker[OffsetRange, int]

AGAIN_SECONDS = 0.002
"""How soon after the deadline work that had not begun by then is looked at again."""


class Deadline:
    """When no new work is begun; a watchdog splits what is being worked on when it is over."""

    def __init__(self, lasts_millis: float | None) -> None:
        self._ends = None if lasts_millis is None else time.monotonic() + lasts_millis / 1000
        self._tracker: RestrictionTracker[OffsetRange, int] | None = None
        self._residual: OffsetRange | None = None
        self._changed = threading.Condition(threading.RLock())
        self._ended = False
        self._watchdog: threading.Thread | None = None

    @property
    def is_over(self) -> bool:
        return self._ends is not None and time.monotonic() >= self._ends

    def watch(self, tracker: RestrictionTracker[OffsetRange, int]) -> None:
        """From now on this is what is split at the deadline."""
        with self._changed:
            self._tracker, self._residual = tracker, None
        if self._ends is not None and self._watchdog is None:
            self._watchdog = threading.Thread(target=self._keep_watch, args=(self._ends,), name="deadline", daemon=True)
            self._watchdog.start()

    def residual(self) -> OffsetRange | None:
        """What was taken away from what was watched, if anything was; it is watched no more."""
        with self._changed:
            self._tracker = None
            return self._residual

    def end(self) -> None:
        """Nothing is watched any more."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def split(self) -> None:
        """Take back what is not claimed; of what nothing was claimed yet, nothing: the window gets something done."""
        with self._changed:
            if self._tracker is not None and self._residual is None and self._tracker.is_started():
                split = self._tracker.try_split(0.0)
                self._residual = None if split is None else split.residual

    def _keep_watch(self, ends: float) -> None:
        """At the deadline split; and again, where work had only just begun and nothing of it was claimed."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended, max(0.0, ends - time.monotonic()))
            while not self._ended:
                self.split()
                self._changed.wait(AGAIN_SECONDS)


@dataclass(slots=True)
class Worked:
    """What one operator was given to work through, and how far it came."""

    elements: int = 0
    """Those that were begun."""
    positions: int = 0


class Reading:
    """The work of one slot on one window's blocks."""

    def __init__(
        self, lasts_millis: float | None, staging: Callable[[], Staging | None], flush: Callable[[], None]
    ) -> None:
        self.deadline = Deadline(lasts_millis)
        self.left: list[Left] = []
        self.positions = 0
        self._worked: dict[int, Worked] = {}
        """By the identity of the operator: equal ones may share a slot."""
        self.element: Any = None
        """What is worked on now, for whoever must tell where something failed."""
        self.offset: int | None = None
        """Where in it the record starts on which something failed, once it did."""
        self._staging = staging
        self._flush = flush
        self._begun = False

    def worked(self, operator: Operator) -> Worked:
        """What an operator worked through so far."""
        return self._worked.setdefault(id(operator), Worked())

    def reader(self, operator: SplittableOperator[Any], wire: int | None) -> Take:
        """What works through one element after the other, and puts aside what comes too late from a wire."""
        outlet, worked = main_outlet(operator), self.worked(operator)

        def send(made: Any) -> None:
            for one in made:
                assert outlet is not None, f"{type(operator).__name__}.process yields, and there is no main output"
                if isinstance(one, Batch):
                    self._send_batch(outlet, one)
                else:
                    outlet.emit(one)

        def read(element: Any) -> None:
            if wire is not None and isinstance(element, Block):
                if self._begun and self.deadline.is_over:
                    self.left.append(Left(wire, element))
                    return
                self._begun = True
                worked.elements += 1
                self._work_on_block(operator, wire, element, send)
            else:
                worked.elements += 1
                self._work(operator, element, operator.tracker(element, operator.initial_restriction(element)), send)

        return read

    def _work_on_block(self, operator: SplittableOperator[Any], wire: int, block: Block, send: Take) -> None:
        restriction = operator.initial_restriction(block)
        tracker = operator.tracker(block, restriction)
        staging = self._staging()
        if staging is not None:
            staging.order = restriction.start
        began = time.monotonic()
        self.deadline.watch(tracker)
        self._work(operator, block, tracker, send)
        residual = self.deadline.residual()
        self._flush()
        if staging is not None:
            staging.close_block(block.block_id)
            staging.order = 0
        if residual is not None:
            done, millis = residual.start - restriction.start, (time.monotonic() - began) * 1000
            self.left.append(Left(wire, replace(block, start=residual.start), done, millis))
        read = (restriction.stop if residual is None else residual.start) - restriction.start
        self.positions += read
        self.worked(operator).positions += read

    def _work(self, operator: SplittableOperator[Any], element: Any, tracker: Tracker, send: Take) -> None:
        self.element = element
        made = operator.process(element, tracker)
        if made is not None:
            send(made)
        tracker.check_done()
        self.element = None

    def _send_batch(self, outlet: Outlet[Any], batch: Batch[Any]) -> None:
        try:
            outlet.emit_batch(batch)
        except Exception:
            self.offset = self._failing_offset(outlet, batch)
            raise

    def _failing_offset(self, outlet: Outlet[Any], batch: Batch[Any]) -> int | None:
        """Where the record starts that somebody failed on: the attempt is lost, so each is sent again by itself."""
        lines = next((column for column in batch.columns.values() if isinstance(column, Lines)), None)
        base = getattr(lines, "base", None)  # whoever reads may leave it unsaid, and the first error is what counts
        if lines is None or base is None:
            return None
        for index in range(len(batch)):
            try:
                outlet.emit_batch(batch.sliced(index, 1))
            except Exception:  # noqa: BLE001 - whatever it raises, this is the record; the first error goes on
                return int(base) + lines.place(index)
        return None
