"""The state of a run between two actions: built from the ledger, shared by the loop and the committer."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dagkit.api.running import Until
from dagkit.clock import SystemClock, Timer
from dagkit.compiler import Compilation
from dagkit.engine.aside.decided import DecidedWork
from dagkit.engine.changes.listeners import StatsListeners
from dagkit.engine.changes.reconfiguration import Reconfiguration
from dagkit.engine.changes.requests import RequestInbox
from dagkit.engine.changes.running_plan import RunningPlan
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.compatibility import refuse_renamed, refuse_stranded, refuse_stranded_discoveries
from dagkit.engine.checkpoint.delays import first_of_delays, restored
from dagkit.engine.checkpoint.journal import Journal
from dagkit.engine.checkpoint.outcome import State
from dagkit.engine.checkpoint.redistribute import redistribute_state
from dagkit.engine.delivery.deliveries import Deliveries
from dagkit.engine.event_time.event_times import Progress
from dagkit.engine.event_time.watermark_flow import WatermarkFlow
from dagkit.engine.facts import Fact
from dagkit.engine.files.outputs import Outputs
from dagkit.engine.files.staging import StagingPlace, next_wake
from dagkit.engine.inputs.discover import DriverInputs
from dagkit.engine.masking import Masking
from dagkit.engine.points import Point, Probe
from dagkit.engine.program.program import Program
from dagkit.engine.reports.run_events import Observer
from dagkit.engine.run.accounts import Receipts, RowAccounts
from dagkit.engine.run.in_flight import InFlightWindows
from dagkit.engine.run.launch_marker import LaunchMarker
from dagkit.engine.run.notify import EventPublisher
from dagkit.engine.run.run_part import RunPart
from dagkit.engine.work.pending import PendingWork
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.summary import ProgramSummary
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import Backend
from dagkit.ledger import Ledger


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


class RunState:
    """The state of one run: the last checkpoint, and everything since."""

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
        self.backend = backend
        self.settings = settings
        self.clock = clock or SystemClock()
        self.publisher = EventPublisher(observers, compilation.graph)
        self.probe = probe or _not_probed
        self.woken = Woken()
        self.masking = Masking.of(lambda: self.program)
        plan = RunningPlan.of(compilation)
        self.journal = Journal(ledger, plan.program, fingerprint, version)
        checkpoint = self.checkpoint = self.journal.checkpoint().for_launch(self.clock.now())
        if checkpoint.partitions or checkpoint.altered:
            plan = RunningPlan.resumed(plan.compilation, checkpoint)
            backend.load(plan.compilation)
        self.changing = Reconfiguration(plan, RequestInbox(ledger.store, self.clock.now, checkpoint.answered))
        self.marker = LaunchMarker(ledger.store)
        self.listeners = StatsListeners(plan, self.clock.now())
        self.facts: list[Fact] = []
        """The decisions since the last commit."""
        self.beat: datetime | None = None
        """When the next window begins even without input."""
        self.woken_at: datetime | None = None
        """When the last committed window began: it was the answer to all earlier requests of operators."""
        self.decided = DecidedWork(all_aside=checkpoint.aside)
        """The decisions on work since the last commit."""
        self.search = checkpoint.search
        """The search for a record that ends its worker."""
        self._restore(checkpoint)

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Restore state, items, work and files from the checkpoint. Raise if the plan cannot take one of them."""
        program, settings = self.program, self.settings
        self.promise = self.journal.promised()
        """The window that was promised and not committed; None once it is started again."""
        refuse_stranded(program, checkpoint, self.promise[0].deal if self.promise else ())
        refuse_renamed(program, checkpoint.state)
        self.state, self.held = self.carried(program)
        self.summary = ProgramSummary.of(program)
        self.flow = WatermarkFlow.of(program)
        self.pending_work = PendingWork(checkpoint.queue, settings.until, self.summary.millis)
        self.driver_inputs = DriverInputs(
            self.journal, settings.until, self.clock, self.woken.set, settings.application_path
        )
        refuse_stranded_discoveries(program, self.driver_inputs.found)
        self.outputs = Outputs(checkpoint, settings.application_path, durable=settings.durable, home=settings.home)
        self.deliveries = Deliveries(self.journal.chain.dataset_id, settings.application_path, self.clock)
        self.in_flight = InFlightWindows(self.backend, settings.overlap, self.woken.set)
        self.parts: tuple[RunPart, ...] = (Receipts(), RowAccounts())
        if self.promise is None:
            self.pending_work.truncate(self.summary)

    def carried(self, program: Program) -> tuple[State, list[Sent]]:
        """The state and held items of the last checkpoint, for another program; raise if it cannot take them."""
        held = restored(program, self.checkpoint.held) if self.checkpoint.window else first_of_delays(program)
        return redistribute_state(program, self.checkpoint.state), held

    @property
    def program(self) -> Program:
        """The program that runs now."""
        return self.changing.plan.program

    @property
    def queue(self) -> WorkQueue:
        """The work queue."""
        return self.pending_work.queue

    @property
    def is_unfinished(self) -> bool:
        """Whether the last committed window is not wholly visible, or an external system not connected."""
        return self.outputs.is_unfinished or not self.deliveries.is_prepared(self.program)

    @property
    def delivers(self) -> bool:
        """Whether only a delivery of the last committed window is unfinished, and its systems are connected."""
        outputs = self.outputs
        is_next = bool(outputs.unfinished) and not outputs.unplaced
        return is_next and self.deliveries.is_prepared(self.program)

    @property
    def next_window(self) -> int:
        """The number of the next window to start."""
        return self.checkpoint.window + len(self.in_flight) + 1

    @property
    def overlap(self) -> int:
        """How many windows may be in flight."""
        return self.settings.overlap if self.summary.overlaps and self.search is None else 1

    def new_staging(self, window_id: int) -> StagingPlace | None:
        """A folder for the next attempt at a window to stage in, if any operator stages files or entries."""
        if not self.summary.writes:
            return None
        return self.outputs.attempt(window_id, self.clock.now() if self.settings.until is Until.STOPPED else None)

    @property
    def next_wake(self) -> datetime | None:
        """When a window is wanted although there may be no work, so that an operator can complete a file."""
        if self.settings.until is not Until.STOPPED:
            return None
        return next_wake(self.checkpoint.files, self.program.operators, self.woken_at)

    def advance(self) -> tuple[bool, datetime | None]:
        """Whether an operator acts on watermarks and has not seen the present one, and when the next source is idle.

        Between two windows, watermarks advance if a source becomes idle, or if an input operator advances its own.
        """
        if self.flow is None or not self.flow.users or self.in_flight:
            return False, None
        inputs, known = self.driver_inputs, self.checkpoint.event_times
        progress = Progress(
            window_id=self.checkpoint.window + 1,
            now=self.clock.now(),
            waiting=self.pending_work.all().decisive,
            behind=inputs.behind,
            ended=inputs.exhausted,
            sources=inputs.watermarks,
            has_delayed_items=bool(self.held),
        )
        advanced = known.advanced or self.flow.after(known, progress).advanced
        next_idle = self.flow.next_idle(known, progress) if self.settings.until is Until.STOPPED else None
        return advanced, next_idle


def _not_probed(point: Point, window_id: int) -> None:
    """Do nothing: the default probe."""
