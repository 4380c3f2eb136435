"""The plan changes between two launches: what was kept finds its place, or an error says what to do."""

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
from dagkit.engine.program.points import Point
from dagkit.errors import RunFailure
from dagkit.testing.crashes import CrashAfter
from tests.engine.cast import Collect, Desk, Digits, Draw, Hurried, Ranges, Script, arrived
from tests.engine.parts.cast import Tally, Total, chained, kept
from tests.examples import examples


def tallied(looks: tuple[tuple[int, ...], ...], partitions: int, name: str = "tally") -> Draw:
    return chained({"script": Script(looks=looks), name: Tally()}, **{name: partitions})


@settings(max_examples=examples(20))
@given(
    looks=st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=9).map(tuple), min_size=2, max_size=4).map(tuple),
    partitions=st.lists(st.integers(1, 5), min_size=2, max_size=4),
)
def test_keyed_state_follows_its_keys_from_launch_to_launch(tmp_path_factory, looks, partitions):
    home = tmp_path_factory.mktemp("keyed")
    for count in partitions[:-1]:
        kept(Desk(home, tallied(looks, count)).run(windows=1))
    found = kept(Desk(home, tallied(looks, partitions[-1])).run())
    assert found == Counter(number % 10 for look in looks for number in look)


class Dealing(StatelessPartitioner):
    """Two partitions that own the even and the odd numbers, in one order or the other."""

    odd_first: bool = False

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        rests = (1, 0) if self.odd_first else (0, 1)
        return [Partition(partitions[0].operator, {"numbers": PartitionKeys(1, frozenset({rest}))}) for rest in rests]


def test_keyed_state_follows_its_keys_to_other_owners_where_the_count_stays(tmp_path):
    def desk(*, odd_first: bool) -> Desk:
        script = Script(looks=((1, 3), (1, 2, 3), (2,)))
        return Desk(tmp_path, chained({"script": script, "tally": Tally()}, tally=Dealing(2, odd_first=odd_first)))

    assert kept(desk(odd_first=False).run(windows=1)) == {1: 1, 3: 1}
    assert kept(desk(odd_first=True).run(windows=1)) == {1: 2, 2: 1, 3: 2}
    assert kept(desk(odd_first=False).run()) == {1: 2, 2: 2, 3: 2}


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
        for name, port in (("script", knows.numbers), ("again", knows.told)):
            dag.add_stream(name, dag.add_operator(name, Script(looks=((1, 2), (1, 2)))).out, port)

    Desk(tmp_path, draw).run(windows=1)
    states = Desk(tmp_path, draw).run().state["knows"]
    known = [{text: value for text, (value, _) in saved_keys(state["known"]).items()} for state in states]
    assert known == [{"1": 2, "2": 2}] * 2


def test_state_of_partitions_that_are_no_more_is_not_dropped(tmp_path):
    def desk(partitions: int) -> Desk:
        chain = {"script": Script(looks=((1, 2, 3, 4, 5),)), "total": Total()}
        return Desk(tmp_path, chained(chain, total=partitions))

    desk(3).run()
    with pytest.raises(RunFailure, match="total has 2 partitions and had 3, and its state total"):
        desk(2).run()
    assert sum(state.get("total", 0) for state in desk(4).run().state["total"]) == 15


def reading(reader: Operator, name: str = "digits", *, looks: Any = ((9,),), readers: int = 1) -> Draw:
    return chained({"ranges": Ranges(looks=looks), name: reader, "collect": Collect()}, **{name: readers})


@pytest.mark.parametrize("now", [1, 2, 5])
@pytest.mark.parametrize("point", [Point.PLANNED, Point.STAGED])
def test_a_promised_window_runs_again_on_other_readers(tmp_path, now, point):
    def desk(readers: int) -> Desk:
        return Desk(tmp_path, reading(Digits(), looks=((4, 4, 4, 4, 4),), readers=readers))

    assert desk(4).crash(CrashAfter(point, 1)) == 1
    assert sorted(arrived(desk(now).run())) == list(range(20))
    assert desk(now).faults() == []


def test_an_added_operator_joins_in_and_a_changed_property_holds_from_the_next_window_on(tmp_path):
    def chains(step: int | None) -> Desk:
        script = Script(looks=((1,), (2,), (3,)))
        added = [] if step is None else [{"script": script, "total": Total(step=step)}]
        return Desk(tmp_path, chained({"script": script, "tally": Tally()}, *added))

    chains(None).run(windows=1)
    chains(1).run(windows=1)
    loop = chains(10).run()
    assert loop.state["total"] == ({"total": 32},)
    assert kept(loop) == {1: 1, 2: 1, 3: 1}


def test_an_operator_that_was_renamed_does_not_begin_again_unnoticed(tmp_path):
    looks = ((1, 2), (2, 3))
    Desk(tmp_path, tallied(looks, 2)).run(windows=1)
    told = r"tally is gone and count is new, and the state counts of tally .*\n  help: .* its old name"
    with pytest.raises(RunFailure, match=told):
        Desk(tmp_path, tallied(looks, 2, name="count")).run()
    assert kept(Desk(tmp_path, tallied(looks, 2)).run()) == {1: 1, 2: 2, 3: 1}


class Whole(Operator):
    kind = "cast.whole/1"
    blocks = InputPort(Block)
    numbers = OutputPort(int)

    def process(self, block: Block) -> None:
        for position in range(block.start, block.end):
            self.numbers.emit(position)


RENAMED = (RunFailure, r"1 block waits for digits\.blocks, .*\n  help: did you mean 'digit\.blocks'")
NO_READER = (RunFailure, r"1 block waits for digits\.blocks, and digits is no longer a splittable operator")


@pytest.mark.parametrize("promised", [False, True], ids=["waiting", "promised"])
@pytest.mark.parametrize(
    ("after", "error"),
    [(reading(Digits(), "digit"), RENAMED), (reading(Whole()), NO_READER)],
    ids=["renamed", "no reader any more"],
)
def test_blocks_for_a_reader_that_was_renamed_or_reads_no_more_are_not_lost(tmp_path, promised, after, error):
    before = Desk(tmp_path, reading(Digits(waits_every=2)), backend=Hurried)
    if promised:
        before.crash(CrashAfter(Point.PLANNED, 2))
    else:
        before.run(windows=1)
    with pytest.raises(error[0], match=error[1]):
        Desk(tmp_path, after).run(windows=3)
    assert arrived(before.run()) == list(range(9))


@pytest.mark.parametrize("point", [Point.PLANNED, Point.RUNNING])
@pytest.mark.parametrize(
    ("source", "port", "sinks", "all_of_it"),
    [(Script, "out", {}, [1, 2, 3]), (Ranges, "blocks", {"whole": Whole()}, [0, 1, 2, 3, 4, 5])],
)
def test_what_was_found_at_a_port_that_leads_nowhere_any_more_is_not_lost(
    tmp_path, *, point, source, port, sinks, all_of_it
):
    def desk(**sinks: Operator) -> Desk:
        other = {"other": Script(looks=((1,),)), "counted": Collect()}
        return Desk(tmp_path, chained({"found": source(looks=((1, 2), (3,))), **sinks}, other))

    before = desk(**sinks, collect=Collect())
    assert before.crash(CrashAfter(point)) == 1
    with pytest.raises(RunFailure, match=rf"found emitted \d items? at {port} that no window has processed"):
        desk().run()
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


class Many(Round):
    """Remembers nothing, so its count may change."""

    kind = "cast.many/1"
    stateless = True

    def _take(self, number: int) -> None:
        if number > 0:
            self.output.emit(number - 1)


def looping(name: str = "round", partitions: int = 1, kind: type[Round] = Round) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        script, turn = dag.add_operator("script", Script(looks=((5,),))), dag.add_operator(name, kind())
        dag.set_operator_attribute(turn, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        delay = dag.add_operator("delay", DelayOperator[int]())
        dag.add_stream("begin", script.out, turn.begin)
        dag.add_stream("round", turn.output, delay.input)
        dag.add_stream("again", delay.output, turn.again)

    return draw


def test_items_in_a_delay_for_an_input_that_was_renamed_are_not_lost(tmp_path):
    Desk(tmp_path, looping()).run(windows=2)
    with pytest.raises(RunFailure, match=r"1 items were held back by a delay for round\.again"):
        Desk(tmp_path, looping("rounds")).run()
    assert Desk(tmp_path, looping()).run().state["round"] == ({"seen": [5, 4, 3, 2, 1, 0]},)


def test_items_in_a_delay_for_a_partition_that_is_no_more_are_not_lost(tmp_path):
    Desk(tmp_path, looping(partitions=3, kind=Many)).run(windows=2)
    with pytest.raises(RunFailure, match=r"partition 2 of round\.again, which now has 1"):
        Desk(tmp_path, looping(kind=Many)).run()


@pytest.mark.parametrize("point", Point)
@pytest.mark.parametrize("window", [1, 2, 4])
def test_a_loop_goes_on_after_a_crash_at_any_step(tmp_path, point, window):
    desk = Desk(tmp_path, looping())
    desk.crash(CrashAfter(point, window), CrashAfter(point, window + 1))
    loop = desk.run()
    assert loop.state["round"] == ({"seen": [5, 4, 3, 2, 1, 0]},)
    assert loop.checkpoint.window == 6
    assert desk.faults() == []


def fed(*scripts: str, looks: Any = ((1,), (2,))) -> Draw:
    return chained(*({script: Script(looks=looks), f"{script}-total": Total()} for script in scripts))


def test_an_input_operator_that_was_renamed_does_not_find_all_again_unnoticed(tmp_path):
    Desk(tmp_path, fed("a", "b")).run(windows=1)
    with pytest.raises(RunFailure, match=r"b is gone and c is new, and the progress of b is kept under its name"):
        Desk(tmp_path, fed("a", "c")).run()


def test_an_input_operator_that_is_gone_leaves_nothing_unworked(tmp_path):
    Desk(tmp_path, fed("a", "b")).crash(CrashAfter(Point.PLANNED, 1))
    with pytest.raises(RunFailure, match="the input operator b is gone"):
        Desk(tmp_path, fed("a")).run()
    assert Desk(tmp_path, fed("a", "b")).run().state["b-total"] == ({"total": 3},)


def test_an_input_operator_may_go_when_all_that_it_found_is_done_and_another_may_come(tmp_path):
    Desk(tmp_path, fed("a", "b")).run()
    Desk(tmp_path, fed("a", looks=((1,), (2,), (3,)))).run()
    desk = Desk(tmp_path, fed("a", "c"))
    assert desk.run().state["c-total"] == ({"total": 3},)
    assert desk.faults() == []


def test_a_folder_remembers_one_application(tmp_path):
    def named(name: str) -> Desk:
        draw = chained({"script": Script(looks=((1,),)), "total": Total()})
        draw.__module__ = name
        return Desk(tmp_path, draw)

    named("first").run()
    told = r"the ledger in .* belongs to first, and this application is called second"
    with pytest.raises(RunFailure, match=told):
        named("second").run()


def test_an_input_that_joins_others_does_not_rename_what_they_found(tmp_path):
    def desk(*names: str) -> Desk:
        looks = ((4,), (3, 2), (5,))
        chains = [{n: Ranges(looks=looks), f"{n}-digits": Digits(), f"{n}-collect": Collect()} for n in names]
        return Desk(tmp_path, chained(*chains))

    desk("a").run(windows=1)
    desk("a").crash(CrashAfter(Point.PLANNED))
    loop = desk("a", "b").run()
    assert [sorted(arrived(loop, f"{name}-collect")) for name in "ab"] == [list(range(14))] * 2
    assert desk("a", "b").faults() == []
