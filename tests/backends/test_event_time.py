"""Watermarks on every backend: what operators see, what holds them back, and what becomes of them in a crash."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Dag, DelayOperator, OperatorContext
from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.points import Point
from dagkit.engine.record.history import history
from dagkit.engine.record.run_events import Committed, RunEvent
from dagkit.engine.run.loop import Loop
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.stores import MemoryStore
from dagkit.testing import FakeClock
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit_operators import EventTime
from tests.backends.cast import in_partitions
from tests.backends.places import EVERYWHERE, ON_CONNECT, SPARK, everywhere
from tests.backends.slots import InSlots
from tests.engine.cast import Collect, Desk, Hurried, InPairs, arrived
from tests.engine.event_time_cast import Clocked, Minutes, Passing, Sorted, TimedNumbers, Untimed, at, minute_of
from tests.engine.work_cast import Looks, Names
from tests.operators.event_time.sums import received, sums, totals, write

Draw = Callable[[Dag, object], None]

LOOKS: tuple[Minutes, ...] = (((3, 1), 2), ((5, 2, 4), 4), ((9, 7), 8))


def loop_of(draw: Draw, make: Any, until: Until = Until.ONCE, **further: Any) -> Loop:
    """A loop whose windows are over as soon as they have begun."""
    compilation, ledger = compile_application(draw), further.pop("ledger", None) or Ledger(MemoryStore())
    settings = RunSettings("nowhere", until=until, windows=further.pop("windows", None))
    return Loop(RunState(compilation, Hurried(make(compilation)), ledger, settings, **further))


def ran(draw: Draw, make: Any, until: Until = Until.ONCE, **further: Any) -> Loop:
    loop = loop_of(draw, make, until, **further)
    loop.run()
    return loop


def seen_by(loop: Loop, operator: str = "first") -> list[Any]:
    return state_of(loop, operator, "seen")


def state_of(loop: Loop, operator: str, name: str) -> list[Any]:
    return [item for state in loop.state.get(operator, ()) for item in state.get(name, [])]


def sorted_twice(dag: Dag, outlet: Any) -> None:
    """Two operators that act on watermarks, one behind the other, with another between them."""
    first = dag.add_operator("first", Sorted())
    between = dag.add_operator("between", Passing())
    second = dag.add_operator("second", Sorted())
    collect, late = dag.add_operator("collect", Collect()), dag.add_operator("late", Collect())
    dag.add_stream("timed", outlet, first.minutes)
    dag.add_stream("sorted", first.in_order, between.items)
    dag.add_stream("again", between.same, second.minutes)
    dag.add_stream("twice", second.in_order, collect.input)
    dag.add_stream("late", second.late, late.input)


def clocked(**given: Any) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        sorted_twice(dag, dag.add_operator("clocked", Clocked(**given)).minutes)

    return draw


@everywhere
@pytest.mark.parametrize(
    ("ends", "last", "arrives", "kept"), [(False, 8, [1, 2, 3, 4, 5, 7], [9]), (True, 9999, [1, 2, 3, 4, 5, 7, 9], [])]
)
def test_what_an_input_operator_estimates_or_its_end_reaches_all_operators_below(make, ends, last, arrives, kept):
    loop = ran(clocked(looks=LOOKS, ends=ends), make)
    assert (seen_by(loop)[-1], seen_by(loop, "second")[-1]) == (last, last)
    assert (arrived(loop), state_of(loop, "first", "kept"), arrived(loop, "late")) == (arrives, kept, [])


def test_the_second_operator_sees_a_watermark_after_the_first_acted_and_a_launch_without_news_runs_no_window(make):
    ledger = Ledger(MemoryStore())
    for _ in range(2):
        loop = ran(clocked(looks=LOOKS[:1]), make, ledger=ledger)
        assert loop.checkpoint.window == 3  # the items; the first operator acts; the second one does
        assert arrived(loop) == [1]


@pytest.mark.parametrize(("unsent_until", "seen"), [(9, [None]), (3, [None, 8])])
def test_what_is_found_and_not_sent_holds_event_time(make, unsent_until, seen):
    assert seen_by(ran(clocked(looks=LOOKS, unsent_until=unsent_until), make)) == seen


def test_what_a_younger_window_in_flight_has_taken_holds_event_time(tmp_path):
    def draw(dag: Dag, conf: object) -> None:
        passing = dag.add_operator("passing", Passing())
        dag.add_stream("timed", dag.add_operator("clocked", Clocked(looks=LOOKS)).minutes, passing.items)

    desk = Desk(tmp_path, draw, backend=InPairs)
    desk.run()
    watermarks = [entry.checkpoint.event_times.sent["clocked"] for entry in history(desk.ledger())]
    assert list(map(minute_of, watermarks)) == [None, 4, 8]


@everywhere
@pytest.mark.parametrize("point", [Point.RUNNING, Point.STAGED])
def test_a_watermark_is_known_after_a_crash_before_the_next_look(make, point):
    ledger = Ledger(MemoryStore())
    with pytest.raises(Crash):
        ran(clocked(looks=LOOKS), make, ledger=ledger, probe=CrashAfter(point, 1))
    loop = ran(clocked(looks=LOOKS), make, ledger=ledger, windows=1)
    assert minute_of(loop.checkpoint.event_times.sent["clocked"]) == 2
    assert not verify(ledger).faults


def test_without_a_source_of_watermarks_none_is_kept(make):
    def draw(dag: Dag, conf: object) -> None:
        untimed = dag.add_operator("untimed", Untimed(looks=LOOKS))
        passing = dag.add_operator("passing", Passing())
        dag.add_stream("minutes", untimed.minutes, passing.items)
        dag.add_stream("same", passing.same, dag.add_operator("collect", Collect()).input)

    loop = ran(draw, make)
    assert loop.run_state.plan.flow is None
    assert "event_times" not in loop.checkpoint.as_json()


def of_numbers(looks: Looks, *, readers: int = 2, **given: Any) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        names = dag.add_operator("names", Names(looks=looks))
        numbers = in_partitions(dag, dag.add_operator("numbers", TimedNumbers(**given)), readers)
        dag.add_stream("names", names.names, numbers.names)
        sorted_twice(dag, numbers.minutes)

    return draw


@pytest.mark.parametrize(("grows", "reached"), [(False, 8), (True, 3)])
def test_only_a_source_that_grows_holds_event_time_after_its_work_is_done(make, grows, reached):
    """The second launch knows it from the checkpoint, and finds another element."""
    ledger = Ledger(MemoryStore())
    for looks in (((("x", 9), ("y", 4)),), ((("x", 9), ("y", 4)), (("z", 9),))):
        assert seen_by(ran(of_numbers(looks, grows=grows), make, ledger=ledger))[-1] == reached


@everywhere
@pytest.mark.parametrize("readers", [1, 2, 3])
def test_no_record_of_pending_work_is_late(make, readers):
    """Windows end as soon as they have begun, so that every element waits in the queue, is split and resumed."""
    looks: Looks = ((("x", 5), ("y", 3)), (("z", 6),))
    loop = ran(of_numbers(looks[:1], readers=readers, defers_at=(2,)), make, clock=FakeClock())
    assert arrived(loop) == sorted([*range(4), *range(3)])
    assert state_of(loop, "first", "kept") == [4]
    assert arrived(loop, "late") == []


def test_an_element_that_is_known_to_begin_later_lets_event_time_advance(make):
    looks: Looks = ((("x", 5), ("tail", -1)),)
    for known, seen in (({}, None), ({"tail": 3}, 3)):
        loop = ran(of_numbers(looks, readers=1, by_now=0, known_from=known), make, clock=FakeClock())
        assert seen_by(loop)[-1] == seen


@pytest.mark.parametrize("until", [Until.ONCE, Until.IDLE])
def test_a_launch_waits_for_endless_work_whose_source_does_not_answer(make, until):
    looks: Looks = ((("tail", -1),),)
    draw, events = of_numbers(looks, readers=1, by_now=5, unanswered_at=2), list[RunEvent]()
    loop = ran(draw, make, until, clock=FakeClock(), observers=[events.append])
    assert [each.start for each in loop.checkpoint.queue] == [5]
    waiting = [event.waiting_positions for event in events if isinstance(event, Committed)]
    assert 3 in waiting, "it is known while the source does not answer"
    assert waiting[-1] == 0


@pytest.mark.parametrize(
    ("idles", "given", "expected"),
    [(1, {}, []), (3, {}, [0, 1, 2, 3]), (3, {"unanswered_at": 0}, [])],
    ids=["too short", "long enough", "without an answer"],
)
def test_endless_work_that_is_idle_is_let_go(make, idles, given, expected):
    looks: Looks = ((("x", 5), ("tail", -1)),)
    clock = FakeClock()
    began = clock.now()

    def probe(point: Point, window_id: int) -> None:
        if clock.now() - began > timedelta(minutes=idles):
            loop.stop()

    draw = of_numbers(looks, readers=1, by_now=0, idle_minutes=2, **given)
    loop = loop_of(draw, make, Until.STOPPED, clock=clock, probe=probe)
    loop.run()
    assert arrived(loop) == expected


def latest_minute(tolerance: int = 0, idle_minutes: int | None = None) -> EventTime[int]:
    idle_millis = None if idle_minutes is None else idle_minutes * 60_000
    return EventTime(time=at, out_of_order_millis=tolerance * 60_000, idle_millis=idle_millis)


def of_latest(looks: tuple[Minutes, ...], partitions: int = 1, **given: Any) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        untimed = dag.add_operator("untimed", Untimed(looks=looks))
        latest = in_partitions(dag, dag.add_operator("latest", latest_minute(**given)), partitions)
        dag.add_stream("minutes", untimed.minutes, latest.input)
        sorted_twice(dag, latest.output)

    return draw


def test_an_operator_estimates_watermarks_from_its_items(make):
    loop = ran(of_latest((((3, 3), None), ((1, 1, 8, 8), None)), tolerance=2), make)
    assert seen_by(loop)[-1] == 6
    assert arrived(loop) == [1, 1, 3, 3]
    assert arrived(loop, "late") == []


@pytest.mark.parametrize("make", [*EVERYWHERE, ON_CONNECT], indirect=True)
def test_the_partition_that_is_furthest_behind_holds_event_time(make):
    last = of_latest(((tuple(range(40)), None), ((99,), None)), 2)  # only one partition receives the last
    assert seen_by(ran(last, make))[-1] in (38, 39)


@pytest.mark.gate(9)
@pytest.mark.parametrize("window", range(1, 7))
@pytest.mark.parametrize("point", Point)
def test_a_crash_after_any_step_changes_no_result(point, window):
    for draw, expected in (
        (clocked(looks=LOOKS, ends=True), [1, 2, 3, 4, 5, 7, 9]),
        (of_numbers(((("x", 5), ("y", 3)),), defers_at=(2,)), sorted([*range(4), *range(3)])),
        (of_latest(LOOKS, tolerance=2), [1, 2, 3, 4, 5]),
    ):
        ledger, clock = Ledger(MemoryStore()), FakeClock()
        for probe in (CrashAfter(point, window), CrashAfter(point)):
            with suppress(Crash):
                ran(draw, ReferenceBackend, ledger=ledger, probe=probe, clock=clock)
        loop = ran(draw, ReferenceBackend, ledger=ledger, clock=clock)
        assert sorted(arrived(loop)) == expected
        assert arrived(loop, "late") == []
        assert not verify(ledger).faults


def joined(first: tuple[Minutes, ...], second: Any, latest: Any = None) -> Draw:
    """A source of watermarks, and another operator before the second input, which may estimate some."""

    def draw(dag: Dag, conf: object) -> None:
        one, join = dag.add_operator("clocked", Clocked(looks=first)), dag.add_operator("first", Sorted())
        two = dag.add_operator("other", second).minutes
        if latest is not None:
            dag.add_operator("latest", latest)
            dag.add_stream("minutes", two, latest.input)
        dag.add_stream("one", one.minutes, join.minutes)
        dag.add_stream("two", two if latest is None else latest.output, join.others)
        dag.add_stream("sorted", join.in_order, dag.add_operator("collect", Collect()).input)

    return draw


@everywhere
def test_the_input_that_is_furthest_behind_holds_event_time(make):
    loop = ran(joined((((1, 5), 9),), Clocked(looks=(((3,), 4),))), make)
    assert (seen_by(loop)[-1], arrived(loop)) == (4, [1, 3])
    ports, watermark = loop.run_state.plan.flow.seen(loop.checkpoint.event_times)["first"]
    assert {port: minute_of(instant) for port, instant in ports.items()} == {"minutes": 9, "others": 4}
    assert minute_of(watermark) == 4


@pytest.mark.parametrize(
    ("second", "latest", "seen"),
    [(((3,), 4), None, 9), (((0,), None), latest_minute(), 0), (((0,), None), latest_minute(idle_minutes=0), 9)],
    ids=["without a source", "with a source that is behind", "with an idle source"],
)
def test_an_input_without_a_source_of_watermarks_or_with_an_idle_one_does_not_hold_event_time(
    make, second, latest, seen
):
    draw = joined((((1, 5), 9), ((6,), 9)), Untimed(looks=(second,)), latest)
    assert seen_by(ran(draw, make, clock=FakeClock()))[-1] == seen


def test_a_source_that_was_not_asked_since_the_last_launch_is_not_idle(make):
    ledger, clock = Ledger(MemoryStore()), FakeClock()
    for windows in (1, None):
        latest = latest_minute(idle_minutes=2)
        draw = joined((((1,), 9), ((6,), 20)), Untimed(looks=(((5,), None),)), latest)
        loop = ran(draw, make, ledger=ledger, clock=clock, windows=windows)
        clock.advance(seconds=600)
    assert seen_by(loop) == [None, 5]


def through_windows(length: int, step: int | None = None) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        passing = dag.add_operator("passing", Passing())
        dag.set_operator_attribute(passing, OperatorContext.APPLICATION_WINDOW_COUNT, length)
        if step is not None:
            dag.set_operator_attribute(passing, OperatorContext.SLIDE_BY_WINDOW_COUNT, step)
        dag.add_stream("one", dag.add_operator("clocked", Clocked(looks=LOOKS)).minutes, passing.items)
        sorted_twice(dag, passing.same)

    return draw


@everywhere
def test_an_application_window_holds_event_time_until_it_ends(make):
    assert seen_by(ran(through_windows(3), make)) == [None, 8]
    assert seen_by(ran(through_windows(3), make, windows=3)) == [None]


@pytest.mark.parametrize(
    ("length", "step", "seen"), [(2, 1, [None, 2, 4, 8]), (3, 1, [None, 2, 4, 8]), (4, 2, [None, 4, 8])]
)
def test_sliding_windows_hold_event_time_to_the_items_that_they_send_again(make, length, step, seen):
    loop = ran(through_windows(length, step), make)
    assert (seen_by(loop), arrived(loop, "late")) == (seen, [])


def test_a_loop_does_not_hold_its_own_beginning(make):
    def draw(dag: Dag, conf: object) -> None:
        clocked, first = dag.add_operator("clocked", Clocked(looks=LOOKS)), dag.add_operator("first", Sorted())
        passing, delay = dag.add_operator("passing", Passing()), dag.add_operator("delay", DelayOperator[int]())
        odd = dag.add_operator("odd", OnlyNine())
        dag.add_stream("one", clocked.minutes, first.minutes)
        dag.add_stream("late", first.late, passing.items)
        dag.add_stream("into", passing.same, odd.items)
        dag.add_stream("again", odd.same, delay.input)
        dag.add_stream("back", delay.output, first.others)
        dag.add_stream("sorted", first.in_order, dag.add_operator("collect", Collect()).input)

    loop = ran(draw, make)
    assert seen_by(loop)[-1] == 8
    assert arrived(loop) == [1, 2, 3, 4, 5, 7]


class OnlyNine(Passing):
    """Drops all items but one, so that nothing goes around for ever."""

    def process(self, item: Any) -> Iterator[Any]:
        if item == 9:
            yield item


@pytest.mark.parametrize("make", [SPARK], indirect=True)
def test_sums_in_windows_of_event_time_are_the_same(tmp_path, make):
    write(tmp_path, "0.txt", range(61))
    desk = Desk(tmp_path, sums(tmp_path))
    loop = desk.loop()
    loop.run_state.backend = loop.run_state.in_flight._backend = make(loop.run_state.plan.compilation)
    loop.run()
    assert received(desk) == totals(20, 40, 60)
    assert received(desk, "late") == []


LOOK = st.tuples(st.lists(st.integers(0, 20), max_size=4).map(tuple), st.none() | st.integers(0, 20))


@st.composite
def graphs(draw: st.DrawFn) -> Draw:
    looks = [tuple(draw(st.lists(LOOK, max_size=5))) for _ in range(2)]
    ends, tolerance = draw(st.booleans()), draw(st.integers(0, 5))
    partitions, windows = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    idle_minutes, slides = draw(st.sampled_from([None, 0])), draw(st.booleans())

    def drawn(dag: Dag, conf: object) -> None:
        clocked = dag.add_operator("clocked", Clocked(looks=looks[0], ends=ends))
        untimed = dag.add_operator("untimed", Untimed(looks=looks[1], ends=ends))
        latest = dag.add_operator("latest", latest_minute(tolerance=tolerance, idle_minutes=idle_minutes))
        passing = in_partitions(dag, dag.add_operator("passing", Passing()), partitions)
        first, second = dag.add_operator("first", Sorted()), dag.add_operator("second", Sorted())
        dag.set_operator_attribute(passing, OperatorContext.APPLICATION_WINDOW_COUNT, windows)
        if slides and windows > 1:
            dag.set_operator_attribute(passing, OperatorContext.SLIDE_BY_WINDOW_COUNT, 1)
        dag.add_stream("minutes", untimed.minutes, latest.input)
        dag.add_stream("one", clocked.minutes, passing.items)
        dag.add_stream("two", passing.same, first.minutes)
        dag.add_stream("three", latest.output, first.others)
        dag.add_stream("four", first.in_order, second.minutes)
        dag.add_stream("five", second.in_order, dag.add_operator("collect", Collect()).input)
        dag.add_stream("six", second.late, dag.add_operator("late", Collect()).input)

    return drawn


@pytest.mark.slow
@given(draw=graphs(), crash=st.none() | st.tuples(st.sampled_from(Point), st.integers(1, 6)))
def test_any_graph_has_the_same_event_times(draw, crash):
    found = []
    for backend in (ReferenceBackend, InSlots):
        ledger, clock = Ledger(MemoryStore()), FakeClock()
        if crash is not None:
            with suppress(Crash):
                ran(draw, backend, ledger=ledger, clock=clock, probe=CrashAfter(*crash))
        loop = ran(draw, backend, ledger=ledger, clock=clock)
        assert arrived(loop, "late") == []  # what the first sends is never late for the second
        known = [minute for minute in seen_by(loop) if minute is not None]
        assert known == sorted(known)
        assert not verify(ledger).faults
        found.append((seen_by(loop), seen_by(loop, "second"), arrived(loop)))
    assert found[0] == found[1]
