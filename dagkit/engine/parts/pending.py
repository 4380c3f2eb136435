"""The pending work of splittable operators on the driver: its queue, its scheduling, the rest for later launches.

Deferred work without an end has nothing to do now. A launch that processes the available input leaves such work to the
next launch; a launch that runs until it is idle polls it when it is due, until a poll finds nothing; a launch that runs
until it is stopped polls for ever. Every launch waits for deferred work that has an end, and for work whose source did
not answer: it may have more to read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any

from dagkit.api.running import Until
from dagkit.engine.parts.in_flight import UNSCHEDULED, InFlightWindow
from dagkit.engine.parts.run_part import EndedWindow, RunPart, Saved, Want, Wants
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.program.address import Address
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.work_records import settle_handovers, unreported, work_by_slot
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import Deferral, ItemKey, Number, WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.schedule import Scheduler, WindowSchedule, WindowSizer
from dagkit.engine.work.split import all_in
from dagkit.engine.work.waiting import LaneView, Stretch, Waiting
from dagkit.engine.worker.protocol import Answer, Report, WindowTask
from dagkit.ranges import Deferred
from dagkit.scaling.policy import LONGEST_MILLIS


class DrainPolicy:
    """The rules for the work that this launch leaves to a later one."""

    def __init__(self, until: Until) -> None:
        self.aside: list[WorkItem] = []
        """The work that truncating removed."""
        self._until = until
        self._truncated: set[tuple[str, Number]] = set()
        """Elements that were truncated once. If such an element has an end, its rest is not truncated again."""

    def asks_again(self, item: WorkItem) -> bool:
        """Whether this launch resumes a deferred item once it is due, and does not end before."""
        if item.is_for_next_launch:
            return False
        if item.has_end or item.deferral.unanswered or self._until is Until.STOPPED:
            return True
        return self._until is Until.IDLE and not item.deferral.in_vain

    def truncated(self, work: Iterable[WorkItem], elements: Mapping[Address, Elements]) -> list[WorkItem]:
        """Return the work that an application that drains still does, and put the rest aside."""
        return [part for item in work for part in self._truncated_of(item, elements[item.into])]

    def note(self, work: Iterable[WorkItem]) -> None:
        """Note that this work was truncated."""
        self._truncated |= {(item.into, item.number) for item in work}

    def removed(self, part_of: Callable[[WorkItem], WorkItem | None]) -> list[WorkItem]:
        """Remove the part of each item left to later launches that `part_of` returns, and return these parts."""
        aside = WorkQueue.of(self.aside)
        found = aside.removed(part_of)
        self.aside = aside.all()
        return found

    def _truncated_of(self, item: WorkItem, elements: Elements) -> list[WorkItem]:
        if item.has_end and (item.into, item.number) in self._truncated:
            return [item]
        now, later = elements.truncated(item)
        self.aside += [part for part in (later,) if part is not None]
        return [part for part in (now,) if part is not None]


def renewed(work: Iterable[WorkItem]) -> list[WorkItem]:
    """Return pending work for a new launch: work without an end is due at once, even if it was deferred or idle."""
    return [
        item
        if (item.has_end and not item.is_for_next_launch)
        or (item.deferral.due is None and item.deferral.idle_since is None)
        else replace(item, deferral=item.deferral._replace(due=None, idle_since=None, waits_for=""))
        for item in work
    ]


def next_due(deferred: Iterable[WorkItem]) -> datetime | None:
    """When the first deferred item is due; None if there is none."""
    return min((due for item in deferred if (due := item.deferral.due) is not None), default=None)


class PendingWork(RunPart):
    """The queue of one run, and its scheduler."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._in_flight = run.in_flight
        self.queue = WorkQueue.of(renewed(run.checkpoint.queue))
        self._later = DrainPolicy(run.settings.until)
        self._scheduler = Scheduler(self.queue, WindowSizer(float(run.summary.millis)))
        # a promised window takes its work as it was promised, before the rest is truncated
        if run.in_flight.promised is None:
            self._truncate()

    def all(self) -> Waiting:
        """All work that is not done, for this launch and for later ones."""
        return self.queue.waiting(self._later.aside)

    def removed(self, part_of: Callable[[WorkItem], WorkItem | None]) -> list[WorkItem]:
        """Remove the part of each item that `part_of` returns, and return these parts."""
        return [*self.queue.removed(part_of), *self._later.removed(part_of)]

    def _truncate(self) -> None:
        """If the application drains, keep only the work in the queue that this launch still does."""
        run = self._run
        if run.settings.until is Until.DRAINED:
            seen: list[WorkItem] = []
            elements = run.summary.elements

            def truncated(work: Sequence[WorkItem]) -> list[WorkItem]:
                seen.extend(work)
                return self._later.truncated(work, elements)

            self.queue.review(truncated)
            self._later.note(seen)

    # ---- deciding

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        if self._in_flight.promised is not None:
            yield Want.PROMISED, now
        waiting, due = self._ready(now)
        if waiting:
            yield Want.WORK, now
        if due is not None:
            yield Want.DEFERRED, due
        if waiting >= self._plenty():
            yield Want.ENOUGH, now

    def _ready(self, now: datetime) -> tuple[int, datetime | None]:
        """How many items can be processed now, and when the first deferred item that this launch waits for is due.

        While a window polls, items whose last poll found nothing are left out.
        """
        polls = not self._in_flight.polls
        queued = len(self.queue) if polls else len(self.queue) - self.queue.polls
        deferred = [
            item
            for item in self.queue.deferred
            if self._later.asks_again(item) and (polls or not item.deferral.in_vain)
        ]
        due = sum(item.deferral.due is not None and item.deferral.due <= now for item in deferred)
        return queued + due, next_due(deferred)

    def _plenty(self) -> int:
        """How many items are enough for the next windows: work for the longest window, if its duration is known.

        It is at most the queue's capacity less the items that windows in flight may return: a source that is faster
        than its readers is not asked before they have caught up.
        """
        plan, scheduler = self._run.plan, self._scheduler
        slots = plan.summary.slots
        enough = 4 * max(1, sum(slots.values()))
        if scheduler.pace.usual is None or scheduler.backlog_millis(slots) >= LONGEST_MILLIS:
            return enough
        capacity, ahead = plan.capacity(slots), len(self._in_flight.allocated)
        return min(len(self.queue) + 1, max(0, max(enough, capacity) - ahead))

    # ---- one window

    def before(self, window: InFlightWindow) -> None:
        """Allocate the work of the window: as promised, as a search asks, or as the scheduler decides."""
        summary = self._run.summary
        if window.promise is not None:
            window.schedule = self._scheduler.again(window.promise, summary.slots)
            self._truncate()
        elif window.schedule is UNSCHEDULED:
            window.schedule = self.next_schedule(window.window_id)
        schedule, task = window.schedule, window.task
        if window.promise is None:
            window.promise = schedule.promise(last=task.last)
        window.polls = schedule.polls and not (window.is_promised or task.last or task.arriving or window.queued.work)
        window.task = replace(
            task,
            work=work_by_slot(schedule.allocation, summary.addresses),
            lasts_millis=schedule.lasts_millis if summary.slots else None,
        ).trying(movable=frozenset() if task.attempt.isolated else self._movable(schedule))

    def next_schedule(self, window_id: int) -> WindowSchedule:
        """Take the work of the next window from the queue."""
        run, summary = self._run, self._run.summary
        self._truncate()
        self.queue.wake(run.now(), self._later.asks_again)
        overlaps = summary.overlaps and run.settings.overlap > 1
        return self._scheduler.next(
            window_id, summary.slots, summary.near, overlaps=overlaps, is_delivered=summary.delivers
        )

    def _movable(self, schedule: WindowSchedule) -> frozenset[Address]:
        """The inputs whose work slots may hand over: where several slots may work on a block at the same time."""
        summary = self._run.summary
        if not summary.hands_over or not schedule.is_worth_sharing:
            return frozenset()
        # Not where blocks stay whole: writers in other slots could not order the pieces of a file.
        return frozenset(into for into in summary.near if summary.slots[into] > 1)

    def again(self, window: InFlightWindow, task: WindowTask, error: OperatorFailed | WindowLost) -> WindowTask:
        # the attempt may have been lost since two slots did the same work, which cannot happen without handovers
        return task.trying(movable=frozenset())

    def receive(self, window: InFlightWindow, answer: Answer) -> Answer:
        """Settle handovers, and note when deferred work is due. Raise WindowLost unless all work is accounted for."""
        schedule = window.schedule
        if answer.has_handovers:
            schedule, answer = settle_handovers(window.window_id, schedule, answer)
        # Before the commit, which would lose work that no slot reports as done or left.
        lacking = unreported(all_in(schedule.allocation), answer.reports)
        if lacking:
            raise WindowLost(f"window {window.window_id} lacks a part of its report: {lacking}")
        window.schedule = schedule
        # Delays begin now, by the driver's clock. Counted in the slot from the begin of the window, they left out how
        # long the slot had waited for a core.
        return _with_due_times(answer, self._run.now())

    def is_changed_by(self, window: InFlightWindow, answer: Answer) -> bool:
        """Whether any allocated work had something to do."""
        # compare stretches, so that an item that ended and a new item in its place count as work
        same = sorted(map(_stretch, answer.left)) == sorted(map(_stretch, window.work))
        return not (same and all(item.deferral.in_vain for item in answer.left))

    def drop(self, window: InFlightWindow, answer: Answer) -> None:
        self._over(window, answer, None)

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        return {"queue": waiting_after(ended.answer.left, self.all(), list(self._in_flight))}

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        took = (self._run.now() - ended.window.began).total_seconds() * 1000
        # of a window beside another one, the duration does not show its own cost
        self._over(ended.window, ended.answer, took if ended.window.is_alone else None)

    def _over(self, window: InFlightWindow, answer: Answer, whole_millis: float | None) -> None:
        """Return the rest of an ended window to the queue."""
        self._scheduler.over(window.schedule, answer.results, whole_millis)
        self._truncate()


def waiting_after(left: Iterable[WorkItem], queue: Waiting, younger: Sequence[InFlightWindow]) -> Waiting:
    """Return the work that waits after a window: what it left, the queue, and the work of younger windows in flight.

    It contains none of the work that only younger windows discovered.
    """
    # After a crash these discoveries are read from their root chains, so a checkpoint with their work would double it.
    unknown: dict[ItemKey, list[WorkItem]] = {}
    for item in chain.from_iterable(window.queued.work for window in younger):
        unknown.setdefault(item.key, []).append(item)

    def known(items: Iterable[WorkItem]) -> tuple[WorkItem, ...]:
        return tuple(item for item in items if not _lies_in(item, unknown.get(item.key, ())))

    in_flight = chain.from_iterable(window.work for window in younger)
    parts: dict[str, Stretch] = {"window": known(chain(left, in_flight))}
    for name, part in queue.parts.items():
        if not isinstance(part, LaneView) or not unknown:
            parts[name] = part if isinstance(part, LaneView) else known(part)
            continue
        place = younger[0].queued.places.get(name, part.start)
        parts[name] = part.until(place)
        parts[f"{name} later"] = known(part.since(place))
    return Waiting(parts)


def _lies_in(item: WorkItem, given: Iterable[WorkItem]) -> bool:
    """Whether an item is one of these, or a part of one."""
    return any(other.start <= item.start and item.end <= other.end for other in given)


def _with_due_times(answer: Answer, now: datetime) -> Answer:
    """Return the answer, received now, with the due time of each deferred item."""
    return replace(answer, reports=tuple(_with_due_time(report, now) for report in answer.reports))


def _with_due_time(report: Report, now: datetime) -> Report:
    delays = {end: put_off for done in report.done.values() for end, put_off in done.put_off.items()}
    if not delays:
        return report
    left = [
        item if put_off is None else replace(item, deferral=_deferral(item.deferral, put_off, now))
        for item in report.left
        for put_off in [delays.get(item.end_key)]
    ]
    return report.leaving(left)


def _deferral(before: Deferral, put_off: Deferred[Any], now: datetime) -> Deferral:
    idle_since = (before.idle_since or now) if before.in_vain and not before.unanswered else None
    return before._replace(due=put_off.due(now), idle_since=idle_since, waits_for=put_off.waits_for)


def _stretch(item: WorkItem) -> tuple[str, Number, int, int]:
    return item.into, item.number, item.start, item.end
