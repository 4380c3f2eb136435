"""Sets work aside when a window is committed: records that were searched for, and sources that cannot be read.

An operator that cannot read an element, and sets such elements aside, fails its window. The window is processed again
without the source of the element, so nothing is committed of what the failed attempt had read of it.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dagkit.engine.parts.in_flight import InFlightWindow
from dagkit.engine.parts.pending import PendingWork
from dagkit.engine.parts.reconfiguring import Reconfiguration
from dagkit.engine.parts.run_part import EndedWindow, RunPart, Saved
from dagkit.engine.parts.run_state import RunState
from dagkit.engine.program.address import SourceKey
from dagkit.engine.program.failures import OperatorFailed, Spot, WindowLost, spot_of
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.work.aside import DecidedWork, WorkAside, decided_of
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.protocol import Answer, Leaving

MOST_ASIDE = 1000
"""How much work may be set aside at a time: each checkpoint lists it."""

_logger = logging.getLogger(__name__)


class Aside(RunPart):
    """The work that is set aside, and the decisions on work since the last commit."""

    def __init__(self, run: RunState, queue: PendingWork, changes: Reconfiguration) -> None:
        self._run = run
        self._queue = queue
        self._changes = changes
        last = run.checkpoint
        self.decided = DecidedWork(all_aside=last.suspects.aside)

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        return {"aside": self.decided.all_aside}

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        self.decided = DecidedWork(all_aside=checkpoint.suspects.aside)

    @property
    def is_full(self) -> bool:
        return len(self.decided.all_aside) >= MOST_ASIDE

    def retry(self, aside: Sequence[WorkAside]) -> None:
        """Put work back into the queue."""
        self.decided = self.decided.retrying(aside)
        queue = self._queue.queue
        queue.add(each.item for each in aside)

    def give_up(self, pending: Sequence[WorkItem], aside: Sequence[WorkAside]) -> None:
        """Give up pending work, which left the queue, and work that was set aside."""
        self.decided = self.decided.giving_up(pending, aside)

    def leaves_unreadable(self, window: InFlightWindow, error: OperatorFailed | WindowLost) -> bool:
        """Whether the next attempt at a window leaves the source at which it failed, which is then set aside."""
        source = error.failure.aside if isinstance(error, OperatorFailed) else None
        unreadable = window.attempts.unreadable
        if source is None or source in unreadable or window.leaves is Leaving.ALL:
            return False
        if len(self.decided.all_aside) + len(unreadable) >= MOST_ASIDE:
            return False
        assert isinstance(error, OperatorFailed), "only its failure names a source"
        unreadable[source] = error.failure.message
        return True

    def set_unreadable_aside(self, window: InFlightWindow, answer: Answer) -> Answer:
        """Set aside the sources that a window left, and return its answer without their work.

        Of such a source, the work that waits for later windows is set aside, too. While other windows are in flight, it
        remains in the queue, from whose places their work is counted, and fails there.
        """
        left: dict[SourceKey, list[WorkItem]] = {source: [] for source in window.attempts.unreadable}
        for item in answer.left:
            if item.source is not None and (item.into, item.source) in left:
                left[item.into, item.source].append(item)
        if not self._run.in_flight:

            def unreadable(item: WorkItem) -> WorkItem | None:
                return item if item.has_end and (item.into, item.source) in window.attempts.unreadable else None

            for item in self._queue.removed(unreadable):
                assert item.source is not None, "it was found by its source"
                left[item.into, item.source].append(item)
        for source, work in left.items():
            answer = self.set_aside(window.window_id, work, window.attempts.unreadable[source], answer)
        return answer

    def set_aside(self, window_id: int, work: Sequence[WorkItem], reason: str, answer: Answer) -> Answer:
        """Record that a window sets work aside, and return its answer without this work."""
        now = self._run.now()
        self.decided = self.decided.setting_aside(work, reason, window_id, now)
        self._changes.record(*(decided_of(item, "set-aside", reason, now) for item in work))
        for item in work:
            _logger.warning(
                "%s: %s is set aside: %s; `dagkit work retry` puts it back",
                item.into.operator,
                self.spot(item).place,
                reason,
            )
        return _without(answer, work)

    def spot(self, item: WorkItem) -> Spot:
        """Return the position of an item, in words and as the ledger knows it."""
        summary = self._run.summary
        elements = summary.elements[item.into]
        offset = None if item.is_shares else item.start
        return replace(spot_of(elements.back(item), offset), source=item.name, position=offset)


def _without(answer: Answer, work: Iterable[WorkItem]) -> Answer:
    ends = {item.end_key for item in work}
    reports = (report.leaving([item for item in report.left if item.end_key not in ends]) for report in answer.reports)
    return replace(answer, reports=tuple(reports))
