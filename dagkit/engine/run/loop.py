"""The loop decides the next action and performs it. The decision is pure (see `decide`).

One thread decides, looks for work and writes the ledger. The parts of the run want something (`RunPart.wants`),
complete a window before it starts, and perform their own actions. Module `commit` commits windows.
"""

import logging
from contextlib import suppress
from datetime import datetime, timedelta

from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.run_part import Action, Await, Commit, Sleep, Start, Stop, Want
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.program.entrances import operator_of
from dagkit.engine.program.failures import OperatorFailed, failure_of
from dagkit.engine.program.points import Point
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.redistribute import State
from dagkit.engine.record.run_events import Draining, Ended, Resumed
from dagkit.engine.record.work_history import aside_in
from dagkit.engine.run.commit import Committer
from dagkit.engine.run.decide import LoopState, next_action
from dagkit.engine.run.run_parts import RunParts
from dagkit.engine.worker.protocol import WindowTask
from dagkit.errors import DagkitError
from dagkit.ledger import SequenceTaken

LONGEST_AFTER_STOP = timedelta(seconds=5)
"""How much longer than its length a window may run in the driver after a request to stop."""
_LONG_POLL = timedelta(seconds=2)
"""After this time the start of a window that polls is published."""
_log = logging.getLogger(__name__)


class Loop:
    """One run of an application."""

    def __init__(self, run: RunState, *, last_window: int | None = None) -> None:
        """Restore the parts of the run from its checkpoint. Raise if the plan cannot take what that holds.

        `last_window` is the last window that may run, if an earlier session of the launch has determined it.
        """
        self.run_state = run
        self.parts = RunParts(run)
        self._committer = Committer(run, self.parts)
        self._is_draining = False
        """Whether observers were informed that the run stops."""
        self._abandons_at: datetime | None = None
        """When the windows in flight are abandoned, since the run is to stop; None: never."""
        self.last_window = last_window
        """The last window that may run; None: no limit."""
        if last_window is None and run.settings.windows is not None:
            self.last_window = run.window + run.settings.windows

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of the last committed window."""
        return self.run_state.checkpoint

    @property
    def state(self) -> State:
        """The state of operators after that window, by operator and partition."""
        operators = self.parts.operators
        return operators.state

    @property
    def is_stopping(self) -> bool:
        """Whether the run was asked to stop."""
        woken = self.run_state.woken
        return woken.is_to_stop

    # ---- called from outside

    def run(self) -> None:
        """Run to the end, or until `stop` is called."""
        run = self.run_state
        try:
            with run.masking.masked(), run.in_flight:
                self._run()
        except SequenceTaken:
            # Outside of the block, whose end joins the threads of the windows: nothing is staged behind the sweep.
            with suppress(DagkitError, OSError):  # the next commit of the other driver sweeps, too
                for part in self.parts:
                    part.overtaken()
            raise

    def _run(self) -> None:
        run = self.run_state
        try:
            self._begin()
            while not isinstance(action := self._next(), Stop):
                self._perform(action)
            if run.in_flight:
                self._abandon_windows()
            for part in self.parts:
                part.end()
            run.publisher.publish(Ended(run.window))
        except BaseException as error:
            run.backend.close()  # so that no thread waits for an abandoned window
            failed = self._failure(error)
            run.masking.mask(failed)
            for part in self.parts:
                part.failed(failed)
            if isinstance(failed, OperatorFailed):
                run.publisher.failed_on_driver(failed)
            if failed is error:
                raise
            raise failed from error
        finally:
            for part in self.parts:
                part.close()

    def _failure(self, error: BaseException) -> BaseException:
        """Return the failure of the operator whose code raised an error; return other errors unchanged."""
        name = None if isinstance(error, OperatorFailed) else operator_of(error)
        if name is None or not isinstance(error, Exception):
            return error
        run = self.run_state
        return failure_of(error, name, run.next_window, instance=run.program.operators[name][0])

    def stop(self) -> None:
        """Stop after the windows in flight; callable from any thread and from a signal handler.

        Windows that run in the driver are abandoned if they take too long, and run again at the next launch.
        """
        woken = self.run_state.woken
        woken.stop()

    def take_news(self) -> None:
        """Let the parts take in what users and other threads bring; after the end of a session, only to be stopped."""
        for part in self.parts:
            part.take_news()

    # ---- decide

    def _next(self) -> Action:
        """Read requests, let the parts review the next action, and return it."""
        run = self.run_state
        self.take_news()
        if self.is_stopping and not self._is_draining:
            self._is_draining = True
            # No signal interrupts an operator on the thread of a window in this process: without a limit, a stop waited
            # for as long as the operators took.
            if run.settings.runs_in_driver:
                length = timedelta(milliseconds=run.summary.millis)
                self._abandons_at = run.now() + length + LONGEST_AFTER_STOP
            run.publisher.publish(Draining(run.window))
        action = next_action(self.outlook())
        if any(part.review(action) for part in self.parts):
            action = next_action(self.outlook())
        return action

    def outlook(self) -> LoopState:
        """Return the present state for the decision."""
        run, wants = self.run_state, dict[Want, datetime]()
        now = run.now()
        for part in self.parts:
            for want, at in part.wants(now, wants):
                wants[want] = min(at, wants.get(want, at))
        begun_after = run.next_window - 1
        return LoopState(
            now=now,
            wants=wants,
            is_stopping=self.is_stopping,
            abandons_at=self._abandons_at,
            windows_left=None if self.last_window is None else self.last_window - begun_after,
            in_flight=len(run.in_flight),
            completed=run.in_flight.has_completed,
            overlap=run.settings.overlap,
        )

    # ---- perform

    def _begin(self) -> None:
        run = self.run_state
        for part in reversed(self.parts):
            part.begin()
        is_promised = run.in_flight.promised is not None
        waiting = self.parts.waiting(run.checkpoint.queue)
        pending = run.publisher.by_unit(self.parts.pending)
        aside = aside_in(run.checkpoint)
        run.publisher.publish(Resumed(run.program.application, run.window, waiting, is_promised, pending, aside))

    def _perform(self, action: Action) -> None:
        run = self.run_state
        match action:
            case Commit():
                self._committer.commit(run.in_flight.oldest())
            case Start(last=last):
                self._start(last=last)
            case Await(until=until):
                self._await(until)
            case Sleep(until=until):
                # cleared after the wait: the loop then reads requests and asks the parts, so that no call that came
                # before is lost
                run.clock.wait(run.woken, until)
                run.woken.clear()
            case _:
                for part in self.parts:
                    part.perform(action)

    def _start(self, *, last: bool) -> None:
        """Start the next window; if it is the oldest in flight, the ledger gets its promise first."""
        run, now = self.run_state, self.run_state.now()
        task = WindowTask(
            window_id=run.next_window,
            committed=run.window,
            last=last,
            began=now,
            launch=run.launch,
        )
        window = InFlightWindow(task, now, is_alone=not run.in_flight)
        run.in_flight.keep_promise(window)
        for part in self.parts:
            part.before(window)
        assert window.promise is not None, "its work is allocated"
        # A younger window is promised by its commit. One that polls is not promised before it has found something: a
        # crash loses nothing that is not found again, and each promise waits for the disk.
        if not (window.is_promised or run.in_flight or window.polls):
            run.journal.promise(window.upto, window.promise)
            window.is_promised = True
        run.probe(Point.PLANNED, window.window_id)
        window.began = run.now()
        run.in_flight.submit(window)
        if not window.polls:  # such a window may end without a commit
            run.publisher.started(window)
        run.probe(Point.RUNNING, window.window_id)

    def _await(self, until: datetime | None) -> None:
        """Wait until the oldest window has ended, or `until` is reached."""
        run = self.run_state
        if not run.in_flight.has_completed:
            run.woken.wait(None if until is None else max(0.0, (until - run.now()).total_seconds()))
            if not run.in_flight.has_completed:
                # A poll that lasts has mostly found something, whose processing takes long.
                for window in run.in_flight:
                    if run.now() - window.began >= _LONG_POLL:
                        run.publisher.started(window)
                run.publisher.working(run.backend.running(), run.now())
        run.woken.clear()

    def _abandon_windows(self) -> None:
        """Abandon the windows in flight, as a crash would: the next launch runs them again."""
        run = self.run_state
        reason = f"did not end within {LONGEST_AFTER_STOP.total_seconds():.0f} s of the request to stop"
        put_off = run.in_flight.put_off
        if put_off is not None:
            reason = put_off.reason
        _log.warning(
            "window %d %s and was abandoned; the next launch runs it again, and no record is lost",
            run.window + 1,
            reason,
        )
        run.backend.close()
        run.in_flight.abandon()
