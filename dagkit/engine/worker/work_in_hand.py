"""The work items of one slot and input: those that wait, the one that is processed, and what goes to other slots."""

import secrets
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

from dagkit.engine.work.elements import Elements
from dagkit.engine.work.handover import LEAST_HANDED_MILLIS, BoardLink, Handover, Standing
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.record import Recorder
from dagkit.engine.worker.deadline import Deadline
from dagkit.engine.worker.protocol import WorkDone
from dagkit.ranges import Progress, RestrictionTracker

QUICK_SECONDS = 0.005
"""How long an item may take that cannot be split: as long as what readers claim at once."""


class WorkInHand:
    """The work of one slot and input while the window runs. The thread of the link may take work off it."""

    def __init__(
        self,
        elements: Elements,
        slot: int,
        done: WorkDone,
        *,
        link: BoardLink,
    ) -> None:
        self.recorder = Recorder(reads=elements.operator.reads_positions)
        self.deadline = Deadline(None)
        """Its lock guards everything here. Each operator of a slot gets the whole time of the window."""
        self._elements = elements
        self._slot = slot
        self._done = done
        self._link = link
        self._waiting: deque[WorkItem] = deque()
        self._amount = 0.0
        """The amount of the work that waits."""
        self._item: WorkItem | None = None
        """The item that is processed, without work that was handed over."""
        self._element: Any = None
        self._tracker: RestrictionTracker[Any, Any] | None = None
        self._speed = Speed()

    @contextmanager
    def opened(self, work: Sequence[WorkItem], lasts_millis: float | None) -> Iterator[None]:
        """Within the block, hand work out to the slot, and to others over the board."""
        self.deadline = Deadline(lasts_millis)
        self._add(work)
        try:
            if self._waiting or self._link.hands_over:
                self._link.open(self)
            yield
        finally:
            self._done.is_linked = self._link.is_up
            self._link.close()
            self.deadline.end()

    def next(self) -> WorkItem | None:
        """Return the next item, if need be one of another slot; None if there is none or the time is over."""
        with self.deadline.lock:
            is_over = self.deadline.is_over
            # The first item is begun in any case, so that each window makes progress, however short.
            if self._waiting and not (self._speed.has_begun and is_over):
                return self._popped()
            if is_over:
                return None
        # Without the lock, which the thread of the link takes to report the progress of this slot meanwhile.
        handover = self._link.more(lambda: self.deadline.is_over)
        if handover is None:
            return None
        with self.deadline.lock:
            done = self._done
            done.took.append(handover.token)
            self._add(handover.work)
            return self._popped()

    @property
    def idle_millis(self) -> float:
        """How long it has waited for work of other slots."""
        return self._link.idle_millis

    @property
    def waiting(self) -> int:
        """How many items are not begun."""
        return len(self._waiting)

    def begin(self, item: WorkItem, element: Any, tracker: RestrictionTracker[Any, Any] | None, among: int = 1) -> None:
        """Watch the tracker of an item that is processed from now on; one without a tracker is never split."""
        with self.deadline.lock:
            self._item, self._element, self._tracker = item, element, tracker
            self._speed.begin(time.monotonic())
            if tracker is not None:
                self.deadline.watch(tracker, among)

    def is_quick(self, item: WorkItem) -> bool:
        """Whether an item with an end will take so little time, judged by the one before it, that it needs no split."""
        return item.has_end and self._speed.last_seconds_for(item.amount) <= QUICK_SECONDS

    def end(self) -> WorkItem:
        """Return the item that was processed, without work that was handed over. The deadline no longer watches it."""
        with self.deadline.lock:
            item, self._item = self._item, None
            assert item is not None, "an item is processed"
            self._speed.end(item.amount, time.monotonic())
            progress = None if item.has_end or self._tracker is None else self._tracker.current_progress()
            self._speed.positions += item.positions if progress is None else _read_of(item, progress)
            return item

    def rest(self) -> list[WorkItem]:
        """Remove and return the items that are not begun."""
        with self.deadline.lock:
            rest = list(self._waiting)
            self._waiting.clear()
            return rest

    def give(self) -> Handover | None:
        """Hand half of the remaining work over: items that are not begun, else a part of the one that is processed."""
        with self.deadline.lock:
            left = self.standing().left_millis
            if left is None or left < LEAST_HANDED_MILLIS or self.deadline.is_over:
                return None
            cut_from, work = self._half_of_waiting() or self._half_of_item() or (None, ())
            if not work:
                return None
            handover = Handover(secrets.token_hex(8), self._elements.into, self._slot, work, cut_from)
            done = self._done
            done.gave.append(handover)
            return handover

    def standing(self) -> Standing:
        """The progress in the item, and an estimate of the time for all remaining work with an end."""
        with self.deadline.lock:
            item, now = self._item, time.monotonic()
            if item is None:
                return Standing(done=self._speed.positions)
            progress = self.deadline.ask(lambda tracker: tracker.current_progress())
            fraction = None if progress is None or not item.has_end else progress.fraction_completed
            done = (fraction or 0.0) * item.amount
            left = self._speed.millis_for(item.amount - done + self._amount, done, now)
            return Standing(
                item.name,
                fraction,
                (now - self._speed.began) * 1000,
                left,
                self._speed.positions + (0 if progress is None else _read_of(item, progress)),
            )

    def _add(self, work: Iterable[WorkItem]) -> None:
        self._waiting.extend(work)
        self._amount = sum(each.amount for each in self._waiting)

    def _popped(self) -> WorkItem:
        item = self._waiting.popleft()
        self._amount -= item.amount
        return item

    def _half_of_waiting(self) -> tuple[None, tuple[WorkItem, ...]] | None:
        bounded = [each for each in self._waiting if each.has_end]
        if not bounded:
            return None
        work = bounded[len(bounded) // 2 :]
        given = set(map(id, work))
        kept = [each for each in self._waiting if id(each) not in given]
        self._waiting.clear()
        self._add(kept)
        for each in work:
            self.recorder.hand_over(each)
        return None, tuple(work)

    def _half_of_item(self) -> tuple[int, tuple[WorkItem, ...]] | None:
        item, element = self._item, self._element
        if item is None or not item.has_end:
            return None
        pieces = self.deadline.ask(lambda tracker: self._elements.halved(item, element, tracker))
        if pieces is None:
            return None
        self.recorder.hand_over(item)
        self._item = pieces[0]
        return item.start, (pieces[1],)


def _read_of(item: WorkItem, progress: Progress) -> int:
    """How many positions of an item are done, of those that it was known to have."""
    if item.has_end:
        return round(progress.fraction_completed * item.positions)
    return min(item.positions, round(progress.completed))


class Speed:
    """How fast a slot works: on all items so far, and between the last two measurements in the present one."""

    def __init__(self) -> None:
        self.has_begun = False
        self.positions = 0
        """The positions of the earlier items."""
        self._amount = self._seconds = 0.0
        """The work on them."""
        self._last_item = 0.0, 0.0
        """The amount and the time of the last item that ended."""
        self.began = 0.0
        self._last: tuple[float, float] = 0.0, 0.0
        """The amount that was done, and the time, when the amount last changed."""
        self._recent: float | None = None
        """Seconds for a unit between the last two changes of that amount."""

    def begin(self, now: float) -> None:
        """Begin an item."""
        self.has_begun, self.began, self._last, self._recent = True, now, (0.0, now), None

    def end(self, amount: float, now: float) -> None:
        """End an item of this amount."""
        self._amount += amount
        self._seconds += now - self.began
        self._last_item = amount, now - self.began

    def last_seconds_for(self, amount: float) -> float:
        """The time for an amount at the speed of the last item, and at least as long as that took; at first, infinite.

        A small item takes no longer than its parts: its time is that of opening it.
        """
        before, seconds = self._last_item
        return seconds * max(1.0, amount / before) if before else inf

    def millis_for(self, left: float, done: float, now: float) -> float | None:
        """Estimate the time for the amount that is left from the amount that is done of the item.

        The slower speed counts, since the slow work of an item is often in one place. None while nothing is done.
        """
        before, at = self._last
        if done > before:
            self._recent = (now - at) / (done - before)
            self._last = done, now
        amount, seconds = self._amount + done, self._seconds + now - self.began
        usual = seconds / amount if amount else None
        each = max((one for one in (usual, self._recent) if one is not None), default=None)
        return None if each is None else each * left * 1000
