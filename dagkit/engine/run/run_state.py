"""A run: what its parts share, and the list of its parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from dagkit.clock import Timer
from dagkit.compiler import Compilation
from dagkit.engine.changes.requests import RequestInbox
from dagkit.engine.checkpoint.redistribute import State
from dagkit.engine.points import Probe
from dagkit.engine.reports.run_events import Observer
from dagkit.engine.run.accounts import Accounts
from dagkit.engine.run.discover import DriverInputs
from dagkit.engine.run.operator_state import OperatorState
from dagkit.engine.run.outputs import Outputs
from dagkit.engine.run.pending import PendingWork
from dagkit.engine.run.publishing import Publishing
from dagkit.engine.run.reconfiguring import Reconfiguration
from dagkit.engine.run.run_context import RunContext, RunSettings
from dagkit.engine.run.run_part import RunPart
from dagkit.engine.run.searching import RecordSearch
from dagkit.engine.run.setting_aside import Aside
from dagkit.engine.run.taps import Taps
from dagkit.engine.run.watermarks import Watermarks
from dagkit.engine.run.work_requests import WorkRequests
from dagkit.engine.worker.protocol import Backend
from dagkit.ledger import Ledger


@dataclass(frozen=True)
class RunParts:
    """The parts of a run, in the order in which they take part in a window."""

    taps: Taps
    """First: it shows what inputs give to the window."""
    inputs: DriverInputs
    requests: WorkRequests
    search: RecordSearch
    queue: PendingWork
    aside: Aside
    operators: OperatorState
    outputs: Outputs
    accounts: Accounts
    watermarks: Watermarks
    changes: Reconfiguration
    publishing: Publishing
    """Last: observers learn what the other parts have done."""

    def __iter__(self) -> Iterator[RunPart]:
        return (getattr(self, part.name) for part in fields(self))

    @property
    def waiting(self) -> int:
        """How many items of work and of discoveries wait."""
        return len(self.queue.queue) + sum(len(discovery.emitted) for discovery in self.inputs.found)

    @classmethod
    def of(cls, run: RunContext, ledger: Ledger) -> "RunParts":
        """Restore the parts from the last checkpoint. Raise if the plan cannot take what it holds."""
        operators = OperatorState(run)
        queue = PendingWork(run)
        inputs = DriverInputs(run, queue)
        inbox = RequestInbox(ledger.store, run.clock.now, run.checkpoint.answered)
        taps = Taps(run, inbox, inputs)
        changes = Reconfiguration(run, inbox, taps=taps, inputs=inputs, queue=queue, operators=operators)
        aside = Aside(run, queue, changes)
        search = RecordSearch(run, ledger.store, queue, aside)
        outputs = Outputs(run, aside)
        return cls(
            taps,
            inputs,
            WorkRequests(run, queue, changes, aside, search),
            search,
            queue,
            aside,
            operators,
            outputs,
            Accounts(aside),
            Watermarks(run, inputs, queue, operators),
            changes,
            Publishing(run, inputs, queue, outputs),
        )


class RunState(RunContext):
    """The state of one run: the last checkpoint, and its parts."""

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
        super().__init__(
            compilation,
            backend,
            ledger,
            settings,
            fingerprint=fingerprint,
            version=version,
            clock=clock,
            observers=observers,
            probe=probe,
        )
        self.parts = RunParts.of(self, ledger)

    @property
    def state(self) -> State:
        """The state of all operators after the last committed window."""
        return self.parts.operators.state
