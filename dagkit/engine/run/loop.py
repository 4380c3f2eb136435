"""The loop decides the next action and performs it. The decision is pure (see `decide`).

One thread decides, looks for work and writes the ledger. It works on the `RunState`: input operators
(`driver_inputs`), the queue (`pending_work`), windows in flight (`in_flight`), changes between two windows (`changing`,
`listeners`), files (`outputs`), the ledger (`journal`) and observers (`publisher`). Module `commit` commits windows.
"""

from contextlib import suppress
from datetime import datetime

from dagkit.engine.changes.reconfiguration import PendingChange, Scaling
from dagkit.engine.changes.running_plan import RunningPlan
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.next_checkpoint import state_by_slot, work_by_slot
from dagkit.engine.entrances import operator_of
from dagkit.engine.facts import Scaled
from dagkit.engine.failures import OperatorFailed, failure_of
from dagkit.engine.files.checks import make_output_folders
from dagkit.engine.points import Point
from dagkit.engine.reports.run_events import Ended, Reshaped, Resumed
from dagkit.engine.run.commit import Committer
from dagkit.engine.run.decide import (
    Action,
    Await,
    Change,
    Commit,
    Finish,
    Look,
    LoopState,
    Sleep,
    Start,
    Stop,
    Stopping,
    next_action,
)
from dagkit.engine.run.in_flight import InFlightWindow
from dagkit.engine.run.run_state import RunState
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.split import backlogs_of
from dagkit.engine.work.summary import ProgramSummary
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import WindowTask
from dagkit.errors import DagkitError
from dagkit.ledger import SequenceTaken


class Loop:
    """One run of an application."""

    def __init__(self, run: RunState) -> None:
        self.run_state = run
        self._committer = Committer(run)
        self._stopping = Stopping.NOT
        self._last_window = run.checkpoint.window + (run.settings.windows or 0)

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of the last committed window."""
        return self.run_state.checkpoint

    # ---- called from outside

    def run(self) -> None:
        """Run to the end, or until `stop` is called."""
        run = self.run_state
        try:
            self._run()
        except SequenceTaken:
            with suppress(DagkitError, OSError):  # the next commit of the other driver sweeps, too
                run.outputs.abandon(run.journal.newest_checkpoint())
            raise

    def _run(self) -> None:
        run = self.run_state
        with run.in_flight:
            try:
                self._begin()
                while not isinstance(action := self._next(), Stop):
                    self._perform(action)
                run.driver_inputs.end(run.checkpoint.window + 1)
                run.publisher.publish(Ended(run.checkpoint.window))
            except BaseException as error:
                run.backend.close()  # so that no thread waits for an abandoned window
                run.driver_inputs.tear_down(run.checkpoint.window + 1)
                name = None if isinstance(error, OperatorFailed) else operator_of(error)
                if name is None or not isinstance(error, Exception):
                    if isinstance(error, OperatorFailed):
                        run.changing.failed(error)
                    raise
                failed = failure_of(error, name, run.next_window, instance=run.program.operators[name][0])
                run.changing.failed(failed)
                raise failed from error

    def stop(self) -> None:
        """Stop after the windows in flight; callable from any thread and from a signal handler."""
        run = self.run_state
        self._stopping = Stopping.AFTER_WINDOW
        run.woken.set()

    def _next(self) -> Action:
        """Read requests, ask listeners if it is time, and return the next action."""
        run = self.run_state
        run.changing.read_requests(run.checkpoint.window)
        action = next_action(self.outlook())
        if run.promise is None and self._asks_listeners(action):
            self._ask_around()
            action = next_action(self.outlook())
        return action

    def _asks_listeners(self, action: Action) -> bool:
        """Whether to ask: before a window if there are new statistics; at each heartbeat while the loop is idle."""
        run = self.run_state
        match action:
            case Start():
                return run.listeners.has_news
            case Sleep():
                return run.listeners.is_time(run.clock.now())
            case _:
                return False

    def _ask_around(self) -> None:
        """Ask the listeners which changes they request."""
        run = self.run_state
        found = run.driver_inputs.work_in(run.program, run.summary.elements, *run.driver_inputs.found)
        waiting = [*run.queue.all(), *found, *run.in_flight.allocated]
        now = run.clock.now()
        backlogs = backlogs_of(waiting, run.summary.near, now)
        changes, facts = run.listeners.ask(run.checkpoint.window, backlogs, run.backend.cores(), now)
        run.facts += facts
        for change in changes:
            run.changing.request_change(change)

    def outlook(self) -> LoopState:
        """Return the present state for the decision."""
        run = self.run_state
        now, slots = run.clock.now(), run.summary.slots
        begun_after = run.checkpoint.window + len(run.in_flight)
        return LoopState(
            until=run.settings.until,
            now=now,
            stopping=self._stopping,
            windows_left=None if run.settings.windows is None else self._last_window - begun_after,
            unfinished=bool(run.outputs.unfinished),
            in_flight=len(run.in_flight),
            completed=run.in_flight.has_completed,
            overlap=run.overlap,
            waiting=run.pending_work.ready(now),
            next_due=run.pending_work.next_due,
            plenty=run.pending_work.plenty(slots, run.changing.plan.capacity(slots), run.in_flight.ahead),
            found=len(run.driver_inputs.found),
            promised=run.promise is not None,
            has_delayed_items=bool(run.held) and not run.in_flight,
            begun=any(begun_after % count for count in run.summary.counts),
            closes=not any((begun_after + 1) % count for count in run.summary.counts),
            next_look=run.driver_inputs.next_look,
            looked_in_vain=run.driver_inputs.looked_in_vain,
            undrained=self._has_ends() and not run.checkpoint.drained and run.checkpoint.window > 0,
            next_beat=run.beat,
            change_pending=run.changing.is_pending,
            changed=run.changing.is_made,
        )

    def _begin(self) -> None:
        """Create output folders, delete stale answers to requests, and set up the input operators."""
        run = self.run_state
        make_output_folders(run.program, run.settings.home, durable=run.settings.durable)
        run.changing.inbox.tidy()
        run.driver_inputs.begin(run.program, run.checkpoint.window + 1, run.checkpoint.ended)
        waiting = len(run.queue) + sum(len(discovery.emitted) for discovery in run.driver_inputs.found)
        promised = run.promise is not None
        run.publisher.publish(Resumed(run.program.application, run.checkpoint.window, waiting, promised))

    # ---- perform

    def _perform(self, action: Action) -> None:
        run = self.run_state
        match action:
            case Finish():
                self._committer.finish()
            case Commit():
                self._committer.commit(self.run_state.in_flight.oldest())
            case Look():
                self._look()
            case Start(last=last):
                self._start(last=last)
            case Change():
                self._change()
            case Await(until=until):
                self._await(until)
            case Sleep(until=until):
                run.clock.wait(run.woken, min(until, run.changing.inbox.due))
                run.woken.clear()

    def _change(self) -> None:
        """Apply the requested changes; no window is in flight, and the next window is the first with them."""
        run = self.run_state
        window_id = run.checkpoint.window + 1
        facts = run.changing.perform(self._take, run.clock.now(), self._refused)
        run.facts += facts
        for fact in facts:
            if isinstance(fact, Scaled):
                run.listeners.notify_partitioned(fact.operator)
            run.publisher.publish(Reshaped(window_id, fact))

    def _refused(self, change: PendingChange) -> None:
        run = self.run_state
        if isinstance(change, Scaling):
            run.listeners.refused(change)

    def _take(self, plan: RunningPlan) -> None:
        """Run another plan from the next window on. If that is impossible, raise and change nothing."""
        run, program = self.run_state, plan.program
        state, held = run.carried(program)
        run.driver_inputs.change(run.program, program, run.checkpoint.window + 1)
        run.backend.load(plan.compilation)
        run.state, run.held, run.summary = state, held, ProgramSummary.of(program)
        run.listeners.follow(plan)

    def _look(self) -> None:
        """Let the input operators that are due look for more."""
        run = self.run_state
        window_id = run.next_window
        for discovery in run.driver_inputs.look(window_id, run.summary.millis):
            run.listeners.news = True
            run.publisher.found(discovery, run.driver_inputs.work_in(run.program, run.summary.elements, discovery))

    def _start(self, *, last: bool) -> None:
        """Start the next window; if it is the oldest in flight, the ledger gets its promise first."""
        run = self.run_state
        window_id = run.next_window
        if run.promise is not None:
            (promise, promised_upto), run.promise = run.promise, None
            upto, last, promised = dict(promised_upto), promise.last, True
            sent, given = self._given(upto)
            share = run.pending_work.again(promise, run.summary)
        else:
            upto, promised = dict(run.driver_inputs.upto), False
            sent, given = self._given(upto)
            share = run.pending_work.next(window_id, run.summary, run.clock.now(), overlaps=run.overlap > 1)
            promise = share.promise(last=last)
        asks = not (last or promised or sent or given) and share.is_endless
        if not promised and not run.in_flight and not asks:
            run.journal.promise(upto, promise)
            promised = True
        run.probe(Point.PLANNED, window_id)
        task = WindowTask(
            window_id=window_id,
            arriving=tuple(sent),
            work=work_by_slot(share.allocation, run.summary.addresses),
            state=state_by_slot(run.program, run.state),
            lasts_millis=share.lasts_millis if run.summary.slots else None,
            committed=run.checkpoint.window,
            last=last,
            home=run.settings.home,
            staging=run.new_staging(window_id),
        )
        began, alone = run.clock.now(), not run.in_flight
        window = InFlightWindow(task, upto, given, share, promise, began, alone, promised, asks)
        run.in_flight.submit(window)
        run.held = []
        if not asks:  # a window that only polls may end without a commit
            run.publisher.started(window)
        run.probe(Point.RUNNING, window_id)

    def _given(self, upto: dict[str, int]) -> tuple[list[Sent], list[WorkItem]]:
        """Give the window the discoveries up to these: items go to the workers, blocks to the queue."""
        run = self.run_state
        sent, waiting = run.driver_inputs.given(run.program, run.summary.elements, upto)
        run.pending_work.queue.add(waiting)
        return sent + run.held, waiting

    def _await(self, until: datetime | None) -> None:
        """Wait until the oldest window has ended, a request is due to be read, or `until` is reached."""
        run = self.run_state
        if not run.in_flight.has_completed:
            due = run.changing.inbox.due
            until = due if until is None else min(until, due)
            seconds = max(0.0, (until - run.clock.now()).total_seconds())
            run.woken.wait(seconds)
        run.woken.clear()

    # ---- questions

    def _has_ends(self) -> bool:
        """Whether an operator or an unfinished file waits for the notice that input is drained."""
        run = self.run_state
        return run.summary.drains or any(part.element_id is None for part in run.checkpoint.files)
