"""What the parts of a run share: its settings, its services, its last checkpoint, its plan and its observers."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from heapq import nlargest

from dagkit.api.running import Until
from dagkit.api.stats import by_unit
from dagkit.api.work import unit_of
from dagkit.compiler import Compilation
from dagkit.engine.inputs.discoveries import Discovery
from dagkit.engine.inputs.event_times import EventTimes
from dagkit.engine.parts.in_flight import InFlightWindow, InFlightWindows
from dagkit.engine.parts.running_plan import RunningPlan
from dagkit.engine.program.address import Address
from dagkit.engine.program.failures import OperatorFailed, WindowLost
from dagkit.engine.program.masking import Masking
from dagkit.engine.program.operator_output import log_in
from dagkit.engine.program.points import Point, Probe
from dagkit.engine.program.program import Launch, Program
from dagkit.engine.record.compatibility import refuse_renamed, refuse_stranded
from dagkit.engine.record.journal import Journal
from dagkit.engine.record.run_events import (
    Failed,
    Found,
    Observer,
    Observers,
    SlotAtWork,
    Started,
    Waiting,
    Working,
)
from dagkit.engine.work.handover import SlotStanding
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.summary import ProgramSummary
from dagkit.engine.worker.protocol import Backend
from dagkit.graph import Graph
from dagkit.ground.clock import SystemClock, Timer
from dagkit.ledger import Ledger

MOST_UNDERWAY = 10
"""How much unfinished work of each operator an event lists: a line of a log must not grow with the cluster."""


class EventPublisher(Observers):
    """Publishes the events of one run to its observers."""

    def __init__(self, observers: Sequence[Observer], graph: Graph) -> None:
        super().__init__(observers)
        self._waiting: Sequence[str] = []
        """The reasons that were published last."""
        self._units = {node.name: unit_of(node.operator) for node in graph.nodes}
        self._unsent: dict[str, int] = {}
        """How many elements each input operator had found and not sent, as published last."""

    def found(self, discovery: Discovery, waiting: Sequence[WorkItem], unsent: int) -> None:
        """Publish a discovery; `waiting` is its part that goes to the queue, `unsent` what its operator still has."""
        amounts = self.by_unit((each.into.operator, each.positions) for each in waiting)
        items = len(discovery.emitted) - len(waiting)
        self._unsent[discovery.operator] = unsent
        self.publish(Found(discovery.operator, len(waiting), sum(amounts.values()), items, amounts, unsent))

    def grown(self, operator: str, grown: Mapping[Address, int]) -> None:
        """Publish that an input operator saw so many more positions of sources without an end, by their reader."""
        amounts = self.by_unit((into.operator, positions) for into, positions in grown.items())
        self.publish(Found(operator, 0, sum(amounts.values()), 0, amounts, self._unsent.get(operator, 0)))

    def unsent(self, operator: str, count: int) -> None:
        """Publish how many elements an input operator has found and not sent, if that has changed."""
        if self._unsent.get(operator, 0) != count:
            self._unsent[operator] = count
            self.publish(Found(operator, 0, 0, 0, {}, count))

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
            shares = {window_id: _mean_shares(running, window_id) for window_id in done}
            self.publish(Working([_at_work(one, now) for one in longest], done, shares))

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


def _mean_shares(running: Iterable[SlotStanding], window_id: int) -> Mapping[str, float]:
    """The mean share of each operator in the time of the slots of a window that measure it."""
    # A slot with several inputs has a standing for each, with the same shares.
    slots = {one.slot: one.standing.shares for one in running if one.window_id == window_id and one.standing.shares}
    names = dict.fromkeys(name for shares in slots.values() for name in shares)
    return {name: sum(shares.get(name, 0.0) for shares in slots.values()) / len(slots) for name in names}


def _at_work(one: SlotStanding, now: datetime) -> SlotAtWork:
    standing = one.standing
    since = now - timedelta(milliseconds=standing.millis)
    return SlotAtWork(one.window_id, one.into.operator, one.slot, standing.name or "", since, standing.fraction)


@dataclass(frozen=True)
class RunSettings:
    """The settings of one launch."""

    application_path: str
    until: Until = Until.STOPPED
    windows: int | None = None
    """The highest number of windows to run; None: no limit."""
    overlap: int = 2
    """The highest number of windows in flight."""
    durable: bool = True
    """Whether a commit survives a power loss as well as a crash."""
    home: str = ""
    """The folder that relative paths of operators start from."""
    runs_in_driver: bool = True
    """Whether windows run in this process, so that a record can end it."""


class Woken(threading.Event):
    """An event that a signal handler may set, even while the interrupted thread holds the lock of this event."""

    def __init__(self) -> None:
        super().__init__()
        self._cond = threading.Condition(threading.RLock())
        self.is_to_stop = False
        """Whether a user has asked that the run stops."""

    def stop(self) -> None:
        """Ask the run to stop; callable from any thread and from a signal handler."""
        # First, since the loop that the event wakes asks for it at once.
        self.is_to_stop = True
        self.set()


class RunState:
    """What the parts of one run share."""

    def __init__(
        self,
        compilation: Compilation,
        backend: Backend,
        ledger: Ledger,
        settings: RunSettings,
        *,
        fingerprint: str = "",
        version: str = "",
        clock: Timer | None = None,
        observers: Sequence[Observer] = (),
        probe: Probe | None = None,
    ) -> None:
        """Read the ledger. Raise if the application has no receiver for what its checkpoint holds."""
        self.backend = backend
        self.settings = settings
        self.clock = clock or SystemClock()
        self.launched = self.now()
        self.publisher = EventPublisher(observers, compilation.graph)
        self.probe = probe or _not_probed
        self.woken = Woken()
        # A function, since the program changes with the plan.
        self.masking = Masking.of(lambda: self.program)
        self.plan = RunningPlan.of(compilation)
        """The plan that runs now."""
        self.journal = Journal(ledger, self.program, fingerprint, version)
        self.checkpoint = self.journal.checkpoint().for_launch(self.now())
        """The checkpoint of the last committed window."""
        last = self.checkpoint
        if last.changes:
            self.plan = RunningPlan.resumed(compilation, last)
            # The backend was created with the plan as configured.
            backend.load(self.plan.compilation)
        promised = self.journal.promised()
        # Before anything runs: work for an input that is gone would wait for ever, and no message would report it.
        refuse_stranded(self.program, last, promised[0].deal if promised else ())
        refuse_renamed(self.program, last.operators.state)
        self.in_flight = InFlightWindows(backend, settings.overlap, self.woken.set, promised)

    @cached_property
    def launch(self) -> Launch:
        """What the windows of this launch share."""
        path = self.settings.application_path
        return Launch(path, self.settings.home, self.launched, log_in(path))

    @property
    def program(self) -> Program:
        """The program that runs now."""
        return self.plan.program

    @property
    def summary(self) -> ProgramSummary:
        return self.plan.summary

    @property
    def event_times(self) -> EventTimes:
        """The event times after the last committed window."""
        progress = self.checkpoint.progress
        return progress.event_times

    def now(self) -> datetime:
        return self.clock.now()

    @property
    def window(self) -> int:
        """The number of the last committed window."""
        return self.checkpoint.window

    @property
    def next_window(self) -> int:
        """The number of the next window to start."""
        return self.window + len(self.in_flight) + 1


def _not_probed(point: Point, window_id: int) -> None:
    """Do nothing: the default probe."""
