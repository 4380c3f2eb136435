"""Publish the events of a run to its observers, built from the state of the loop."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nlargest

from dagkit.api.stats import by_unit
from dagkit.api.work import unit_of
from dagkit.engine.inputs.discoveries import Discovery
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.record.run_events import (
    Failed,
    Found,
    Observer,
    Observers,
    RunEvent,
    SlotAtWork,
    Started,
    Waiting,
    Working,
)
from dagkit.engine.work.handover import SlotStanding
from dagkit.engine.work.item import WorkItem
from dagkit.graph import Graph

MOST_UNDERWAY = 10
"""How much unfinished work of each operator an event lists: a line of a log must not grow with the cluster."""


class EventPublisher:
    """Publishes the events of one run to its observers."""

    def __init__(self, observers: Sequence[Observer], graph: Graph) -> None:
        self._observers = Observers(list(observers))
        self._waiting: Sequence[str] = []
        """The reasons that were published last."""
        self._units = {node.name: unit_of(node.operator) for node in graph.nodes}

    def publish(self, event: RunEvent) -> None:
        self._observers.publish(event)

    def found(self, discovery: Discovery, waiting: Sequence[WorkItem]) -> None:
        """Publish a discovery; `waiting` is its part that goes to the queue."""
        amounts = self.by_unit((each.into.operator, each.positions) for each in waiting)
        items = len(discovery.emitted) - len(waiting)
        self.publish(Found(discovery.operator, len(waiting), sum(amounts.values()), items, amounts))

    def started(self, window: InFlightWindow) -> None:
        """Publish the start of a window; later calls for the same window do nothing."""
        if not window.is_published:
            window.is_published = True
            work = window.work
            amounts = self.by_unit((item.into.operator, item.positions) for item in work)
            self.publish(Started(window.window_id, len(work), window.schedule.lasts_millis, amounts))

    def working(self, running: Iterable[SlotStanding], now: datetime) -> None:
        """Publish what slots process, and how much they have processed, if any reports it."""
        running = list(running)
        if running:
            busy = (one for one in running if one.standing.name is not None)
            longest = nlargest(MOST_UNDERWAY, busy, key=lambda one: one.standing.millis)
            done = {
                window_id: self.by_unit(
                    (one.into.operator, one.standing.done) for one in running if one.window_id == window_id
                )
                for window_id in dict.fromkeys(one.window_id for one in running)
            }
            self.publish(Working([_at_work(one, now) for one in longest], done))

    def waiting(self, reasons: Sequence[str]) -> None:
        """Publish why input that is there is not read yet, if that has changed."""
        if reasons != self._waiting:
            self._waiting = reasons
            self.publish(Waiting(reasons))

    def failed(self, window: InFlightWindow, error: OperatorFailed | WindowLost, *, again: bool) -> None:
        """Publish a failed attempt at a window."""
        failure = error.failure if isinstance(error, OperatorFailed) else None
        message = f"{error.named}: {error.problem}" if failure is None else failure.message
        operator = None if failure is None else failure.operator
        self.publish(Failed(window.window_id, operator, message, again))

    def failed_on_driver(self, error: OperatorFailed) -> None:
        """Publish the failure that ends the run, if it was raised on the driver and not in a slot of a window."""
        failure = error.failure
        if failure.slot is None:
            self.publish(Failed(failure.window_id, failure.operator, failure.message, again=False))

    def by_unit(self, positions: Iterable[tuple[str, int]]) -> Mapping[str, int]:
        """The sums of positions, given by operator, in each unit."""
        return by_unit((self._units[operator], count) for operator, count in positions)


def _at_work(one: SlotStanding, now: datetime) -> SlotAtWork:
    standing = one.standing
    since = now - timedelta(milliseconds=standing.millis)
    return SlotAtWork(one.window_id, one.into.operator, one.slot, standing.name or "", since, standing.fraction)
