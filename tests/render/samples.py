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
    splitter, reader = dag.add_operator("File-splitter", FileSplitter()), dag.add_operator("Block-reader", LineReader())
    keep, writer = dag.add_operator("Filter", Filter()), dag.add_operator("Record-writer", RecordWriter())
    dag.add_stream("file-block metadata", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("records", reader.messages, keep.input).set_locality("THREAD_LOCAL")
    dag.add_stream("filtered-records", keep.output, writer.input)
    for inlet in (keep.input, writer.input) if parallel else ():
        dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
    return dag


def word_count():
    """A fan-out, a join with itself through a delay, and a count with three partitions."""
    dag = Dag()
    splitter, reader = dag.add_operator("files", FileSplitter()), dag.add_operator("reader", LineReader())
    split, count = dag.add_operator("split", Split()), dag.add_operator("count", Count())
    delay, archive = dag.add_operator("last window", Delay()), dag.add_operator("archive", RecordWriter())
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


def unifier(name, inputs, serves=None, *, kind="dagkit.merge/1", level=0, partition=None):
    serves = None if serves is None else end(serves)
    return model.PlannedUnifier(
        name=name, kind=kind, level=level, inputs=tuple(inputs), serves=serves, partition=partition
    )


def operator(name, stage, *, reads=(), writes=(), count=1, keyed=None, class_="app.Transform", **said):
    """An operator of `count` partitions; they own the keys of the port `keyed`."""
    keys = [model.Keys(mask=each.mask, keys=tuple(sorted(each.keys))) for each in assign_keys(count)]
    partitions = [model.PlannedPartition(index=i, keys={keyed: keys[i]} if keyed else {}) for i in range(count)]
    ports = [(port, "input") for port in reads] + [(port, "output") for port in writes]
    return model.PlannedOperator(
        **{"name": name, "kind": "sample/1", "class_": class_, "role": model.Role.OPERATOR, "stage": stage, **said},
        ports=tuple(model.PlannedPort(name=port, type=type_, payload="Line", connected=True) for port, type_ in ports),
        partitions=tuple(partitions),
        why=model.Why(source="default", text="one partition"),
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


STRAIGHT, DISTRIBUTED, KEYED = model.Routing.STRAIGHT, model.Routing.DISTRIBUTED, model.Routing.KEYED
GATHERED, DELAYED, INPUT = model.Routing.GATHERED, model.Routing.DELAYED, model.Role.INPUT


def line_filter_plan(count=4):
    """The example, compiled: the splitter in the driver, the other three fused."""
    split, head, chain = "File-splitter", "Block-reader", "Block-reader + Filter + Record-writer"
    found, taken = f"{split}.blocks_metadata_output", f"{head}.blocks_metadata_input"
    reads, follows = {"reads": ["input"], "count": count}, {"parallel_with": head}
    return model.Plan(
        application="LineFilter",
        operators=(
            operator(split, split, writes=["blocks_metadata_output"], class_="lib.FileSplitter", role=INPUT),
            operator(
                *(head, chain),
                reads=["blocks_metadata_input"],
                writes=["messages"],
                count=count,
                class_="lib.LineReader",
            ),
            operator("Filter", chain, **reads, writes=["output"], class_="lib.Filter", **follows),
            operator("Record-writer", chain, **reads, class_="lib.RecordWriter", **follows),
        ),
        streams=(
            stream("file-block metadata", found, sink(taken, DISTRIBUTED), payload="FileBlock"),
            stream("records", "Block-reader.messages", sink("Filter.input", STRAIGHT, parallel=True)),
            stream("filtered-records", "Filter.output", sink("Record-writer.input", STRAIGHT, parallel=True)),
        ),
        stages=(stage(split, split, driver=True), stage(chain, head, "Filter", "Record-writer", slots=count)),
        cuts=(cut("file-block metadata", found, taken, model.CutKind.DRIVER, "input operators run in the driver"),),
    )


def m_by_n_plan(m=3, n=3):
    """M partitions send to N by key; a unifier stands before each of the N."""
    senders, kinds = [f"split[{k}]" for k in range(m)], model.CutKind
    before = [
        unifier(f"split.words#unifier to count.words[{i}]", senders, "count.words", partition=i) for i in range(n)
    ]
    total = unifier("count.counts#unifier", [f"count[{k}]" for k in range(n)], "report.counts", kind="lib.sum/1")
    counts, report = "count.counts", "report.counts"
    return model.Plan(
        application="MxN",
        operators=(
            operator("lines", "lines", writes=["lines"], class_="lib.LineSource", role=INPUT),
            operator("split", "split", reads=["lines"], writes=["words"], count=m, class_="lib.Split"),
            operator("count", "count", reads=["words"], writes=["counts"], count=n, keyed="words", class_="lib.Count"),
            operator("report", "report", reads=["counts"], class_="lib.Report"),
        ),
        streams=(
            stream("lines", "lines.lines", sink("split.lines", DISTRIBUTED)),
            stream("words", "split.words", sink("count.words", KEYED), payload="Word", unifiers=before),
            stream("counts", counts, sink(report, GATHERED), payload="dict[str, int]", unifiers=[total]),
        ),
        stages=(
            stage("lines", "lines", driver=True),
            stage("split", "split", slots=m),
            stage("count", "count", level=1, slots=n),
            stage("report", "report", level=2),
        ),
        cuts=(
            cut("lines", "lines.lines", "split.lines", kinds.DRIVER, "input operators run in the driver"),
            cut(
                "words", "split.words", "count.words", kinds.KEYS, f"{m} partitions of split send by key", exchange=True
            ),
            cut("counts", counts, report, kinds.UNIFIER, f"{n} partitions are unified", exchange=True),
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
    pairs = [unifier(f"split.words#unifier.{i}", [f"split[{2 * i}]", f"split[{2 * i + 1}]"]) for i in range(2)]
    last = unifier("split.words#unifier", [pair.name for pair in pairs], "count.words", level=1)
    counts = model.CutKind.COUNTS
    return model.Plan(
        application="Cascade",
        operators=(operator("split", "split", writes=["words"], count=4), operator("count", "count", reads=["words"])),
        streams=(stream("words", "split.words", sink("count.words", GATHERED), unifiers=[*pairs, last]),),
        stages=(stage("split", "split", slots=4), stage("count", "count", level=1)),
        cuts=(cut("words", "split.words", "count.words", counts, "4 partitions send to one", exchange=True),),
    )


def loop_plan():
    """A count that gets its own totals back in the next window."""
    delay = model.CutKind.DELAY
    return model.Plan(
        application="Loop",
        operators=(
            operator("count", "count", reads=["words", "totals"], writes=["counts"]),
            operator("delay", "delay", reads=["input"], writes=["output"], role=model.Role.DELAY),
        ),
        streams=(
            stream("counts", "count.counts", sink("delay.input", STRAIGHT)),
            stream("counts so far", "delay.output", sink("count.totals", DELAYED)),
        ),
        stages=(stage("count", "count"), stage("delay", "delay")),
        cuts=(
            cut("counts", "count.counts", "delay.input", delay, "delay holds items back"),
            cut("counts so far", "delay.output", "count.totals", delay, "delay passes items on"),
        ),
    )
