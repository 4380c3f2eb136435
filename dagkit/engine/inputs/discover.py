"""The input operators of a run on the driver, and their discoveries that no window has taken yet."""

import logging
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from dagkit.api.running import Until
from dagkit.clock import Timer
from dagkit.engine.address import Address
from dagkit.engine.checkpoint.discoveries import Discovery
from dagkit.engine.checkpoint.journal import Journal
from dagkit.engine.inputs.driver_input import DriverInput, context_of, delivered, queued
from dagkit.engine.program.program import Program
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.split import BacklogCount
from dagkit.engine.worker.instances import SavedState
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import Figures
from dagkit.errors import DagkitError

_logger = logging.getLogger(__name__)
_DISTANT_PAST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _FoundWork:
    """The work in one discovery."""

    items: list[WorkItem]
    counts: Mapping[Address, BacklogCount]


class DriverInputs:
    """All input operators of an application."""

    def __init__(
        self,
        journal: Journal,
        until: Until,
        clock: Timer,
        wake: Callable[[], None],
        *,
        application_path: str = "",
        launched: datetime | None = None,
    ) -> None:
        self.found: deque[Discovery] = deque(journal.discoveries())
        """Discoveries that no window has taken yet, in order."""
        self._work: dict[tuple[str, int], _FoundWork] = {}
        """The cached work of each discovery, by operator and number."""
        self._journal = journal
        self._until = until
        self._clock = clock
        self._application_path = application_path
        self._launched = launched
        self._wake = wake
        """Called on another thread when work in the background has ended."""
        self._at_work: dict[str, DriverInput] = {}

    # ---- lifecycle

    def begin(self, program: Program, window_id: int, ended: Container[str]) -> None:
        """Set up the input operators, each with its state from the ledger."""
        for name in sorted(program.sources):
            state = self._journal.state_of(name)
            self._at_work[name] = self._lively(program, name, state, window_id, ended=name in ended)

    def change(self, before: Program, after: Program, window_id: int) -> None:
        """Replace the changed input operator, if any; if the new one cannot be set up, keep the old one."""
        for name, old in self._at_work.items():
            if after.operators[name][0] is before.operators[name][0]:
                continue
            state = old.state
            try:
                old.end(window_id)
                self._at_work[name] = self._lively(after, name, state, window_id, ended=old.ended)
            except DagkitError:
                self._at_work[name] = self._lively(before, name, state, window_id, ended=old.ended)
                raise

    def commit(self, window_id: int) -> None:
        """Notify the input operators that a window is committed."""
        for driver_input in self._at_work.values():
            driver_input.commit(window_id)

    def end(self, window_id: int) -> None:
        """Tear down the input operators, and record what they know since their last look."""
        for name, driver_input in self._at_work.items():
            driver_input.end(window_id)
            self._record_rest(name, driver_input)

    def tear_down(self, window_id: int) -> None:
        """Tear down the input operators after the run has failed; what they raise is only logged."""
        for name, driver_input in self._at_work.items():
            driver_input.abandon(window_id)
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
        context = context_of(program, name, until=self._until, now=self._clock.now, window_id=window_id)
        context = replace(context, application_path=self._application_path, launched=self._launched)
        known = self._at_work[name].watermark if name in self._at_work else self._journal.watermark_of(name)
        return DriverInput(program, name, state, ended=ended, context=context, wake=self._wake, watermark=known)

    # ---- looking

    @property
    def next_look(self) -> datetime | None:
        """When an input operator wants to look again; None: all have ended or are busy."""
        free = (driver_input for driver_input in self._awake if not driver_input.is_busy)
        return min((driver_input.next_look or _DISTANT_PAST for driver_input in free), default=None)

    @property
    def busy(self) -> bool:
        """Whether work of an input operator runs in the background."""
        return any(driver_input.is_busy for driver_input in self._awake)

    @property
    def looked_in_vain(self) -> bool:
        """Whether all inputs that have not ended have looked since the last work, and found nothing."""
        return all(driver_input.in_vain for driver_input in self._awake)

    @property
    def waits_for(self) -> Iterator[tuple[str, str]]:
        """The input operators whose input is there and not sent yet, each with the reason."""
        return ((name, one.operator.waits_for) for name, one in self._at_work.items() if one.operator.waits_for)

    def look(self, window_id: int, spin_millis: int) -> Iterator[Discovery]:
        """Let the inputs that are due look; the ledger records each discovery before it is returned."""
        now = self._clock.now()
        for driver_input in self._at_work.values():
            if not driver_input.due(now):
                continue
            discovery = driver_input.look(window_id, spin_millis)
            if not (discovery.emitted or driver_input.has_unrecorded):
                continue
            self._record(driver_input, discovery)
            yield self.found[-1]
            if self._until is Until.IDLE:  # inputs that found nothing before look once more after this
                for other in self._at_work.values():
                    other.in_vain = False

    def forget(self, name: str, path: str, request: str, window_id: int) -> str:
        """Let an input operator forget a file, and record its state; return why this is impossible, or ""."""
        driver_input = self._at_work[name]
        before = driver_input.state
        reason = driver_input.forget(path, request, window_id)
        if driver_input.state != before:  # it had performed the request before a crash
            self._record(driver_input, Discovery(name, ()))
        return reason

    @property
    def _awake(self) -> list[DriverInput]:
        return [driver_input for driver_input in self._at_work.values() if not driver_input.ended]

    # ---- discoveries

    @property
    def upto(self) -> dict[str, int]:
        """The number of the last discovery that no window has taken, by input operator."""
        return {discovery.operator: discovery.seq for discovery in self.found}

    def upto_these(self, upto: Mapping[str, int]) -> list[Discovery]:
        """The discoveries up to these that no window has taken."""
        return [discovery for discovery in self.found if discovery.seq <= upto.get(discovery.operator, -1)]

    def given(
        self, program: Program, elements: Mapping[Address, Elements], upto: Mapping[str, int]
    ) -> tuple[list[Sent], list[WorkItem]]:
        """Give a window the discoveries up to these: items for the workers, and work for the queue."""
        mine = self.upto_these(upto)
        self.found = deque(discovery for discovery in self.found if discovery not in mine)
        waiting = self.work_in(program, elements, *sorted(mine, key=lambda discovery: discovery.operator))
        for discovery in mine:
            del self._work[discovery.operator, discovery.seq]
        return delivered(program, mine), waiting

    def work_in(
        self, program: Program, elements: Mapping[Address, Elements], *discoveries: Discovery
    ) -> list[WorkItem]:
        """The work in these discoveries. Elements are split and encoded once, on the first call."""
        return [item for discovery in discoveries for item in self._work_of(program, elements, discovery).items]

    def backlog_counts(
        self, program: Program, elements: Mapping[Address, Elements]
    ) -> list[Mapping[Address, BacklogCount]]:
        """The backlog of each discovery that no window has taken, by input; each is counted once."""
        return [self._work_of(program, elements, discovery).counts for discovery in self.found]

    def _work_of(self, program: Program, elements: Mapping[Address, Elements], discovery: Discovery) -> "_FoundWork":
        key = discovery.operator, discovery.seq
        if key not in self._work:
            items = queued(program, self._journal.writing, elements, discovery)
            self._work[key] = _FoundWork(items, BacklogCount.by_input(items, self._clock.now()))
        return self._work[key]

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
