"""The loop: replay, decide, perform. What is decided is pure and elsewhere; here is the thin shell that does it.

One thread decides, looks for work and writes the ledger. Each window in flight has a thread of its own, which waits
for the backend and touches nothing else.
"""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from dagkit.api.attributes import OperatorContext
from dagkit.api.operators import Operator
from dagkit.api.running import Until
from dagkit.clock import SystemClock, Timer
from dagkit.compiler import Compilation
from dagkit.engine.assignment import Answer, Assignment, Backend
from dagkit.engine.audience import Audience
from dagkit.engine.changing import Changing, Scaling, Wish
from dagkit.engine.chronicle import Chronicle
from dagkit.engine.continuing import refuse_renamed, refuse_stranded, refuse_stranded_findings
from dagkit.engine.dealing import Dealer, Round
from dagkit.engine.decide import (
    Action,
    Await,
    Change,
    Commit,
    Finish,
    Look,
    Outlook,
    Sleep,
    Start,
    Stop,
    Stopping,
    next_action,
)
from dagkit.engine.delays import first_of_delays, restored
from dagkit.engine.facts import Fact, Scaled, Split
from dagkit.engine.failures import OperatorFailed, WindowLost, failure_of, tear_down, who_failed
from dagkit.engine.forecast import Forecast
from dagkit.engine.inputs import DriverInput, Finding, context_of, delivered, queued
from dagkit.engine.later import Later, came_to_nothing, next_due, only_asks, renewed
from dagkit.engine.leaving import (
    State,
    Taken,
    memory_after,
    parts_of,
    state_after,
    state_by_slot,
    worked_in,
)
from dagkit.engine.live import SavedState
from dagkit.engine.measuring import Measuring, aggregators_of
from dagkit.engine.memory import Memory
from dagkit.engine.moving import moved
from dagkit.engine.observing import (
    Committed,
    Ended,
    Failed,
    Found,
    Observer,
    Observers,
    Point,
    Probe,
    Queue,
    Reshaped,
    Resumed,
    Started,
)
from dagkit.engine.outbox import Sent
from dagkit.engine.outputs import Outputs
from dagkit.engine.pace import LONGEST_MILLIS, Pace
from dagkit.engine.program import Program, Target
from dagkit.engine.requests import Postbox
from dagkit.engine.shape import Shape
from dagkit.engine.splitting import split_at_the_end
from dagkit.engine.staging import Part
from dagkit.engine.traits import Traits
from dagkit.engine.waiting import BlockQueue, places
from dagkit.engine.work import Waiting, length_of
from dagkit.errors import DagkitError
from dagkit.ledger import Ledger, SequenceTaken

ATTEMPTS_AT_LOST_WINDOWS = 2
"""How often a window is tried again that was lost with a machine, and not by an operator's failure."""


@dataclass
class Flight:
    """A window that is on its way."""

    assignment: Assignment
    upto: dict[str, int]
    """The last finding that it was given, by input operator."""
    given: Sequence[Waiting]
    """The blocks that came into the queue with its findings."""
    round: Round
    notes: dict[str, Any]
    began: datetime
    alone: bool
    """Whether no other window was in flight then."""
    answer: "Future[Answer]"
    promised: bool = False
    asks: bool = False
    """Whether it only asks whether there is more of what has no end."""
    failures: int = 0

    @property
    def window_id(self) -> int:
        return self.assignment.window_id

    @property
    def taken(self) -> Taken:
        return Taken(self.given, self.round.deal)


@dataclass(frozen=True)
class Settings:
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
        settings: Settings,
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
        self.observers = Observers(list(observers))
        self.measuring = Measuring(aggregators_of(compilation.graph))
        self._probe = probe or _not_probed
        self._stopping = Stopping.NOT
        self._woken = Woken()
        shape = Shape.of(compilation)
        self.chronicle = Chronicle(ledger, shape.program, fingerprint, version)
        self._resume(shape, ledger)

    # ---- the outside

    def run(self) -> None:
        """Run until the end, or until somebody stops it."""
        try:
            self._run()
        except SequenceTaken:
            with suppress(DagkitError, OSError):  # whoever commits next sweeps, too
                self.outputs.abandon(self.chronicle.newest_memory())
            raise

    def _run(self) -> None:
        with ThreadPoolExecutor(self.settings.overlap, thread_name_prefix="window") as self._threads:
            try:
                self._begin()
                while not isinstance(action := self._next(), Stop):
                    self._perform(action)
                for each in self.inputs.values():
                    each.end(self.memory.window + 1)
                self.observers.tell(Ended(self.memory.window))
            except BaseException as error:
                self.backend.close()  # so that no thread waits for a window that nobody wants
                tear_down((each.operator for each in self.inputs.values()), self.memory.window + 1)
                name = None if isinstance(error, DagkitError) else who_failed(error.__traceback__, self._asked())
                if name is None or not isinstance(error, Exception):
                    if isinstance(error, OperatorFailed):
                        self.changing.failed(error)
                    raise
                failed = failure_of(error, name, self.memory.window + len(self.flights) + 1)
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
        self.changing.hear(self.memory.window)
        action = next_action(self.outlook())
        if self._promise is None and self._listeners_are_due(action):
            self._ask_around()
            action = next_action(self.outlook())
        return action

    def _listeners_are_due(self, action: Action) -> bool:
        """Before a window those who were not told of all that there is; else, from time to time, everybody."""
        if not self.audience.listens:
            return False
        is_time = self.clock.now() >= self.audience.asked + self.traits.heartbeat
        return (isinstance(action, Start) and self.audience.news) or (isinstance(action, Sleep) and is_time)

    def _ask_around(self) -> None:
        """Listeners say, before the next window begins or nothing is to do, what is to change."""
        writing, elements = self.chronicle.writing, self.traits.elements
        found = [each for finding in self.found for each in queued(self.program, writing, elements, finding)]
        ahead = [each for flight in self.flights for h in flight.taken.deal.values() for hand in h for each in hand]
        waiting = [*self.queue.all(), *found, *ahead]
        wishes, facts = self.audience.ask(self.memory.window, waiting, self.backend.cores(), self.clock.now())
        self.facts += facts
        for wish in wishes:
            self.changing.wish(wish)

    def outlook(self) -> Outlook:
        """What is known now, for the decision."""
        now, awake = self.clock.now(), [each for each in self.inputs.values() if not each.ended]
        deferred = [each for each in self.queue.deferred if self.later.asks_again(each)]
        looks = [each.next_look or _DISTANT_PAST for each in awake]
        begun_after = self.memory.window + len(self.flights)
        return Outlook(
            until=self.settings.until,
            now=now,
            stopping=self._stopping,
            windows_left=None if self.settings.windows is None else self._last_window - begun_after,
            unfinished=bool(self.outputs.unfinished),
            in_flight=len(self.flights),
            landed=bool(self.flights) and self.flights[0].answer.done(),
            overlap=self._overlap,
            waiting=len(self.queue) + sum(each.due is not None and each.due <= now for each in deferred),
            next_due=next_due(deferred),
            plenty=self._plenty(),
            found=len(self.found),
            promised=self._promise is not None,
            circling=bool(self.held) and not self.flights,
            begun=any(begun_after % count for count in self.traits.counts),
            closes=not any((begun_after + 1) % count for count in self.traits.counts),
            next_look=min(looks, default=None),
            looked_in_vain=all(each.in_vain for each in awake),
            undrained=self._has_ends() and not self.memory.drained and self.memory.window > 0,
            next_beat=self._beat,
            wished=self.changing.is_wished,
            changed=self.changing.is_made,
        )

    # ---- replay

    def _resume(self, shape: Shape, ledger: Ledger) -> None:
        """Stand where the ledger says that the last commit left the application."""
        memory = self.memory = self.chronicle.memory()
        if memory.partitions or memory.altered:
            shape = Shape.resumed(shape.compilation, memory)
            self.backend.load(shape.compilation)
        self.changing = Changing(shape, Postbox(ledger.store, self.clock.now, memory.answered))
        self.audience = Audience(shape, self.clock.now())
        self.facts: list[Fact] = []
        """What was decided since the last commit."""
        program = self.program
        self._promise = self.chronicle.promised()
        refuse_stranded(program, memory, self._promise[0]["deal"] if self._promise else {})
        refuse_renamed(program, memory.state)
        self.queue = BlockQueue.of(renewed(memory.queue))
        self.later = Later(self.settings.until)
        self.state: State = moved(program, memory.state)
        self.traits = Traits.of(program)
        self.held = restored(program, memory.held) if memory.window else first_of_delays(program)
        self.found: deque[Finding] = deque(self.chronicle.findings())
        refuse_stranded_findings(program, self.found)
        settings = self.settings
        self.outputs = Outputs(memory, settings.application_path, durable=settings.durable, home=settings.home)
        self.flights: deque[Flight] = deque()
        self._last_window = memory.window + (self.settings.windows or 0)
        self.dealer = Dealer(self.queue, Pace(float(self.traits.millis)))
        self._beat: datetime | None = None
        self.inputs: dict[str, DriverInput] = {}
        if self._promise is None:
            self._truncate()

    def _begin(self) -> None:
        """What runs on the driver comes to life; what an attempt left that was cut off goes."""
        self.changing.postbox.tidy()
        for name in sorted(self.program.sources):
            ended = name in self.memory.ended
            self.inputs[name] = self._lively(self.program, name, self.chronicle.state_of(name), ended=ended)
        waiting = len(self.queue) + sum(len(finding.emitted) for finding in self.found)
        promised = self._promise is not None
        self.observers.tell(Resumed(self.program.application, self.memory.window, waiting, promised))

    def _lively(self, program: Program, name: str, state: SavedState, *, ended: bool) -> DriverInput:
        """An input operator at work, with the state that it was left in."""
        until, now = self.settings.until, self.clock.now
        context = context_of(program, name, until=until, now=now, window_id=self.memory.window + 1)
        return DriverInput(program, name, state, ended=ended, context=context)

    @property
    def program(self) -> Program:
        """What runs now."""
        return self.changing.shape.program

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
                self._commit(self.flights.popleft())
            case Look():
                self._look()
            case Start(last=last):
                self._start(last=last)
            case Change():
                self._change()
            case Await(until=until):
                self._await(until)
            case Sleep(until=until):
                self.clock.wait(self._woken, min(until, self.changing.postbox.due))
                self._woken.clear()

    def _change(self) -> None:
        """Nothing is in flight: what is wished takes effect with the next window."""
        window_id = self.memory.window + 1
        facts = self.changing.perform(self._take, self.clock.now(), self._refused)
        self.facts += facts
        for fact in facts:
            if isinstance(fact, Scaled):
                self.audience.tell_partitioned(fact.operator)
            self.observers.tell(Reshaped(window_id, fact))

    def _refused(self, wish: Wish) -> None:
        if isinstance(wish, Scaling):
            self.audience.refused(wish)

    def _take(self, shape: Shape) -> None:
        """Go on in another shape. What of this cannot be is raised, and all is as before."""
        program, memory = shape.program, self.memory
        state = moved(program, memory.state)
        held = restored(program, memory.held) if memory.window else first_of_delays(program)
        self._bring_to_life(program)
        self.backend.load(shape.compilation)
        self.state, self.held, self.traits = state, held, Traits.of(program)
        self.audience.follow(shape)

    def _bring_to_life(self, program: Program) -> None:
        """The input operator that was changed, if one was, works as it is now; where it cannot, as before."""
        for name, before in self.inputs.items():
            if program.operators[name][0] is self.program.operators[name][0]:
                continue
            state = before.state
            before.end(self.memory.window + 1)
            try:
                self.inputs[name] = self._lively(program, name, state, ended=before.ended)
            except DagkitError:
                self.inputs[name] = self._lively(self.program, name, state, ended=before.ended)
                raise

    def _look(self) -> None:
        """Let input operators find more; what they found is in the ledger before anybody works on it."""
        now = self.clock.now()
        window_id = self.memory.window + len(self.flights) + 1
        for each in self.inputs.values():
            if each.due(now):
                finding = each.look(window_id, self.traits.millis)
                if finding.emitted:
                    self.found.append(self.chronicle.add(finding, each.state))
                    self.audience.news = True
                    self._tell_of(finding)
                    if self.settings.until is Until.IDLE:  # whoever looked in vain before looks once more after this
                        for other in self.inputs.values():
                            other.in_vain = False

    def _start(self, *, last: bool) -> None:
        """The next window takes off: promised first where it is the oldest."""
        window_id = self.memory.window + len(self.flights) + 1
        if self._promise is not None:
            last = bool(self._promise[0].get("last"))
            (notes, upto), self._promise = self._promise, None
            sent, given = self._given(dict(upto))
            deal, cuts = self.queue.take_these(notes["deal"], self.traits.slots), notes.get("cuts", ())
            split = tuple(Split.model_validate(cut) for cut in cuts)
            share, promised = Round(deal, notes["lasts_millis"], Forecast(), split), True
            self._truncate()
        else:
            upto = {finding.operator: finding.seq for finding in self.found}
            sent, given = self._given(upto)
            self._truncate()
            self.queue.wake(self.clock.now(), self.later.asks_again)
            near = {into: each.cut_near for into, each in self.traits.elements.items()}
            share = self.dealer.next(window_id, self.traits.slots, near, overlaps=self._overlap > 1)
            notes, promised = _notes(share, last=last), False
        asks = not last and not promised and only_asks(sent, given, share.deal)
        if not promised and not self.flights and not asks:
            self.chronicle.promise(upto, notes)
            promised = True
        self._probe(Point.PLANNED, window_id)
        assignment = replace(self._assignment(window_id, sent, share), last=last)
        began, alone, answer = self.clock.now(), not self.flights, self._handed_over(assignment)
        self.flights.append(
            Flight(assignment, dict(upto), given, share, dict(notes), began, alone, answer, promised, asks)
        )
        self.held = []
        blocks = sum(len(hand) for hands in share.deal.values() for hand in hands)
        self.observers.tell(Started(window_id, blocks, share.lasts_millis))
        self._probe(Point.RUNNING, window_id)

    def _given(self, upto: dict[str, int]) -> tuple[list[Sent], list[Waiting]]:
        """The findings up to these are the window's: items for the workers, blocks for the queue."""
        mine = [finding for finding in self.found if finding.seq <= upto.get(finding.operator, -1)]
        self.found = deque(finding for finding in self.found if finding not in mine)
        sent, waiting = delivered(self.program, self.chronicle.writing, self.traits.elements, mine)
        self.queue.add(waiting)
        return sent + self.held, waiting

    def _truncate(self) -> None:
        """An application that drains has in its queue what it still does."""
        if self.settings.until is Until.DRAINED:
            self.queue.replace(self.later.truncated(self.queue.all(), self.traits.elements))

    def _assignment(self, window_id: int, sent: list[Sent], share: Round) -> Assignment:
        work: dict[tuple[int, int], tuple[Waiting, ...]] = {}
        for into, hands in share.deal.items():
            level = self.traits.addresses[into].level
            for slot, hand in enumerate(hands):
                if hand:
                    work[level, slot] = (*work.get((level, slot), ()), *hand)
        assignment = Assignment(
            window_id=window_id,
            arriving=tuple(sent),
            work=work,
            state=state_by_slot(self.program, self.state),
            lasts_millis=share.lasts_millis if self.traits.slots else None,
            began=self.clock.now(),
            committed=self.memory.window,
        )
        return self._restaged(assignment)

    def _commit(self, flight: Flight) -> None:
        """The window counts from here on, or is tried again, or its failure is raised."""
        try:
            answer = flight.answer.result()
        except Exception as error:
            self.chronicle.refuse_overtaken(error)
            if not isinstance(error, OperatorFailed | WindowLost):
                raise
            self._try_again(flight, error)
            return
        self._probe(Point.STAGED, flight.window_id)
        if self._is_nothing(flight, answer):
            self.dealer.over(flight.round, worked_in(answer))
            self._truncate()
            return
        if not flight.promised:
            self.chronicle.promise(flight.upto, flight.notes)
        parts, worked = parts_of(answer), worked_in(answer)
        facts = [*flight.round.cuts, *split_at_the_end(flight.round.deal, worked), *self.facts]
        try:
            memory = self._memory_after(flight, answer, facts)
            self.outputs.check(memory, parts)
        except DagkitError as error:
            self.chronicle.refuse_overtaken(error)
            raise
        ended = self.clock.now()
        self.chronicle.commit(memory, parts)
        self._probe(Point.APPENDED, flight.window_id)
        read = sum(report.positions for report in answer.reports)
        self.memory, self.state = memory, memory.state
        self.facts.clear()
        self.changing.committed(flight.window_id)
        now = self.clock.now()
        took = (now - flight.began).total_seconds() * 1000
        self.audience.committed(flight.window_id, answer, now, took)
        self.dealer.over(flight.round, worked, took if flight.alone else None)
        self._truncate()
        self.outputs.commit(memory)
        self.held = list(answer.delayed)
        self._beat = self.clock.now() + timedelta(milliseconds=self.traits.millis)
        for each in self.inputs.values():
            each.commit(flight.window_id)
        self.outputs.sweep()
        self._tell_of_commit(flight, read, parts)
        self._measure(flight, answer, ended)

    def _is_nothing(self, flight: Flight, answer: Answer) -> bool:
        """Whether a window need not have been: it is not committed, and the next one has its number."""
        return (
            flight.asks
            and not self.flights
            and not self.facts
            and not self.changing.is_made
            and self.traits.counts <= {1}
            and came_to_nothing(flight.round.deal, answer)
            and state_after(self.program, self.state, answer) == self.state
        )

    def _try_again(self, flight: Flight, error: OperatorFailed | WindowLost) -> None:
        """The same window runs again, as often as the failure allows; else the failure is raised."""
        flight.failures += 1
        again = flight.failures <= self._attempts(error)
        failure = error.failure if isinstance(error, OperatorFailed) else None
        operator, told = (
            (None, f"{type(error).__name__}: {error}") if failure is None else (failure.operator, failure.told)
        )
        self.observers.tell(Failed(flight.window_id, operator, told, again))
        if not again:
            raise error
        flight.assignment = self._restaged(flight.assignment)
        flight.answer = self._handed_over(flight.assignment)
        self.flights.appendleft(flight)

    def _attempts(self, error: OperatorFailed | WindowLost) -> int:
        """How often a window is tried again."""
        if isinstance(error, WindowLost):
            return ATTEMPTS_AT_LOST_WINDOWS
        attributes = self.program.attributes[error.failure.operator]
        return attributes.get(OperatorContext.RECOVERY_ATTEMPTS.qualified) or 0

    def _handed_over(self, assignment: Assignment) -> "Future[Answer]":
        answer = self._threads.submit(self.backend.run, assignment)
        answer.add_done_callback(lambda _: self._woken.set())
        return answer

    def _restaged(self, assignment: Assignment) -> Assignment:
        """The same work, whose pieces lie under another attempt's name."""
        return (
            replace(assignment, staging=self.outputs.attempt(assignment.window_id))
            if self.traits.writes
            else assignment
        )

    def _memory_after(self, flight: Flight, answer: Answer, facts: Sequence[Fact]) -> Memory:
        return memory_after(
            self.outputs.gathered(flight.window_id),
            flight.taken,
            answer,
            program=self.program,
            window_id=flight.window_id,
            last=flight.assignment.last,
            queue=[*self.queue.all(), *self.later.aside],
            younger=[other.taken for other in self.flights],
            state=state_after(self.program, self.state, answer),
            ended=[name for name, each in self.inputs.items() if each.ended and self._is_given(name)],
            telling=self.traits.telling,
            coming={target.address for finding in self.found for target in self._led_to(finding)},
            facts=facts,
            partitions=self.changing.shape.partitions,
            altered=self.changing.shape.altered,
            answered=self.changing.requests,
        )

    def _led_to(self, finding: Finding) -> list[Target]:
        """Where what was found goes."""
        return [
            target for emitted in finding.emitted for target in self.program.sources[finding.operator][emitted.port]
        ]

    def _finish(self) -> None:
        window_id, path, durable = self.memory.window, self.settings.application_path, self.settings.durable
        try:
            self.outputs.finish(
                lambda files: self.backend.put_in_place(files, path, durable=durable),
                lambda point: self._probe(point, window_id),
            )
        except DagkitError as error:
            self.chronicle.refuse_overtaken(error)
            raise
        self._probe(Point.FINISHED, window_id)

    def _await(self, until: datetime | None) -> None:
        """Return when the oldest window has ended, or when somebody is due to look for more."""
        if not self.flights[0].answer.done():
            due = self.changing.postbox.due
            until = due if until is None else min(until, due)
            seconds = max(0.0, (until - self.clock.now()).total_seconds())
            self._woken.wait(seconds)
        self._woken.clear()

    # ---- what is told

    def _has_ends(self) -> bool:
        """Whether anybody waits to hear that nothing more comes for now: an operator, or an unfinished file."""
        return self.traits.drains or any(part.block is None for part in self.memory.files)

    def _is_given(self, name: str) -> bool:
        """Whether all that an input found was given to windows."""
        return all(finding.operator != name for finding in self.found)

    def _plenty(self) -> int:
        """How much is enough for the windows that are next: work for the longest, where that can be told.

        It is no more than may wait, with what windows in flight may give back: a source that is faster than its readers
        is not asked before they have caught up.
        """
        slots = self.traits.slots
        enough = 4 * max(1, sum(slots.values()))
        if self.dealer.pace.usual is None or self.dealer.backlog_millis(slots) >= LONGEST_MILLIS:
            return enough
        ahead = sum(len(hand) for flight in self.flights for hands in flight.taken.deal.values() for hand in hands)
        return min(len(self.queue) + 1, max(0, max(enough, self.changing.shape.capacity(slots)) - ahead))

    def _tell_of(self, finding: Finding) -> None:
        waiting = queued(self.program, self.chronicle.writing, self.traits.elements, finding)
        positions = sum(length_of(each) for each in waiting)
        self.observers.tell(Found(finding.operator, len(waiting), positions, len(finding.emitted) - len(waiting)))

    def _tell_of_commit(self, flight: Flight, read: int, parts: Sequence[Part]) -> None:
        self.observers.tell(
            Committed(
                window_id=flight.window_id,
                millis=(self.clock.now() - flight.began).total_seconds() * 1000,
                positions=read,
                files=len(self.outputs.unfinished),
                written=sum(part.length for part in parts),
                waiting=len(self.queue),
                waiting_positions=self.queue.positions,
            )
        )

    def _measure(self, flight: Flight, answer: Answer, ended: datetime) -> None:
        queues = [
            Queue(*self.traits.addresses[into].into, blocks, positions)
            for into, (blocks, positions) in self.queue.lengths().items()
        ]
        measured = self.measuring.after(
            self.program,
            flight.window_id,
            answer.reports,
            found={name: each.figures(flight.window_id) for name, each in self.inputs.items()},
            queues=queues,
            facts=self.memory.facts,
            began=flight.began,
            ended=ended,
            committed=self.clock.now(),
        )
        self.observers.tell(measured)


_DISTANT_PAST = datetime.min.replace(tzinfo=SystemClock().now().tzinfo)


def _notes(share: Round, *, last: bool) -> dict[str, Any]:
    """What a promise keeps of what a window was given, to give it again."""
    cuts = [cut.model_dump(mode="json") for cut in share.cuts]
    return {"deal": places(share.deal), "lasts_millis": share.lasts_millis, "last": last, "cuts": cuts}


def _not_probed(point: Point, window_id: int) -> None:
    """Nobody wants to crash the run."""
