"""What every backend must do: small applications, window by window, to answers that can be counted by hand."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from dagkit import (
    Batch,
    Control,
    Dag,
    DelayOperator,
    Delivery,
    InputOperator,
    InputPort,
    KeyedState,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    RowOperator,
    State,
    StatelessPartitioner,
    Unifier,
)
from dagkit.api.controls import Stamped
from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.backends.spark import SparkBackend
from dagkit.compiler import Compilation, compile_application
from dagkit.engine.changes.reconfiguration import Scaling
from dagkit.engine.program.lower import program_of
from dagkit.engine.run.loop import Loop
from dagkit.engine.run.run_state import RunSettings, RunState
from dagkit.engine.worker.outbox import Arrived
from dagkit.engine.worker.protocol import Backend, WindowTask
from dagkit.engine.worker.slot import SlotRun
from dagkit.ledger import Ledger
from dagkit.ledger.stores import MemoryStore
from tests.backends.places import SPARK, SPARK_IN_TRIALS


@dataclass(frozen=True, slots=True)
class Count:
    word: str
    number: int

    def __str__(self) -> str:
        return f"{self.word} {self.number}"


class Words(InputOperator):
    """A text for each window."""

    out = OutputPort(str)
    windows: tuple[str, ...]
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at < len(self.windows):
            for word in self.windows[self.at].split():
                self.out.emit(word)
            self.at += 1


class AddUp(Unifier[Count]):
    """One count for each word, from those of all partitions."""

    counts = KeyedState[str, int](int)

    def process(self, item: Count) -> None:
        self.counts[item.word] += item.number

    def end_window(self) -> None:
        for word, number in self.counts.items():
            self.unified.emit(Count(word, number))


class CountWords(Operator):
    """How often each word came, so far."""

    words = InputPort(str)
    totals = OutputPort(Count, unifier=AddUp)
    counts = KeyedState[str, int](int)

    def process(self, word: str) -> None:
        self.counts[word] += 1

    def end_window(self) -> None:
        for word, number in self.counts.items():
            self.totals.emit(Count(word, number))


class Upper(RowOperator):
    input = InputPort(str)
    output = OutputPort(str)

    def process(self, item: str) -> Iterator[str]:
        yield item.upper()


class Collect(Operator):
    """Keeps what arrives, as text, for the test to look at."""

    input = InputPort[Any]()
    arrived = State[list[str]](list)

    def process(self, item: Any) -> None:
        self.arrived.append(str(item))


class Runs:
    """An application in a ledger of its own. Each window is run by a loop that knows nothing but that ledger."""

    def __init__(self, compilation: Compilation, backend: Backend) -> None:
        self.compilation = compilation
        self.backend = backend
        self.ledger = Ledger(MemoryStore())

    def window(self, *changes: Scaling) -> None:
        """Run one window, after requests for other counts, and forget all that is not in the ledger."""
        self.loop = Loop(
            RunState(self.compilation, self.backend, self.ledger, RunSettings("nowhere", until=Until.ONCE, windows=1))
        )
        for change in changes:
            self.loop.run_state.changing.request_change(change)
        self.loop.run()
        self.ledger.forget()

    def state_of(self, operator: str) -> Sequence[Mapping[str, Any]]:
        """The state that each partition was left in."""
        return self.loop.run_state.state.get(operator, ())


Start = Callable[[Any], Runs]


@pytest.fixture(params=["reference", SPARK_IN_TRIALS])
def start(request):
    """Compiles what a function draws, and starts it on one backend."""

    def on_reference(draw: Any) -> Runs:
        compilation = compile_application(draw)
        return Runs(compilation, ReferenceBackend(compilation))

    def on_spark(draw: Any) -> Runs:
        compilation = compile_application(draw)
        return Runs(compilation, SparkBackend(compilation, request.getfixturevalue("spark")))

    return on_reference if request.param == "reference" else on_spark


def collected(runs: Runs, windows: int, *collectors: str) -> list[str]:
    """What arrived at the collectors in so many windows, one partition after the other."""
    for _ in range(windows):
        runs.window()
    names = collectors or ("collect",)
    return [item for name in names for state in runs.state_of(name) for item in state.get("arrived", [])]


@pytest.mark.parametrize("partitions", [1, 2, 3, 5])
def test_counts_are_the_same_for_any_number_of_partitions(start, partitions):
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("a b a", "c a b")))
        count = dag.add_operator("count", CountWords())
        dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        words >> count >> dag.add_operator("collect", Collect())

    first = ["a 2", "b 1"]
    second = ["a 3", "b 2", "c 1"]
    assert sorted(collected(start(draw), 2)) == sorted(first + second)


@pytest.mark.parametrize("start", ["reference", SPARK], indirect=True)
def test_a_key_is_counted_by_the_partition_that_owns_it(start):
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("a b c d e f g h",)))
        count = dag.add_operator("count", CountWords())
        dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(3))
        words >> count

    runs = start(draw)
    runs.window()
    held = [[json.loads(text) for text in state["counts"]] for state in runs.state_of("count")]
    assert sorted(word for words in held for word in words) == list("abcdefgh")
    assert len([words for words in held if words]) == 3


def test_a_parallel_chain_hands_each_item_on_in_its_partition(start):
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("x y z",)))
        first = dag.add_operator("first", Upper())
        second = dag.add_operator("second", Upper())
        dag.set_operator_attribute(first, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        dag.set_input_port_attribute(second.input, PortContext.PARTITION_PARALLEL, True)
        collect = dag.add_operator("collect", Collect())
        dag.set_input_port_attribute(collect.input, PortContext.PARTITION_PARALLEL, True)
        words >> first >> second >> collect

    runs = start(draw)
    assert sorted(collected(runs, 1)) == ["X", "Y", "Z"]
    assert len(runs.state_of("collect")) == 2


def test_what_fans_out_reaches_every_reader(start):
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("x y",)))
        left, right = dag.add_operator("left", Upper()), dag.add_operator("right", Upper())
        words >> left >> dag.add_operator("c1", Collect())
        words >> right >> dag.add_operator("c2", Collect())

    assert sorted(collected(start(draw), 1, "c1", "c2")) == ["X", "X", "Y", "Y"]


@pytest.mark.parametrize("start", ["reference", SPARK], indirect=True)
def test_partitions_change_between_two_windows_and_what_is_counted_moves_along(start):
    def draw(dag: Dag, conf: object) -> None:
        count = dag.add_operator("count", CountWords())
        dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        dag.add_operator("words", Words(windows=("a b c d", "a b", "c", "a e"))) >> count
        count >> dag.add_operator("collect", Collect())

    runs, counts = start(draw), []
    for changes in ([], [Scaling("count", 3)], [], [Scaling("count", 1)]):
        runs.window(*changes)
        counts.append(len(runs.state_of("count")))
    assert counts == [2, 3, 3, 1]
    (arrived,) = runs.state_of("collect")
    windows = [sorted(arrived["arrived"][at : at + 4]) for at in (0, 4, 8)] + [sorted(arrived["arrived"][12:])]
    assert windows == [
        ["a 1", "b 1", "c 1", "d 1"],
        ["a 2", "b 2", "c 1", "d 1"],
        ["a 2", "b 2", "c 2", "d 1"],
        ["a 3", "b 2", "c 2", "d 1", "e 1"],
    ]


class Once(InputOperator):
    """Says once that it begins."""

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


@pytest.mark.parametrize("start", ["reference", SPARK], indirect=True)
def test_a_delayed_value_is_seen_in_the_next_window(start):
    def draw(dag: Dag, conf: object) -> None:
        start, total = dag.add_operator("start", Once()), dag.add_operator("sum", Sum())
        delay = dag.add_operator("delay", DelayOperator[int]())
        dag.add_stream("begin", start.out, total.begin)
        dag.add_stream("numbers", total.output, delay.input, dag.add_operator("collect", Collect()).input)
        dag.add_stream("again", delay.output, total.round_again)

    assert collected(start(draw), 10) == ["1", "1", "2", "3", "5", "8", "13", "21", "34", "55"]


class Noticed(DelayOperator[int]):
    """A delay that keeps what it receives."""

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


def test_a_delay_is_called_like_any_other_operator(start):
    def draw(dag: Dag, conf: object) -> None:
        start, total = dag.add_operator("start", Once()), dag.add_operator("sum", Sum())
        delay = dag.add_operator("delay", Noticed())
        dag.add_stream("begin", start.out, total.begin)
        dag.add_stream("numbers", total.output, delay.input)
        dag.add_stream("again", delay.output, total.round_again)

    runs = start(draw)
    for _ in range(2):
        runs.window()
    (state,) = runs.state_of("delay")
    assert state["heard"] == ["setup", "begin 1", "end", "setup", "committed 1", "begin 2", "end"]


def test_a_control_tuple_ends_at_a_delay():
    def draw(dag: Dag, conf: object) -> None:
        total, delay = dag.add_operator("sum", Sum()), dag.add_operator("delay", Noticed())
        dag.set_operator_attribute(total, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        dag.add_stream("begin", dag.add_operator("start", Once()).out, total.begin)
        dag.add_stream("numbers", total.output, delay.input)
        dag.add_stream("again", delay.output, total.round_again)

    program = program_of(compile_application(draw))
    (into,) = [target for target in program.targets.values() if target.into[0] == "delay"]
    run = SlotRun(program, into.level, 0, WindowTask(1), {})
    sent = list(
        run.run([Arrived(into.wire, Batch.of([Stamped(Hurry("now"), "1")])), Arrived(into.wire, Batch.of([7]))])
    )
    assert {item for each in sent for item in each.batch.items()} == {7}
    assert run.report().state["delay"]["heard"] == ["setup", "begin 1", "end"]


def test_an_application_window_spans_as_many_streaming_windows_as_it_counts(start):
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("a", "a", "a", "a")))
        count = dag.add_operator("count", CountWords())
        dag.set_operator_attribute(count, OperatorContext.APPLICATION_WINDOW_COUNT, 2)
        words >> count >> dag.add_operator("collect", Collect())

    assert collected(start(draw), 4) == ["a 2", "a 4"]


def test_keyed_state_is_written_and_read_back_with_the_codes_of_its_keys():
    counting = CountWords()
    counting.counts.current_code = 7
    counting.process("a")
    counting.process("a")
    saved = CountWords.counts.saved(counting.counts)
    restored = CountWords.counts.restored(saved)
    assert saved == {'"a"': [2, 7]}
    assert (dict(restored), restored.codes) == ({"a": 2}, {"a": 7})


def test_a_key_that_no_item_brought_has_no_home():
    with pytest.raises(KeyError, match="only the processing of an item can add a key"):
        CountWords().counts["a"] += 1


@dataclass(frozen=True)
class Mark(Control):
    """Ends a group of words."""

    name: str


@dataclass(frozen=True)
class Hurry(Control):
    """Reports an item as soon as it comes."""

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
    """Keeps control tuples among the items."""

    def process_control(self, control: Control) -> bool:
        self.arrived.append(str(control.name))  # type: ignore[attr-defined] # both kinds have one
        return False


class Deaf(Upper):
    """Sends control tuples on by itself, and only those that end groups."""

    def process_control(self, control: Control) -> bool:
        if isinstance(control, Mark):
            self.output.emit_control(Mark(control.name.upper()))
        return True


@pytest.mark.parametrize("start", ["reference", SPARK], indirect=True)
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_control_tuple_reaches_every_partition_once(start, partitions):
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Marked())
        upper, collect = dag.add_operator("upper", Upper()), dag.add_operator("collect", Listening())
        dag.set_operator_attribute(upper, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        dag.set_operator_attribute(collect, OperatorContext.PARTITIONER, StatelessPartitioner(3))
        words >> upper >> collect

    runs = start(draw)
    for _ in range(2):
        runs.window()
    held = [list(state["arrived"]) for state in runs.state_of("collect")]
    told = [sorted(item for item in arrived if " " in item) for arrived in held]
    assert told == [["hurry 1", "hurry 2", "mark 1", "mark 2"]] * 3
    assert sorted(item for arrived in held for item in arrived if " " not in item) == ["A1", "A2", "B1", "B2"]


def test_an_operator_may_take_over_what_goes_on(start):
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Marked())
        words >> dag.add_operator("deaf", Deaf()) >> dag.add_operator("collect", Listening())

    assert collected(start(draw), 2) == ["A1", "B1", "MARK 1", "A2", "B2", "MARK 2"]


def test_an_immediate_one_keeps_its_place_among_the_items_in_a_stage():
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Marked())
        words >> dag.add_operator("upper", Upper()) >> dag.add_operator("collect", Listening())

    compilation = compile_application(draw)
    program = program_of(compilation)
    (into,) = [target for outputs in program.sources.values() for ends in outputs.values() for target in ends]
    run = SlotRun(program, 0, 0, WindowTask(1), {})
    batches = [Batch.of(["a"]), Batch.of([Stamped(Hurry("now"), "1")]), Batch.of(["b"])]
    assert list(run.run(Arrived(into.wire, batch) for batch in batches)) == []
    assert run.report().state["collect"] == {"arrived": ["A", "now", "B"]}
