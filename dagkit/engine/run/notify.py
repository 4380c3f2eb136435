"""Publish the events of a run to its observers, built from the state of the loop."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import nlargest
from math import inf

from dagkit.api.stats import WorkProgress, by_unit
from dagkit.api.work import unit_of
from dagkit.engine.board.handover import SlotStanding
from dagkit.engine.checkpoint.discoveries import Discovery
from dagkit.engine.checkpoint.outcome import WindowOutcome
from dagkit.engine.failures import OperatorFailed, WindowLost
from dagkit.engine.files.staging import Part
from dagkit.engine.reports.run_events import (
    Committed,
    Failed,
    Found,
    Observer,
    Observers,
    Queue,
    RunEvent,
    SlotAtWork,
    Started,
    Waiting,
    Working,
)
from dagkit.engine.reports.statistics import Measuring, aggregators_of
from dagkit.engine.run.in_flight import InFlightWindow
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.split import all_in
from dagkit.engine.work.summary import ProgramSummary
from dagkit.engine.worker.protocol import Answer, Figures, Report, Sample
from dagkit.graph import Graph

MOST_UNDERWAY = 10
"""How much unfinished work of each operator an event lists: a line of a log must not grow with the cluster."""


class EventPublisher:
    """Publishes the events of one run to its observers."""

    def __init__(self, observers: Sequence[Observer], graph: Graph) -> None:
        self._observers = Observers(list(observers))
        self._measuring = Measuring(aggregators_of(graph))
        self._waiting: Sequence[str] = []
        """The reasons that were published last."""
        self._units = {node.name: unit_of(node.operator) for node in graph.nodes}

    def publish(self, event: RunEvent) -> None:
        self._observers.publish(event)

    def found(self, discovery: Discovery, waiting: Sequence[WorkItem]) -> None:
        """Publish a discovery; `waiting` is its part that goes to the queue."""
        amounts = self._by_unit((each.into.operator, each.positions) for each in waiting)
        items = len(discovery.emitted) - len(waiting)
        self.publish(Found(discovery.operator, len(waiting), sum(amounts.values()), items, amounts))

    def started(self, window: InFlightWindow) -> None:
        """Publish the start of a window; later calls for the same window do nothing."""
        if not window.is_published:
            window.is_published = True
            self.publish(Started(window.window_id, len(all_in(window.round.allocation)), window.round.lasts_millis))

    def working(self, running: Iterable[SlotStanding], now: datetime) -> None:
        """Publish what slots process, if any reports it: the elements that take longest."""
        longest = nlargest(MOST_UNDERWAY, running, key=lambda one: one.standing.millis)
        if longest:
            self.publish(Working([_at_work(one, now) for one in longest]))

    def waiting(self, reasons: Sequence[str]) -> None:
        """Publish why input that is there is not read yet, if that has changed."""
        if reasons != self._waiting:
            self._waiting = reasons
            self.publish(Waiting(reasons))

    def failed(self, window: InFlightWindow, error: OperatorFailed | WindowLost, *, again: bool) -> None:
        """Publish a failed attempt at a window."""
        failure = error.failure if isinstance(error, OperatorFailed) else None
        message = f"{type(error).__name__}: {error.problem}" if failure is None else failure.message
        operator = None if failure is None else failure.operator
        self.publish(Failed(window.window_id, operator, message, again))

    def failed_on_driver(self, error: OperatorFailed) -> None:
        """Publish the failure that ends the run, if it was raised on the driver and not in a slot of a window."""
        failure = error.failure
        if failure.slot is None:
            self.publish(Failed(failure.window_id, failure.operator, failure.message, again=False))

    def committed(
        self,
        window: InFlightWindow,
        answer: Answer,
        *,
        files: Mapping[str, Sequence[Part]],
        queue: WorkQueue,
        now: datetime,
        visible: datetime | None = None,
        block: int | None = None,
    ) -> None:
        """Publish a committed window, which is this block of the ledger.

        `files` are the pieces of the files that it completed, and `queue` is the queue after it.
        """
        self.publish(
            Committed(
                window_id=window.window_id,
                millis=(now - window.began).total_seconds() * 1000,
                positions=sum(report.positions for report in answer.reports),
                files=len(files),
                written=sum(part.length for part in answer.parts),
                waiting=len(queue),
                waiting_positions=queue.positions,
                underway=underway_in(answer.reports),
                visible=visible,
                block=block,
                read=self._by_unit((name, each.read) for one in answer.reports for name, each in one.figures.items()),
                pending=self._by_unit((into.operator, length) for into, (_, length) in queue.lengths().items()),
                received=sum(sum(each.taken.values()) for one in answer.reports for each in one.figures.values()),
                completed=sum(part.length for pieces in files.values() for part in pieces),
            )
        )

    def _by_unit(self, positions: Iterable[tuple[str, int]]) -> Mapping[str, int]:
        """The sums of positions, given by operator, in each unit."""
        return by_unit((self._units[operator], count) for operator, count in positions)

    def measured(
        self,
        window: InFlightWindow,
        outcome: WindowOutcome,
        *,
        found: Mapping[str, Figures],
        queues: Sequence[Queue],
        rejected: Sequence[Sample],
        ended: datetime,
        committed: datetime,
    ) -> None:
        """Publish the measurements of a committed window; its work was over at `ended`.

        `rejected` are samples of rejected records.
        """
        measured = self._measuring.after(
            outcome.program,
            outcome.window_id,
            outcome.answer.reports,
            found=found,
            queues=queues,
            facts=outcome.facts,
            began=window.began,
            ended=ended,
            committed=committed,
        )
        self.publish(replace(measured, rejected=rejected))


def _at_work(one: SlotStanding, now: datetime) -> SlotAtWork:
    standing = one.standing
    since = now - timedelta(milliseconds=standing.millis)
    return SlotAtWork(one.window_id, one.into.operator, one.slot, standing.name or "", since, standing.fraction)


def underway_in(reports: Iterable[Report]) -> Mapping[str, Sequence[WorkProgress]]:
    """The work that a window began and did not finish, by operator.

    The least complete comes first, work without an end last, at most MOST_UNDERWAY of an operator.
    """
    found: dict[str, list[WorkProgress]] = {}
    for report in reports:
        for name, figures in report.figures.items():
            if figures.underway:
                found.setdefault(name, []).extend(figures.underway)
    return {name: sorted(work, key=_how_far)[:MOST_UNDERWAY] for name, work in found.items()}


def _how_far(work: WorkProgress) -> float:
    return inf if work.fraction is None else work.fraction


def queues_of(queue: WorkQueue, summary: ProgramSummary) -> list[Queue]:
    """The length of the queue of each input."""
    return [
        Queue(*summary.addresses[into].into, *lengths, unit_of(summary.elements[into].operator))
        for into, lengths in queue.lengths().items()
    ]
