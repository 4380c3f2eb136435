"""What the parts of a run share: its settings, its services, its last checkpoint and its plan."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dagkit.api.running import Until
from dagkit.compiler import Compilation
from dagkit.engine.parts.in_flight import InFlightWindows
from dagkit.engine.parts.notify import EventPublisher
from dagkit.engine.parts.running_plan import RunningPlan
from dagkit.engine.program.masking import Masking
from dagkit.engine.program.points import Point, Probe
from dagkit.engine.program.program import Program
from dagkit.engine.record.compatibility import refuse_renamed, refuse_stranded
from dagkit.engine.record.journal import Journal
from dagkit.engine.record.run_events import Observer
from dagkit.engine.work.summary import ProgramSummary
from dagkit.engine.worker.protocol import Backend
from dagkit.ground.clock import SystemClock, Timer
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
        self.is_to_stop = False
        """Whether a user has asked that the run stops."""

    def stop(self) -> None:
        """Ask the run to stop; callable from any thread and from a signal handler."""
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
        self.masking = Masking.of(lambda: self.program)
        self.plan = RunningPlan.of(compilation)
        """The plan that runs now."""
        self.journal = Journal(ledger, self.program, fingerprint, version)
        self.checkpoint = self.journal.checkpoint().for_launch(self.now())
        """The checkpoint of the last committed window."""
        if self.checkpoint.partitions or self.checkpoint.altered:
            self.plan = RunningPlan.resumed(compilation, self.checkpoint)
            backend.load(self.plan.compilation)
        promised = self.journal.promised()
        refuse_stranded(self.program, self.checkpoint, promised[0].deal if promised else ())
        refuse_renamed(self.program, self.checkpoint.state)
        self.in_flight = InFlightWindows(backend, settings.overlap, self.woken.set, promised)

    @property
    def program(self) -> Program:
        """The program that runs now."""
        return self.plan.program

    @property
    def summary(self) -> ProgramSummary:
        return self.plan.summary

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
