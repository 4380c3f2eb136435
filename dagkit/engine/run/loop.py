"""The loop: replay, decide, perform. What is decided is pure and elsewhere; here is the thin shell that does it.

One thread decides, looks for work and writes the ledger. What it does so with stands in modules of their own: input
operators and what they found (`driver_inputs`), what waits (`pending_work`), windows on their way (`in_flight`), what is wished for
(`changing`, `listeners`), files (`outputs`), the ledger (`journal`), and what observers are told (`publisher`).
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from dagkit.api.operators import Operator
from dagkit.api.running import Until
from dagkit.clock import SystemClock, Timer
from dagkit.compiler import Compilation
from dagkit.engine.worker.protocol import Answer, WindowTask, Backend
from dagkit.engine.changes.listeners import StatsListeners
from dagkit.engine.changes.reconfiguration import Reconfiguration, Scaling, PendingChange
from dagkit.engine.files.checks import make_output_folders
from dagkit.engine.checkpoint.journal import Journal
from dagkit.engine.checkpoint.compatibility import refuse_renamed, refuse_stranded, refuse_stranded_findings
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
from dagkit.engine.checkpoint.delays import first_of_delays, restored
from dagkit.engine.facts import Fact, Scaled
from dagkit.engine.failures import OperatorFailed, WindowLost, failure_of, who_failed
from dagkit.engine.inputs.discover import DriverInputs
from dagkit.engine.run.in_flight import InFlightWindow, InFlightWindows
from dagkit.engine.run.polling import found_nothing
from dagkit.engine.run.polling import only_polls
from dagkit.engine.run.polling import timed
from dagkit.engine.checkpoint.next_checkpoint import State, next_checkpoint, parts_of, state_after, state_by_slot, work_by_slot, worked_in
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.redistribute import redistribute_state
from dagkit.engine.reports.run_events import Ended, Observer, Reshaped, Resumed
from dagkit.engine.points import Point
from dagkit.engine.points import Probe
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.files.outputs import Outputs
from dagkit.engine.program.program import Program
from dagkit.engine.changes.requests import RequestInbox
from dagkit.engine.changes.running_plan import RunningPlan
from dagkit.engine.work.split import split_at_the_end
from dagkit.engine.work.pending import PendingWork
from dagkit.engine.run.notify import EventPublisher, queues_of
from dagkit.engine.work.summary import ProgramSummary
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.item import WorkItem
from dagkit.errors import DagkitError, InputUnreadable
from dagkit.ledger import Ledger, SequenceTaken


@dataclass(frozen=True)
class RunSettings:
    """How a launch runs."""

    application_path: str
    until: Until = Until.STOPPED
    windows: int | None = None
    """Windows at most; none: any number."""
    overlap: int = 2
    """Windows in flight at most."""
    durable: bool = True
    """Whether a commit survives a power cut, and not only a crash."""
    home: str = ""
    """The folder that relative paths of operators are taken from."""


class Woken(threading.Event):
    """An event that a signal's handler may set, also while the thread that it interrupts is at this very event."""

    def __init__(self) -> None:
        super().__init__()
        self._cond = threading.Condition(threading.RLock())


class Loop:
    """One run of an application."""

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
        self._probe = probe or _not_probed
        self._stopping = Stopping.NOT
        self._woken = Woken()
        shape = RunningPlan.of(compilation)
        self.journal = Journal(ledger, shape.program, fingerprint, version)
        self._resume(shape, ledger)

    # ---- the outside

    def run(self) -> None:
        """Run until the end, or until somebody stops it."""
        try:
            self._run()
        except SequenceTaken:
            with suppress(DagkitError, OSError):  # whoever commits next sweeps, too
                self.outputs.abandon(self.journal.newest_checkpoint())
            raise

    def _run(self) -> None:
        with self.in_flight:
            try:
                self._begin()
                while not isinstance(action := self._next(), Stop):
                    self._perform(action)
                self.driver_inputs.end(self.checkpoint.window + 1)
                self.publisher.tell(Ended(self.checkpoint.window))
            except BaseException as error:
                self.backend.close()  # so that no thread waits for a window that nobody wants
                self.driver_inputs.tear_down(self.checkpoint.window + 1)
                is_own = isinstance(error, DagkitError) and not isinstance(error, InputUnreadable)
                name = None if is_own else who_failed(error.__traceback__, self._asked())
                if name is None or not isinstance(error, Exception):
                    if isinstance(error, OperatorFailed):
                        self.changing.failed(error)
                    raise
                failed = failure_of(error, name, self.checkpoint.window + len(self.in_flight) + 1)
                self.changing.failed(failed)
                raise failed from error

    def _asked(self) -> dict[str, Operator]:
        """Whoever is asked on the driver about the work that waits for him."""
        return {into.rpartition(".")[0]: each.operator for into, each in self.traits.elements.items()}

    def stop(self) -> None:
        """Stop after what is in flight; may be called from any thread and from a signal's handler."""
        self._stopping = Stopping.AFTER_WINDOW
        self._woken.set()

    def _next(self) -> Action:
        """What to do now, given all that is known and asked for."""
        self.changing.hear(self.checkpoint.window)
        action = next_action(self.outlook())
        if self._promise is None and self._asks_listeners(action):
            self._ask_around()
            action = next_action(self.outlook())
        return action

    def _asks_listeners(self, action: Action) -> bool:
        """Before a window, if there are statistics that they were not given; by the heartbeat, while nothing is to do."""
        match action:
            case Start():
                return self.listeners.has_news
            case Sleep():
                return self.listeners.is_time(self.clock.now())
            case _:
                return False

    def _ask_around(self) -> None:
        """Listeners say, before the next window begins or nothing is to do, what is to change."""
        found = self.driver_inputs.work_in(self.program, self.traits.elements, *self.driver_inputs.found)
        waiting = [*self.queue.all(), *found, *self.in_flight.allocated]
        wishes, facts = self.listeners.ask(self.checkpoint.window, waiting, self.backend.cores(), self.clock.now())
        self.facts += facts
        for wish in wishes:
            self.changing.wish(wish)

    def outlook(self) -> LoopState:
        """What is known now, for the decision."""
        now, slots = self.clock.now(), self.traits.slots
        begun_after = self.checkpoint.window + len(self.in_flight)
        return LoopState(
            until=self.settings.until,
            now=now,
            stopping=self._stopping,
            windows_left=None if self.settings.windows is None else self._last_window - begun_after,
            unfinished=bool(self.outputs.unfinished),
            in_flight=len(self.in_flight),
            completed=self.in_flight.has_completed,
            overlap=self._overlap,
            waiting=self.pending_work.ready(now),
            next_due=self.pending_work.next_due,
            plenty=self.pending_work.plenty(slots, self.changing.shape.capacity(slots), self.in_flight.ahead),
            found=len(self.driver_inputs.found),
            promised=self._promise is not None,
            has_delayed_items=bool(self.held) and not self.in_flight,
            begun=any(begun_after % count for count in self.traits.counts),
            closes=not any((begun_after + 1) % count for count in self.traits.counts),
            next_look=self.driver_inputs.next_look,
            looked_in_vain=self.driver_inputs.looked_in_vain,
            undrained=self._has_ends() and not self.checkpoint.drained and self.checkpoint.window > 0,
            next_beat=self._beat,
            wished=self.changing.is_wished,
            changed=self.changing.is_made,
        )

    # ---- replay

    def _resume(self, shape: RunningPlan, ledger: Ledger) -> None:
        """Stand where the ledger says that the last commit left the application."""
        checkpoint = self.checkpoint = self.journal.checkpoint()
        if checkpoint.partitions or checkpoint.altered:
            shape = RunningPlan.resumed(shape.compilation, checkpoint)
            self.backend.load(shape.compilation)
        self.changing = Reconfiguration(shape, RequestInbox(ledger.store, self.clock.now, checkpoint.answered))
        self.listeners = StatsListeners(shape, self.clock.now())
        self.facts: list[Fact] = []
        """What was decided since the last commit."""
        program = self.program
        self._promise = self.journal.promised()
        refuse_stranded(program, checkpoint, self._promise[0]["deal"] if self._promise else {})
        refuse_renamed(program, checkpoint.state)
        self.state: State = redistribute_state(program, checkpoint.state)
        self.traits = ProgramSummary.of(program)
        self.held = restored(program, checkpoint.held) if checkpoint.window else first_of_delays(program)
        settings = self.settings
        self.pending_work = PendingWork(checkpoint.queue, settings.until, self.traits.millis)
        self.driver_inputs = DriverInputs(self.journal, settings.until, self.clock)
        refuse_stranded_findings(program, self.driver_inputs.found)
        self.outputs = Outputs(checkpoint, settings.application_path, durable=settings.durable, home=settings.home)
        self.in_flight = InFlightWindows(self.backend, settings.overlap, self._woken.set)
        self._last_window = checkpoint.window + (self.settings.windows or 0)
        self._beat: datetime | None = None
        if self._promise is None:
            self.pending_work.truncate(self.traits)

    def _begin(self) -> None:
        """What runs on the driver comes to life; what an attempt left that was cut off goes."""
        make_output_folders(self.program, self.settings.home, durable=self.settings.durable)
        self.changing.inbox.tidy()
        self.driver_inputs.begin(self.program, self.checkpoint.window + 1, self.checkpoint.ended)
        waiting = len(self.queue) + sum(len(finding.emitted) for finding in self.driver_inputs.found)
        promised = self._promise is not None
        self.publisher.tell(Resumed(self.program.application, self.checkpoint.window, waiting, promised))

    @property
    def program(self) -> Program:
        """What runs now."""
        return self.changing.shape.program

    @property
    def queue(self) -> WorkQueue:
        """What waits."""
        return self.pending_work.queue

    @property
    def _overlap(self) -> int:
        """How many windows may be in flight."""
        return self.settings.overlap if self.traits.overlaps else 1

    # ---- perform

    def _perform(self, action: Action) -> None:
        match action:
            case Finish():
                self._finish()
            case Commit():
                self._commit(self.in_flight.oldest())
            case Look():
                self._look()
            case Start(last=last):
                self._start(last=last)
            case Change():
                self._change()
            case Await(until=until):
                self._await(until)
            case Sleep(until=until):
                self.clock.wait(self._woken, min(until, self.changing.inbox.due))
                self._woken.clear()

    def _change(self) -> None:
        """Nothing is in flight: what is wished takes effect with the next window."""
        window_id = self.checkpoint.window + 1
        facts = self.changing.perform(self._take, self.clock.now(), self._refused)
        self.facts += facts
        for fact in facts:
            if isinstance(fact, Scaled):
                self.listeners.tell_partitioned(fact.operator)
            self.publisher.tell(Reshaped(window_id, fact))

    def _refused(self, wish: PendingChange) -> None:
        if isinstance(wish, Scaling):
            self.listeners.refused(wish)

    def _take(self, shape: RunningPlan) -> None:
        """Go on in another shape. What of this cannot be is raised, and all is as before."""
        program, checkpoint = shape.program, self.checkpoint
        state = redistribute_state(program, checkpoint.state)
        held = restored(program, checkpoint.held) if checkpoint.window else first_of_delays(program)
        self.driver_inputs.change(self.program, program, checkpoint.window + 1)
        self.backend.load(shape.compilation)
        self.state, self.held, self.traits = state, held, ProgramSummary.of(program)
        self.listeners.follow(shape)

    def _look(self) -> None:
        """Input operators find more."""
        window_id = self.checkpoint.window + len(self.in_flight) + 1
        for finding in self.driver_inputs.look(window_id, self.traits.millis):
            self.listeners.news = True
            self.publisher.found(finding, self.driver_inputs.work_in(self.program, self.traits.elements, finding))

    def _start(self, *, last: bool) -> None:
        """The next window takes off: promised first where it is the oldest."""
        window_id = self.checkpoint.window + len(self.in_flight) + 1
        if self._promise is not None:
            last = bool(self._promise[0].get("last"))
            (notes, upto), self._promise = self._promise, None
            sent, given = self._given(dict(upto))
            share, promised = self.pending_work.again(notes, self.traits), True
        else:
            upto = self.driver_inputs.upto
            sent, given = self._given(upto)
            share = self.pending_work.next(window_id, self.traits, self.clock.now(), overlaps=self._overlap > 1)
            notes, promised = {**share.notes, "last": last}, False
        asks = not last and not promised and only_polls(sent, given, share.allocation)
        if not promised and not self.in_flight and not asks:
            self.journal.promise(upto, notes)
            promised = True
        self._probe(Point.PLANNED, window_id)
        assignment = WindowTask(
            window_id=window_id,
            arriving=tuple(sent),
            work=work_by_slot(share.allocation, self.traits.addresses),
            state=state_by_slot(self.program, self.state),
            lasts_millis=share.lasts_millis if self.traits.slots else None,
            committed=self.checkpoint.window,
            last=last,
            home=self.settings.home,
        )
        began, alone = self.clock.now(), not self.in_flight
        flight = InFlightWindow(self._restaged(assignment), dict(upto), given, share, dict(notes), began, alone, promised, asks)
        self.in_flight.submit(flight)
        self.held = []
        if not asks:  # one that only asks may never be a window
            self.publisher.started(flight)
        self._probe(Point.RUNNING, window_id)

    def _given(self, upto: dict[str, int]) -> tuple[list[Sent], list[WorkItem]]:
        """The findings up to these are the window's: items for the workers, blocks for the queue."""
        sent, waiting = self.driver_inputs.given(self.program, self.traits.elements, upto)
        self.pending_work.add(waiting)
        return sent + self.held, waiting

    def _commit(self, flight: InFlightWindow) -> None:
        """The window counts from here on, or is tried again, or its failure is raised."""
        try:
            answer = flight.answer.result()
        except Exception as error:
            self.journal.refuse_overtaken(error)
            if not isinstance(error, OperatorFailed | WindowLost):
                raise
            self._try_again(flight, error)
            return
        answer = timed(answer, self.clock.now())
        self._probe(Point.STAGED, flight.window_id)
        if self._is_nothing(flight, answer):
            self.outputs.over(flight.window_id)
            self.pending_work.over(flight.round, worked_in(answer), self.traits)
            return
        self.publisher.started(flight)
        if not flight.promised:
            self.journal.promise(flight.upto, flight.notes)
        parts, worked = parts_of(answer), worked_in(answer)
        facts = [*flight.round.cuts, *split_at_the_end(flight.round.allocation, worked), *self.facts]
        try:
            checkpoint = self._next_checkpoint(flight, answer, facts)
            self.outputs.check(checkpoint.finished, parts)
        except DagkitError as error:
            self.journal.refuse_overtaken(error)
            raise
        ended = self.clock.now()
        self.journal.commit(checkpoint, parts)
        self._probe(Point.APPENDED, flight.window_id)
        self.checkpoint, self.state = checkpoint, checkpoint.state
        self.facts.clear()
        self.changing.committed(flight.window_id)
        now = self.clock.now()
        took = (now - flight.began).total_seconds() * 1000
        self.listeners.committed(flight.window_id, answer, now, took)
        self.pending_work.over(flight.round, worked, self.traits, whole_millis=took if flight.alone else None)
        self.outputs.commit(checkpoint)
        self.held = list(answer.delayed)
        self._beat = self.clock.now() + timedelta(milliseconds=self.traits.millis)
        self.driver_inputs.commit(flight.window_id)
        self.outputs.sweep()
        files, found, done = len(self.outputs.unfinished), self.driver_inputs.figures(flight.window_id), self.clock.now()
        self.publisher.committed(flight, answer, parts, files=files, queue=self.queue, now=done)
        queues = queues_of(self.queue, self.traits)
        self.publisher.measured(
            self.program, flight, answer, found=found, facts=checkpoint.facts, queues=queues, ended=ended, committed=done
        )

    def _is_nothing(self, flight: InFlightWindow, answer: Answer) -> bool:
        """Whether a window need not have been: it is not committed, and the next one has its number."""
        return (
            flight.asks
            and not flight.failures  # observers were told of one that failed
            and not self.in_flight
            and not self.facts
            and not self.changing.is_made
            and self.traits.counts <= {1}
            and found_nothing(flight.round.allocation, answer)
            and state_after(self.program, self.state, answer) == self.state
        )

    def _try_again(self, flight: InFlightWindow, error: OperatorFailed | WindowLost) -> None:
        """The same window runs again, as often as the failure allows; else the failure is raised."""
        again = flight.failed(error, self.program)
        self.publisher.started(flight)
        self.publisher.failed(flight, error, again=again)
        if not again:
            raise error
        self.in_flight.resubmit(flight, self._restaged(flight.assignment))

    def _restaged(self, assignment: WindowTask) -> WindowTask:
        """The same work, whose pieces lie under another attempt's name."""
        if not self.traits.writes:
            return assignment
        return replace(assignment, staging=self.outputs.attempt(assignment.window_id))

    def _next_checkpoint(self, flight: InFlightWindow, answer: Answer, facts: Sequence[Fact]) -> Checkpoint:
        return next_checkpoint(
            self.checkpoint.with_files(self.outputs.gathered(flight.window_id)),
            flight.taken,
            answer,
            program=self.program,
            window_id=flight.window_id,
            last=flight.assignment.last,
            queue=self.pending_work.all(),
            younger=[other.taken for other in self.in_flight],
            state=state_after(self.program, self.state, answer),
            ended=self.driver_inputs.exhausted,
            timed_inputs=self.traits.timed_inputs,
            coming=self.driver_inputs.coming(self.program),
            facts=facts,
            partitions=self.changing.shape.partitions,
            altered=self.changing.shape.altered,
            answered=self.changing.requests,
        )

    def _finish(self) -> None:
        window_id, path, durable = self.checkpoint.window, self.settings.application_path, self.settings.durable
        try:
            self.outputs.finish(
                lambda files: self.backend.put_in_place(files, path, durable=durable),
                lambda point: self._probe(point, window_id),
            )
        except DagkitError as error:
            self.journal.refuse_overtaken(error)
            raise
        self._probe(Point.FINISHED, window_id)

    def _await(self, until: datetime | None) -> None:
        """Return when the oldest window has ended, or when somebody is due to look for more."""
        if not self.in_flight.has_completed:
            due = self.changing.inbox.due
            until = due if until is None else min(until, due)
            seconds = max(0.0, (until - self.clock.now()).total_seconds())
            self._woken.wait(seconds)
        self._woken.clear()

    # ---- what is known

    def _has_ends(self) -> bool:
        """Whether anybody waits to hear that nothing more comes for now: an operator, or an unfinished file."""
        return self.traits.drains or any(part.block is None for part in self.checkpoint.files)


def _not_probed(point: Point, window_id: int) -> None:
    """Nobody wants to crash the run."""
