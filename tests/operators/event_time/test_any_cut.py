"""Windows of event time hold the same in every application, whatever the order, cuts, partitions and crashes."""

from contextlib import suppress
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
from dagkit.testing import Crash, CrashAfter, FakeClock
from dagkit_operators import EventTime, Map, StreamMerger
from tests.backends.slots import InSlots
from tests.engine.cast import Collect, arrived
from tests.examples import examples
from tests.operators.event_time.test_aggregate_by_time import WINDOWS, by_time, expected, in_order, result_of


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
def test_results_equal_those_of_all_records_at_once(windows, *, sources, partitions, lateness, crash, in_slots):
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
