"""Windows of event time hold the same in every application, whatever the order, cuts, partitions and crashes."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import (
    Dag,
    InputOperator,
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    Shutdown,
    State,
    StatelessPartitioner,
    Until,
)
from dagkit.backends.reference import ReferenceBackend
from dagkit.compiler import compile_application
from dagkit.engine.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.engine.run.run_state import RunSettings, RunState
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.ledger.stores import MemoryStore
from dagkit.testing import Crash, CrashAfter, FakeClock
from dagkit_operators import AggregateByTime, EventTime, StreamMerger, WindowResult
from tests.backends.slots import InSlots
from tests.examples import examples
from tests.operators.event_time.sums import Late
from tests.operators.event_time.test_aggregate_by_time import START, WINDOWS, Item, expected

Looks = tuple[tuple[Item, ...], ...]


class Records(InputOperator):
    """Emits the records of one look after the other, and ends."""

    kind = "any-cut.records/1"
    records = OutputPort[Any](main=True)
    looks: Looks = ()
    done = State(0)

    def emit_tuples(self) -> None:
        if self.done == len(self.looks):
            raise Shutdown
        for item in self.looks[self.done]:
            self.records.emit(list(item))
        self.done += 1


class Results(Operator):
    """Keeps results in a form that can be saved."""

    kind = "any-cut.results/1"
    results = InputPort[WindowResult[Any, Any]]()
    received = State[list[Any]](list)

    def process(self, item: WindowResult[Any, Any]) -> None:
        start, end = ((each - START) / timedelta(seconds=1) for each in (item.start, item.end))
        self.received.append([item.key, start, end, item.result, item.revision])


def disorder(looks: Looks) -> int:
    """The most seconds by which a record is earlier than one before it."""
    seconds = [second for look in looks for _, second, _ in look]
    return max((max(seconds[: index + 1]) - second for index, second in enumerate(seconds)), default=0)


def summed(sources: tuple[Looks, Looks], windows: Any, partitions: tuple[int, int], lateness: int) -> Any:
    def draw(dag: Dag, conf: object) -> None:
        merge = dag.add_operator("merge", StreamMerger[Any]())
        for number, (looks, inlet) in enumerate(zip(sources, (merge.data1, merge.data2), strict=True)):
            records = dag.add_operator(f"records-{number}", Records(looks=looks))
            out_of_order = max(0, disorder(looks) - lateness) * 1000  # so no record is later than is allowed
            time = EventTime(time=lambda item: item[1], out_of_order_millis=out_of_order, idle_millis=None)
            timed = dag.add_operator(f"time-{number}", time)
            dag.set_operator_attribute(timed, OperatorContext.PARTITIONER, StatelessPartitioner(partitions[0]))
            dag.add_stream(f"records-{number}", records.records, timed.input)
            dag.add_stream(f"timed-{number}", timed.output, inlet)
        aggregate = AggregateByTime(
            key=lambda item: item[0],
            time=lambda item: item[1],
            of=lambda item: item[2],
            windows=windows,
            allowed_lateness_millis=lateness * 1000,
        )
        sums = dag.add_operator("sums", aggregate)
        dag.set_operator_attribute(sums, OperatorContext.PARTITIONER, StatelessPartitioner(partitions[1]))
        dag.add_stream("merged", merge.out, sums.input)
        dag.add_stream("sums", sums.results, dag.add_operator("results", Results()).results)
        dag.add_stream("late", sums.late, dag.add_operator("late", Late()).items)

    return draw


Result = tuple[Any, ...]


def unreplaced(results: Iterable[Result]) -> list[Result]:
    """The results that no later one replaces: of the same window, or of a session that contains it."""
    kept: list[Result] = []
    for key, start, end, total, revision in results:
        replaced = [one for one in kept if one[0] == key and start <= one[1] and one[2] <= end]
        assert all(one[4] < revision for one in replaced)
        kept = [one for one in kept if one not in replaced] + [(key, start, end, total, revision)]
    return kept


def received(loop: Loop, operator: str) -> list[Any]:
    states: Any = loop.run_state.state.get(operator, ())
    return [item for state in states for item in state.get("received", [])]


ITEMS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(-5, 5)), min_size=1, max_size=5).map(
    tuple
)
LOOKS = st.lists(ITEMS, max_size=4).map(tuple)


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
def test_results_equal_those_of_all_records_at_once(windows, *, sources, partitions, lateness, crash, in_slots):
    compilation = compile_application(summed(sources, windows, partitions, lateness))
    ledger, launched, clock = Ledger(MemoryStore()), RunSettings("nowhere", until=Until.IDLE), FakeClock()

    def loop_of(**given: Any) -> Loop:
        backend = (InSlots if in_slots else ReferenceBackend)(compilation)
        return Loop(RunState(compilation, backend, ledger, launched, clock=clock, **given))

    if crash is not None:
        with suppress(Crash):
            loop_of(probe=CrashAfter(*crash)).run()
    loop = loop_of()
    loop.run()
    items = [item for looks in sources for look in looks for item in look]
    found = list(map(tuple, received(loop, "results")))
    results = sorted(unreplaced(found), key=lambda each: (each[2], each[1], each[0]))
    assert received(loop, "late") == []
    assert [each[:4] for each in results] == [each[:4] for each in expected(windows, items)]
    assert lateness or {each[4] for each in found} <= {0}, "without lateness, no window is sent twice"
    assert not verify(ledger).faults
