"""The applications whose ledgers of an earlier dagkit are kept: they read and write in memory, so no path changes."""

from collections.abc import Iterator
from typing import Any

import fsspec

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
    SplittableOperator,
    State,
    StatelessPartitioner,
)
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit_operators import FileSplitterInput, Filter, LineReader, RecordWriter

IN, OUT = "memory://before/in", "memory://before/out"
ROUNDS = 1010


def write_inputs() -> None:
    """Put the files in place that the applications read, and nothing else."""
    memory = fsspec.filesystem("memory")
    if memory.exists("/before"):
        memory.rm("/before", recursive=True)
    for file in range(3):
        lines = "".join(f"{'#' if n % 4 == 3 else ''}{file}:{n} {'x' * (n * 7 % 23)}\n" for n in range(60))
        memory.pipe(f"/before/in/{file}.txt", lines.encode())


def outputs() -> dict[str, bytes]:
    memory = fsspec.filesystem("memory")
    found: list[str] = memory.find("/before/out")
    return {path: memory.cat(path) for path in found}


def lines(dag: Dag, conf: object) -> None:
    """Lines of files in, some of them out, a file for each block."""
    splitter = dag.add_operator("splitter", FileSplitterInput(scanner={"files": [IN]}, block_size=400))
    reader = dag.add_operator("reader", LineReader(min_readers=2, chunk_size=16))
    keep = dag.add_operator("filter", Filter(lambda line: not line.startswith("#")))
    writer = dag.add_operator("writer", RecordWriter(file_path=OUT))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, keep.input)
    dag.add_stream("kept", keep.output, writer.input)
    for port in (keep.input, writer.input):
        dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)


class Names(InputOperator):
    """Emits names, two in each look."""

    kind = "before.names/1"
    names = OutputPort[tuple[str, int]]()
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at < 8:
            for name in range(self.at, self.at + 2):
                self.names.emit((f"n{name}", 5 + name))
            self.at += 2


class Twice(RowOperator):
    kind = "before.twice/1"
    name = InputPort[tuple[str, int]]()
    names = OutputPort[tuple[str, int]]()

    def process(self, item: tuple[str, int]) -> Iterator[tuple[str, int]]:
        yield item[0] + "a", item[1]
        yield item[0] + "b", item[1]


class Numbered(SplittableOperator[tuple[str, int]]):
    """Emits each number below that of a name."""

    kind = "before.numbered/1"
    names = InputPort[tuple[str, int]]()
    numbers = OutputPort[int]()

    def initial_restriction(self, element: tuple[str, int]) -> OffsetRange:
        return OffsetRange(0, element[1])

    def process(self, element: tuple[str, int], tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
        number = tracker.current_restriction().start
        while tracker.try_claim(number):
            yield number
            number += 1


class Halved(Operator):
    """Keeps the numbers that come, and sends the half of each on its way round."""

    kind = "before.halved/1"
    numbers = InputPort[int]()
    returned = InputPort[int](optional=True)
    halves = OutputPort[int]()
    kept = State[list[int]](list)

    @numbers.process
    def take(self, number: int) -> None:
        self.kept.append(number)
        if number > 1:
            self.halves.emit(number // 2)

    @returned.process
    def take_half(self, number: int) -> None:
        self.take(number)


class Again(DelayOperator[int]):
    kind = "before.again/1"
    input = InputPort[int]()
    output = OutputPort[int]()


def counts(dag: Dag, conf: object) -> None:
    """Names of a root and of the middle of a graph, numbered; halves of the numbers go round by a delay."""
    names = dag.add_operator("names", Names())
    twice = dag.add_operator("twice", Twice())
    plain = dag.add_operator("plain", Numbered())
    numbered = dag.add_operator("numbered", Numbered())
    dag.set_operator_attribute(numbered, OperatorContext.PARTITIONER, StatelessPartitioner(2))
    halved = dag.add_operator("halved", Halved())
    kept = dag.add_operator("kept", Halved())
    again = dag.add_operator("again", Again())
    dag.add_stream("names", names.names, twice.name, plain.names)
    dag.add_stream("doubled", twice.names, numbered.names)
    dag.add_stream("numbers", numbered.numbers, halved.numbers)
    dag.add_stream("plain numbers", plain.numbers, kept.numbers)
    dag.add_stream("halves", halved.halves, again.input)
    dag.add_stream("back", again.output, halved.returned)


class Start(InputOperator):
    kind = "before.start/1"
    numbers = OutputPort[int]()
    began = State(False)

    def emit_tuples(self) -> None:
        if not self.began:
            self.began = True
            self.numbers.emit(ROUNDS)


class Countdown(Operator):
    """Adds up the numbers that arrive, and sends the next lower number on its way round."""

    kind = "before.countdown/1"
    start = InputPort[int]()
    returned = InputPort[int](optional=True)
    next = OutputPort[int]()
    total = State(0)

    @start.process
    def take(self, number: int) -> None:
        self.total += number
        if number > 1:
            self.next.emit(number - 1)

    @returned.process
    def take_returned(self, number: int) -> None:
        self.take(number)


def rounds(dag: Dag, conf: object) -> None:
    """A number that a delay returns in each window: more windows than one segment of a chain holds."""
    start = dag.add_operator("start", Start())
    countdown = dag.add_operator("countdown", Countdown())
    again = dag.add_operator("again", Again())
    dag.add_stream("start", start.numbers, countdown.start)
    dag.add_stream("next", countdown.next, again.input)
    dag.add_stream("back", again.output, countdown.returned)


APPLICATIONS: dict[str, Any] = {"lines": lines, "counts": counts, "rounds": rounds}
