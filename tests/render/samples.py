"""Applications and plans small enough to see, as the drawings' tests use them."""

from collections.abc import Iterator
from typing import Any

from dagkit.api.attributes import OperatorContext, PortContext
from dagkit.api.dag import Dag
from dagkit.api.operators import DelayOperator, InputOperator, Operator, RowOperator
from dagkit.api.partitioning import StatelessPartitioner, assign_keys
from dagkit.api.ports import InputPort, OutputPort
from dagkit.graph import graph_of
from dagkit.plan import model


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
    output = OutputPort(Line)
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
    splitter = dag.add_operator("File-splitter", FileSplitter())
    reader = dag.add_operator("Block-reader", LineReader())
    keep = dag.add_operator("Filter", Filter())
    writer = dag.add_operator("Record-writer", RecordWriter())
    dag.add_stream("file-block metadata", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("records", reader.messages, keep.input).set_locality("THREAD_LOCAL")
    dag.add_stream("filtered-records", keep.output, writer.input)
    if parallel:
        dag.set_input_port_attribute(keep.input, PortContext.PARTITION_PARALLEL, True)
        dag.set_input_port_attribute(writer.input, PortContext.PARTITION_PARALLEL, True)
    return dag


def word_count():
    """A fan-out, a join with itself through a delay, and a count with three partitions."""
    dag = Dag()
    splitter = dag.add_operator("files", FileSplitter())
    reader = dag.add_operator("reader", LineReader())
    split = dag.add_operator("split", Split())
    count = dag.add_operator("count", Count())
    delay = dag.add_operator("last window", Delay())
    archive = dag.add_operator("archive", RecordWriter())
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, split.lines, archive.input)
    dag.add_stream("words", split.words, count.words)
    dag.add_stream("counts", count.counts, delay.input)
    dag.add_stream("counts so far", delay.output, count.feedback)
    dag.set_operator_attribute(count, OperatorContext.PARTITIONER, StatelessPartitioner(3))
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


# -- plans -------------------------------------------------------------------------------------------------------------

BY_DEFAULT = model.Why(source="default", text="one partition")


def operator(
    name,
    stage,
    *,
    reads=(),
    writes=(),
    count=1,
    keyed=None,
    class_="app.Transform",
    role=model.Role.OPERATOR,
    parallel_with=None,
):
    """An operator of `count` partitions; they own the keys of the port `keyed`."""
    keys = assign_keys(count)
    partitions = tuple(
        model.PlannedPartition(
            index=i, keys={keyed: model.Keys(mask=keys[i].mask, keys=tuple(sorted(keys[i].keys)))} if keyed else {}
        )
        for i in range(count)
    )
    ports = [model.PlannedPort(name=p, type="input", payload="Line", connected=True) for p in reads]
    ports += [model.PlannedPort(name=p, type="output", payload="Line", connected=True) for p in writes]
    return model.PlannedOperator(
        name=name,
        kind="sample/1",
        class_=class_,
        role=role,
        ports=tuple(ports),
        partitions=partitions,
        why=BY_DEFAULT,
        parallel_with=parallel_with,
        stage=stage,
    )


def end(path):
    name, _, port = path.rpartition(".")
    return model.PlannedEnd(operator=name, port=port)


def sink(path, routing, *, parallel=False):
    name, _, port = path.rpartition(".")
    return model.PlannedSink(operator=name, port=port, routing=routing, parallel=parallel)


def stream(name, source, *sinks, payload="Line", unifiers=()):
    return model.PlannedStream(name=name, source=end(source), sinks=sinks, payload=payload, unifiers=tuple(unifiers))


def stage(name, *operators, level=0, slots=1, driver=False):
    place = model.Place.DRIVER if driver else model.Place.WORKERS
    return model.Stage(name=name, operators=operators, place=place, level=level, slots=slots)


def cut(name, source, sink_, kind, reason, *, exchange=False):
    return model.Cut(stream=name, source=end(source), sink=end(sink_), kind=kind, reason=reason, exchange=exchange)


def line_filter_plan(count=4):
    """The example, compiled: the splitter in the driver, the other three fused."""
    head, chain = "Block-reader", "Block-reader + Filter + Record-writer"
    return model.Plan(
        application="LineFilter",
        operators=(
            operator(
                "File-splitter",
                "File-splitter",
                writes=["blocks_metadata_output"],
                class_="lib.FileSplitter",
                role=model.Role.INPUT,
            ),
            operator(
                head, chain, reads=["blocks_metadata_input"], writes=["messages"], count=count, class_="lib.LineReader"
            ),
            operator(
                "Filter",
                chain,
                reads=["input"],
                writes=["output"],
                count=count,
                class_="lib.Filter",
                parallel_with=head,
            ),
            operator(
                "Record-writer", chain, reads=["input"], count=count, class_="lib.RecordWriter", parallel_with=head
            ),
        ),
        streams=(
            stream(
                "file-block metadata",
                "File-splitter.blocks_metadata_output",
                sink("Block-reader.blocks_metadata_input", model.Routing.DISTRIBUTED),
                payload="FileBlock",
            ),
            stream("records", "Block-reader.messages", sink("Filter.input", model.Routing.STRAIGHT, parallel=True)),
            stream(
                "filtered-records", "Filter.output", sink("Record-writer.input", model.Routing.STRAIGHT, parallel=True)
            ),
        ),
        stages=(
            stage("File-splitter", "File-splitter", driver=True),
            stage(chain, "Block-reader", "Filter", "Record-writer", slots=count),
        ),
        cuts=(
            cut(
                "file-block metadata",
                "File-splitter.blocks_metadata_output",
                "Block-reader.blocks_metadata_input",
                model.CutKind.DRIVER,
                "input operators run in the driver",
            ),
        ),
    )


def m_by_n_plan(m=3, n=3):
    """M partitions send to N by key; a unifier stands before each of the N."""
    sender = f"{m} partitions of split"
    return model.Plan(
        application="MxN",
        operators=(
            operator("lines", "lines", writes=["lines"], class_="lib.LineSource", role=model.Role.INPUT),
            operator("split", "split", reads=["lines"], writes=["words"], count=m, class_="lib.Split"),
            operator("count", "count", reads=["words"], writes=["counts"], count=n, keyed="words", class_="lib.Count"),
            operator("report", "report", reads=["counts"], class_="lib.Report"),
        ),
        streams=(
            stream("lines", "lines.lines", sink("split.lines", model.Routing.DISTRIBUTED)),
            stream(
                "words",
                "split.words",
                sink("count.words", model.Routing.KEYED),
                payload="Word",
                unifiers=[
                    model.PlannedUnifier(
                        name=f"split.words#unifier to count.words[{i}]",
                        kind="dagkit.merge/1",
                        level=0,
                        inputs=tuple(f"split[{k}]" for k in range(m)),
                        serves=end("count.words"),
                        partition=i,
                    )
                    for i in range(n)
                ],
            ),
            stream(
                "counts",
                "count.counts",
                sink("report.counts", model.Routing.GATHERED),
                payload="dict[str, int]",
                unifiers=[
                    model.PlannedUnifier(
                        name="count.counts#unifier",
                        kind="lib.sum/1",
                        level=0,
                        inputs=tuple(f"count[{k}]" for k in range(n)),
                        serves=end("report.counts"),
                    )
                ],
            ),
        ),
        stages=(
            stage("lines", "lines", driver=True),
            stage("split", "split", slots=m),
            stage("count", "count", level=1, slots=n),
            stage("report", "report", level=2),
        ),
        cuts=(
            cut("lines", "lines.lines", "split.lines", model.CutKind.DRIVER, "input operators run in the driver"),
            cut(
                "words", "split.words", "count.words", model.CutKind.KEYS, f"{sender} send by key to {n}", exchange=True
            ),
            cut(
                "counts",
                "count.counts",
                "report.counts",
                model.CutKind.UNIFIER,
                f"{n} partitions are unified",
                exchange=True,
            ),
        ),
    )


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


def cascade_plan():
    """Four partitions, merged two by two, then by one before the only partition of the sink."""
    pairs = [
        model.PlannedUnifier(
            name=f"split.words#unifier.{i}",
            kind="dagkit.merge/1",
            level=0,
            inputs=(f"split[{2 * i}]", f"split[{2 * i + 1}]"),
        )
        for i in range(2)
    ]
    last = model.PlannedUnifier(
        name="split.words#unifier",
        kind="dagkit.merge/1",
        level=1,
        inputs=tuple(pair.name for pair in pairs),
        serves=end("count.words"),
    )
    return model.Plan(
        application="Cascade",
        operators=(
            operator("split", "split", writes=["words"], count=4),
            operator("count", "count", reads=["words"]),
        ),
        streams=(stream("words", "split.words", sink("count.words", model.Routing.GATHERED), unifiers=[*pairs, last]),),
        stages=(stage("split", "split", slots=4), stage("count", "count", level=1)),
        cuts=(
            cut("words", "split.words", "count.words", model.CutKind.COUNTS, "4 partitions send to one", exchange=True),
        ),
    )


def loop_plan():
    """A count that gets its own totals back in the next window."""
    return model.Plan(
        application="Loop",
        operators=(
            operator("count", "count", reads=["words", "totals"], writes=["counts"]),
            operator("delay", "delay", reads=["input"], writes=["output"], role=model.Role.DELAY),
        ),
        streams=(
            stream("counts", "count.counts", sink("delay.input", model.Routing.STRAIGHT)),
            stream("counts so far", "delay.output", sink("count.totals", model.Routing.DELAYED)),
        ),
        stages=(stage("count", "count"), stage("delay", "delay")),
        cuts=(
            cut("counts", "count.counts", "delay.input", model.CutKind.DELAY, "delay holds items back"),
            cut("counts so far", "delay.output", "count.totals", model.CutKind.DELAY, "delay passes items on"),
        ),
    )
