"""Restrictions of any type: launched, split at deadlines and beforehand, stopped anywhere and resumed."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dagkit.api.running import Until
from dagkit.api.stats import WorkProgress
from dagkit.compiler import compile_application
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Split
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history
from dagkit.engine.record.run_events import Committed, Measured, RunEvent
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WindowPromise, WorkItem
from dagkit.engine.work.queue import WorkQueue
from dagkit.engine.work.restrictions import KEPT_SHARES, SHARES, divided_at, intervals
from dagkit.engine.work.schedule import Scheduler, WindowSizer
from dagkit.errors import RunFailure
from dagkit.ledger.audit.verify import verify
from dagkit.ranges import OFFSET_INFINITY, ByteKeyRange, OffsetRange, OffsetRestrictionTracker, SplitRestriction
from dagkit.testing.crashes import CrashAfter, FakeClock
from tests.engine.cast import Desk, Hurried, reference
from tests.engine.restriction_cast import CountFn, Follower, Pairs, PairsTracker, ShardReader, Since, TableReader
from tests.engine.work_cast import Looks, Named, Numbered, numbers, numbers_expected, numbers_of_names

LOOKS: Looks = ((("x", 5), ("y", 2)), (("z", 7),))
INTO = Address.of("numbered", "names")
RANGES, TYPES = [Numbered, CountFn], [TableReader, ShardReader, Follower]
"""Operators on ranges of offsets, and on types of their own."""


def desk_of(home: Path, kind: Any, *, looks: Looks = LOOKS, until: Until = Until.IDLE, **given: Any) -> Desk:
    draw = numbers_of_names(looks, kind=kind, **given)
    return Desk(home, draw, until=until, backend=Hurried, clock=FakeClock())


@pytest.mark.parametrize("hurried", [True, False])
@pytest.mark.parametrize("senders", [0, 1, 3])
@pytest.mark.parametrize("kind", [*RANGES, *TYPES])
def test_each_part_is_done_once(tmp_path, kind, senders, hurried):
    desk = desk_of(tmp_path, kind, senders=senders)
    desk.backend = Hurried if hurried else reference
    assert numbers(desk.run()) == numbers_expected(LOOKS, 0, doubled=bool(senders))
    verdict = verify(desk.ledger())
    assert (verdict.faults, verdict.is_complete) == ((), True)


@pytest.mark.gate(40)
@pytest.mark.parametrize("senders", [0, 2])
@pytest.mark.parametrize("window", [1, 2, 4])
@pytest.mark.parametrize("point", Point)
@pytest.mark.parametrize("kind", [*RANGES, *TYPES])
def test_a_crash_after_any_step_changes_nothing(tmp_path, kind, point, window, senders):
    looks: Looks = (*LOOKS, (("tail", -1), ("w", 0))) if kind in (Numbered, Follower) else LOOKS
    desk = desk_of(tmp_path, kind, looks=looks, by_now=4, senders=senders, defers_at=(3,))
    desk.crash(CrashAfter(point, window), CrashAfter(point))
    assert (numbers(desk.run()), desk.faults()) == (numbers_expected(looks, 4, doubled=bool(senders)), [])


@pytest.mark.parametrize("kind", [TableReader, ShardReader])
def test_a_split_at_the_deadline_is_recorded(tmp_path, kind):
    desk = desk_of(tmp_path, kind, defers_at=(3,))
    desk.run()
    splits = [fact for entry in history(desk.ledger()) for fact in entry.checkpoint.facts if isinstance(fact, Split)]
    assert splits
    assert all(split.start < split.at < (split.end or OFFSET_INFINITY) for split in splits)


def elements_of(kind: Any) -> Elements:
    return Elements.of(program_of(compile_application(numbers_of_names(LOOKS, kind=kind))))[INTO]


@pytest.mark.parametrize(
    ("kind", "whole", "parts"),
    [
        (TableReader, ("x", 8), (ByteKeyRange(b"", b"\xf0\x04"), ByteKeyRange(b"\xf0\x04", b"\xf0\x08"))),
        (ShardReader, ("x", 2), (Pairs((("even", 0), ("odd", 1))),)),
        (Follower, ("x", 2), (Since(0, 2),)),
    ],
)
def test_what_waits_reads_back_as_it_was(kind, whole, parts):
    elements = elements_of(kind)
    stored = TypeAdapter(WorkItem)
    work = [stored.validate_json(stored.dump_json(each)) for each in elements.work_of(whole, (1,))]
    assert tuple(map(elements.restrictions.of, work)) == parts
    assert (work[0].start, work[-1].end) == (0, SHARES)
    assert [each.positions for each in work] == [0] * len(parts)


def test_parts_are_divided_by_their_sizes():
    elements = elements_of(ShardReader)
    (work,) = elements.work_of(("x", 100), (1,))
    first, rest = elements.cut_near(work, SHARES // 4)
    assert (first.start, first.end, rest.end) == (0, rest.start, SHARES)
    assert first.end == pytest.approx(SHARES / 4, rel=1e-3)
    assert (first.size, rest.size) == (25.0, 75.0)
    assert len(elements.restrictions.of(first).pairs) == 25


def test_a_promised_window_is_given_what_was_divided_for_it():
    """Its operator is not asked again: it might divide the work elsewhere."""
    elements = elements_of(ShardReader)
    waiting = list(elements.work_of(("x", 100), (1,)))

    def scheduler() -> Scheduler:
        return Scheduler(WorkQueue.of(waiting), WindowSizer(100.0, positions=100.0, millis=1000.0))

    first = scheduler()
    given = first.next(1, {INTO: 2}, {INTO: elements.cut_near}, overlaps=True)
    hands = given.allocation[INTO]
    assert [len(hand) for hand in hands] == [1, 1]
    promise = WindowPromise.model_validate(given.promise(last=False).as_notes())
    second = scheduler()
    again = second.again(promise, {INTO: 2})
    assert again.allocation == given.allocation
    assert second.queue.all() == first.queue.all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((0, 1.5), "which is no pair of integers"),
        ((0,), "which is no pair of integers"),
        ((0, 1, 2), "which is no pair of integers"),
        ((False, True), "which is no pair of integers"),
        ((3, 1), "stops before it starts"),
        ("0-3", "which is no range"),
        (None, "which is no range"),
    ],
)
@pytest.mark.parametrize("senders", [0, 1])
def test_what_is_no_restriction_is_refused_in_words_that_name_the_operator(tmp_path, given, words, senders):
    class Wrong(CountFn):
        def initial_restriction(self, element: Named) -> Any:
            return given

    with pytest.raises(RunFailure, match=rf"(?s)Wrong\.initial_restriction.*{words}") as refused:
        desk_of(tmp_path, Wrong, senders=senders).run()
    assert (refused.value.code, refused.value.scene.operator) == ("restriction-invalid", "numbered")


def test_what_is_not_of_the_declared_type_is_refused():
    class Undeclared(ShardReader):
        def initial_restriction(self, element: Named) -> Any:
            return Since(0, 2)

    with pytest.raises(RunFailure, match="cannot be kept as Pairs"):
        list(elements_of(Undeclared).work_of(("x", 2), (1,)))


def test_work_of_another_type_of_restriction_is_refused():
    (pairs,) = elements_of(ShardReader).work_of(("x", 2), (1,))
    (offsets,) = elements_of(CountFn).work_of(("x", 2), (1,))
    for kind, waiting in ((Follower, pairs), (CountFn, pairs), (ShardReader, offsets)):
        with pytest.raises(RunFailure, match="numbered: work on"):
            elements_of(kind).restrictions.of(waiting)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50), st.booleans())
def test_shares_touch_and_every_part_can_be_divided_often(sizes, ends):
    found = list(intervals(sizes, last_ends=ends))
    assert [start for start, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == (SHARES if ends else OFFSET_INFINITY)
    assert all(end - start >= KEPT_SHARES for start, end in found)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), min_size=1, max_size=200), st.booleans())
def test_work_is_divided_as_often_as_it_takes(splits, ends):
    """However wrong the sizes are, there are shares left for the next split."""
    item = WorkItem(into=INTO, number=(1,), element=None, start=0, end=SHARES if ends else OFFSET_INFINITY)
    for done, left in splits:
        at = divided_at(item, done, left, least=1)
        assert item.start < at < item.end
        item = item.part(at, item.end)


def test_observers_and_statistics_show_how_far_unfinished_work_has_come(tmp_path):
    draw = numbers_of_names(((("x", 4),),), kind=ShardReader, defers_at=(1, 3))
    events: list[RunEvent] = []
    Desk(tmp_path, draw, until=Until.IDLE, clock=FakeClock()).run(observers=[events.append])
    underway = [event.underway for event in events if isinstance(event, Committed) and event.underway]
    (first,), (second,) = (one["numbered"] for one in underway)
    assert first == WorkProgress('["x",4]', 1.0, 3.0)
    assert second == WorkProgress('["x",4]', 3.0, 1.0)
    assert (first.fraction, second.fraction) == (0.25, 0.75)
    stats = [event.operators["numbered"][0] for event in events if isinstance(event, Measured)]
    assert [one.underway for one in stats if one.underway] == [(first,), (second,)]


def test_what_is_no_tracker_is_refused_and_names_the_operator(tmp_path):
    class Untracked(ShardReader):
        def tracker(self, element: Named, restriction: Pairs) -> Any:
            return restriction

    with pytest.raises(RunFailure, match=r"Untracked\.tracker .* no RestrictionTracker") as refused:
        desk_of(tmp_path, Untracked).run()
    assert refused.value.scene.operator == "numbered"


def test_a_split_into_what_is_no_restriction_is_refused_and_names_the_operator(tmp_path):
    class Wrong(PairsTracker):
        def try_split(self, fraction_of_remainder: float) -> Any:
            split = super().try_split(fraction_of_remainder)
            return split and SplitRestriction(split.primary, split.residual.pairs)

    class WronglySplit(ShardReader):
        def tracker(self, element: Named, restriction: Pairs) -> Any:
            return Wrong(restriction)

    with pytest.raises(RunFailure, match=r"WronglySplit\.tracker gave, .* cannot be kept as Pairs"):
        desk_of(tmp_path, WronglySplit, defers_at=(3,)).run()


def test_a_split_of_offsets_into_what_is_no_range_is_refused(tmp_path):
    class Wrong(OffsetRestrictionTracker):
        def try_split(self, fraction_of_remainder: float) -> Any:
            split = super().try_split(fraction_of_remainder)
            return split and SplitRestriction(split.primary, "the rest")

    class WronglySplit(CountFn):
        def tracker(self, element: Named, restriction: OffsetRange) -> Any:
            return Wrong(restriction)

        def process(self, element: Named, tracker: Any) -> Any:
            if tracker.try_claim(tracker.current_restriction().start):
                tracker.defer_remainder()
            yield from ()

    with pytest.raises(RunFailure, match=r"WronglySplit\.tracker gave, .* 'the rest', which is no range"):
        Desk(tmp_path, numbers_of_names(LOOKS, kind=WronglySplit), until=Until.IDLE, clock=FakeClock()).run()
