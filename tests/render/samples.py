"""Applications and plans small enough to see, as the drawings' tests use them."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from dagkit.api.attributes import DagContext, OperatorContext, PortContext
from dagkit.api.dag import Dag
from dagkit.api.operators import DelayOperator, InputOperator, Operator, RowOperator, Unifier
from dagkit.api.partitioning import StatelessPartitioner
from dagkit.api.ports import InputPort, OutputPort
from dagkit.compiler import compile_application
from dagkit.graph import graph_of


class FileBlock:
    """A range of a file."""


class Line:
    """A line of text."""


class Word:
    """A word of a line."""


class FileSplitter(InputOperator):
    blocks_metadata_output = OutputPort(FileBlock)
    files_metadata_output = OutputPort(str)


class LineReader(Operator):
    blocks_metadata_input = InputPort(FileBlock)
    messages = OutputPort(Line)
    blocks_metadata_output = OutputPort(FileBlock)

    def process(self, item: FileBlock) -> None: ...


class Filter(RowOperator):
    input = InputPort(Line)
    output = OutputPort(Line, main=True)
    rejected = OutputPort(Line)

    def process(self, item: Any) -> Iterator[Any]:
        yield item


class RecordWriter(Operator):
    input = InputPort(Line)
    control = InputPort(str, optional=True)

    def process(self, item: Line) -> None: ...


class Split(RowOperator):
    lines = InputPort(Line)
    words = OutputPort(Word)

    def process(self, item: Any) -> Iterator[Any]:
        yield item


class Count(Operator):
    words = InputPort(Word)
    feedback = InputPort(dict[str, int], optional=True)
    counts = OutputPort(dict[str, int])

    def process(self, item: Word) -> None: ...


class Merge(Operator):
    left = InputPort(Line, optional=True)
    right = InputPort(Line, optional=True)
    merged = OutputPort(Line)
    late = OutputPort(Line)


class Delay(DelayOperator[dict[str, int]]):
    pass


def line_filter(*, parallel=True):
    """The example: a splitter, and a reader, a filter and a writer in parallel."""
    dag = Dag()
    splitter, reader = dag.add_operator("File-splitter", FileSplitter()), dag.add_operator("Block-reader", LineReader())
    keep, writer = dag.add_operator("Filter", Filter()), dag.add_operator("Record-writer", RecordWriter())
    dag.add_stream("file-block metadata", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("records", reader.messages, keep.input).set_locality("THREAD_LOCAL")
    dag.add_stream("filtered-records", keep.output, writer.input)
    for inlet in (keep.input, writer.input) if parallel else ():
        dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
    return dag


def word_count(partitions=3):
    """A fan-out, a join with itself through a delay, and a count with several partitions."""
    dag = Dag()
    splitter, reader = dag.add_operator("files", FileSplitter()), dag.add_operator("reader", LineReader())
    split, count = dag.add_operator("split", Split()), dag.add_operator("count", Count())
    delay, archive = dag.add_operator("last window", Delay()), dag.add_operator("archive", RecordWriter())
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, split.lines, archive.input)
    dag.add_stream("words", split.words, count.words)
    dag.add_stream("counts", count.counts, delay.input)
    dag.add_stream("counts so far", delay.output, count.feedback)
    dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
    return dag


def layered(ranks, width):
    """A graph of `ranks` by `width` operators; each reads the one above it, and every third its neighbour too."""
    dag = Dag()
    above: list[Any] = []
    for rank in range(ranks):
        row: list[Any] = []
        for column in range(width):
            name = f"{('ingest', 'parse-records', 'enrich with customers', 'route', 'write')[rank % 5]} {rank}-{column}"
            if not above:
                row.append(dag.add_operator(name, LineSource()))
                continue
            row.append(dag.add_operator(name, Merge()))
            _feed(dag, above[column], row[column].left, f"rows {rank}-{column}")
            if column % 3 == 1:
                _feed(dag, above[column - 1], row[column].right, f"rows {rank}-{column - 1}")
        above = row
    return dag


class LineSource(InputOperator):
    lines = OutputPort(Line)


def _feed(dag, above, inlet, name):
    outlet = above.lines if isinstance(above, LineSource) else above.merged
    drawn = next((s for s in dag.streams if s.source is not None and s.source.operator is above), None)
    if drawn is None:
        dag.add_stream(name, outlet, inlet)
    else:
        drawn.add_sink(inlet)


def graph(dag, name="Sample"):
    return graph_of(dag, name)[0]


def planned(dag, name, counts=MappingProxyType({})):
    """The plan of an application, some of whose operators have several partitions."""
    for operator, count in counts.items():
        dag.set_operator_attribute(dag.operator(operator), OperatorContext.PARTITIONER, StatelessPartitioner(count))
    dag.set_attribute(DagContext.APPLICATION_NAME, name)
    return compile_application(dag).plan


def line_filter_plan(count=4):
    """The splitter in the driver, the other three fused."""
    return planned(line_filter(), "LineFilter", {"Block-reader": count})


class Sum(Unifier[Any]):
    def process(self, item: Any) -> None: ...


class Total(Operator):
    words = InputPort(Word)
    counts = OutputPort(dict[str, int], unifier=Sum)

    def process(self, item: Word) -> None: ...


class Report(Operator):
    counts = InputPort(dict[str, int])

    def process(self, item: Any) -> None: ...


def m_by_n(limit=None):
    dag = Dag()
    lines, split = dag.add_operator("lines", LineSource()), dag.add_operator("split", Split())
    count, report = dag.add_operator("count", Total()), dag.add_operator("report", Report())
    dag.add_stream("lines", lines.lines, split.lines)
    dag.add_stream("words", split.words, count.words)
    dag.add_stream("counts", count.counts, report.counts)
    if limit is not None:
        dag.set_output_port_attribute(split.words, PortContext.UNIFIER_LIMIT, limit)
    return dag


def m_by_n_plan(m=3, n=3):
    """M partitions send to N by key; a unifier stands before each of the N."""
    return planned(m_by_n(), "MxN", {"split": m, "count": n})


def cascade_plan():
    """Four partitions, merged two by two, then by one before the only partition of the sink."""
    return planned(m_by_n(limit=2), "Cascade", {"split": 4})


def half_wired():
    """What a notebook may hold in the middle of a thought: ends without streams, streams without ends, a loop."""
    dag = Dag()
    orphan = dag.add_operator("orphan", Split())
    merge = dag.add_operator("merge", Merge())
    first = dag.add_operator("first", LineSource())
    second = dag.add_operator("second", LineSource())
    dag.add_operator("merge", Merge())
    dag.add_operator("unfed", Filter())
    dag.add_stream("from nowhere").add_sink(orphan.lines)
    dag.add_stream("to nowhere", first.lines)
    dag.add_stream("from both", first.lines, merge.left).set_source(second.lines)
    dag.add_stream("nothing")
    dag.add_stream("round", merge.merged, merge.right)
    return dag


HOSTILE = (
    "quote \" and '",
    "a < b & c > d",
    "two\nlines",
    "back\\slash, trailing\\",
    "{braces} [and] (more) | bars; <port>",
    "\u65e5\u672c\u8a9e \N{GEAR} \u00e9",
    "end",
    "<b>bold</b>",
    "&lt; &#65; &nbsp;",
    "`ticks` #35; %%{init}%%",
    "\\N \\G \\L \\n",
    "bell\a null\0 escape\x1b",
    "-->|x|",
    "x" * 90,
)


def hostile():
    """A chain whose operators and streams have hostile names."""
    dag = Dag()
    above: Any = None
    for name in HOSTILE:
        below = dag.add_operator(name, Merge())
        if above is not None:
            dag.add_stream(name, above.merged, below.left)
        above = below
    return dag
