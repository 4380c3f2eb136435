"""Work of any payload, anywhere in a graph: stopped anywhere and resumed, deferred, drained, and always done once."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import InputPort, OutputPort, SplittableOperator
from dagkit.api.running import Until
from dagkit.compiler import compile_application
from dagkit.engine.program.failures import OperatorFailed
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.points import Point
from dagkit.engine.record.run_events import Committed, Failed, RunEvent, Started
from dagkit.engine.work.elements import Elements
from dagkit.engine.worker.protocol import Answer, WindowTask
from dagkit.errors import DagkitError, RunFailure
from dagkit.ledger import DatasetKind, ExecuteTransform
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, RestrictionTracker
from dagkit.testing import FakeClock
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Desk, Hurried, Script, chain, reference
from tests.engine.event_time_cast import minute_of
from tests.engine.work_cast import Looks, Named, Numbered, Telling, Timed, numbers, numbers_expected, numbers_of_names
from tests.examples import examples

LOOKS: Looks = ((("x", 5), ("y", 1)), (("z", 7), ("tail", -1), ("w", 0)))
TAIL: Looks = ((("tail", -1),),)
SIX: Looks = ((("x", 6),),)
NINE: Looks = ((("x", 9),),)
BY_NOW = 4


def desk_of(home: Path, *, until: Until = Until.IDLE, hurried: bool = True, looks: Looks = LOOKS, **told: Any) -> Desk:
    draw = numbers_of_names(looks, **{"by_now": BY_NOW, **told})
    return Desk(home, draw, until=until, backend=Hurried if hurried else reference, clock=FakeClock())


def test_what_has_no_end_is_left_to_the_next_launch_and_goes_on_there(tmp_path):
    looks: Looks = ((("tail", -1), ("x", 2)),)
    first = desk_of(tmp_path, until=Until.ONCE, looks=looks).run()
    assert numbers(first) == numbers_expected(looks, BY_NOW, doubled=False)
    assert [(each.start, each.end) for each in first.checkpoint.queue] == [(BY_NOW, OFFSET_INFINITY)]
    for _ in range(2):
        desk = desk_of(tmp_path, until=Until.ONCE, looks=looks, by_now=9)
        assert numbers(desk.run()) == numbers_expected(looks, 9, doubled=False)
    assert desk.faults() == []


def test_asking_in_vain_leaves_nothing_in_the_ledger(tmp_path):
    desk = desk_of(tmp_path, until=Until.ONCE, looks=TAIL, hurried=False)
    desk.run()
    before = desk.blocks()
    loop = desk.run()
    assert (loop.checkpoint.queue[0].start, desk.blocks()) == (BY_NOW, before)
    assert numbers(desk_of(tmp_path, looks=TAIL, by_now=6).run()) == numbers_expected(TAIL, 6, doubled=False)


def told_of_windows(heard: list[RunEvent]) -> list[tuple[type, int]]:
    return [(type(each), each.window_id) for each in heard if isinstance(each, Started | Failed | Committed)]


def test_asking_in_vain_keeps_no_place_for_what_is_not_written_and_is_not_published(tmp_path):
    """A run writes what there is, and then asks nine times whether there is more."""
    asked: list[int] = []
    heard: list[RunEvent] = []

    def probe(point: Point, window_id: int) -> None:
        if point is Point.STAGED:
            asked.append(window_id)
            if asked.count(window_id) == 9:
                loop.stop()

    desk = desk_of(tmp_path, until=Until.STOPPED, looks=TAIL, hurried=False, out=tmp_path / "out")
    loop = desk.loop(probe=probe, observers=[heard.append])
    loop.run()
    assert sum(content.count(b"\n") for content in desk.outputs().values()) == BY_NOW
    assert loop.parts.outputs._uncommitted == []
    assert told_of_windows(heard) == [(Started, 1), (Committed, 1)]


class Shaky(Numbered):
    failures: ClassVar[int] = 0

    def process(self, element: Named, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[tuple[str, int]]:
        if Shaky.failures > 0:
            Shaky.failures -= 1
            raise ConnectionError("no server answers")
        return super().process(element, tracker)


@pytest.mark.parametrize(
    ("by_now", "failures", "told"),
    [
        (BY_NOW + 1, 0, [(Started, 2), (Committed, 2)]),
        (BY_NOW, 1, [(Started, 2), (Failed, 2), (Committed, 2)]),
        (BY_NOW, 2, [(Started, 2), (Failed, 2), (Failed, 2)]),
    ],
    ids=["it found something", "it failed before", "it ended the run"],
)
def test_a_window_that_only_asks_is_reported_once_it_counts(tmp_path, by_now, failures, told):
    shaky: dict[str, Any] = {"until": Until.ONCE, "looks": TAIL, "kind": Shaky, "hurried": False}
    heard: list[RunEvent] = []
    desk_of(tmp_path, **shaky).run()
    conf = {"dt.operator.numbered.attr.RECOVERY_ATTEMPTS": "1"}
    again = replace(desk_of(tmp_path, **shaky, by_now=by_now), conf=conf)
    Shaky.failures = failures
    with pytest.raises(OperatorFailed, match="no server answers") if failures > 1 else nullcontext():
        again.run(observers=[heard.append])
    assert (told_of_windows(heard), again.faults()) == (told, [])


class Announced(SplittableOperator[int]):
    """Has nothing to do of a number but once: before that it is not there, and sends the work of the next one."""

    numbers = InputPort(int)
    after = OutputPort(int)
    there: bool = False

    def initial_restriction(self, element: int) -> OffsetRange:
        return OffsetRange(0, OFFSET_INFINITY)

    def process(self, element: int, tracker: RestrictionTracker[OffsetRange, int]) -> None:
        if self.there:
            self.after.emit(element)
            tracker.try_claim(OFFSET_INFINITY)
        else:
            tracker.defer_remainder(timedelta(seconds=1))


def test_what_ended_and_what_came_of_it_are_in_the_ledger_though_that_has_nothing_to_do_either(tmp_path):
    for there in (False, True):
        draw = chain(script=Script(looks=((7,),)), first=Announced(there=there), second=Announced())
        loop = Desk(tmp_path, draw, clock=FakeClock()).run()
    assert [each.into for each in loop.parts.queue.queue.all()] == ["second.numbers"]
    assert [each.into for each in loop.checkpoint.queue] == ["second.numbers"]


def test_work_with_an_end_that_was_deferred_is_waited_for(tmp_path):
    desk = desk_of(tmp_path, until=Until.ONCE, looks=SIX, defers_at=(2, 4), hurried=False)
    began = desk.clock.now()
    assert numbers(desk.run()) == numbers_expected(SIX, 0, doubled=False)
    # Slots may have divided the work, so that both parts wait at a time.
    assert (desk.clock.now() - began).total_seconds() >= 1


def test_nothing_is_allocated_before_it_is_due(tmp_path):
    loop = desk_of(tmp_path, until=Until.ONCE, looks=SIX, defers_at=(2,), hurried=False).run(windows=1)
    (waiting,), queue = loop.checkpoint.queue, loop.parts.queue.queue
    assert (waiting.start, len(queue), queue.deferred) == (2, 0, [waiting])
    queue.wake(waiting.deferral.due - timedelta(microseconds=1), lambda _: True)
    assert len(queue) == 0
    queue.wake(waiting.deferral.due, lambda _: True)
    assert (len(queue), queue.deferred) == (1, [])


def test_what_is_put_off_is_due_so_long_after_its_window_however_long_that_waited_for_a_core(tmp_path):
    clock = FakeClock()

    class Crowded(Hurried):
        def run(self, assignment: WindowTask) -> Answer:
            clock.advance(seconds=5)
            return self.inner.run(assignment)

    draw = numbers_of_names(SIX, defers_at=(2,))
    loop = Desk(tmp_path, draw, backend=Crowded, clock=clock).run(windows=1)
    assert [(each.start, each.deferral.due) for each in loop.checkpoint.queue] == [
        (2, clock.now() + timedelta(seconds=1))
    ]


def test_two_that_have_no_end_both_go_on_in_one_slot(tmp_path):
    looks: Looks = ((("a", -1), ("b", -1)),)
    loop = desk_of(tmp_path, looks=looks, by_now=10**9, readers=1).run(windows=4)
    assert {name for name, _ in numbers(loop)} == {"a", "b"}
    assert sorted(each.done.turn for each in loop.checkpoint.queue) == [3, 4]


def test_a_drain_looks_for_nothing_does_what_was_found_and_leaves_what_has_no_end(tmp_path):
    looks: Looks = ((("x", 5), ("tail", -1)), (("late", 3),))
    desk_of(tmp_path, looks=looks, by_now=3).run(windows=1)
    desk = desk_of(tmp_path, looks=looks, by_now=8, until=Until.DRAINED)
    loop = desk.run()
    assert numbers(loop) == numbers_expected(looks[:1], 8, doubled=False)
    assert [(each.start, each.end) for each in loop.checkpoint.queue] == [(8, OFFSET_INFINITY)]
    assert desk.faults() == []
    assert numbers(desk_of(tmp_path, looks=looks, by_now=8).run()) == numbers_expected(looks, 8, doubled=False)


def test_further_outputs_carry_what_is_sent_to_them(tmp_path):
    loop = desk_of(tmp_path, senders=1).run()
    others = [tuple(item["~tuple"]) for state in loop.state["collect"] for item in state.get("others", [])]
    assert sorted(others) == [each for each in numbers(loop) if each[1] % 2]


def watermarks(desk: Desk) -> list[int | None]:
    """How many minutes after midnight each window left event time at."""
    ledger = desk.ledger()
    (chain,) = [ledger.chain(name) for name in ledger.names() if ledger.chain(name).kind is DatasetKind.DERIVATIVE]
    events = [record.block.event for record in chain.records(0)]
    return [minute_of(event.new_watermark) for event in events if isinstance(event, ExecuteTransform)]


def test_the_watermark_is_that_of_the_work_which_is_furthest_behind(tmp_path):
    looks: Looks = ((("tail", -1), ("x", 3)), (("y", 2),))
    desk = desk_of(tmp_path, looks=looks, by_now=6, kind=Timed, readers=1, hurried=False)
    desk.run()
    found = [each for each in watermarks(desk) if each is not None]
    assert (watermarks(desk)[-1], found, desk.faults()) == (5, sorted(found), [])


def test_work_that_was_not_begun_holds_the_watermark_back(tmp_path):
    looks: Looks = ((("x", 1), ("y", 1), ("z", 4)),)
    desk = desk_of(tmp_path, looks=looks, kind=Timed, readers=1)
    desk.run(windows=2)
    assert watermarks(desk) == [None, None]
    desk.run()
    assert watermarks(desk)[-1] == 3


def test_a_source_hears_only_of_what_is_committed(tmp_path):
    desk = desk_of(tmp_path, looks=NINE, kind=Telling, readers=1, defers_at=tuple(range(1, 9)))
    for window, point in enumerate((Point.RUNNING, Point.STAGED, Point.APPENDED), 3):
        Telling.heard.clear()
        desk.crash(CrashAfter(point, window))
        kept = dict(numbers(desk.loop()))
        assert Telling.heard
        assert all(told <= kept[name] for heard in Telling.heard for name, told in heard.items())
    desk.run()
    assert Telling.heard[-1]["x"] < 8


class Careless(Numbered):
    """Makes mistakes in methods that only the engine calls."""

    mistake: str

    def initial_restriction(self, element: Named) -> OffsetRange:
        if self.mistake == "restriction":
            raise ZeroDivisionError("no count on the driver")
        return super().initial_restriction(element)

    def split(self, element: Named, restriction: OffsetRange) -> list[OffsetRange]:
        start, stop = restriction.start, restriction.stop
        return {
            "gap": [OffsetRange(start, start + 1), OffsetRange(start + 2, stop)],
            "short": [OffsetRange(start, stop - 1)],
        }.get(self.mistake, [restriction])

    def truncate(self, element: Named, restriction: OffsetRange) -> Any:
        start, stop = restriction.start, restriction.stop
        return {"pair": (start + 1, stop), "text": "all"}.get(self.mistake, OffsetRange(start + 1, stop))


@pytest.mark.parametrize("senders", [0, 1])
@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("restriction", "numbered failed in window 1, .*no count on the driver"),
        ("gap", r"numbered.split divided .* follows what ends at 1.*help: yield parts that touch"),
        ("short", r"numbered.split divided .* the last part ends at 3"),
    ],
)
def test_an_operator_that_reports_impossible_work_is_named(tmp_path, mistake, told, senders):
    looks: Looks = ((("x", 4),),)
    desk = desk_of(tmp_path, looks=looks, kind=partial(Careless, mistake=mistake), senders=senders)
    with pytest.raises(DagkitError, match=re.compile(told, re.DOTALL)):
        desk.run()
    desk.draw = numbers_of_names(looks, senders=senders)
    assert numbers(desk.run()) == numbers_expected(looks, 0, doubled=bool(senders))


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("range", r"numbered.truncate made OffsetRange\(3, 9\) of OffsetRange\(2, 9\)"),
        ("pair", r"numbered.truncate made OffsetRange\(3, 9\) of OffsetRange\(2, 9\)"),
        ("text", "Careless.truncate gave, for .* 'all', which is no range"),
    ],
)
def test_an_operator_that_drains_other_work_than_there_is_is_named(tmp_path, mistake, message):
    draw: Any = partial(numbers_of_names, NINE, defers_at=(2,))
    Desk(tmp_path, draw(), clock=FakeClock()).run(windows=1)
    with pytest.raises(DagkitError, match=message):
        Desk(tmp_path, draw(kind=partial(Careless, mistake=mistake)), until=Until.DRAINED, clock=FakeClock()).run()


def test_an_element_that_today_s_payload_cannot_read_is_reported(tmp_path):
    draw = numbers_of_names(NINE, defers_at=(2,))
    (waiting,) = Desk(tmp_path, draw, clock=FakeClock()).run(windows=1).checkpoint.queue
    elements = Elements.of(program_of(compile_application(draw)))["numbered.names"]
    assert elements.back(waiting) == ("x", 9)
    with pytest.raises(RunFailure, match=r"waits for numbered\.names, written by another version"):
        elements.back(replace(waiting, element={"name": "x"}))


crashes = st.lists(st.builds(CrashAfter, st.sampled_from(list(Point)), st.integers(1, 6)), max_size=3)
named = st.tuples(st.sampled_from("xyz"), st.integers(-1, 8))


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    looks=st.lists(st.lists(named, min_size=1, max_size=4).map(tuple), max_size=3).map(tuple),
    by_now=st.integers(0, 9),
    defers_at=st.sets(st.integers(0, 8), max_size=3).map(tuple),
    readers=st.integers(1, 3),
    senders=st.integers(0, 3),
    probes=crashes,
    ends=st.lists(st.sampled_from([Until.ONCE, Until.IDLE, Until.DRAINED]), max_size=3),
)
def test_whatever_happens_every_number_is_emitted_once(
    *, tmp_path_factory, looks, by_now, defers_at, readers, senders, probes, ends
):
    home = tmp_path_factory.mktemp("work")
    told = {"looks": looks, "defers_at": defers_at, "readers": readers, "senders": senders}
    desk = desk_of(home, by_now=by_now // 2, **told)
    desk.crash(*probes)
    for until in ends:
        replace(desk, until=until).run()
    assert numbers(desk_of(home, by_now=by_now, **told).run()) == numbers_expected(looks, by_now, doubled=bool(senders))
    assert desk.faults() == []


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(
    looks=st.lists(st.lists(named, min_size=1, max_size=4).map(tuple), min_size=1, max_size=3).map(tuple),
    by_now=st.integers(0, 9),
    readers=st.integers(1, 3),
    senders=st.integers(0, 3),
    probes=crashes,
)
def test_two_windows_in_flight_write_every_number_once(*, tmp_path_factory, looks, by_now, readers, senders, probes):
    home = tmp_path_factory.mktemp("flights")
    desk = desk_of(home, looks=looks, by_now=by_now, readers=readers, senders=senders, out=home / "out")
    assert desk.loop().run_state.summary.overlaps
    desk.crash(*probes)
    desk.run()
    written = "".join(text.decode() for text in desk.outputs().values()).splitlines()
    assert sorted(written) == sorted(f"{n} {i}" for n, i in numbers_expected(looks, by_now, doubled=bool(senders)))
    assert desk.troubles() == []
