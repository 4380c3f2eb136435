"""Operators of applications that backends run, and what leads to and comes from a window."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from dagkit import Batch, Dag, InputPort, KeyedState, OperatorContext, OutputPort, State, StatelessPartitioner
from dagkit.api.operators import InputOperator, Operator, RowOperator
from dagkit.compiler import Compilation, compile_application
from dagkit.engine.program.lower import program_of
from dagkit.engine.worker.outbox import Outbox
from dagkit.engine.worker.protocol import Answer


class Words(InputOperator):
    """A text for each window; without any, a test sends the words itself."""

    out = OutputPort(str)
    windows: tuple[str, ...] = ()
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at < len(self.windows):
            for word in self.windows[self.at].split():
                self.out.emit(word)
            self.at += 1


class Upper(RowOperator):
    input = InputPort(str)
    output = OutputPort(str)

    def process(self, item: str) -> Iterator[str]:
        yield item.upper()


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


class Round(Operator):
    """Sends what comes; what comes round again it keeps."""

    words = InputPort(str, main=True)
    again = InputPort(str)
    output = OutputPort(str)
    arrived = State[list[str]](list)

    @words.process
    def on_word(self, word: str) -> None:
        self.output.emit(word)

    @again.process
    def on_again(self, word: str) -> None:
        self.arrived.append(word)


def in_partitions(dag: Dag, operator: Any, count: int) -> Any:
    dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, StatelessPartitioner(count))
    return operator


def chained(dag: Dag, partitions: Mapping[str, int] | None = None, **operators: Operator) -> Any:
    """Add operators one behind the other, some of them in several partitions; return the last one."""
    added = {name: dag.add_operator(name, operator) for name, operator in operators.items()}
    for name, count in (partitions or {}).items():
        in_partitions(dag, added[name], count)
    for first, second in pairwise(added.values()):
        first >> second
    return [*added.values()][-1]


def chain(partitions: Mapping[str, int] | None = None, **operators: Operator) -> Compilation:
    return compile_application(lambda dag, _: chained(dag, partitions, **operators))


def counting(partitions: int) -> Compilation:
    return chain({"count": partitions}, words=Words(), count=Count(), collect=Collect())


def sent(compilation: Compilation, items: list[Any], source: str = "words", port: str = "out") -> tuple[Any, ...]:
    outbox = Outbox(0)
    for target in program_of(compilation).sources[source][port]:
        outbox.channel(target).batch(Batch.of(items))
    return tuple(outbox.rest())


def state_of(answer: Answer, operator: str) -> list[Any]:
    return [report.state[operator] for report in answer.reports if operator in report.state]


def states_in(answer: Answer) -> dict[tuple[int, int], Any]:
    """What the next window starts with."""
    return {(report.level, report.slot): report.state for report in answer.reports}


def lines_in(folder: Path) -> list[str]:
    return sorted(line for path in folder.rglob("*") if path.is_file() for line in path.read_text().splitlines())
