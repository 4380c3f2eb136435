"""The loop decides the next action and performs it. The decision is pure (see `decide`).

One thread decides, looks for work and writes the ledger. It works on the `RunState`: input operators
(`driver_inputs`), the queue (`pending_work`), windows in flight (`in_flight`), changes between two windows (`changing`,
`listeners`), files (`outputs`), the ledger (`journal`) and observers (`publisher`). Module `commit` commits windows.
"""

import logging
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from dagkit.api.stats import Backlog
from dagkit.engine.address import Address
from dagkit.engine.changes.reconfiguration import PendingChange, Scaling
from dagkit.engine.changes.running_plan import RunningPlan
from dagkit.engine.changes.taps import of_rejected, sent_by_inputs
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.next_checkpoint import state_by_slot, work_by_slot
from dagkit.engine.entrances import operator_of
from dagkit.engine.event_time.watermark_flow import WatermarkFlow
from dagkit.engine.facts import Scaled
from dagkit.engine.failures import OperatorFailed, failure_of
from dagkit.engine.files.checks import make_output_folders
from dagkit.engine.operator_output import log_in
from dagkit.engine.points import Point
from dagkit.engine.reports.run_events import Draining, Ended, Reshaped, Resumed
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
from dagkit.engine.run.forget_file import forget_file
from dagkit.engine.run.in_flight import InFlightWindow
from dagkit.engine.run.run_state import RunState
from dagkit.engine.run.searching import next_half
from dagkit.engine.run.work_requests import perform_on_work, retry_promised
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import BacklogCount
from dagkit.engine.work.summary import ProgramSummary
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import WindowTask
from dagkit.errors import DagkitError
from dagkit.ledger import SequenceTaken

LONGEST_AFTER_STOP = timedelta(seconds=5)
"""How much longer than its length a window may run in the driver after a request to stop."""
_log = logging.getLogger(__name__)


class Loop:
    """One run of an application."""

    def __init__(self, run: RunState, *, last_window: int | None = None) -> None:
        """Take the last window that may run, if an earlier session of the launch has determined it."""
        self.run_state = run
        self._committer = Committer(run)
        self._stopping = Stopping.NOT
        self._is_draining = False
        """Whether observers were informed that the run stops."""
        self._abandons_at: datetime | None = None
        """When the windows in flight are abandoned, since the run is to stop; None: never."""
        self.last_window = last_window
        """The last window that may run; None: no limit."""
        if last_window is None and run.settings.windows is not None:
            self.last_window = run.checkpoint.window + run.settings.windows

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of the last committed window."""
        return self.run_state.checkpoint

    @property
    def is_stopping(self) -> bool:
        """Whether the run was asked to stop."""
        return self._stopping is not Stopping.NOT

    # ---- called from outside

    def run(self) -> None:
        """Run to the end, or until `stop` is called."""
        try:
            with self.run_state.masking.masked():
                self._run()
        except SequenceTaken:
            with suppress(DagkitError, OSError):  # the next commit of the other driver sweeps, too
                self.run_state.outputs.abandon(self.run_state.journal.newest_checkpoint())
            raise

    def _run(self) -> None:
        with self.run_state.in_flight:
            try:
                self._begin()
                while not isinstance(action := self._next(), Stop):
                    self._perform(action)
                    if isinstance(action, Look | Commit):
                        self._report_waiting()
                if self.run_state.in_flight:
                    self._abandon_windows()
                self.run_state.deliveries.log_left()
                self.run_state.driver_inputs.end(self.run_state.checkpoint.window + 1)
                self.run_state.publisher.publish(Ended(self.run_state.checkpoint.window))
            except BaseException as error:
                self.run_state.backend.close()  # so that no thread waits for an abandoned window
                self.run_state.driver_inputs.tear_down(self.run_state.checkpoint.window + 1)
                failed = self._failure(error)
                self.run_state.masking.mask(failed)
                if isinstance(failed, OperatorFailed):
                    self.run_state.changing.failed(failed)
                    self.run_state.publisher.failed_on_driver(failed)
                if failed is error:
                    raise
                raise failed from error
            finally:
                self.run_state.deliveries.close()
                self.run_state.marker.end()

    def _failure(self, error: BaseException) -> BaseException:
        """Return the failure of the operator whose code raised an error; return other errors unchanged."""
        name = None if isinstance(error, OperatorFailed) else operator_of(error)
        if name is None or not isinstance(error, Exception):
            return error
        instance = self.run_state.program.operators[name][0]
        return failure_of(error, name, self.run_state.next_window, instance=instance)

    def stop(self) -> None:
        """Stop after the windows in flight; callable from any thread and from a signal handler.

        Windows that run in the driver are abandoned if they take too long, and run again at the next launch.
        """
        self._stopping = Stopping.AFTER_WINDOW
        self.run_state.woken.set()

    def read_requests(self) -> None:
        """Queue what users have requested, at most once a second; after the end of its session, only to be stopped."""
        self.run_state.changing.read_requests(self.run_state.checkpoint.window, busy=self.run_state.driver_inputs.busy)
        if self.run_state.changing.stop_requested:
            self.stop()

    def _next(self) -> Action:
        """Read requests, ask listeners if it is time, and return the next action."""
        self.read_requests()
        if self._stopping is not Stopping.NOT and not self._is_draining:
            self._is_draining = True
            if self.run_state.settings.runs_in_driver:
                length = timedelta(milliseconds=self.run_state.summary.millis)
                self._abandons_at = self.run_state.clock.now() + length + LONGEST_AFTER_STOP
            self.run_state.publisher.publish(Draining(self.run_state.checkpoint.window))
        action = next_action(self.outlook())
        if self.run_state.promise is None and self._asks_listeners(action):
            self._ask_around()
            action = next_action(self.outlook())
        return action

    def _asks_listeners(self, action: Action) -> bool:
        """Whether to ask: before a window if there are new statistics; at each heartbeat while the loop is idle."""
        match action:
            case Start():
                return self.run_state.listeners.has_news
            case Sleep():
                return self.run_state.listeners.is_time(self.run_state.clock.now())
            case _:
                return False

    def _ask_around(self) -> None:
        """Ask the listeners which changes they request."""
        now, window_id = self.run_state.clock.now(), self.run_state.checkpoint.window
        cores = self.run_state.backend.cores()
        changes, facts = self.run_state.listeners.ask(window_id, self._backlogs(now), cores, now)
        self.run_state.facts += facts
        for change in changes:
            self.run_state.changing.request_change(change)

    def _backlogs(self, now: datetime) -> dict[Address, Backlog]:
        """The backlog of each input: the queue, the work in flight, and the discoveries that no window has taken."""
        summary, inputs = self.run_state.summary, self.run_state.driver_inputs
        found = inputs.backlog_counts(self.run_state.program, summary.elements)
        in_flight = BacklogCount.by_input(self.run_state.in_flight.allocated, now)
        return self.run_state.queue.backlogs(summary.near, now, [*found, in_flight])

    def outlook(self) -> LoopState:
        """Return the present state for the decision."""
        now = self.run_state.clock.now()
        begun_after = self.run_state.checkpoint.window + len(self.run_state.in_flight)
        waiting, next_due = self.run_state.pending_work.ready(now, polls=not self.run_state.in_flight.polls)
        found = self.run_state.driver_inputs.found
        advanced, next_idle = (False, None) if waiting or found else self.run_state.advance()
        return LoopState(
            until=self.run_state.settings.until,
            now=now,
            stopping=self._stopping,
            abandons_at=self._abandons_at,
            windows_left=None if self.last_window is None else self.last_window - begun_after,
            unfinished=self.run_state.is_unfinished,
            delivers=self.run_state.delivers,
            next_attempt=self.run_state.deliveries.due,
            in_flight=len(self.run_state.in_flight),
            completed=self.run_state.in_flight.has_completed,
            overlap=self.run_state.overlap,
            waiting=waiting,
            next_due=next_due,
            plenty=self._plenty(),
            found=len(found),
            promised=self.run_state.promise is not None,
            has_delayed_items=bool(self.run_state.held) and not self.run_state.in_flight,
            begun=any(begun_after % count for count in self.run_state.summary.counts),
            closes=not any((begun_after + 1) % count for count in self.run_state.summary.counts),
            busy=self.run_state.driver_inputs.busy,  # first: `next_look` omits busy inputs, and work may end in between
            next_look=self.run_state.driver_inputs.next_look,
            looked_in_vain=self.run_state.driver_inputs.looked_in_vain,
            undrained=self._is_undrained(),
            next_beat=self.run_state.beat,
            next_wake=min((at for at in (self.run_state.next_wake, next_idle) if at is not None), default=None),
            watermark_advanced=advanced,
            change_pending=self.run_state.changing.is_pending,
            work_requested=bool(self.run_state.changing.work_requests),
            changed=self.run_state.changing.is_made,
        )

    def _begin(self) -> None:
        """Create output folders, delete stale answers to requests, and set up the input operators."""
        make_output_folders(
            self.run_state.program, self.run_state.settings.home, durable=self.run_state.settings.durable
        )
        if self.run_state.settings.runs_in_driver:
            self.run_state.marker.begin()
        self.run_state.changing.inbox.tidy()
        self.run_state.driver_inputs.begin(
            self.run_state.program, self.run_state.checkpoint.window + 1, self.run_state.checkpoint.ended
        )
        scans = sum(item.is_for_next_launch for item in self.run_state.checkpoint.queue)  # each launch begins with them
        found = sum(len(discovery.emitted) for discovery in self.run_state.driver_inputs.found)
        waiting = len(self.run_state.queue) - scans + found
        promised = self.run_state.promise is not None
        self.run_state.publisher.publish(
            Resumed(self.run_state.program.application, self.run_state.checkpoint.window, waiting, promised)
        )

    # ---- perform

    def _perform(self, action: Action) -> None:
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
                self.run_state.clock.wait(self.run_state.woken, min(until, self.run_state.changing.inbox.due))
                self.run_state.woken.clear()

    def _change(self) -> None:
        """Apply the requested changes; no window is in flight, and the next window is the first with them."""
        window_id = self.run_state.checkpoint.window + 1
        facts = self.run_state.changing.perform(
            self._take, self.run_state.clock.now(), self._refused, partial(forget_file, self.run_state)
        )
        self.run_state.facts += facts
        for fact in facts:
            if isinstance(fact, Scaled):
                self.run_state.listeners.notify_partitioned(fact.operator)
            self.run_state.publisher.publish(Reshaped(window_id, fact))

    def _refused(self, change: PendingChange) -> None:
        if isinstance(change, Scaling):
            self.run_state.listeners.refused(change)

    def _take(self, plan: RunningPlan) -> None:
        """Run another plan from the next window on. If that is impossible, raise and change nothing."""
        program = plan.program
        state, held = self.run_state.carried(program)
        self.run_state.driver_inputs.change(self.run_state.program, program, self.run_state.checkpoint.window + 1)
        self.run_state.backend.load(plan.compilation)
        self.run_state.state, self.run_state.held, self.run_state.summary = state, held, ProgramSummary.of(program)
        self.run_state.flow = WatermarkFlow.of(program)
        self.run_state.listeners.follow(plan)

    def _look(self) -> None:
        """Let the input operators that are due look for more."""
        window_id = self.run_state.next_window
        for discovery in self.run_state.driver_inputs.look(window_id, self.run_state.summary.millis):
            self.run_state.listeners.news = True
            self.run_state.publisher.found(
                discovery,
                self.run_state.driver_inputs.work_in(
                    self.run_state.program, self.run_state.summary.elements, discovery
                ),
            )

    def _report_waiting(self) -> None:
        """Report why input that is there is not read yet, if that has changed."""
        deferred = ((item.into.operator, item.waits_for) for item in self.run_state.queue.deferred if item.waits_for)
        waiting = [*self.run_state.driver_inputs.waits_for, *deferred]
        self.run_state.publisher.waiting([f"{name}: {reason}" for name, reason in dict.fromkeys(waiting)])

    def _start(self, *, last: bool) -> None:
        """Start the next window; if it is the oldest in flight, the ledger gets its promise first."""
        window_id, is_alone = self.run_state.next_window, not self.run_state.in_flight
        promised = self.run_state.promise is not None
        upto = dict(self.run_state.driver_inputs.upto if self.run_state.promise is None else self.run_state.promise[1])
        queued = self.run_state.queue.ends()
        taps = self.run_state.changing.taps.wanted(self.run_state.clock.now())
        samples = sent_by_inputs(taps, self.run_state.driver_inputs.upto_these(upto)) if taps else ()
        sent, given = self._given(upto)
        if self.run_state.promise is not None:
            retry_promised(self.run_state, self.run_state.promise[0])
        if self.run_state.changing.work_requests:
            self._perform_on_work()
        if self.run_state.promise is not None:
            (promise, _), self.run_state.promise = self.run_state.promise, None
            last = promise.last
            share = self.run_state.pending_work.again(promise, self.run_state.summary)
        else:
            share = self._next_share(window_id)
            promise = share.promise(last=last)
        asks = not (last or promised or sent or given) and share.polls
        if not promised and is_alone and not asks:
            self.run_state.journal.promise(upto, promise)
            promised = True
        self.run_state.probe(Point.PLANNED, window_id)
        task = replace(
            self._task(window_id, share, sent, last=last), taps=(*taps, *of_rejected(self.run_state.program))
        )
        began = self.run_state.clock.now()
        alone = is_alone and not self.run_state.is_unfinished
        window = InFlightWindow(task, upto, given, queued, share, promise, began, alone, promised, asks, samples)
        self.run_state.in_flight.submit(window)
        self.run_state.held = []
        if not asks:  # a window that only polls may end without a commit
            self.run_state.publisher.started(window)
        self.run_state.probe(Point.RUNNING, window_id)

    def _perform_on_work(self) -> None:
        """Give up or put back the work that users request; no window is in flight."""
        run = self.run_state
        facts = run.changing.perform_on_work(partial(perform_on_work, run))
        run.facts += facts
        for fact in facts:
            run.publisher.publish(Reshaped(run.next_window, fact))

    def _next_share(self, window_id: int) -> WindowSchedule:
        """Take the work of the next window from the queue."""
        if self.run_state.search is not None:
            return next_half(self.run_state, self.run_state.search)
        now, overlaps = self.run_state.clock.now(), self.run_state.overlap > 1
        return self.run_state.pending_work.next(window_id, self.run_state.summary, now, overlaps=overlaps)

    def _task(self, window_id: int, share: WindowSchedule, sent: list[Sent], *, last: bool) -> WindowTask:
        """Return the first attempt at a window."""
        summary, flow = self.run_state.summary, self.run_state.flow
        return WindowTask(
            window_id=window_id,
            arriving=tuple(sent),
            work=work_by_slot(share.allocation, summary.addresses),
            state=state_by_slot(self.run_state.program, self.run_state.state),
            lasts_millis=share.lasts_millis if summary.slots else None,
            committed=self.run_state.checkpoint.window,
            last=last,
            launched=self.run_state.launched,
            began=self.run_state.clock.now(),
            home=self.run_state.settings.home,
            application_path=self.run_state.settings.application_path,
            log=log_in(self.run_state.settings.application_path),
            staging=self.run_state.new_staging(window_id),
            isolated=self._is_isolated(),
            movable=self._movable(share),
            timeout_millis=summary.timeout_millis,
            seen={} if flow is None else flow.seen(self.run_state.checkpoint.event_times),
        )

    def _is_isolated(self) -> bool:
        """Whether the next window may end its worker: if one did before, or if it is to be ended after a timeout."""
        run = self.run_state
        return run.search is not None or run.summary.timeout_millis is not None or run.marker.was_killed

    def _movable(self, share: WindowSchedule) -> frozenset[Address]:
        """The inputs whose work slots may hand over: where several slots may work on a block at the same time."""
        summary = self.run_state.summary
        if not summary.hands_over or self._is_isolated() or not share.is_worth_sharing:
            return frozenset()
        return frozenset(into for into in summary.near if summary.slots[into] > 1)

    def _given(self, upto: dict[str, int]) -> tuple[list[Sent], list[WorkItem]]:
        """Give the window the discoveries up to these: items go to the workers, blocks to the queue."""
        sent, waiting = self.run_state.driver_inputs.given(
            self.run_state.program, self.run_state.summary.elements, upto
        )
        self.run_state.pending_work.queue.add(waiting)
        return sent + self.run_state.held, waiting

    def _await(self, until: datetime | None) -> None:
        """Wait until the oldest window has ended, a request is due to be read, or `until` is reached."""
        if not self.run_state.in_flight.has_completed:
            due = self.run_state.changing.inbox.due
            until = due if until is None else min(until, due)
            seconds = max(0.0, (until - self.run_state.clock.now()).total_seconds())
            self.run_state.woken.wait(seconds)
            if not self.run_state.in_flight.has_completed:
                self.run_state.publisher.working(self.run_state.backend.running(), self.run_state.clock.now())
        self.run_state.woken.clear()

    def _abandon_windows(self) -> None:
        """Abandon the windows in flight, as a crash would: the next launch runs them again."""
        window_id = self.run_state.checkpoint.window + 1
        _log.warning(
            "window %d did not end within %d s of the request to stop and was abandoned; the next launch runs it "
            "again, and no record is lost",
            window_id,
            LONGEST_AFTER_STOP.total_seconds(),
        )
        self.run_state.backend.close()
        self.run_state.in_flight.abandon()

    # ---- questions

    def _plenty(self) -> int:
        """The queue length from which on inputs need not look for more."""
        slots = self.run_state.summary.slots
        capacity = self.run_state.changing.plan.capacity(slots)
        return self.run_state.pending_work.plenty(slots, capacity, self.run_state.in_flight.ahead)

    def _is_undrained(self) -> bool:
        """Whether an operator or an unfinished file waits for the notice that input is drained."""
        last = self.run_state.checkpoint
        waits = self.run_state.summary.drains or any(part.element_id is None for part in last.files)
        return waits and not last.drained and last.window > 0
