"""The work of an application that is not done: found, pending, set aside or given up; from a ledger."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Decided
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.history import application_chain, newest_checkpoint, own_windows
from dagkit.engine.record.run_events import NOTHING_ASIDE, SetAside
from dagkit.engine.work.item import WorkItem
from dagkit.ledger import Ledger, Span
from dagkit.ledger.audit.completeness import blocks_of, lists_work

WorkState = Literal["found", "pending", "suspect", "set aside", "given up", "skipped"]


@dataclass(frozen=True, slots=True)
class ListedWork:
    """A range of an element that was not processed."""

    state: WorkState
    operator: str
    """The operator that is to process it; of work that no window has taken yet, the operator that found it."""
    place: Span
    window: int | None = None
    """The window that set it aside, or with which it was given up."""
    reason: str = ""
    by: str | None = None
    """The user who gave it up."""

    def as_json(self) -> dict[str, Any]:
        """The work as JSON."""
        return {
            "state": self.state,
            "operator": self.operator,
            "place": str(self.place),
            "source": self.place.source,
            "start": self.place.start,
            "end": self.place.end,
            "is_shares": bool(self.place.shares),
            "window": self.window,
            "reason": self.reason,
            "by": self.by,
        }


def listed_work(ledger: Ledger) -> Iterator[ListedWork]:
    """Yield all work that was not processed: first what waits, then what was set aside, then what never will be."""
    yield from work_left(ledger)
    for window in own_windows(ledger, b'"skipped"', b'"given-up"'):
        yield from lost_in(window.checkpoint)


def work_left(ledger: Ledger) -> Iterator[ListedWork]:
    """Yield what waits, then what was set aside. Only the last window is read, and what none has taken yet.

    What each launch repeats, as a scan of a pattern, does not wait between two launches.
    """
    last = newest_checkpoint(ledger)
    suspects = last.suspects
    for item in last.queue:
        if item.is_for_next_launch:
            continue
        is_suspect = suspects.search is not None and suspects.search.touches(item)
        yield ListedWork("suspect" if is_suspect else "pending", item.into.operator, _place_of(item))
    yield from untaken(ledger)
    for each in suspects.aside:
        item = each.item
        yield ListedWork("set aside", item.into.operator, _place_of(item), each.window, each.reason)


def aside_in(checkpoint: Checkpoint) -> SetAside:
    """Return how much work is set aside after a window, and the last of it with the reason."""
    aside = checkpoint.suspects.aside
    if not aside:
        return NOTHING_ASIDE
    last = aside[-1]
    # The reason why a file cannot be read names it.
    is_named = last.item.name in last.reason
    return SetAside(len(aside), last.reason if is_named else f"{_place_of(last.item)}: {last.reason}")


def lost_in(checkpoint: Checkpoint) -> Iterator[ListedWork]:
    """Yield the work that a window ended without reading it: what was given up, and what was not there any more."""
    for part in checkpoint.work.inputs or ():
        for span in part.skipped or ():
            yield ListedWork("skipped", Address(part.input).operator, span, checkpoint.window)
    for fact in checkpoint.facts:
        if isinstance(fact, Decided) and fact.decision == "given-up":
            yield ListedWork("given up", fact.operator, _place(fact), checkpoint.window, fact.reason, fact.by)


def untaken(ledger: Ledger) -> Iterator[ListedWork]:
    """The blocks that input operators found, and that no window has taken yet."""
    application = application_chain(ledger)
    if application is None:
        return
    for dataset_id, finder in ledger.inputs_of(application).items():
        root, standing = ledger.chain(finder), application.standing
        consumed = standing.consumed.get(dataset_id)
        if lists_work(root):
            first = 0 if consumed is None or consumed.seq is None else consumed.seq + 1
            for record in root.records(first):
                yield from (ListedWork("found", finder, block.span) for block in blocks_of(root, record))


def _place_of(item: WorkItem) -> Span:
    end = item.end if item.has_end else None
    return Span(source=item.name, start=item.start, end=end, shares=item.is_shares or None)


def _place(fact: Decided) -> Span:
    return Span(source=fact.source, start=fact.start, end=fact.end, shares=fact.is_shares or None)
