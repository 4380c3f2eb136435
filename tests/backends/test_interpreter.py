"""The reference runs small applications to answers that can be counted by hand."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from dagkit import (
    Dag,
    DelayOperator,
    InputOperator,
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    RowOperator,
    StatelessPartitioner,
    Unifier,
)
from dagkit.api.state import KeyedState, State
from dagkit.backends.reference import Interpreter
from dagkit.compiler import compile_application


@dataclass(frozen=True, slots=True)
class Count:
    word: str
    number: int


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
    """Keeps what arrives, for the test to look at."""

    input = InputPort[Any]()
    arrived: ClassVar[list[Any]] = []

    def process(self, item: Any) -> None:
        self.arrived.append(item)


@pytest.fixture(autouse=True)
def _nothing_arrived() -> Iterator[None]:
    Collect.arrived.clear()
    yield


def run(windows: int, draw: Any) -> Interpreter:
    interpreter = Interpreter(compile_application(draw))
    for _ in range(windows):
        interpreter.window()
    return interpreter


@pytest.mark.parametrize("partitions", [1, 2, 3, 5])
def test_counts_are_the_same_for_any_number_of_partitions(partitions: int) -> None:
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("a b a", "c a b")))
        count = dag.add_operator("count", CountWords())
        dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        words >> count >> dag.add_operator("collect", Collect())

    run(1, draw)
    assert Counter(Collect.arrived) == Counter([Count("a", 2), Count("b", 1)])
    Collect.arrived.clear()
    run(2, draw)
    assert Counter(Collect.arrived[2:]) == Counter([Count("a", 3), Count("b", 2), Count("c", 1)])


def test_a_key_is_counted_by_the_partition_that_owns_it() -> None:
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("a b c d e f g h",)))
        count = dag.add_operator("count", CountWords())
        dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(3))
        words >> count

    interpreter = run(1, draw)
    held = [sorted(partition.operator.counts) for partition in interpreter.live["count"]]
    assert sorted(word for words in held for word in words) == list("abcdefgh")
    assert all(held)


def test_a_parallel_chain_hands_each_item_on_in_its_partition() -> None:
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("x y z",)))
        first = dag.add_operator("first", Upper())
        second = dag.add_operator("second", Upper())
        dag.set_operator_attribute(first, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        dag.set_input_port_attribute(second.input, PortContext.PARTITION_PARALLEL, True)
        words >> first >> second >> dag.add_operator("collect", Collect())

    interpreter = run(1, draw)
    for one, other in zip(interpreter.live["first"], interpreter.live["second"], strict=True):
        assert one.sent["output"] == other.sent["output"]
    assert sorted(Collect.arrived) == ["X", "Y", "Z"]


def test_what_fans_out_reaches_every_reader() -> None:
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("x y",)))
        left, right = dag.add_operator("left", Upper()), dag.add_operator("right", Upper())
        words >> left >> dag.add_operator("c1", Collect())
        words >> right >> dag.add_operator("c2", Collect())

    run(1, draw)
    assert sorted(Collect.arrived) == ["X", "X", "Y", "Y"]


class Start(InputOperator):
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


def test_a_delayed_value_is_seen_in_the_next_window() -> None:
    def draw(dag: Dag, conf: object) -> None:
        start, total = dag.add_operator("start", Start()), dag.add_operator("sum", Sum())
        delay = dag.add_operator("delay", DelayOperator[int]())
        dag.add_stream("begin", start.out, total.begin)
        dag.add_stream("numbers", total.output, delay.input, dag.add_operator("collect", Collect()).input)
        dag.add_stream("again", delay.output, total.round_again)

    run(10, draw)
    assert Collect.arrived == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def test_an_application_window_spans_as_many_streaming_windows_as_it_counts() -> None:
    def draw(dag: Dag, conf: object) -> None:
        words = dag.add_operator("words", Words(windows=("a", "a", "a", "a")))
        count = dag.add_operator("count", CountWords())
        dag.set_operator_attribute(count, OperatorContext.APPLICATION_WINDOW_COUNT, 2)
        words >> count >> dag.add_operator("collect", Collect())

    run(4, draw)
    assert Collect.arrived == [Count("a", 2), Count("a", 4)]


def test_keyed_state_is_written_and_read_back_with_the_codes_of_its_keys() -> None:
    counting = CountWords()
    counting.counts.current_code = 7
    counting.process("a")
    counting.process("a")
    saved = CountWords.counts.saved(counting.counts)
    restored = CountWords.counts.restored(saved)
    assert saved == [["a", 2, 7]]
    assert (dict(restored), restored.codes) == ({"a": 2}, {"a": 7})


def test_a_key_that_no_item_brought_has_no_home() -> None:
    with pytest.raises(KeyError, match="no item is being processed"):
        CountWords().counts["a"] += 1
