"""The pending work of splittable operators on the driver: its queue, its scheduling, the rest for later launches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from dagkit.api.running import Until
from dagkit.engine.address import Address
from dagkit.engine.work.drain_policy import DrainPolicy, next_due, renewed
from dagkit.engine.work.item import WindowPromise, WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.schedule import Scheduler, WindowSchedule
from dagkit.engine.work.split import SlotResult
from dagkit.engine.work.summary import ProgramSummary
from dagkit.engine.work.waiting import Waiting
from dagkit.engine.work.window_size import WindowSizer
from dagkit.scaling.policy import LONGEST_MILLIS


class PendingWork:
    """The queue of one run, and its scheduler."""

    def __init__(self, waiting: Iterable[WorkItem], until: Until, shortest_millis: int) -> None:
        self.queue = WorkQueue.of(renewed(waiting))
        self._drains = until is Until.DRAINED
        self._later = DrainPolicy(until)
        self._scheduler = Scheduler(self.queue, WindowSizer(float(shortest_millis)))

    def all(self) -> Waiting:
        """All work that is not done, for this launch and for later ones."""
        return self.queue.waiting(self._later.aside)

    def truncate(self, summary: ProgramSummary) -> None:
        """If the application drains, keep only the work in the queue that this launch still does."""
        if self._drains:
            seen: list[WorkItem] = []

            def truncated(work: Sequence[WorkItem]) -> list[WorkItem]:
                seen.extend(work)
                return self._later.truncated(work, summary.elements)

            self.queue.review(truncated)
            self._later.note(seen)

    def removed(self, part_of: Callable[[WorkItem], WorkItem | None]) -> list[WorkItem]:
        """Remove the part of each item that `part_of` returns, and return these parts."""
        return [*self.queue.removed(part_of), *self._later.removed(part_of)]

    def ready(self, now: datetime, *, polls: bool = True) -> tuple[int, datetime | None]:
        """How many items can be processed now, and when the first deferred item that this launch waits for is due.

        Without `polls`, items whose last poll found nothing are left out.
        """
        queued = len(self.queue) if polls else len(self.queue) - self.queue.polls
        deferred = [
            item for item in self.queue.deferred if self._later.asks_again(item) and (polls or not item.in_vain)
        ]
        return queued + sum(item.due is not None and item.due <= now for item in deferred), next_due(deferred)

    def plenty(self, slots: Mapping[Address, int], capacity: int, ahead: int) -> int:
        """How many items are enough for the next windows: work for the longest window, if its duration is known.

        It is at most the queue's capacity less the items that windows in flight may return: a source that is faster
        than its readers is not asked before they have caught up.
        """
        enough = 4 * max(1, sum(slots.values()))
        if self._scheduler.pace.usual is None or self._scheduler.backlog_millis(slots) >= LONGEST_MILLIS:
            return enough
        return min(len(self.queue) + 1, max(0, max(enough, capacity) - ahead))

    def next(self, window_id: int, summary: ProgramSummary, now: datetime, *, overlaps: bool) -> WindowSchedule:
        """Schedule the work of the next window."""
        self.truncate(summary)
        self.queue.wake(now, self._later.asks_again)
        return self._scheduler.next(
            window_id, summary.slots, summary.near, overlaps=overlaps, is_delivered=summary.delivers
        )

    def again(self, promise: WindowPromise, summary: ProgramSummary) -> WindowSchedule:
        """Schedule the work of a promised window."""
        given = self._scheduler.again(promise, summary.slots)
        self.truncate(summary)
        return given

    def over(
        self,
        given: WindowSchedule,
        worked: Sequence[SlotResult],
        summary: ProgramSummary,
        *,
        whole_millis: float | None = None,
    ) -> None:
        """Return the rest of an ended window to the queue."""
        self._scheduler.over(given, worked, whole_millis)
        self.truncate(summary)
