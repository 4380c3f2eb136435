"""What every backend must do: small applications, window by window, to answers that can be counted by hand."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from dagkit import Batch, Control, Dag, DelayOperator, Delivery, InputOperator, InputPort, Operator, OutputPort, State
from dagkit.api.controls import Stamped
from dagkit.api.running import Until
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.parts.running_plan import Scaling
from dagkit.engine.program.lower import program_of
from dagkit.engine.run.loop import Loop
from dagkit.engine.worker.outbox import Arrived
from dagkit.engine.worker.protocol import WindowTask
from dagkit.engine.worker.slot import SlotRun
from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from tests.backends.cast import Collect, Upper, Words, chain, chained, in_partitions
from tests.backends.cast import Count as CountPairs
from tests.backends.places import EVERYWHERE, ON_CONNECT, everywhere


class CountWords(CountPairs):
    totals = OutputPort(str)

    def end_window(self) -> None:
        for word, number in self.counts.items():
            self.totals.emit(f"{word} {number}")


class Runs:
    """An application in a ledger of its own. Each window is run by a loop that knows nothing but that ledger."""

    def __init__(self, make: Any, draw: Any) -> None:
        self.compilation = compile_application(draw)
        self.backend = make(self.compilation)
        self.ledger = Ledger(MemoryStore())

    def window(self, *changes: Scaling) -> None:
        """Run one window, after requests for other counts, and forget all that is not in the ledger."""
        settings = RunSettings("nowhere", until=Until.ONCE, windows=1)
        self.loop = Loop(RunState(self.compilation, self.backend, self.ledger, settings))
        for change in changes:
            self.loop.parts.changes.request_change(change)
        self.loop.run()
        self.ledger.forget()

    def state_of(self, operator: str) -> Sequence[Mapping[str, Any]]:
        return self.loop.state.get(operator, ())

    def collected(self, windows: int, *collectors: str) -> list[str]:
        """What arrived at the collectors in so many windows, one partition after the other."""
        for _ in range(windows):
            self.window()
        names = collectors or ("collect",)
        return [item for name in names for state in self.state_of(name) for item in state.get("arrived", [])]


@pytest.fixture
def start(make):
    return lambda draw: Runs(make, draw)


def counting(*windows: str, **partitions: int) -> Any:
    return lambda dag, _: chained(dag, partitions, words=Words(windows=windows), count=CountWords(), collect=Collect())


@pytest.mark.parametrize("make", [*EVERYWHERE, ON_CONNECT], indirect=True)
@pytest.mark.parametrize("partitions", [1, 3])
def test_counts_are_the_same_for_any_number_of_partitions_and_each_owns_its_keys(start, partitions):
    runs = start(counting("a b a", "c a b d e f g h", count=partitions))
    first, second = ["a 2", "b 1"], ["a 3", "b 2", *(f"{word} 1" for word in "cdefgh")]
    assert sorted(runs.collected(2)) == sorted(first + second)
    held = [[json.loads(text) for text in state["counts"]] for state in runs.state_of("count")]
    assert sorted(word for words in held for word in words) == list("abcdefgh")
    assert len([words for words in held if words]) == partitions


class Pair(Operator):
    near = InputPort(tuple)
    far = InputPort(str)
    arrived = State[list[str]](list)

    @near.process
    def on_near(self, item: Any) -> None:
        self.arrived.append(f"near {item}")

    @far.process
    def on_far(self, item: str) -> None:
        self.arrived.append(f"far {item}")


@everywhere
def test_what_skips_a_level_passes_through_it(start):
    def draw(dag: Dag, conf: object) -> None:
        count = chained(
            dag, {"upper": 2, "count": 3}, words=Words(windows=("a b a",)), upper=Upper(), count=CountPairs()
        )
        pair = dag.add_operator("pair", Pair())
        dag.operator("upper").output >> pair.far
        count.totals >> pair.near

    runs = start(draw)
    assert program_of(runs.compilation).levels == 3
    assert sorted(runs.collected(1, "pair")) == ["far A", "far A", "far B", "near ('A', 2)", "near ('B', 1)"]


@everywhere
def test_partitions_change_between_two_windows_and_what_is_counted_moves_along(start):
    runs, counts = start(counting("a b c d", "a b", "c", "a e", count=2)), []
    for changes in ([], [Scaling("count", 3)], [], [Scaling("count", 1)]):
        runs.window(*changes)
        counts.append(len(runs.state_of("count")))
    assert counts == [2, 3, 3, 1]
    (arrived,) = runs.state_of("collect")
    windows = ["a 1 b 1 c 1 d 1", "a 2 b 2 c 1 d 1", "a 2 b 2 c 2 d 1", "a 3 b 2 c 2 d 1 e 1"]
    ends = [(0, 4), (4, 8), (8, 12), (12, None)]
    assert [" ".join(sorted(arrived["arrived"][start:end])) for start, end in ends] == windows


class Once(InputOperator):
    out = OutputPort(int)
    said = State[bool](False)

    def emit_tuples(self) -> None:
        if not self.said:
            self.said = True
            self.out.emit(1)


class Sum(Operator):
    """Adds what comes round to what it was before: the numbers of Fibonacci."""

    begin = InputPort(int)
    round_again = InputPort(int)
    output = OutputPort(int)
    before = State(0)

    @begin.process
    def on_begin(self, number: int) -> None:
        self.output.emit(number)

    @round_again.process
    def on_round(self, number: int) -> None:
        self.output.emit(number + self.before)
        self.before = number


class Noticed(DelayOperator[int]):
    heard = State[list[str]](list)

    def setup(self, context: Any) -> None:
        self.heard.append("setup")

    def begin_window(self, window_id: int) -> None:
        self.heard.append(f"begin {window_id}")

    def process_control(self, control: Control) -> bool:
        self.heard.append("control")
        return False

    def end_window(self) -> None:
        self.heard.append("end")

    def committed(self, window_id: int) -> None:
        self.heard.append(f"committed {window_id}")


def in_a_circle(dag: Dag, conf: object, partitions: int = 1) -> None:
    total, delay = in_partitions(dag, dag.add_operator("sum", Sum()), partitions), dag.add_operator("delay", Noticed())
    dag.add_stream("begin", dag.add_operator("start", Once()).out, total.begin)
    dag.add_stream("numbers", total.output, delay.input, dag.add_operator("collect", Collect()).input)
    dag.add_stream("again", delay.output, total.round_again)


@pytest.mark.parametrize("make", [*EVERYWHERE, ON_CONNECT], indirect=True)
def test_a_delayed_value_is_seen_in_the_next_window_and_a_delay_called_like_any_other_operator(start):
    runs = start(in_a_circle)
    runs.collected(2)
    heard = ["setup", "begin 1", "end", "setup", "committed 1", "begin 2", "end"]
    assert [state["heard"] for state in runs.state_of("delay")] == [heard]
    assert runs.collected(8) == ["1", "1", "2", "3", "5", "8", "13", "21", "34", "55"]


def test_a_control_tuple_ends_at_a_delay():
    program = program_of(compile_application(lambda dag, conf: in_a_circle(dag, conf, 2)))
    (into,) = [target for target in program.targets.values() if target.into[0] == "delay"]
    run = SlotRun(program, into.level, 0, WindowTask(1), {})
    batches = [Batch.of([Stamped(Hurry("now"), "1")]), Batch.of([7])]
    sent = list(run.run(Arrived(into.wire, batch) for batch in batches))
    assert {item for each in sent for item in each.batch.items()} == {7}
    assert run.report().state["delay"]["heard"] == ["setup", "begin 1", "end"]


def test_a_key_that_no_item_brought_has_no_home():
    with pytest.raises(KeyError, match="only the processing of an item can add a key"):
        CountWords().counts["a"] += 1


@dataclass(frozen=True)
class Mark(Control):
    name: str


@dataclass(frozen=True)
class Hurry(Control):
    delivery = Delivery.IMMEDIATE
    name: str


class Marked(InputOperator):
    """A word, a control tuple of each kind, and a word, in each window."""

    out = OutputPort(str, controls=(Mark, Hurry))
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at < 2:
            self.at += 1
            self.out.emit(f"a{self.at}")
            self.out.emit_control(Mark(f"mark {self.at}"))
            self.out.emit_control(Hurry(f"hurry {self.at}"))
            self.out.emit(f"b{self.at}")


class Listening(Collect):
    def process_control(self, control: Control) -> bool:
        self.arrived.append(str(control.name))
        return False


class Deaf(Upper):
    """Sends control tuples on by itself, and only those that end groups."""

    def process_control(self, control: Control) -> bool:
        if isinstance(control, Mark):
            self.output.emit_control(Mark(control.name.upper()))
        return True


@everywhere
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_control_tuple_reaches_every_partition_once(start, partitions):
    counts = {"upper": partitions, "collect": 3}
    runs = start(lambda dag, _: chained(dag, counts, words=Marked(), upper=Upper(), collect=Listening()))
    runs.collected(2)
    held = [list(state["arrived"]) for state in runs.state_of("collect")]
    assert [sorted(item for item in arrived if " " in item) for arrived in held] == [
        ["hurry 1", "hurry 2", "mark 1", "mark 2"]
    ] * 3
    assert sorted(item for arrived in held for item in arrived if " " not in item) == ["A1", "A2", "B1", "B2"]


def test_an_operator_may_take_over_what_goes_on(start):
    runs = start(lambda dag, _: chained(dag, words=Marked(), deaf=Deaf(), collect=Listening()))
    assert runs.collected(2) == ["A1", "B1", "MARK 1", "A2", "B2", "MARK 2"]


def test_an_immediate_one_keeps_its_place_among_the_items_in_a_stage():
    program = program_of(chain(words=Marked(), upper=Upper(), collect=Listening()))
    (into,) = [target for outputs in program.sources.values() for ends in outputs.values() for target in ends]
    run = SlotRun(program, 0, 0, WindowTask(1), {})
    batches = [Batch.of(["a"]), Batch.of([Stamped(Hurry("now"), "1")]), Batch.of(["b"])]
    assert list(run.run(Arrived(into.wire, batch) for batch in batches)) == []
    assert run.report().state["collect"] == {"arrived": ["A", "now", "B"]}
