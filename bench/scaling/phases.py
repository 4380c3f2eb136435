"""A burst of blocks, a pause, and a trickle, read on real Spark with a fixed or a following number of partitions."""

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

from pydantic import NonNegativeInt, PositiveInt, PrivateAttr
from pyspark.sql import SparkSession

from bench.ingesting.text import write_text
from dagkit import Block, Config, Context, Dag, InputOperator, OutputPort, PortContext, Shutdown, State
from dagkit import StreamingApplication as Application
from dagkit.engine.program.facts import Scaled
from dagkit.engine.record.run_events import Committed, Found, Reshaped, RunEvent
from dagkit.launching import launch
from dagkit_operators import Filter, LineReader, RecordWriter

MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it


@dataclass(frozen=True, slots=True)
class Phases:
    """The amounts and times of work."""

    blocks: int = 500
    block_size: int = 512 << 10
    silence_millis: int = 30_000
    """From the start of the burst to the first block of the trickle."""
    trickle: int = 20
    every_millis: int = 500


class Coming(InputOperator):
    """Finds ranges of one file, in phases."""

    kind = "bench.coming/1"
    out = OutputPort(Block)
    found = State(0)

    path: str
    blocks: PositiveInt
    block_size: PositiveInt
    silence_millis: NonNegativeInt
    trickle: NonNegativeInt
    every_millis: PositiveInt
    _now: Callable[[], datetime] | None = PrivateAttr(default=None)
    _began: datetime | None = PrivateAttr(default=None)

    def setup(self, context: Context) -> None:
        """Take the clock."""
        self._now = context.now

    def emit_tuples(self) -> None:
        if self.found == self.blocks + self.trickle:
            raise Shutdown
        came = self._came()
        for number in range(self.found, came):
            start = number * self.block_size
            self.out.emit(Block(number, self.path, start, start + self.block_size))
        self.found = came

    def looks_again_in_millis(self) -> int:
        """When the next block is due."""
        ticks = max(0, self.found - self.blocks)
        return max(1, ceil(self.silence_millis + ticks * self.every_millis - self._since_millis()))

    def _came(self) -> int:
        """The number of blocks available now."""
        late = self._since_millis() - self.silence_millis
        ticks = 0 if late < 0 else int(late / self.every_millis) + 1
        return self.blocks + min(self.trickle, ticks)

    def _since_millis(self) -> float:
        assert self._now is not None, "setup takes the clock"
        if self._began is None:
            self._began = self._now()
        return (self._now() - self._began) / timedelta(milliseconds=1)


def is_wanted(line: str) -> bool:
    """Use a core for some time; False for every line."""
    return hashlib.sha256(line.encode() * 6).digest()[0] > 255


class Reading(Application):
    """Reads all blocks, tests each line, and writes none."""

    folder: Path
    phases: dict[str, Any]
    reader: dict[str, Any]

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        coming = dag.add_operator("Coming", Coming(path=str(self.folder / "text"), **self.phases))
        reader = dag.add_operator("Reader", LineReader(**self.reader))
        keep = dag.add_operator("Filter", Filter(is_wanted))
        writer = dag.add_operator("Writer", RecordWriter(file_path=str(self.folder / "output")))
        for port in (keep.input, writer.input):
            dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)
        dag.add_stream("blocks", coming.out, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, keep.input)
        dag.add_stream("kept", keep.output, writer.input)


@dataclass(frozen=True, slots=True)
class Changed:
    """A change of the number of partitions, and the window after which it came."""

    at_millis: float
    windows: int
    before: int
    after: int
    rule: str


@dataclass
class Watch:
    """An observer that notes times, in milliseconds since the first blocks were found."""

    began: float | None = None
    positions: int = 0
    windows: int = 0
    drained: list[float] = field(default_factory=list)
    """The times of commits after which no work was pending or running."""
    changes: list[Changed] = field(default_factory=list)
    _found: int = 0

    def __call__(self, happening: RunEvent) -> None:
        """Note the time of the event."""
        now = time.perf_counter() * 1000
        if isinstance(happening, Found):
            self.began = now if self.began is None else self.began
            self._found += happening.positions
        elif isinstance(happening, Committed) and self.began is not None:
            self.windows += 1
            self.positions += happening.positions
            if self.positions >= self._found:
                self.drained.append(now - self.began)
        elif isinstance(happening, Reshaped) and isinstance(happening.fact, Scaled) and self.began is not None:
            fact = happening.fact
            if fact.before != fact.after:
                self.changes.append(Changed(now - self.began, self.windows, fact.before, fact.after, fact.rule))

    @property
    def drained_millis(self) -> float:
        """The time of the burst."""
        return self.drained[0]

    def turns(self, since: float, until: float) -> int:
        """How often the number changed between growing and shrinking, between two instants."""
        grows = [change.after > change.before for change in self.changes if since <= change.at_millis < until]
        return sum(one != other for one, other in pairwise(grows))


class Stage:
    """A session and a text in memory for all runs."""

    def __init__(self, spark: SparkSession, phases: Phases) -> None:
        self.spark = spark
        self.phases = phases
        self.folder = Path(tempfile.mkdtemp(prefix="bench-scale-", dir=MEMORY if MEMORY.is_dir() else None))
        write_text(self.folder / "text", (phases.blocks + phases.trickle) * phases.block_size)

    def close(self) -> None:
        """Stop the session and delete the text."""
        shutil.rmtree(self.folder)

    def watched(self, *, burst_only: bool = False, **reader: Any) -> Watch:
        """Run the application once and return its times."""
        phases = {name: getattr(self.phases, name) for name in Phases.__slots__}
        if burst_only:
            phases |= {"trickle": 0, "silence_millis": 0}
        home, watch = Path(tempfile.mkdtemp(dir=self.folder)), Watch()
        try:
            application = Reading(folder=self.folder, phases=phases, reader=reader)
            launch(application, spark=self.spark, path=home, durable=False, observers=[watch])
        finally:
            shutil.rmtree(home)
        wanted = (self.phases.blocks + int(phases["trickle"])) * self.phases.block_size
        assert watch.positions == wanted, f"{watch.positions} of {wanted} bytes were read"
        return watch

    def fixed(self, count: int, *, burst_only: bool = True) -> Watch:
        """Run with a fixed number of partitions."""
        return self.watched(burst_only=burst_only, min_readers=count, max_readers=count, collect_stats=False)
