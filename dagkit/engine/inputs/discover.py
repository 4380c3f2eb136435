"""Finders: the input operators of a run at work on the driver, and what they found that no window was given yet."""

from collections import deque
from collections.abc import Container, Iterator, Mapping
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
from dagkit.engine.worker.instances import SavedState
from dagkit.engine.worker.outbox import Sent
from dagkit.engine.worker.protocol import Figures
from dagkit.errors import DagkitError

_DISTANT_PAST = datetime.min.replace(tzinfo=UTC)


class DriverInputs:
    """All input operators of an application."""

    def __init__(self, journal: Journal, until: Until, clock: Timer) -> None:
        self.found: deque[Discovery] = deque(journal.findings())
        """What no window was given yet, in the order in which it was found."""
        self._work: dict[tuple[str, int], list[WorkItem]] = {}
        """The work in each of these findings, by operator and number, once it was asked for."""
        self._chronicle = journal
        self._until = until
        self._clock = clock
        self._at_work: dict[str, DriverInput] = {}

    # ---- their lives

    def begin(self, program: Program, window_id: int, ended: Container[str]) -> None:
        """They come to life, each with the state that the ledger keeps of it."""
        for name in sorted(program.sources):
            state = self._chronicle.state_of(name)
            self._at_work[name] = self._lively(program, name, state, window_id, ended=name in ended)

    def change(self, before: Program, after: Program, window_id: int) -> None:
        """The one that was changed, if one was, works as it is now; where it cannot, as before."""
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
        """They are told that a window can never come back."""
        for each in self._at_work.values():
            each.commit(window_id)

    def end(self, window_id: int) -> None:
        """They work no more."""
        for each in self._at_work.values():
            each.end(window_id)

    def tear_down(self, window_id: int) -> None:
        """They work no more, whatever they raise: the run has failed."""
        for each in self._at_work.values():
            each.abandon(window_id)

    def _lively(self, program: Program, name: str, state: SavedState, window_id: int, *, ended: bool) -> DriverInput:
        """An input operator at work, with the state that it was left in."""
        context = context_of(program, name, until=self._until, now=self._clock.now, window_id=window_id)
        return DriverInput(program, name, state, ended=ended, context=context)

    # ---- looking

    @property
    def next_look(self) -> datetime | None:
        """When one of them wants to look again; None: all have ended."""
        return min((each.next_look or _DISTANT_PAST for each in self._awake), default=None)

    @property
    def looked_in_vain(self) -> bool:
        """Whether all that have not ended have looked since there was work, and found nothing."""
        return all(each.in_vain for each in self._awake)

    def look(self, window_id: int, spin_millis: int) -> Iterator[Discovery]:
        """Let those find more who are due; what they found is in the ledger before anybody hears of it."""
        now = self._clock.now()
        for each in self._at_work.values():
            if not each.due(now):
                continue
            finding = each.look(window_id, spin_millis)
            if not finding.emitted:
                continue
            self.found.append(self._chronicle.add(finding, each.state))
            yield finding
            if self._until is Until.IDLE:  # whoever looked in vain before looks once more after this
                for other in self._at_work.values():
                    other.in_vain = False

    @property
    def _awake(self) -> list[DriverInput]:
        return [each for each in self._at_work.values() if not each.ended]

    # ---- what they found

    @property
    def upto(self) -> dict[str, int]:
        """The last finding of each who found something that no window was given."""
        return {finding.operator: finding.seq for finding in self.found}

    def given(
        self, program: Program, elements: Mapping[Address, Elements], upto: Mapping[str, int]
    ) -> tuple[list[Sent], list[WorkItem]]:
        """The findings up to these are a window's: items for the workers, and work for the queue."""
        mine = [finding for finding in self.found if finding.seq <= upto.get(finding.operator, -1)]
        self.found = deque(finding for finding in self.found if finding not in mine)
        waiting = self.work_in(program, elements, *sorted(mine, key=lambda finding: finding.operator))
        for finding in mine:
            del self._work[finding.operator, finding.seq]
        return delivered(program, mine), waiting

    def work_in(self, program: Program, elements: Mapping[Address, Elements], *findings: Discovery) -> list[WorkItem]:
        """What of these findings will join the queue. Elements are divided and written once, when they are found."""
        return [each for finding in findings for each in self._work_of(program, elements, finding)]

    def _work_of(self, program: Program, elements: Mapping[Address, Elements], finding: Discovery) -> list[WorkItem]:
        key = finding.operator, finding.seq
        if key not in self._work:
            self._work[key] = queued(program, self._chronicle.writing, elements, finding)
        return self._work[key]

    def coming(self, program: Program) -> set[str]:
        """The inputs that something goes to which no window was given yet."""
        return {
            target.address
            for finding in self.found
            for emitted in finding.emitted
            for target in program.sources[finding.operator][emitted.port]
        }

    @property
    def exhausted(self) -> list[str]:
        """Those who have ended, and all that they found was given to windows."""
        left = {finding.operator for finding in self.found}
        return [name for name, each in self._at_work.items() if each.ended and name not in left]

    def figures(self, window_id: int) -> dict[str, Figures]:
        """What each did for a window that is committed."""
        return {name: each.figures(window_id) for name, each in self._at_work.items()}
