"""The input operators of a run on the driver, and their discoveries that no window has taken yet."""

import logging
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dagkit.api.running import Until
from dagkit.engine.inputs.discoveries import Discovery
from dagkit.engine.inputs.driver_input import DriverInput, context_of, delivered, queued
from dagkit.engine.parts.in_flight import InFlightWindow, Queued
from dagkit.engine.parts.run_part import Action, EndedWindow, Look, RunPart, Saved, Want, Wants
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.program.address import Address
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.compatibility import refuse_stranded_discoveries
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.split import BacklogCount
from dagkit.engine.worker.instances import SavedState
from dagkit.engine.worker.protocol import Figures
from dagkit.errors import DagkitError

_logger = logging.getLogger(__name__)
_DISTANT_PAST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _FoundWork:
    """The work in one discovery."""

    items: list[WorkItem]
    counts: Mapping[Address, BacklogCount]


class DriverInputs(RunPart):
    """All input operators of an application."""

    def __init__(self, run: RunState, queue: WorkQueue) -> None:
        """Read the discoveries from the ledger. Raise `discovery-stranded` if one of them has no receiver."""
        self._run = run
        self._journal = run.journal
        self._queue = queue
        self.found: deque[Discovery] = deque(run.journal.discoveries())
        """Discoveries that no window has taken yet, in order."""
        refuse_stranded_discoveries(run.program, self.found)
        self._work: dict[tuple[str, int], _FoundWork] = {}
        """The cached work of each discovery, by operator and number."""
        self._at_work: dict[str, DriverInput] = {}

    # ---- lifecycle

    def begin(self) -> None:
        """Set up the input operators, each with its state from the ledger."""
        program, checkpoint = self._run.program, self._run.checkpoint
        for name in sorted(program.sources):
            state, ended = self._journal.state_of(name), name in checkpoint.progress.ended
            self._at_work[name] = self._lively(program, name, state, checkpoint.window + 1, ended=ended)

    def change(self, after: Program) -> None:
        """Replace the changed input operator, if any; if the new one cannot be set up, keep the old one."""
        before, window_id = self._run.program, self._run.window + 1
        for name, old in self._at_work.items():
            if after.operators[name][0] is before.operators[name][0]:
                continue
            state = old.state
            try:
                old.end(window_id)
                self._at_work[name] = self._lively(after, name, state, window_id, ended=old.ended)
            except DagkitError:
                # The old instance is torn down, at least in part, so that another one continues with the old plan.
                self._at_work[name] = self._lively(before, name, state, window_id, ended=old.ended)
                raise

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        """Notify the input operators that a window is committed."""
        for driver_input in self._at_work.values():
            driver_input.commit(ended.window_id)

    def end(self) -> None:
        """Tear down the input operators, and record what they know since their last look."""
        for name, driver_input in self._at_work.items():
            driver_input.end(self._run.window + 1)
            self._record_rest(name, driver_input)

    def failed(self, error: BaseException) -> None:
        """Tear down the input operators; what they raise is only logged."""
        for name, driver_input in self._at_work.items():
            driver_input.abandon(self._run.window + 1)
            try:
                self._record_rest(name, driver_input)
            except DagkitError:
                _logger.exception("the state of %s cannot be recorded", name)

    def _record_rest(self, name: str, driver_input: DriverInput) -> None:
        """Record what an input operator learned after its last look, for the next launch."""
        if driver_input.has_unrecorded:
            self._record(driver_input, Discovery(name, ()))

    def _record(self, driver_input: DriverInput, discovery: Discovery) -> None:
        driver_input.recorded = driver_input.state
        self.found.append(self._journal.add(discovery, driver_input.recorded, driver_input.watermark))

    def _lively(self, program: Program, name: str, state: SavedState, window_id: int, *, ended: bool) -> DriverInput:
        """Return a live input operator with its last state."""
        run = self._run
        settings, clock, launch, woken = run.settings, run.clock, run.launch, run.woken
        context = context_of(program, name, until=settings.until, now=clock.now, window_id=window_id)
        context = replace(context, application_path=settings.application_path, launched=launch.began)
        # A look that finds nothing may advance the watermark, and no discovery records that.
        known = self._at_work[name].watermark if name in self._at_work else self._journal.watermark_of(name)
        return DriverInput(
            program,
            name,
            state,
            ended=ended,
            context=context,
            wake=woken.set,
            watermark=known,
            log=launch.log,
        )

    # ---- looking

    def take_news(self) -> None:
        for driver_input in self._at_work.values():
            self._see_ends(driver_input)

    def close(self) -> None:
        self._at_work.clear()  # the loop also takes news while a session is made again

    def wants(self, now: datetime, known: Wants) -> Iterator[tuple[Want, datetime]]:
        """Want windows for discoveries, and the next look.

        A launch that drains looks no more. One that runs once looks until all inputs have looked in vain; one that
        runs until it is idle does not wait for a later look then.
        """
        awake, settings = self._awake, self._run.settings
        until = settings.until
        free = [each for each in awake if not each.is_busy]
        if len(free) < len(awake):
            yield Want.BUSY, now
        if self.found:
            yield Want.WINDOW, now
            yield Want.ENOUGH, now  # a window takes them first
        looked_in_vain = all(each.in_vain for each in awake)
        if not free or until is Until.DRAINED or (until is Until.ONCE and looked_in_vain):
            return
        yield Want.LOOK, min(each.next_look or _DISTANT_PAST for each in free)
        if until is Until.STOPPED or not looked_in_vain:
            yield Want.MORE, now

    @property
    def is_busy(self) -> bool:
        """Whether work of an input operator runs in the background."""
        return any(driver_input.is_busy for driver_input in self._awake)

    @property
    def waits_for(self) -> Iterator[tuple[str, str]]:
        """The input operators whose input is there and not sent yet, each with the reason."""
        return ((name, one.operator.waits_for) for name, one in self._at_work.items() if one.operator.waits_for)

    def perform(self, action: Action) -> None:
        """Let the inputs that are due look; the ledger records each discovery before observers see it."""
        if not isinstance(action, Look):
            return
        run = self._run
        for discovery in self._look(run.next_window, run.summary.millis):
            unsent = self._at_work[discovery.operator].operator.unsent
            run.publisher.found(discovery, self.work_in(discovery), unsent)

    def _look(self, window_id: int, spin_millis: int) -> Iterator[Discovery]:
        now, settings = self._run.now(), self._run.settings
        for driver_input in self._at_work.values():
            if not driver_input.due(now):
                continue
            discovery = driver_input.look(window_id, spin_millis)
            self._see_ends(driver_input)
            if not (discovery.emitted or driver_input.has_unrecorded):
                self._run.publisher.unsent(driver_input.name, driver_input.operator.unsent)
                continue
            self._record(driver_input, discovery)
            yield self.found[-1]
            if settings.until is Until.IDLE:  # inputs that found nothing before look once more after this
                for other in self._at_work.values():
                    other.in_vain = False

    def _see_ends(self, driver_input: DriverInput) -> None:
        """Note how far sources without an end reach. After a look, before the work in them is queued."""
        seen = driver_input.operator.seen_ends
        if not seen:
            return
        name, run = driver_input.name, self._run
        ends = {run.journal.writing.source(name, source): end for source, end in seen.items()}
        found = (count for counts in self.backlog_counts() for count in counts.values())
        untaken = [item for count in found for item in count.endless.values()]
        grown = self._queue.see(ends, [*run.in_flight.allocated, *untaken])
        if grown:
            run.publisher.grown(name, grown)

    def forget_file(self, name: str, path: str, request: str) -> str:
        """Let an input operator forget a file, and record its state; return why this is impossible, or ""."""
        driver_input = self._at_work[name]
        before = driver_input.state
        reason = driver_input.forget(path, request, self._run.next_window)
        if driver_input.state != before:  # it had performed the request before a crash
            self._record(driver_input, Discovery(name, ()))
        return reason

    @property
    def _awake(self) -> list[DriverInput]:
        return [driver_input for driver_input in self._at_work.values() if not driver_input.ended]

    # ---- discoveries

    def discovered(self, window: InFlightWindow) -> list[Discovery]:
        """The discoveries that a window takes: those that were promised, or all."""
        if not window.is_promised:
            return list(self.found)
        return [discovery for discovery in self.found if discovery.seq <= window.upto.get(discovery.operator, -1)]

    def before(self, window: InFlightWindow) -> None:
        """Give the window discoveries: items for the workers, and work for the queue."""
        mine = self.discovered(window)
        if not window.is_promised:
            window.upto = {discovery.operator: discovery.seq for discovery in mine}
        self.found = deque(discovery for discovery in self.found if discovery not in mine)
        waiting = self.work_in(*sorted(mine, key=lambda discovery: discovery.operator))
        for discovery in mine:
            # A look may find a million items: they are held no longer than until a window takes them.
            del self._work[discovery.operator, discovery.seq]
        window.task = replace(window.task, arriving=tuple(delivered(self._run.program, mine)))
        window.queued = Queued(waiting, self._queue.ends())
        self._queue.add(waiting)

    def work_in(self, *discoveries: Discovery) -> list[WorkItem]:
        """The work in these discoveries. Elements are split and encoded once, on the first call."""
        return [item for discovery in discoveries for item in self._work_of(discovery).items]

    def backlog_counts(self) -> list[Mapping[Address, BacklogCount]]:
        """The backlog of each discovery that no window has taken, by input; each is counted once."""
        return [self._work_of(discovery).counts for discovery in self.found]

    def _work_of(self, discovery: Discovery) -> "_FoundWork":
        key = discovery.operator, discovery.seq
        if key not in self._work:
            run = self._run
            found = queued(run.program, run.journal.writing, run.summary.elements, discovery)
            ends = self._queue.seen_ends
            items = [item.seeing(ends[item.source]) if item.source in ends else item for item in found]
            self._work[key] = _FoundWork(items, BacklogCount.by_input(items, run.now()))
        return self._work[key]

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        return {"ended": tuple(sorted(self.exhausted))}

    @property
    def behind(self) -> set[str]:
        """The input operators that found input which they have not sent, or which no window has taken yet."""
        unsent = {name for name, driver_input in self._at_work.items() if driver_input.has_unsent}
        return unsent | {discovery.operator for discovery in self.found}

    @property
    def watermarks(self) -> dict[str, datetime | None]:
        """The watermarks that input operators estimated after their last looks."""
        return {
            name: driver_input.watermark
            for name, driver_input in self._at_work.items()
            if driver_input.operator.estimates_watermark
        }

    @property
    def exhausted(self) -> list[str]:
        """The input operators that have ended and whose discoveries are all taken."""
        left = {discovery.operator for discovery in self.found}
        return [name for name, driver_input in self._at_work.items() if driver_input.ended and name not in left]

    def figures(self, window_id: int) -> dict[str, Figures]:
        """The figures of each input operator for a committed window."""
        return {name: driver_input.figures(window_id) for name, driver_input in self._at_work.items()}
