"""Ten more applications whose ledgers are kept, each stopped in the middle.

They read and write in memory, so no path changes. The archive also keeps the fingerprint of each plan.
"""

import gzip
import itertools
import json
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import fsspec

from dagkit import (
    Dag,
    ExternalOutput,
    InputOperator,
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    StagedWindow,
    State,
    StatelessPartitioner,
)
from dagkit.api.running import Until
from dagkit.compiler import compile_application
from dagkit.engine.parts.requests import SetCount, SetValue, ask
from dagkit.ledger import Ledger
from dagkit.plan import fingerprint
from dagkit.testing import FakeClock
from dagkit_operators import (
    AggregateByTime,
    EventTime,
    FileSplitterInput,
    Items,
    Join,
    LineReader,
    Map,
    MatchFiles,
    PartWriter,
    ReadFiles,
    RecordWriter,
    SumByKey,
    TailFiles,
    TumblingWindows,
)
from tests.engine.cast import Desk, Hurried

KEPT = Path(__file__).with_name("november.tar.xz")
IN, OUT = "memory://november/in", "memory://november/out"
FILES = 4
SENT: list[Any] = []
"""What the external system of this process has."""


def write_inputs() -> None:
    """Put the files in place that the applications read, and nothing else."""
    memory = fsspec.filesystem("memory")
    if memory.exists("/november"):
        memory.rm("/november", recursive=True)
    for file in range(FILES):
        lines = "".join(f"{'abc'[n % 3]} {n * (file + 1)} {'x' * (n * 7 % 23)}\n" for n in range(20))
        memory.pipe(f"/november/in/{file}.txt", lines.encode())
    zipped = gzip.compress(b"a 7\n" * 9, mtime=0)
    memory.pipe("/november/zipped/good.gz", zipped)
    memory.pipe("/november/zipped/bad.gz", zipped[:-8] + bytes(4) + zipped[-4:])
    SENT.clear()


def outputs() -> dict[str, bytes]:
    memory = fsspec.filesystem("memory")
    written = [*memory.find("/november/out"), *memory.find("/november/receipts")]
    return {path: memory.cat(path) for path in written}


def rows_of_receipts() -> list[tuple[Any, ...]]:
    """What receipts state of their files, without windows and hashes."""
    found = [json.loads(text) for path, text in outputs().items() if "/receipts/" in path]
    return sorted((one["path"], one["bytes"], str(one["rows"]), one["sha256"], sorted(one["outputs"])) for one in found)


class Keep(Operator):
    kind = "november.keep/1"
    input = InputPort[Any]()
    kept = State[list[Any]](list)

    def process(self, item: Any) -> None:
        self.kept.append(repr(getattr(item, "value", item)))


class Numbers(InputOperator):
    """Emits three numbers in each of four looks."""

    kind = "november.numbers/1"
    numbers = OutputPort[int]()
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at < 12:
            for number in range(self.at, self.at + 3):
                self.numbers.emit(number)
            self.at += 3


class Times(Operator):
    kind = "november.times/1"
    numbers = InputPort[int]()
    results = OutputPort[int]()
    factor: int = 2

    def process(self, number: int) -> None:
        self.results.emit(number * self.factor)


class Register:
    """An external system in this process: each window of a writer once."""

    def prepare(self, writer: str) -> None: ...

    def apply(self, window: StagedWindow) -> None:
        key = [window.writer, window.window_id]
        if all(sent[:2] != key for sent in SENT):
            SENT.append([*key, [entry.decode() for entry in window.entries()]])

    def close(self) -> None: ...


class Enter(Operator):
    kind = "november.enter/1"
    numbers = InputPort[int]()
    staged = ExternalOutput(lambda enter: Register())

    def process(self, number: int) -> None:
        self.staged.add(str(number).encode())


def _chain(dag: Dag, **operators: Any) -> None:
    placed = [dag.add_operator(name, operator) for name, operator in operators.items()]
    for before, after in itertools.pairwise(placed):
        _ = before >> after


def _files(**properties: Any) -> FileSplitterInput:
    return FileSplitterInput(scanner={"files": [IN]}, block_size=150, blocks_threshold=3, **properties)


def _key_of(line: str) -> tuple[str, int]:
    key, number, *_ = line.split()
    return key, int(number)


def receipts(dag: Dag, conf: object) -> None:
    """A file for each block, and a receipt for each input file."""
    reader = LineReader(min_readers=2, chunk_size=16)
    splitter = _files(receipts="memory://november/receipts")
    _chain(dag, splitter=splitter, reader=reader, writer=RecordWriter(file_path=OUT))


def parts(dag: Dag, conf: object) -> None:
    """Parts that stay open over windows."""
    writer = PartWriter(file_path=OUT, max_count=9)
    _chain(dag, splitter=_files(), reader=LineReader(), text=Map[Any, str](_text), writer=writer)


def _text(item: Any) -> str:
    return str(getattr(item, "value", item))


def matched(dag: Dag, conf: object) -> None:
    """Files that an operator in the middle of the graph found."""
    _chain(dag, patterns=Items(items=[f"{IN}/*.txt"]), match=MatchFiles(), reader=ReadFiles(chunk_size=16), keep=Keep())


def tailed(dag: Dag, conf: object) -> None:
    """Files that are followed, and sums by key."""
    match = MatchFiles()
    _chain(dag, patterns=Items(items=[f"{IN}/*.txt"]), match=match, tail=TailFiles(chunk_size=16),
           pairs=Map[Any, tuple[str, int]](_pair), sums=SumByKey())  # fmt: skip


def _pair(item: Any) -> tuple[str, int]:
    return _key_of(_text(item))


def timed(dag: Dag, conf: object) -> None:
    """Sums in windows of event time."""
    by_time = AggregateByTime(
        key=itemgetter(0), time=itemgetter(1), of=itemgetter(1), windows=TumblingWindows(millis=10_000)
    )
    times = EventTime(time=itemgetter(1), out_of_order_millis=5000)
    _chain(dag, splitter=_files(), reader=LineReader(), pairs=Map[Any, tuple[str, int]](_pair), times=times,
           sums=by_time, keep=Keep())  # fmt: skip


def entered(dag: Dag, conf: object) -> None:
    _chain(dag, numbers=Numbers(), times=Times(), enter=Enter())


def joined(dag: Dag, conf: object) -> None:
    """Keyed state of two sides over windows, in two partitions."""
    left, right = dag.add_operator("left", Numbers()), dag.add_operator("right", Numbers())
    ours, theirs = dag.add_operator("ours", Map(_by_three)), dag.add_operator("theirs", Map(_by_three))
    join, keep = dag.add_operator("join", Join()), dag.add_operator("keep", Keep())
    dag.set_operator_attribute(join, OperatorContext.PARTITIONER, StatelessPartitioner(2))
    dag.add_stream("left numbers", left.numbers, ours.input)
    dag.add_stream("right numbers", right.numbers, theirs.input)
    dag.add_stream("left", ours.output, join.left)
    dag.add_stream("right", theirs.output, join.right)
    dag.add_stream("pairs", join.joined, keep.input)


def _by_three(number: int) -> tuple[int, int]:
    return number % 3, number


def changed(dag: Dag, conf: object) -> None:
    """A property and a number of partitions that were changed while the application ran."""
    _chain(dag, numbers=Numbers(), times=Times(), keep=Keep())


def aside(dag: Dag, conf: object) -> None:
    _chain(dag, splitter=_files(), reader=LineReader(), even=Map[Any, str](_refused), keep=Keep())


def _refused(item: Any) -> str:
    text = _text(item)
    if text.startswith("a 12 "):
        raise RuntimeError(text)
    return text


def quarantined(dag: Dag, conf: object) -> None:
    splitter = FileSplitterInput(scanner={"files": ["memory://november/zipped"]}, blocks_threshold=1)
    _chain(dag, splitter=splitter, reader=LineReader(on_bad_file="quarantine"), keep=Keep())


APPLICATIONS: dict[str, Any] = {
    "receipts": receipts,
    "parts": parts,
    "matched": matched,
    "tailed": tailed,
    "timed": timed,
    "entered": entered,
    "joined": joined,
    "changed": changed,
    "aside": aside,
    "quarantined": quarantined,
}


def desk(name: str, home: Path) -> Desk:
    conf = {"dt.attr.ON_POISON": "SET_ASIDE"} if name == "aside" else {}
    return Desk(home, APPLICATIONS[name], until=Until.ONCE, clock=FakeClock(), backend=Hurried, overlap=1, conf=conf)


def prepare(name: str, home: Path) -> None:
    """Do what comes before a run: request changes."""
    if name == "changed":
        store = Ledger.create(str(home / "app"), durable=False).store
        for asks in (SetValue(operator="times", name="factor", value="5"), SetCount(operator="keep", count=2)):
            ask(store, asks, datetime(2024, 1, 1, tzinfo=UTC))


def plan(name: str) -> str:
    return fingerprint(compile_application(APPLICATIONS[name]).plan)
