"""A window's work by slot, its handovers, and its record for the ledger, from the reports of its slots. Pure."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Split
from dagkit.engine.program.failures import WindowLost
from dagkit.engine.program.program import Target
from dagkit.engine.work.aside import NOTHING_DECIDED, DecidedWork
from dagkit.engine.work.handover import Handover
from dagkit.engine.work.item import ItemKey, WorkItem
from dagkit.engine.work.record import LISTED, Extent
from dagkit.engine.work.schedule import WindowSchedule
from dagkit.engine.work.split import HANDED, Allocation, SlotWork, split_of
from dagkit.engine.work.waiting import Waiting
from dagkit.engine.worker.protocol import Answer, Report
from dagkit.ledger import Span, Work
from dagkit.ledger.format.recorded_work import Folded, InputWork, WaitingSum
from dagkit.ranges import OFFSET_INFINITY
from dagkit.ranges.coverage import Bounds, surplus

Coverage = Mapping[str, list[Bounds]]
"""Ordered stretches, by source."""


def work_recorded(
    given: Iterable[WorkItem],
    reports: Sequence[Report],
    waiting: Waiting,
    decided: DecidedWork = NOTHING_DECIDED,
    before: Work | None = None,
) -> Work:
    """Return the record of a window: the work that came to each input, that was done, and that is pending.

    Of an input with more than LISTED pending items, the record has their sum. What the window took and left of them
    follows from the record `before`, unless that is of all inputs together.
    """
    given = list(given)
    listed = _by_input(item for item in given if item.element_id is not None)
    came = _by_input(item for item in given if item.element_id is None)
    is_first = before is not None and before.inputs is None and bool(before.pending)
    many = {into for into, length in waiting.lengths().items() if length > LISTED and not is_first}
    waits = _by_input(waiting.of_others(many))
    decisions = {name: _by_input(getattr(decided, name)) for name in ("retried", "aside", "given_up")}
    named = {*many, *listed, *came, *waits, *(into for by_input in decisions.values() for into in by_input)}
    inputs = sorted({*named, *(into for report in reports for into in report.done)})
    return Work(
        inputs=tuple(
            _of_input(into, listed, came, waits, reports).model_copy(
                update={**_decided(into, decisions), "waits": _sum(waiting, into) if into in many else None}
            )
            for into in inputs
        )
    )


def _sum(waiting: Waiting, into: Address) -> WaitingSum:
    return WaitingSum(**waiting.sum_of(into)._asdict())


def _decided(into: Address, decisions: Mapping[str, Mapping[Address, list[Extent]]]) -> dict[str, tuple[Span, ...]]:
    """The work of one input that was decided on instead of being done."""
    extents = {name: by_input[into] for name, by_input in decisions.items() if into in by_input}
    shared = frozenset(extent.source for found in extents.values() for extent in found if extent.is_shares)
    return {name: _spans(_covered(found), shared=shared) for name, found in extents.items()}


def _of_input(
    into: Address,
    listed: Mapping[Address, list[Extent]],
    came: Mapping[Address, list[Extent]],
    waits: Mapping[Address, list[Extent]],
    reports: Sequence[Report],
) -> InputWork:
    records = [report.done[into].record for report in reports if into in report.done]
    given, pending = _covered(listed.get(into, ())), _covered(waits.get(into, ()))
    found = _covered(chain(came.get(into, ()), *(record.found for record in records)))
    done = _covered(chain.from_iterable(record.done for record in records))
    skipped = _covered(chain.from_iterable(record.skipped for record in records))
    folded = sum(record.folded_elements for record in records), sum(record.folded_positions for record in records)
    settled = [source for source, stretches in found.items() if stretches == done.get(source) and source not in given]
    many = frozenset(settled[LISTED:])
    """Sources that were found and done in this window, beyond those that are listed."""
    stretches = [stretch for source in many for stretch in found[source]]
    recorded = chain.from_iterable((*record.found, *record.done) for record in records)
    shared = frozenset(item.source for item in chain(waits.get(into, ()), recorded) if item.is_shares)
    """Elements that are recorded by their shares."""
    positions = sum(_length(stretch) for source in many - shared for stretch in found[source])
    elements, positions = folded[0] + len(stretches), folded[1] + positions
    return InputWork(
        input=into,
        given=_spans(given),
        found=_spans(found, many, shared),
        folded=Folded(elements=elements, positions=positions) if elements else None,
        consumed=_spans(done, many, shared),
        skipped=_spans(skipped) or None,
        pending=_spans(pending, shared=shared),
    )


def unreported(work: Iterable[WorkItem], reports: Sequence[Report]) -> str:
    """Describe work that the slots had and did not report as done or left, or reported twice; "" if none."""
    allocated = _by_input(work)
    left = _by_input(item for report in reports for item in report.left)
    for into in sorted({*allocated, *left, *(into for report in reports for into in report.done)}):
        records = [report.done[into].record for report in reports if into in report.done]
        had = _covered(chain(allocated.get(into, ()), *(record.found for record in records)))
        has = _covered(chain(left.get(into, ()), *(chain(record.done, record.skipped) for record in records)))
        if had != has:
            source = min(source for source in {*had, *has} if had.get(source) != has.get(source))
            return f"{into} had {source} {had.get(source, [])}, and the slots report {has.get(source, [])}"
    return ""


def _by_input(work: Iterable[WorkItem]) -> dict[Address, list[Extent]]:
    found: defaultdict[Address, list[Extent]] = defaultdict(list)
    for item in work:
        if item.source is not None:
            found[item.into].append(Extent.of(item.source, item, item.end))
    return found


def _covered(extents: Iterable[Extent]) -> Coverage:
    """Return the stretches of each source, joined where they touch, so that equal coverage compares equal."""
    found: defaultdict[str, list[Bounds]] = defaultdict(list)
    for extent in extents:
        if extent.start < extent.end:
            found[extent.source].append((extent.start, extent.end))
    return {source: found[source] if len(found[source]) == 1 else surplus(found[source]) for source in sorted(found)}


def _spans(
    covered: Coverage, besides: frozenset[str] = frozenset(), shared: frozenset[str] = frozenset()
) -> tuple[Span, ...]:
    return tuple(
        Span(
            source=source,
            start=int(start),
            end=None if end >= OFFSET_INFINITY else int(end),
            shares=True if source in shared else None,
        )
        for source, stretches in covered.items()
        if source not in besides
        for start, end in stretches
    )


def _length(stretch: Bounds) -> int:
    start, end = stretch
    return 0 if end >= OFFSET_INFINITY else int(end - start)


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


def settle_handovers(window_id: int, schedule: WindowSchedule, answer: Answer) -> tuple[WindowSchedule, Answer]:
    """Return what each slot had after the handovers of a window, and the answer in which givers left the rest.

    Raise WindowLost if work that a slot did was not given to it.
    """
    given = [handover for report in answer.reports for handover in report.gave]
    # What the board sent proves nothing: slots may be cut off, and Spark may run a task twice. Only the reports of the
    # attempts that count do. Given and not taken: the work waits. Taken and not given: the giver ran again, and did it
    # too.
    takers = {token: report.slot for report in answer.reports for token in report.took}
    taken = sum(len(report.took) for report in answer.reports)
    if len(takers) < taken or not takers.keys() <= {handover.token for handover in given}:
        raise WindowLost(
            f"part of window {window_id} ran again after it had handed work over to other slots, as it does when an "
            "executor is lost, so that work was done twice",
            "the window runs again by itself; see why the executor was lost",
        )
    reports = tuple(_with_untaken(report, takers.keys()) for report in answer.reports)
    schedule = replace(schedule, allocation=_after(schedule.allocation, given, takers), handed=tuple(_splits(given)))
    return schedule, replace(answer, reports=reports)


def _with_untaken(report: Report, taken: Container[str]) -> Report:
    untaken = [item for handover in report.gave if handover.token not in taken for item in handover.work]
    return report.leaving([*report.left, *untaken]) if untaken else report


def _splits(given: Iterable[Handover]) -> Iterator[Split]:
    for handover in given:
        if handover.cut_from is not None:
            (item,) = handover.work
            yield split_of(replace(item, start=handover.cut_from), item.start, HANDED, handover.slot)


def _after(allocation: Allocation, given: Sequence[Handover], takers: Mapping[str, int]) -> Allocation:
    """Divide allocated items where handovers did, and move the pieces to the slots that took them."""
    cuts: dict[ItemKey, set[int]] = {}
    moved: dict[tuple[ItemKey, int], int] = {}
    for handover in given:
        for item in handover.work:
            if handover.cut_from is not None:
                cuts.setdefault(item.key, set()).add(item.start)
            if handover.token in takers:
                moved[item.key, item.start] = takers[handover.token]
    after: dict[Address, SlotWork] = {into: [[] for _ in slot_work] for into, slot_work in allocation.items()}
    for into, slot_work in allocation.items():
        for slot, slot_items in enumerate(slot_work):
            for item in slot_items:
                places = sorted(at for at in cuts.get(item.key, ()) if item.start < at < item.end)
                for start, end in pairwise([item.start, *places, item.end]):
                    after[into][moved.get((item.key, start), slot)].append(item.part(start, end))
    return after
