"""Apply or refuse the changes that are requested of a running application, between two windows."""

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from dagkit.api.stats import Backlog
from dagkit.engine.parts.discover import DriverInputs
from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.listeners import StatsListeners
from dagkit.engine.parts.operator_state import OperatorState
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.requests import GiveUp, OnWork, Refused, Reply, RequestInbox, Retry, StopRun, TapStream
from dagkit.engine.parts.run_part import Action, Change, EndedWindow, Look, RunPart, Saved, Sleep, Start, Want, Wants
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.parts.running_plan import (
    Forgetting,
    PendingChange,
    RunningPlan,
    Scaling,
    WorkRequest,
    change_of,
    count_fact,
)
from dagkit.engine.parts.taps import Taps
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Changed, Decided, Fact, Scaled
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.run_events import Reshaped
from dagkit.engine.record.source_names import is_named
from dagkit.engine.work.split import BacklogCount, split_at_the_end
from dagkit.engine.worker.protocol import Answer
from dagkit.errors import ApplicationFaults, DagkitError, did_you_mean
from dagkit.ground.urls import shown

_log = logging.getLogger(__name__)


class Reconfiguration(RunPart):
    """The requested changes of an application, and the decisions since the last commit."""

    def __init__(
        self,
        run: RunState,
        inbox: RequestInbox,
        taps: Taps,
        inputs: DriverInputs,
        *,
        queue: PendingWork,
        operators: OperatorState,
    ) -> None:
        self._run = run
        self._inbox = inbox
        self._taps = taps
        self._inputs = inputs
        self._queue = queue
        self._operators = operators
        self._listeners = StatsListeners(run.plan, run.launched)
        self._pending: list[PendingChange] = []
        self._waiting: list[Forgetting] = []
        """Requests that wait until no input operator scans beside the loop."""
        self._work_requests: list[WorkRequest] = []
        """Requests on work; they are performed when the next window starts, even if it was promised."""
        self._made: list[tuple[PendingChange | WorkRequest, Fact]] = []
        """Changes that took effect after the last commit."""
        self._facts: list[Fact] = []
        """The decisions since the last commit."""

    def begin(self) -> None:
        self._inbox.tidy()

    # ---- requests

    def request_change(self, change: PendingChange) -> None:
        """Queue a change: it takes effect before the next window, or is refused."""
        self._pending.append(change)

    def take_news(self) -> None:
        """Queue the changes that users have requested from outside; while a scan is busy, no file is forgotten."""
        run, window_id = self._run, self._run.window
        changes: list[PendingChange] = [*self._waiting]
        for request in self._inbox.read_requests(window_id):
            match request.asks:
                case GiveUp() | Retry() as asks:
                    self._work_requests.append(WorkRequest(asks, request.id))
                case StopRun():
                    run.woken.stop()
                    self._inbox.reply(Reply(id=request.id, done=True, window=window_id))
                case TapStream() as asks:
                    self._taps.add(request, asks, run.plan.graph, run.now())
                case asks:
                    changes.append(change_of(request, asks))
        # A running scan compares with what its operator knew at its begin, so it misses a file that is forgotten now.
        is_busy = bool(changes) and self._inputs.is_busy
        self._waiting = [change for change in changes if is_busy and isinstance(change, Forgetting)]
        self._pending += [change for change in changes if change not in self._waiting]

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        yield Want.WAKE, self._inbox.due
        if self._work_requests:
            yield Want.REQUEST, now
        if self._pending:
            yield Want.CHANGE, now
        if self._made and not self._run.in_flight:
            yield Want.WINDOW, now

    # ---- listeners

    def review(self, action: Action) -> bool:
        """Ask listeners before a window, if there are new statistics; at each heartbeat while the loop is idle."""
        run, now = self._run, self._run.now()
        match action:
            case Start():
                # also before the first window: one large file is then read on all cores from its first window on
                is_time = self._listeners.has_news
            case Sleep():
                is_time = self._listeners.is_time(now)
            case _:
                return False
        # a promised window runs with the plan for which it was promised
        if not is_time or run.in_flight.promised is not None:
            return False
        changes, facts = self._listeners.ask(run.window, self._backlogs(now), run.backend.cores(), now)
        self.record(*facts)
        for change in changes:
            self.request_change(change)
        return True

    def _backlogs(self, now: datetime) -> dict[Address, Backlog]:
        """The backlog of each input: the queue, the work in flight, and the discoveries that no window has taken."""
        windows, summary = self._run.in_flight, self._run.summary
        others = [*self._inputs.backlog_counts(), BacklogCount.by_input(windows.allocated, now)]
        queue = self._queue.queue
        return queue.backlogs(summary.near, now, others)

    # ---- changes

    def perform(self, action: Action) -> None:
        """Apply the pending changes, one after the other; the next window is the first with them."""
        if isinstance(action, Look) and self._inputs.found:
            self._listeners.notify_found()
        if not isinstance(action, Change):
            return
        changes, self._pending = self._pending, []
        for change in changes:
            try:
                if change.request is None or self._inbox.is_there(change.request):  # it may have been withdrawn
                    self._apply(change)
            except DagkitError as error:
                self._refuse(change, error)
                # A listener would ask for the same after each window; a user asks once.
                if change.request is None and isinstance(change, Scaling):
                    self._listeners.refused(change)

    def _apply(self, change: PendingChange) -> None:
        before, now = self._run.plan, self._run.now()
        if isinstance(change, Forgetting):
            self._forget_file(change)
        after = change.on(before)
        if after is not before:
            self._take(after)
        fact = change.fact(before, after, now)
        self._made.append((change, fact))
        facts = [fact, *count_fact(change, before, after, now)]
        for scaled in (each for each in facts if isinstance(each, Scaled)):
            self._listeners.notify_partitioned(scaled.operator)
        self._announce(*facts)

    def record(self, *facts: Fact) -> None:
        """Let the next commit record decisions."""
        self._facts += facts

    def _announce(self, *facts: Fact) -> None:
        """Record decisions, and publish them."""
        self.record(*facts)
        run = self._run
        for fact in facts:
            run.publisher.publish(Reshaped(run.next_window, fact))

    def _take(self, plan: RunningPlan) -> None:
        """Run another plan from the next window on. If that is impossible, raise and change nothing."""
        # the steps that may refuse the plan come first, so that a refusal leaves nothing to undo
        carried = self._operators.carried(plan.program)
        self._inputs.change(plan.program)
        run = self._run
        run.backend.load(plan.compilation)
        self._operators.take(carried)
        self._listeners.follow(plan)
        run.plan = plan

    def _forget_file(self, change: Forgetting) -> None:
        """Let an operator forget a file; raise `Refused` if it cannot. No window is in flight, and no scan runs.

        An input operator's state is recorded at once, with the ID of the request; that of another one by the next
        commit, which names the request, too. So a driver that is killed in between performs the request once.
        """
        name, path, program = change.operator, change.path, self._run.program
        operators = program.operators
        if name not in operators:
            raise Refused(f"there is no operator {name}", did_you_mean(name, operators))
        reading = [item for item in self._queue.all() if is_named(item.source or "", path)]
        if any(not item.has_end for item in reading):
            help_ = "what is read continuously ends if it is renamed, or by a property such as ends_after_millis"
            raise Refused(f"{shown(path)} is still being read, without an end", help_)
        if reading:
            raise Refused(f"{shown(path)} is still being read", "ask again when its last block was read")
        holder = self._inputs if name in program.sources else self._operators
        reason = holder.forget_file(name, path, change.request)
        if reason:
            raise Refused(reason, "`dagkit files explain` shows what is known of it")

    def perform_on_work(self, perform: Callable[[OnWork], Sequence[Decided]]) -> None:
        """Perform the requests on work; `perform` returns the facts, or raises the reason why it cannot."""
        requests, self._work_requests = self._work_requests, []
        for each in requests:
            try:
                if not self._inbox.is_there(each.request):
                    continue  # the request was withdrawn
                decided = perform(each.asks)
            except DagkitError as error:
                self._refuse(each, error)
                continue
            self._made.append((each, decided[0]))
            self._announce(*decided)

    def _refuse(self, change: PendingChange | WorkRequest, error: DagkitError) -> None:
        reason = "\n".join(map(str, error.diagnostics)) if isinstance(error, ApplicationFaults) else str(error)
        if change.request is None:
            _log.warning("%s stays as it is: %s", change.operator, reason)
        else:
            _log.warning("a request is refused: %s", reason)  # of one that is left to a launch, no command waits
            self._inbox.reply(Reply(id=change.request, done=False, refused=reason))

    # ---- one window

    def is_changed_by(self, window: InFlightWindow, answer: Answer) -> bool:
        return bool(self._facts or self._made)

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        schedule, plan = ended.window.schedule, self._run.plan
        splits = split_at_the_end(schedule.allocation, ended.answer.results)
        return {
            "partitions": plan.partitions,
            "altered": plan.altered,
            "answered": tuple(change.request for change, _ in self._made if change.request is not None),
            "facts": (*schedule.cuts, *schedule.handed, *splits, *self._facts),
        }

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        """Answer the requests that the committed window contains."""
        # users get their answer now, and not when the change took effect: a crash before the commit undoes it
        self._facts.clear()
        made, self._made = self._made, []
        for change, fact in made:
            if change.request is not None:
                before, after = (fact.before, fact.after) if isinstance(fact, Changed | Scaled) else (None, None)
                name = fact.name if isinstance(fact, Changed) else None
                window_id = ended.window_id
                reply = Reply(id=change.request, done=True, window=window_id, name=name, before=before, after=after)
                self._inbox.reply(reply)
        now = self._run.now()
        took = (now - ended.window.began).total_seconds() * 1000
        self._listeners.committed(ended.window_id, ended.answer, now, took)

    def failed(self, error: BaseException) -> None:
        """Refuse uncommitted changes: the run ends with an error that they may have caused; the next omits them.

        Work that is given up causes no error: the next launch gives it up. Changes without an outside request need no
        answer, and the run itself reports the error.
        """
        if not isinstance(error, OperatorFailed):
            return
        made, self._made = self._made, []
        for change, _ in made:
            if change.request is not None and not (isinstance(change, WorkRequest) and isinstance(change.asks, GiveUp)):
                self._refuse(change, error)
