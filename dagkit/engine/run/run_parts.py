"""The list of the parts of a run."""

from collections.abc import Iterable, Iterator, Sequence

from dagkit.engine.parts.accounts import Accounts
from dagkit.engine.parts.awaited_servers import AwaitedServers
from dagkit.engine.parts.discover import DriverInputs
from dagkit.engine.parts.operator_state import OperatorState, Watermarks
from dagkit.engine.parts.outputs import Outputs
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.publishing import Publishing
from dagkit.engine.parts.reconfiguring import Reconfiguration
from dagkit.engine.parts.requests import RequestInbox
from dagkit.engine.parts.run_part import RunPart
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.parts.searching import RecordSearch
from dagkit.engine.parts.setting_aside import Aside
from dagkit.engine.parts.taps import Taps
from dagkit.engine.parts.work_requests import WorkRequests
from dagkit.engine.work.item import WorkItem


class RunParts:
    """The parts of a run. Each is made with the parts that it calls; none calls another way."""

    def __init__(self, run: RunState) -> None:
        """Restore the parts from the last checkpoint. Raise if the plan cannot take what it holds."""
        last = run.checkpoint
        inbox = RequestInbox(run.journal.store, run.clock.now, last.changes.answered)
        self.operators = OperatorState(run)
        self.queue = PendingWork(run)
        self._work_queue = self.queue.queue
        self.inputs = DriverInputs(run, self._work_queue)
        taps = Taps(run, inbox, self.inputs)
        self.changes = Reconfiguration(run, inbox, taps, self.inputs, queue=self.queue, operators=self.operators)
        aside = Aside(run, self.queue, self.changes)
        self.search = RecordSearch(run, self.queue, aside)
        self.outputs = Outputs(run, aside)
        self._in_order: Sequence[RunPart] = (
            taps,  # shows what inputs give to the window, before they give it
            self.inputs,
            WorkRequests(run, self.queue, self.changes, aside, self.search),  # on what waits, before it is allocated
            AwaitedServers(run),  # a window that waits for one is no failure to search for
            self.search,
            # After the search, which schedules its own steps. Outputs, accounts and watermarks read the next queue.
            self.queue,
            aside,
            self.operators,
            self.outputs,
            # Receipts wait for the files that outputs leave open.
            Accounts(aside),
            # Watermarks want no window of their own if the queue wants one.
            Watermarks(run, self.inputs, self.queue, self.operators),
            self.changes,
            # Observers learn what the other parts have done.
            Publishing(run, self.inputs, self._work_queue, self.outputs, self.search),
        )
        """The parts in the order in which a step calls them."""

    def __iter__(self) -> Iterator[RunPart]:
        return iter(self._in_order)

    def __reversed__(self) -> Iterator[RunPart]:
        return reversed(self._in_order)

    @property
    def pending(self) -> Iterator[tuple[str, int]]:
        """The operators of inputs with pending work, and its positions."""
        found = self.inputs.backlog_counts()
        return ((into.operator, pending.positions) for into, pending in self._work_queue.pending(found).items())

    def waiting(self, before: Iterable[WorkItem]) -> int:
        """How many items of work and of discoveries wait after a launch with this queue."""
        scans = sum(item.is_for_next_launch for item in before)  # each launch begins with them
        return len(self._work_queue) - scans + sum(len(discovery.emitted) for discovery in self.inputs.found)
