"""The plan changes between two launches: what was kept finds its place, or an error says what to do."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagkit import (
    Block,
    Dag,
    DelayOperator,
    InputOperator,
    InputPort,
    KeyedState,
    Operator,
    OperatorContext,
    OutputPort,
    Partition,
    PartitioningContext,
    PartitionKeys,
    State,
    StatelessPartitioner,
)
from dagkit.api.keyed import saved_keys
from dagkit.engine.checkpoint.compatibility import FindingsStranded, OperatorRenamed, ReaderReplaced, WorkStranded
from dagkit.engine.checkpoint.delays import ItemsStranded
from dagkit.engine.checkpoint.journal import AnotherApplication, FindingsLeft
from dagkit.engine.checkpoint.redistribute import StateStranded
from dagkit.engine.points import Point
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Collect, Desk, Digits, Draw, Hurried, Ranges, Script, arrived
from tests.examples import examples


class Tally(Operator):
    """How often each number came."""

    kind = "cast.tally/1"
    numbers = InputPort(int, key=lambda number: number)
    counts = KeyedState[int, int](int)

    def process(self, number: int) -> None:
        self.counts[number] += 1


class Total(Operator):
    """The sum of a partition's numbers."""

    kind = "cast.total/1"
    numbers = InputPort(int, key=lambda number: number)
    step: int = 1
    total = State(0)

    def process(self, number: int) -> None:
        self.total += number * self.step


def tallied(looks: tuple[tuple[int, ...], ...], partitions: int, name: str = "tally") -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        script = dag.add_operator("script", Script(looks=looks))
        tally = dag.add_operator(name, Tally())
        dag.set_operator_attribute(tally, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        script >> tally

    return draw


def counts(desk: Desk, windows: int | None = None, name: str = "tally") -> dict[int, int]:
    """What all partitions counted together; no two of them the same number."""
    loop = desk.run(windows=windows)
    states = loop.run_state.state.get(name, ())
    entries = [entry for state in states for entry in saved_keys(state.get("counts", {})).items()]
    assert len({text for text, _ in entries}) == len(entries)
    return {json.loads(text): value for text, (value, _) in entries}


@settings(max_examples=examples(20))
@given(
    looks=st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=9).map(tuple), min_size=2, max_size=4).map(tuple),
    partitions=st.lists(st.integers(1, 5), min_size=2, max_size=4),
)
def test_keyed_state_follows_its_keys_from_launch_to_launch(tmp_path_factory, looks, partitions):
    home = tmp_path_factory.mktemp("keyed")
    for count in partitions[:-1]:
        counts(Desk(home, tallied(looks, count)), windows=1)
    assert counts(Desk(home, tallied(looks, partitions[-1]))) == Counter(number for look in looks for number in look)


class Dealing(StatelessPartitioner):
    """Two partitions that own the even and the odd numbers, in one order or the other."""

    odd_first: bool = False

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        rests = (1, 0) if self.odd_first else (0, 1)
        return [Partition(partitions[0].operator, {"numbers": PartitionKeys(1, frozenset({rest}))}) for rest in rests]


def test_keyed_state_follows_its_keys_to_other_owners_where_the_count_stays(tmp_path):
    def draw(*, odd_first: bool) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            tally = dag.add_operator("tally", Tally())
            dag.set_operator_attribute(tally, OperatorContext.PARTITIONER, Dealing(2, odd_first=odd_first))
            dag.add_operator("script", Script(looks=((1, 2, 3), (1, 2, 3), (2,)))) >> tally

        return drawn

    assert counts(Desk(tmp_path, draw(odd_first=False)), windows=1) == {1: 1, 2: 1, 3: 1}
    assert counts(Desk(tmp_path, draw(odd_first=True)), windows=1) == {1: 2, 2: 2, 3: 2}
    assert counts(Desk(tmp_path, draw(odd_first=False))) == {1: 2, 2: 3, 3: 2}


def test_what_every_partition_learned_stays_with_each(tmp_path):
    class Knows(Operator):
        kind = "cast.knows/1"
        numbers = InputPort(int, key=lambda number: number)
        told = InputPort(int)
        known = KeyedState[int, int](int)

        @numbers.process
        def take_number(self, number: int) -> None:
            """Of these nothing is kept."""

        @told.process
        def take_told(self, number: int) -> None:
            self.known[number] += 1

    def draw(dag: Dag, conf: object) -> None:
        knows = dag.add_operator("knows", Knows())
        dag.set_operator_attribute(knows, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        script = dag.add_operator("script", Script(looks=((1, 2), (1, 2))))
        again = dag.add_operator("again", Script(looks=((1, 2), (1, 2))))
        dag.add_stream("numbers", script.out, knows.numbers)
        dag.add_stream("told", again.out, knows.told)

    Desk(tmp_path, draw).run(windows=1)
    states = Desk(tmp_path, draw).run().run_state.state["knows"]
    assert [{text: value for text, (value, _) in saved_keys(state["known"]).items()} for state in states] == [
        {"1": 2, "2": 2}
    ] * 2


def test_state_of_partitions_that_are_no_more_is_not_dropped(tmp_path):
    def draw(partitions: int) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            total = dag.add_operator("total", Total())
            dag.set_operator_attribute(total, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
            dag.add_operator("script", Script(looks=((1, 2, 3, 4, 5),))) >> total

        return drawn

    Desk(tmp_path, draw(3)).run()
    with pytest.raises(StateStranded, match="total has 2 partitions and had 3, and its state total"):
        Desk(tmp_path, draw(2)).run()
    assert sum(int(state.get("total", 0)) for state in Desk(tmp_path, draw(4)).run().run_state.state["total"]) == 15  # type: ignore[arg-type]


@pytest.mark.parametrize("now", [1, 2, 5])
@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED])
def test_a_promised_window_runs_again_on_other_readers(tmp_path, now, point):
    def draw(readers: int) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            digits = dag.add_operator("digits", Digits())
            dag.set_operator_attribute(digits, OperatorContext.PARTITIONER, StatelessPartitioner(readers))
            dag.add_operator("ranges", Ranges(looks=((4, 4, 4, 4, 4),))) >> digits
            digits >> dag.add_operator("collect", Collect())

        return drawn

    assert Desk(tmp_path, draw(4)).crash(CrashAfter(point, 1)) == 1
    desk = Desk(tmp_path, draw(now))
    assert sorted(arrived(desk.run())) == list(range(20))
    assert desk.faults() == []


def test_an_operator_that_was_added_joins_in(tmp_path):
    def draw(*, with_total: bool) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            script = dag.add_operator("script", Script(looks=((1,), (2,))))
            sinks = [dag.add_operator("tally", Tally()).numbers]
            if with_total:
                sinks.append(dag.add_operator("total", Total()).numbers)
            dag.add_stream("numbers", script.out, *sinks)

        return drawn

    Desk(tmp_path, draw(with_total=False)).run(windows=1)
    loop = Desk(tmp_path, draw(with_total=True)).run()
    assert loop.run_state.state["total"] == ({"total": 2},)
    assert len(loop.run_state.state["tally"][0]["counts"]) == 2  # type: ignore[arg-type]


def test_a_property_that_was_changed_holds_from_the_next_window_on(tmp_path):
    def draw(step: int) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            dag.add_operator("script", Script(looks=((1,), (2,)))) >> dag.add_operator("total", Total(step=step))

        return drawn

    Desk(tmp_path, draw(1)).run(windows=1)
    assert Desk(tmp_path, draw(10)).run().run_state.state["total"] == ({"total": 21},)


def test_an_operator_that_was_renamed_does_not_begin_again_unnoticed(tmp_path):
    looks = ((1, 2), (2, 3))
    Desk(tmp_path, tallied(looks, 2)).run(windows=1)
    with pytest.raises(
        OperatorRenamed,
        match=r"tally is gone and count is new, and the state counts of tally .*\n  help: .* its old name",
    ):
        Desk(tmp_path, tallied(looks, 2, name="count")).run()
    assert counts(Desk(tmp_path, tallied(looks, 2))) == {1: 1, 2: 2, 3: 1}


def test_blocks_that_wait_for_a_reader_that_was_renamed_are_not_lost(tmp_path):
    def draw(reader: str) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            digits = dag.add_operator(reader, Digits(waits_every=2))
            dag.add_operator("ranges", Ranges(looks=((9,),))) >> digits >> dag.add_operator("collect", Collect())

        return drawn

    Desk(tmp_path, draw("digits"), backend=Hurried).run(windows=1)
    with pytest.raises(
        WorkStranded, match=r"1 block waits for digits\.blocks, .*\n  help: did you mean 'digit\.blocks'"
    ):
        Desk(tmp_path, draw("digit")).run()
    assert arrived(Desk(tmp_path, draw("digits"), backend=Hurried).run()) == list(range(9))


def test_promised_work_for_a_reader_that_was_renamed_is_reported(tmp_path):
    def draw(reader: str) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            dag.add_operator("ranges", Ranges(looks=((9,),))) >> dag.add_operator(reader, Digits())

        return drawn

    Desk(tmp_path, draw("digits")).crash(CrashAfter(Point.PLANNED))
    with pytest.raises(WorkStranded, match=r"digits\.blocks"):
        Desk(tmp_path, draw("reader")).run()


class Whole(Operator):
    """Takes blocks as they are."""

    kind = "cast.whole/1"
    blocks = InputPort(Block)
    numbers = OutputPort(int)

    def process(self, block: Block) -> None:
        for position in range(block.start, block.end):
            self.numbers.emit(position)


@pytest.mark.parametrize("promised", [False, True])
def test_blocks_that_wait_for_a_reader_that_reads_no_more_are_reported(tmp_path, *, promised):
    def draw(reader: Operator) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            digits = dag.add_operator("digits", reader)
            dag.add_operator("ranges", Ranges(looks=((9,),))) >> digits >> dag.add_operator("collect", Collect())

        return drawn

    before = Desk(tmp_path, draw(Digits(waits_every=2)), backend=Hurried)
    if promised:
        before.crash(CrashAfter(Point.PLANNED, 2))
    else:
        before.run(windows=1)
    with pytest.raises(
        ReaderReplaced, match=r"1 block waits for digits\.blocks, and digits is no longer a splittable operator"
    ):
        Desk(tmp_path, draw(Whole())).run(windows=3)
    assert arrived(before.run()) == list(range(9))


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING])
def test_what_was_found_at_a_port_that_leads_nowhere_any_more_is_not_lost(tmp_path, point):
    def draw(source: type[InputOperator], looks: tuple[tuple[int, ...], ...], port: str, *, joined: bool) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            found = dag.add_operator("found", source(looks=looks))
            other = dag.add_operator("other", Script(looks=((1,),)))
            other >> dag.add_operator("counted", Collect())
            if joined and port == "blocks":
                whole = dag.add_operator("whole", Whole())
                dag.add_stream("joins", found.blocks, whole.blocks)
                whole >> dag.add_operator("collect", Collect())
            elif joined:
                found >> dag.add_operator("collect", Collect())

        return drawn

    for source, port, all_of_it in ((Script, "out", [1, 2, 3]), (Ranges, "blocks", [0, 1, 2, 3, 4, 5])):
        home = tmp_path / port
        before = Desk(home, draw(source, ((1, 2), (3,)), port, joined=True))
        assert before.crash(CrashAfter(point)) == 1
        with pytest.raises(FindingsStranded, match=rf"found emitted \d items? at {port} that no window has processed"):
            Desk(home, draw(source, ((1, 2), (3,)), port, joined=False)).run()
        assert arrived(before.run()) == all_of_it


class Round(Operator):
    """Lets each number go round until it is nothing."""

    kind = "cast.round/1"
    begin = InputPort(int)
    again = InputPort(int)
    output = OutputPort(int)
    seen = State[list[int]](list)

    @begin.process
    def on_begin(self, number: int) -> None:
        self._take(number)

    @again.process
    def on_again(self, number: int) -> None:
        self._take(number)

    def _take(self, number: int) -> None:
        self.seen.append(number)
        if number > 0:
            self.output.emit(number - 1)


def looping(name: str = "round", partitions: int = 1) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        script, turn = dag.add_operator("script", Script(looks=((5,),))), dag.add_operator(name, Round())
        dag.set_operator_attribute(turn, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        delay = dag.add_operator("delay", DelayOperator[int]())
        dag.add_stream("begin", script.out, turn.begin)
        dag.add_stream("round", turn.output, delay.input)
        dag.add_stream("again", delay.output, turn.again)

    return draw


def test_items_in_a_delay_for_an_input_that_was_renamed_are_not_lost(tmp_path):
    Desk(tmp_path, looping()).run(windows=2)
    with pytest.raises(WorkStranded, match=r"1 items were held back by a delay for round\.again"):
        Desk(tmp_path, looping("rounds")).run()
    assert Desk(tmp_path, looping()).run().run_state.state["round"] == ({"seen": [5, 4, 3, 2, 1, 0]},)


def test_items_in_a_delay_for_a_partition_that_is_no_more_are_not_lost(tmp_path):
    class Many(Round):
        kind = "cast.many/1"
        stateless = True

        def _take(self, number: int) -> None:
            if number > 0:
                self.output.emit(number - 1)

    def draw(partitions: int) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            script, turn = dag.add_operator("script", Script(looks=((5,),))), dag.add_operator("round", Many())
            dag.set_operator_attribute(turn, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
            delay = dag.add_operator("delay", DelayOperator[int]())
            dag.add_stream("begin", script.out, turn.begin)
            dag.add_stream("round", turn.output, delay.input)
            dag.add_stream("again", delay.output, turn.again)

        return drawn

    Desk(tmp_path, draw(3)).run(windows=2)
    with pytest.raises(ItemsStranded, match=r"partition 2 of round\.again, which now has 1"):
        Desk(tmp_path, draw(1)).run()


def fed(*scripts: str, looks: Any = ((1,), (2,))) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        for script in scripts:
            collect = dag.add_operator(f"{script}-total", Total())
            dag.add_operator(script, Script(looks=looks)) >> collect

    return draw


def test_an_input_operator_that_was_renamed_does_not_find_all_again_unnoticed(tmp_path):
    Desk(tmp_path, fed("a", "b")).run(windows=1)
    with pytest.raises(OperatorRenamed, match=r"b is gone and c is new, and the progress of b is kept under its name"):
        Desk(tmp_path, fed("a", "c")).run()


def test_an_input_operator_that_is_gone_leaves_nothing_unworked(tmp_path):
    Desk(tmp_path, fed("a", "b")).crash(CrashAfter(Point.PLANNED, 1))
    with pytest.raises(FindingsLeft, match="the input operator b is gone"):
        Desk(tmp_path, fed("a")).run()
    assert Desk(tmp_path, fed("a", "b")).run().run_state.state["b-total"] == ({"total": 3},)


def test_an_input_operator_may_go_when_all_that_it_found_is_done_and_another_may_come(tmp_path):
    Desk(tmp_path, fed("a", "b")).run()
    Desk(tmp_path, fed("a", looks=((1,), (2,), (3,)))).run()
    desk = Desk(tmp_path, fed("a", "c"))
    assert desk.run().run_state.state["c-total"] == ({"total": 3},)
    assert desk.faults() == []


def test_a_folder_remembers_one_application(tmp_path):
    def named(name: str) -> Desk:
        def draw(dag: Dag, conf: object) -> None:
            dag.add_operator("script", Script(looks=((1,),))) >> dag.add_operator("total", Total())

        draw.__module__ = name
        return Desk(tmp_path, draw)

    named("first").run()
    with pytest.raises(
        AnotherApplication, match=r"the ledger in .* belongs to first, and this application is called second"
    ):
        named("second").run()


@pytest.mark.parametrize("point", Point)
@pytest.mark.parametrize("window", [1, 2, 4])
def test_a_loop_goes_on_after_a_crash_at_any_step(tmp_path, point, window):
    desk = Desk(tmp_path, looping())
    desk.crash(CrashAfter(point, window), CrashAfter(point, window + 1))
    loop = desk.run()
    assert loop.run_state.state["round"] == ({"seen": [5, 4, 3, 2, 1, 0]},)
    assert loop.checkpoint.window == 6
    assert desk.faults() == []


def test_an_input_that_joins_others_does_not_rename_what_they_found(tmp_path):
    def draw(*names: str) -> Draw:
        def drawn(dag: Dag, conf: object) -> None:
            for name in names:
                digits = dag.add_operator(f"{name}-digits", Digits())
                dag.add_operator(name, Ranges(looks=((4,), (3, 2), (5,)))) >> digits
                digits >> dag.add_operator(f"{name}-collect", Collect())

        return drawn

    alone, both = Desk(tmp_path, draw("a")), Desk(tmp_path, draw("a", "b"))
    alone.run(windows=1)
    alone.crash(CrashAfter(Point.PLANNED))
    loop = both.run()
    assert [sorted(arrived(loop, f"{name}-collect")) for name in "ab"] == [list(range(14))] * 2
    assert both.faults() == []
