"""Compute the next checkpoint from the previous one, the outcome of a window and what remains after it. Pure."""

from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from math import inf
from typing import Any

from dagkit.engine.address import Address, operator_of_state
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.delays import kept
from dagkit.engine.checkpoint.outcome import ChangesInForce, InputStatus, RemainingWork, State, WindowOutcome
from dagkit.engine.checkpoint.work_records import work_recorded
from dagkit.engine.event_time.event_times import EventTimes, Progress
from dagkit.engine.files.staging import NAMED_BY_BLOCK, FileShared, Part, by_file, element_text
from dagkit.engine.program.program import Program, Target
from dagkit.engine.work.item import ItemKey, WorkItem
from dagkit.engine.work.split import Allocation, SlotResult, all_in
from dagkit.engine.work.waiting import LaneView, Stretch, Waiting
from dagkit.engine.worker.protocol import Answer, SlotState
from dagkit.errors import RunFailure, Scene, printable


def next_checkpoint(
    before: Checkpoint,
    outcome: WindowOutcome,
    remaining: RemainingWork,
    inputs: InputStatus,
    changes: ChangesInForce,
) -> dict[str, Any]:
    """Return the fields of the checkpoint of a window that no part of the run computes."""
    waiting = waiting_after(outcome, remaining)
    decided = outcome.decided
    worked_on = elements_of([*all_in(outcome.consumed.allocation), *decided.ended])
    parts = outcome.answer.parts
    written = elements_of([*before.files, *parts])
    open_elements = waiting.elements_among(worked_on | written)
    refuse_late(before, worked_on, parts)
    refuse_shared(before.files, parts, outcome.program.operators)
    whole, still_open = settled([*before.files, *parts], open_elements, last=outcome.last)
    return {
        "work": work_recorded(outcome.consumed.given, outcome.answer.reports, waiting, decided, before.work),
        "queue": waiting,
        "search": outcome.search,
        "aside": decided.all_aside,
        "state": outcome.state,
        "held": tuple(kept(outcome.program, sent) for sent in outcome.answer.delayed),
        "files": tuple(still_open),
        "finished": tuple(whole),
        "read": with_numbers(before.read, worked_on - open_elements - (elements_of(decided.aside) - written)),
        "event_times": event_times_after(before, outcome, waiting, inputs),
        "drained": outcome.last,
        "ended": tuple(sorted(inputs.ended)),
        "facts": tuple(outcome.facts),
        "partitions": changes.partitions,
        "altered": changes.altered,
        "answered": changes.answered,
    }


def event_times_after(before: Checkpoint, outcome: WindowOutcome, waiting: Waiting, inputs: InputStatus) -> EventTimes:
    """Return the watermarks after a window; none if no operator estimates one."""
    if outcome.flow is None:
        return EventTimes()
    progress = Progress(
        window_id=outcome.window_id,
        now=outcome.ended,
        waiting=waiting.decisive,
        reports=outcome.answer.reports,
        behind=inputs.behind,
        ended=inputs.ended,
        sources=inputs.watermarks,
        has_delayed_items=bool(outcome.answer.delayed),
    )
    return outcome.flow.after(before.event_times, progress)


def waiting_after(outcome: WindowOutcome, remaining: RemainingWork) -> Waiting:
    """Return the work that waits after a window, without the work that only younger windows discovered."""
    unknown: dict[ItemKey, list[WorkItem]] = {}
    for item in remaining.discovered_later:
        unknown.setdefault(item.key, []).append(item)

    def known(items: Iterable[WorkItem]) -> tuple[WorkItem, ...]:
        return tuple(item for item in items if not _lies_in(item, unknown.get(item.key, ())))

    parts: dict[str, Stretch] = {"window": known(chain(outcome.answer.left, remaining.in_flight))}
    for name, part in remaining.queue.parts.items():
        if not isinstance(part, LaneView) or not unknown:
            parts[name] = part if isinstance(part, LaneView) else known(part)
            continue
        place = remaining.younger[0].queued.get(name, part.start)
        parts[name] = part.until(place)
        parts[f"{name} later"] = known(part.since(place))
    return Waiting(parts)


class PieceLate(RunFailure):
    """A file was complete with its element, and more was written to it in a later window."""

    code = "piece-late"

    def __init__(self, part: Part) -> None:
        super().__init__(
            f"{part.operator} wrote to {printable(part.file)} in window {part.window}, and element {part.element_id}, "
            f"with which the file is complete, was read to its end before: an operator before {part.operator} holds "
            "items from window to window",
            "write them to files that belong to no element",
            Scene(part.operator, part.window),
        )


def refuse_late(before: Checkpoint, worked_on: AbstractSet[int], parts: Iterable[Part]) -> None:
    """Raise if a piece belongs to a file that may be in place already: it would replace the earlier pieces."""
    read = [part for part in parts if part.element_id is not None and is_among(part.element_id, before.read)]
    still = worked_on | before.queue.elements_among(elements_of(read))
    for part in read:
        if part.element_id not in still:
            raise PieceLate(part)


def refuse_shared(before: Iterable[Part], parts: Sequence[Part], operators: Container[str]) -> None:
    """Raise unless every written file belongs to one operator, and to one block or none."""
    written = {part.file for part in parts}
    for file, pieces in by_file(part for part in [*before, *parts] if part.file in written).items():
        writers = sorted({piece.operator for piece in pieces if piece.operator in operators})
        if len(writers) > 1:
            raise FileShared(file, f"by {writers[0]} and {writers[1]}", "give each of them a file_path of its own")
        blocks = sorted({element_text(piece.element_id) for piece in pieces if piece.part})
        if len(blocks) > 1:
            raise FileShared(file, f"by {pieces[0].operator} for {blocks[0]} and {blocks[1]}", NAMED_BY_BLOCK)


def with_numbers(stretches: Sequence[tuple[int, int]], more: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Return numbers as sorted half-open ranges; no two touch."""
    found: list[tuple[int, int]] = []
    for start, end in sorted([*stretches, *((number, number + 1) for number in more)]):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return tuple(found)


def is_among(number: int, stretches: Sequence[tuple[int, int]]) -> bool:
    """Whether a number lies in one of the ranges."""
    place = bisect_right(stretches, (number, inf)) - 1
    return place >= 0 and number < stretches[place][1]


def _lies_in(item: WorkItem, given: Iterable[WorkItem]) -> bool:
    """Whether an item is one of these, or a part of one."""
    return any(other.start <= item.start and item.end <= other.end for other in given)


def worked_in(answer: Answer) -> list[SlotResult]:
    """The result of each slot in a window."""
    return [
        SlotResult(report.level, report.slot, report.work, report.busy_millis, report.left, report.is_linked)
        for report in answer.reports
    ]


def elements_of(work: Iterable[WorkItem | Part]) -> set[int]:
    """The numbers of the elements that work, or pieces of files, belong to."""
    return {item.element_id for item in work if item.element_id is not None}


def settled(parts: Sequence[Part], open_elements: set[int], *, last: bool = False) -> tuple[list[Part], list[Part]]:
    """Return the pieces of complete files, and the pieces of incomplete files.

    The last window, after which no more input is expected for now, completes every file that belongs to no block.
    """

    def is_whole(pieces: Sequence[Part]) -> bool:
        if any(piece.finished for piece in pieces):
            return True
        blocks = {piece.element_id for piece in pieces if piece.element_id is not None}
        return not blocks & open_elements if blocks else last

    whole = {file for file, pieces in by_file(parts).items() if is_whole(pieces)}
    return [p for p in parts if p.file in whole], [p for p in parts if p.file not in whole]


def state_after(program: Program, before: State, answer: Answer) -> State:
    """Return the state after a window; operators that reported none keep theirs."""
    by_operator: dict[str, dict[int, Any]] = {}
    for report in answer.reports:
        for name, saved in report.state.items():
            by_operator.setdefault(name, {})[report.slot] = saved
    after = dict(before)
    for name, by_slot in by_operator.items():
        count = len(program.operators[operator_of_state(name)])
        after[name] = tuple(by_slot.get(slot, {}) for slot in range(count))
    return after


def state_by_slot(program: Program, state: State) -> dict[tuple[int, int], SlotState]:
    """The state of the operators in each slot, by level and slot."""
    by_slot: dict[tuple[int, int], dict[str, Any]] = {}
    for name, states in state.items():
        level = program.stage_of[operator_of_state(name)].level
        for slot, saved in enumerate(states):
            if saved:
                by_slot.setdefault((level, slot), {})[name] = saved
    return dict(by_slot)


def work_by_slot(
    allocation: Allocation, addresses: Mapping[Address, Target]
) -> dict[tuple[int, int], tuple[WorkItem, ...]]:
    """The allocated work by level and slot."""
    work: dict[tuple[int, int], tuple[WorkItem, ...]] = {}
    for into, slot_work in allocation.items():
        level = addresses[into].level
        for slot, slot_items in enumerate(slot_work):
            if slot_items:
                work[level, slot] = (*work.get((level, slot), ()), *slot_items)
    return work
