"""Aggregates in windows of event time are those of Python, whatever the order, cuts, partitions and crashes."""

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import InputOperator, OperatorContext, OutputPort, Shutdown, State, StatelessPartitioner, Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.stores import MemoryStore
from dagkit.testing import Alone, Crash, CrashAfter, FakeClock
from dagkit_operators import (
    AggregateByTime,
    EventTime,
    ItemRejected,
    Map,
    SessionWindows,
    SlidingWindows,
    StreamMerger,
    TumblingWindows,
)
from tests.backends.slots import InSlots
from tests.engine.cast import Collect, arrived
from tests.examples import examples
from tests.operators.ways import BOTH_WAYS, at_once

START = datetime(1970, 1, 1, tzinfo=UTC)
WINDOWS = [
    TumblingWindows(millis=10_000),
    SlidingWindows(millis=10_000, every_millis=4000),
    SessionWindows(gap_millis=3000),
]


def at(second):
    return START + timedelta(seconds=second)


def by_time(windows=WINDOWS[0], **given):
    key, time, of = map(itemgetter, range(3))
    return AggregateByTime(key=key, time=time, of=of, windows=windows, **given)


def result_of(item):
    start, end = ((each - START) / timedelta(seconds=1) for each in (item.start, item.end))
    return item.key, start, end, item.result, item.revision


def in_order(results):
    return sorted(results, key=lambda each: (each[2], each[1], each[0]))


def after(alone, watermark, *items):
    """The operator after a window at a watermark, and the results that it sent."""
    alone = alone.restarted(watermark=at(watermark))
    with alone.window():
        alone.send(*items)
    return alone, [result_of(item) for item in alone.sent()]


def expected(windows, items):
    """The sums of all windows, computed from all records at once."""
    if not isinstance(windows, SessionWindows):
        sums = Counter()
        for key, second, number in items:
            for start, end in windows.around(second * 10**6):
                sums[key, start, end] += number
        return in_order((key, start / 10**6, end / 10**6, total, 0) for (key, start, end), total in sums.items())
    gap, sessions = windows.gap_millis // 1000, []
    for key, second, number in sorted(items):
        if sessions and sessions[-1][0] == key and second < sessions[-1][2]:
            sessions[-1] = (key, sessions[-1][1], second + gap, sessions[-1][3] + number, 0)
        else:
            sessions.append((key, float(second), second + gap, number, 0))
    return in_order(sessions)


ITEMS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(-5, 5)), max_size=12)


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("windows", WINDOWS, ids=["tumbling", "sliding", "sessions"])
@given(batches=st.lists(ITEMS, max_size=5), as_batches=st.booleans())
def test_results_equal_those_of_all_records_at_once(windows, batches, as_batches):
    """The watermark follows the earliest record that is still to come, so that no record is late."""
    alone, results = Alone(by_time(windows)), []
    for index, batch in enumerate([*batches, []]):
        coming = [second for later in batches[index:] for _, second, _ in later]
        alone = alone.restarted(watermark=at(min(coming, default=100)))
        with alone.window():
            (at_once if as_batches else Alone.send)(alone, *batch)
        assert alone.sent("late") == []
        results += map(result_of, alone.sent())
    assert in_order(results) == expected(windows, [item for batch in batches for item in batch])
    assert alone.state in ({}, {"open_windows": {}})


@BOTH_WAYS
def test_a_late_record_goes_to_late(send):
    alone = Alone(by_time(), watermark=at(10))
    with alone.window():
        late, punctual = ("a", 9, 1), ("a", 10, 2)
        send(alone, late, punctual)
        assert alone.metrics == {"records_late": 1, "late_dropped": 0}
    assert alone.sent("late") == [late]
    assert after(alone, 20)[1] == [("a", 10, 20, 2, 0)]


def test_a_record_that_is_late_for_some_windows_counts_in_the_others():
    alone = Alone(by_time(SlidingWindows(millis=10_000, every_millis=5000)), watermark=at(10))
    alone, _ = after(alone, 10, ("a", 7, 1))
    assert alone.sent("late") == []
    assert after(alone, 99)[1] == [("a", 5, 15, 1, 0)]


def test_a_record_that_is_late_and_allowed_revises_the_result():
    alone = Alone(by_time(allowed_lateness_millis=5000))
    with alone.window():
        alone.send(("a", 1, 1))
    for watermark, sent, expected in (
        (10, [], [("a", 0, 10, 1, 0)]),
        (14, [("a", 2, 3), ("a", 3, 4)], [("a", 0, 10, 8, 1)]),
        (14, [], []),
        (14.5, [("a", 4, 1)], [("a", 0, 10, 9, 2)]),
        (15, [("a", 5, 1)], []),
    ):
        alone, results = after(alone, watermark, *sent)
        assert results == expected
    assert alone.sent("late") == [("a", 5, 1)]
    assert alone.state["open_windows"] == {}


def test_a_late_record_joins_sessions_that_were_sent():
    alone = Alone(by_time(SessionWindows(gap_millis=3000), allowed_lateness_millis=60_000))
    with alone.window():
        alone.send(("a", 1, 1), ("a", 5, 2))
    alone, results = after(alone, 9)
    assert results == [("a", 1, 4, 1, 0), ("a", 5, 8, 2, 0)]
    assert after(alone, 9, ("a", 3, 4))[1] == [("a", 1, 8, 7, 1)]


@pytest.mark.parametrize(("closes", "results"), [(False, []), (True, [("a", 0, 10, 1, 0)])])
def test_a_launch_that_ends_closes_windows_where_asked(closes, results):
    alone = Alone(by_time(close_when_drained=closes))
    with alone.window(last=True):
        alone.send(("a", 1, 1))
    assert [result_of(item) for item in alone.sent()] == results


@BOTH_WAYS
def test_an_item_without_a_time_is_rejected(send):
    items = [("a", "soon", 1), ("a", 1, 2)]
    alone = Alone(by_time(), connected=["rejected", "results"])
    with alone.window():
        send(alone, *items)
    (rejected,) = alone.sent("rejected")
    assert rejected.item == items[0]
    assert "'soon' has not the form of ISO 8601" in rejected.reason
    with pytest.raises(ItemRejected, match="soon"):
        send(Alone(by_time(), connected=["results"]), *items)


class Records(InputOperator):
    """Emits the records of one look after the other, and ends."""

    kind = "any-cut.records/1"
    records = OutputPort[Any](main=True)
    looks: tuple[tuple[tuple[str, int, int], ...], ...] = ()
    done = State(0)

    def emit_tuples(self) -> None:
        if self.done == len(self.looks):
            raise Shutdown
        for item in self.looks[self.done]:
            self.records.emit(list(item))
        self.done += 1


def disorder(looks):
    """The most seconds by which a record is earlier than one before it."""
    seconds = [second for look in looks for _, second, _ in look]
    return max((max(seconds[: index + 1]) - second for index, second in enumerate(seconds)), default=0)


def summed(sources, windows, partitions, lateness):
    def draw(dag, conf):
        merge = dag.add_operator("merge", StreamMerger[Any]())
        for number, (looks, inlet) in enumerate(zip(sources, (merge.data1, merge.data2), strict=True)):
            out_of_order = max(0, disorder(looks) - lateness) * 1000  # so no record is later than is allowed
            time = EventTime(time=itemgetter(1), out_of_order_millis=out_of_order, idle_millis=None)
            timed = dag.add_operator(f"time-{number}", time)
            dag.set_operator_attribute(timed, OperatorContext.PARTITIONER, StatelessPartitioner(partitions[0]))
            dag.add_operator(f"records-{number}", Records(looks=looks)) >> timed >> inlet
        sums = dag.add_operator("sums", by_time(windows, allowed_lateness_millis=lateness * 1000))
        dag.set_operator_attribute(sums, OperatorContext.PARTITIONER, StatelessPartitioner(partitions[1]))
        results = dag.add_operator("in seconds", Map(lambda result: list(result_of(result))))
        merge >> sums >> results >> dag.add_operator("results", Collect())
        sums.late >> dag.add_operator("late", Collect())

    return draw


def unreplaced(results):
    """The results that no later one replaces: of the same window, or of a session that contains it."""
    kept = []
    for key, start, end, total, revision in results:
        replaced = [one for one in kept if one[0] == key and start <= one[1] and one[2] <= end]
        assert all(one[4] < revision for one in replaced)
        kept = [one for one in kept if one not in replaced] + [(key, start, end, total, revision)]
    return kept


ITEM = st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(-5, 5))
LOOKS = st.lists(st.lists(ITEM, min_size=1, max_size=5).map(tuple), max_size=4).map(tuple)


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize("windows", WINDOWS, ids=["tumbling", "sliding", "sessions"])
@settings(max_examples=examples(25))
@given(
    sources=st.tuples(LOOKS, LOOKS),
    partitions=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    lateness=st.just(0) | st.integers(1, 40),
    crash=st.none() | st.tuples(st.sampled_from(Point), st.integers(1, 6)),
    in_slots=st.booleans(),
)
def test_no_cut_partition_or_crash_changes_a_result(windows, *, sources, partitions, lateness, crash, in_slots):
    compilation = compile_application(summed(sources, windows, partitions, lateness))
    ledger, launched, clock = Ledger(MemoryStore()), RunSettings("nowhere", until=Until.IDLE), FakeClock()

    def loop_of(**given):
        backend = (InSlots if in_slots else ReferenceBackend)(compilation)
        return Loop(RunState(compilation, backend, ledger, launched, clock=clock, **given))

    if crash is not None:
        with suppress(Crash):
            loop_of(probe=CrashAfter(*crash)).run()
    loop = loop_of()
    loop.run()
    items = [item for looks in sources for look in looks for item in look]
    found = [tuple(result) for result in arrived(loop, "results")]
    assert arrived(loop, "late") == []
    assert [each[:4] for each in in_order(unreplaced(found))] == [each[:4] for each in expected(windows, items)]
    assert lateness or {each[4] for each in found} <= {0}, "without lateness, no window is sent twice"
    assert not verify(ledger).faults
