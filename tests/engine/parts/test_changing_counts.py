"""Partition counts change between two windows of a run: nothing is lost or doubled, and what is kept moves along."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import (
    Dag,
    DelayOperator,
    InputPort,
    KeyedState,
    Operator,
    OperatorContext,
    OutputPort,
    Partition,
    Partitioner,
    PartitioningContext,
    PortContext,
    RowOperator,
    State,
    StatelessPartitioner,
    Unifier,
)
from dagkit.api.partitioning import assign_keys
from dagkit.compiler import compile_application
from dagkit.engine.parts.running_plan import Scaling
from dagkit.engine.program.facts import Scaled
from dagkit.engine.program.failures import Failure, OperatorFailed
from dagkit.engine.program.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.testing.crashes import Crash, CrashAfter
from tests.backends.slots import InSlots
from tests.engine.cast import Collect, Desk, Digits, Draw, Hurried, Ranges, arrived
from tests.engine.parts.cast import Tally, Total, facts_in, kept
from tests.examples import examples


class AddUp(Unifier[int]):
    total = State(0)

    def process(self, item: int) -> None:
        self.total += item

    def end_window(self) -> None:
        self.unified.emit(self.total)


class Sum(Operator):
    kind = "counts.sum/1"
    numbers = InputPort(int)
    sums = OutputPort(int, unifier=AddUp)
    total = State(0)

    def process(self, number: int) -> None:
        self.total += number

    def end_window(self) -> None:
        self.sums.emit(self.total)
        self.total = 0


class Down(Operator):
    """Sends each number round again, one less, and remembers which came round."""

    kind = "counts.down/1"
    numbers = InputPort(int, main=True)
    back = InputPort(int)
    smaller = OutputPort(int)
    seen = KeyedState[int, int](int)

    def process(self, number: int) -> None:
        if number % 4:
            self.smaller.emit(number % 4 - 1)

    @back.process
    def came_back(self, number: int) -> None:
        self.seen[number] += 1
        if number:
            self.smaller.emit(number - 1)


class KeyedAlike(Partitioner):
    """So many partitions, which own the same keys at each input."""

    def __init__(self, count: int) -> None:
        self.count = count

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        count = context.wanted or self.count
        return [Partition(partitions[0].operator, dict.fromkeys(context.input_ports, k)) for k in assign_keys(count)]


class Alone(Operator):
    kind = "counts.alone/1"
    numbers = InputPort(int)
    partitionable = False

    def process(self, number: int) -> None: ...


class Stubborn(Partitioner):
    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        return [Partition(partitions[0].operator, {"numbers": keys}) for keys in assign_keys(2)]


class Same(RowOperator):
    kind = "counts.same/1"
    input = InputPort(int)
    output = OutputPort(int)

    def process(self, item: int) -> Iterator[int]:
        yield item


SCALED = ("digits", "tally", "sum", "down")
LOOKS = ((7, 3, 9), (20,), (1, 1, 8))
ONES = dict.fromkeys(SCALED, 1)


def everything(looks: tuple[tuple[int, ...], ...] = LOOKS, **counts: int) -> Draw:
    """Splits, a mirror, keyed state, a unifier and a delay, all fed by the same readers."""
    counts = {**ONES, **counts}

    def draw(dag: Dag, conf: object) -> None:
        ranges = dag.add_operator("ranges", Ranges(looks=looks))
        digits = dag.add_operator("digits", Digits(waits_every=2))
        same, tally = dag.add_operator("same", Same()), dag.add_operator("tally", Tally())
        summed, collect = dag.add_operator("sum", Sum()), dag.add_operator("collect", Collect())
        down, later = dag.add_operator("down", Down()), dag.add_operator("later", DelayOperator[int]())
        for operator, name in ((digits, "digits"), (tally, "tally"), (summed, "sum")):
            dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, StatelessPartitioner(counts[name]))
        dag.set_operator_attribute(down, OperatorContext.PARTITIONER, KeyedAlike(counts["down"]))
        ranges >> digits >> same
        dag.set_input_port_attribute(same.input, PortContext.PARTITION_PARALLEL, True)
        dag.add_stream("same", same.output, tally.numbers, summed.numbers, down.numbers)
        summed >> collect
        down >> later
        dag.add_stream("back", later.output, down.back)

    return draw


def run(desk: Desk, changes: Mapping[int, tuple[str, int]], *, crash: CrashAfter | None = None) -> Loop:
    """A run in which an operator is to have so many partitions once a window is committed; it may end in a crash."""

    def probe(point: Point, window_id: int) -> None:
        if point is Point.APPENDED and window_id in changes:
            loop.parts.changes.request_change(Scaling(*changes[window_id]))
        if crash is not None:
            crash(point, window_id)

    loop = desk.loop(probe=probe)
    loop.run()
    return loop


def expected(looks: tuple[tuple[int, ...], ...] = LOOKS) -> tuple[dict[int, int], int, dict[int, int]]:
    """What the tally holds, what all sums come to, and what came round, counted by hand."""
    numbers = range(sum(map(sum, looks)))
    came_round = Counter(less for number in numbers if number % 4 for less in range(number % 4))
    return dict(Counter(number % 10 for number in numbers)), sum(numbers), dict(came_round)


def came(loop: Loop) -> tuple[dict[int, int], int, dict[int, int]]:
    return kept(loop), sum(arrived(loop)), kept(loop, "down", "seen")


def count(loop: Loop, operator: str) -> int:
    return len(loop.run_state.program.operators[operator])


def scaled(desk: Desk) -> list[tuple[str, int, int]]:
    return [(fact.operator, fact.before, fact.after) for fact in facts_in(desk.ledger(), Scaled)]


@pytest.mark.gate(5)
@pytest.mark.parametrize("operator", SCALED)
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 3), (3, 2)])
def test_one_operator_gets_other_partitions_and_nothing_else_changes(tmp_path, operator, before, after):
    desk = Desk(tmp_path, everything(**{operator: before}), backend=Hurried)
    loop = run(desk, {1: (operator, after)})
    assert came(loop) == expected()
    assert scaled(desk) == [(operator, before, after)]
    assert {name: count(loop, name) for name in SCALED} == {**ONES, operator: after}
    assert count(loop, "same") == count(loop, "digits")


def test_a_count_outlives_its_run_until_the_configuration_is_edited(tmp_path):
    desk = Desk(tmp_path, everything(), backend=Hurried)
    run(desk, {1: ("tally", 3)})
    assert count(desk.loop(), "tally") == 3
    assert count(Desk(tmp_path, everything(tally=2)).loop(), "tally") == 2
    assert came(desk.run()) == expected()


def test_a_promise_made_with_other_counts_is_kept_with_those_that_there_are(tmp_path):
    desk = Desk(tmp_path, everything(digits=3), backend=Hurried)
    with suppress(Crash):
        run(desk, {1: ("digits", 1)}, crash=CrashAfter(Point.RUNNING, 2))  # promised to one, and not committed
    assert count(desk.loop(), "digits") == 3
    assert came(desk.run()) == expected()


@pytest.mark.gate(4)
@pytest.mark.parametrize(
    ("operator", "why"),
    [
        ("ranges", "runs once, on the driver"),
        ("same", "mirrors the partitions of digits"),
        ("digit", "there is no operator 'digit'"),
        ("alone", "may not be partitioned"),
        ("total", "its state total belongs to one partition each"),
        ("stubborn", "its Stubborn makes 2"),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_the_run_goes_on(tmp_path, caplog, operator, why):
    def draw(dag: Dag, conf: object) -> None:
        everything(digits=2)(dag, conf)
        digits, stubborn = dag.add_operator("read more", Digits()), dag.add_operator("stubborn", Tally())
        dag.set_operator_attribute(stubborn, OperatorContext.PARTITIONER, Stubborn())
        alone, total = dag.add_operator("alone", Alone()), dag.add_operator("total", Total())
        dag.set_operator_attribute(total, OperatorContext.PARTITIONER, StatelessPartitioner(4))
        dag.add_operator("more", Ranges(looks=LOOKS)) >> digits
        dag.add_stream("more numbers", digits.numbers, alone.numbers, total.numbers, stubborn.numbers)

    desk = Desk(tmp_path, draw, backend=Hurried)
    loop = run(desk, {4: (operator, 3)})  # by then several partitions have state
    assert came(loop) == expected()
    assert why in caplog.text
    assert (scaled(desk), loop.run_state.plan.partitions) == ([], {})


def test_a_failed_window_is_not_logged_for_a_change_without_a_request(tmp_path, caplog):
    """The run alone reports the failure."""
    changes = Desk(tmp_path, everything()).loop().parts.changes
    changes._made.append((Scaling("Read", 2), None))
    changes.failed(OperatorFailed(Failure("Read", 1, 0, "the window failed")))
    assert (caplog.records, changes._made) == ([], [])


change_pending = st.dictionaries(st.integers(1, 9), st.tuples(st.sampled_from(SCALED), st.integers(1, 4)), max_size=5)
crashes = st.lists(st.builds(CrashAfter, st.sampled_from(list(Point)), st.integers(1, 8)), max_size=3)


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("fused", [False, True], ids=["one by one", "fused, as on Spark"])
@settings(max_examples=examples(25))
@given(
    looks=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tuple), min_size=1, max_size=4).map(tuple),
    counts=st.fixed_dictionaries({name: st.integers(1, 3) for name in SCALED}),
    changes=change_pending,
    probes=crashes,
)
def test_whatever_counts_change_and_whenever_it_crashes_the_outcome_is_the_same(
    *, tmp_path_factory, fused, looks, counts, changes, probes
):
    draw = everything(looks, **counts)
    desk = Desk(tmp_path_factory.mktemp("counts"), draw, backend=Hurried)
    if fused:
        desk.backend = lambda _: Hurried(InSlots(compile_application(draw)))
    for probe in probes:
        with suppress(Crash):
            run(desk, changes, crash=probe)
    assert came(run(desk, changes)) == expected(looks)
    assert desk.faults() == []
