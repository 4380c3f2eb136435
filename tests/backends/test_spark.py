"""Windows as Spark jobs: what arrives, what is sent on, and what comes back to the driver."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from dagkit import (
    Batch,
    InputOperator,
    InputPort,
    KeyedState,
    Operator,
    OperatorContext,
    OutputPort,
    State,
    StatelessPartitioner,
)
from dagkit.backends.spark import SparkBackend
from dagkit.compiler import compile_application
from dagkit.engine.assignment import Answer, Assignment
from dagkit.engine.failures import OperatorFailed
from dagkit.engine.lower import program_of
from dagkit.engine.outbox import Outbox
from dagkit.engine.program import Program

pytestmark = [pytest.mark.slow, pytest.mark.spark]


class Words(InputOperator):
    out = OutputPort(str)


class Count(Operator):
    words = InputPort(str)
    totals = OutputPort(tuple)
    counts = KeyedState[str, int](int)

    def process(self, word: str) -> None:
        if word == "fail":
            raise ValueError("no such word")
        self.counts[word] += 1

    def end_window(self) -> None:
        for word, number in self.counts.items():
            self.totals.emit((word, number))


class Collect(Operator):
    input = InputPort[Any]()
    arrived = State[list[str]](list)

    def process(self, item: Any) -> None:
        self.arrived.append(str(item))


def program(draw: Any) -> Program:
    return program_of(compile_application(draw))


def counting(partitions: int) -> Program:
    def draw(dag: Any, conf: object) -> None:
        words = dag.add_operator("words", Words())
        count = dag.add_operator("count", Count())
        dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
        words >> count >> dag.add_operator("collect", Collect())

    return program(draw)


def sent(program: Program, items: list[Any], source: str = "words", port: str = "out") -> tuple[Any, ...]:
    outbox = Outbox(0)
    for target in program.sources[source][port]:
        outbox.slit(target).batch(Batch.of(items))
    return tuple(outbox.rest())


def state_of(answer: Answer, operator: str) -> list[Any]:
    return [report.state[operator] for report in answer.reports if operator in report.state]


@pytest.mark.parametrize("partitions", [1, 3])
def test_words_are_counted_over_windows(session: SparkSession, partitions: int) -> None:
    counting_words = counting(partitions)
    backend = SparkBackend(counting_words, session)
    state: Any = {}
    for window, text in enumerate(["a b a", "c a"], 1):
        answer = backend.run(Assignment(window, sent(counting_words, text.split()), state))
        state = {(report.level, report.slot): report.state for report in answer.reports}
    (collected,) = state_of(answer, "collect")
    assert sorted(collected["arrived"]) == sorted(map(str, [("a", 2), ("b", 1), ("a", 3), ("b", 1), ("c", 1)]))
    backend.close()


def test_what_an_operator_raises_arrives_as_a_failure(session: SparkSession) -> None:
    counting_words = counting(2)
    backend = SparkBackend(counting_words, session)
    with pytest.raises(OperatorFailed, match="no such word") as raised:
        backend.run(Assignment(1, sent(counting_words, ["a", "fail"])))
    assert (raised.value.failure.operator, raised.value.failure.window_id) == ("count", 1)
    assert "in process" in raised.value.failure.traceback
    backend.close()
