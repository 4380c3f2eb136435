"""The speed of an exchange between levels: each slot makes lines of about a hundred bytes, other slots count them.

Each way of routing is timed separately. The sender makes batches of lines from one buffer at almost no cost, and the
receiver counts them. So the time is that of routing, writing, Spark's exchange, and reading.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from dagkit import (
    Batch,
    Dag,
    InputOperator,
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    State,
    StatelessPartitioner,
)
from dagkit.backends.spark import SparkBackend, local_session
from dagkit.compiler import Compilation, compile_application
from dagkit.engine.worker.outbox import Outbox
from dagkit.engine.worker.protocol import WindowTask
from dagkit.schema.columns import Arrowed, Lines

LEAST_MB_PER_SECOND = 200.0
"""The least rate for every way of routing that calls no author's function for each record."""
SLOTS = 2
LINE_BYTES = 100
CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """One record."""

    number: int
    text: str


class Tickets(InputOperator):
    """Emits tickets: each makes a sender send a number of chunks."""

    out = OutputPort(int)


class Send(Operator):
    """Sends chunks of lines for each ticket."""

    tickets = InputPort(int)
    lines = OutputPort(Line)

    def process(self, chunks: int) -> None:
        batch = chunk()
        for _ in range(chunks):
            self.lines.emit_batch(batch)


@cache
def chunk() -> Batch[Line]:
    """A batch of different lines, as a reader emits it."""
    count = CHUNK_BYTES // LINE_BYTES
    text = "".join(f"{number * 7919:<{LINE_BYTES - 1}}\n" for number in range(count)).encode()
    offsets = pa.py_buffer(np.arange(0, len(text) + 1, LINE_BYTES, dtype=np.int32))
    ended = pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(text)])
    return Batch({"number": Arrowed(pa.array(np.arange(count))), "text": Lines(ended)}, Line)


class ByNumber(Operator):
    """Receives lines partitioned by a number."""

    lines = InputPort(Line, key="number")
    seen = State(0)

    @lines.process_batch
    def count(self, lines: Batch[Line]) -> None:
        self.seen += len(lines)


class ByText(Operator):
    """Receives lines partitioned by their text."""

    lines = InputPort(Line, key="text")
    seen = State(0)

    @lines.process_batch
    def count(self, lines: Batch[Line]) -> None:
        self.seen += len(lines)


class ByFunction(Operator):
    """Receives lines partitioned by a function."""

    lines = InputPort(Line, key=lambda line: line.text[:8])
    seen = State(0)

    @lines.process_batch
    def count(self, lines: Batch[Line]) -> None:
        self.seen += len(lines)


def moving(receiver: Operator, slots: int) -> Compilation:
    """An application whose senders send all lines to the receiver's slots."""

    def draw(dag: Dag, _: Any) -> None:
        tickets, send = dag.add_operator("tickets", Tickets()), dag.add_operator("send", Send())
        placed: Any = dag.add_operator("receive", receiver)
        dag.set_operator_attribute(send, OperatorContext.PARTITIONER, StatelessPartitioner(SLOTS))
        dag.set_operator_attribute(placed, OperatorContext.PARTITIONER, StatelessPartitioner(slots))
        dag.add_stream("tickets", tickets.out, send.tickets)
        dag.add_stream("lines", send.lines, placed.lines)

    return compile_application(draw)


@dataclass(frozen=True, slots=True)
class Measured:
    """The result for one way of routing."""

    name: str
    megabytes: float
    seconds: float
    mb_per_second: float
    least: float | None

    @property
    def holds(self) -> bool:
        return self.least is None or self.mb_per_second >= self.least


WAYS: dict[str, tuple[Operator, int, float | None]] = {
    "gathered": (ByNumber(), 1, LEAST_MB_PER_SECOND),
    "keyed by a number": (ByNumber(), SLOTS, LEAST_MB_PER_SECOND),
    "keyed by the text": (ByText(), SLOTS, LEAST_MB_PER_SECOND),
    "keyed by a function": (ByFunction(), SLOTS, None),
}


def measured(backend: SparkBackend, name: str, megabytes: int, least: float | None, rounds: int) -> Measured:
    """The best of some windows that move this much data."""
    chunks = max(1, megabytes * 1_000_000 // CHUNK_BYTES // SLOTS)
    lines = chunks * SLOTS * len(chunk())
    best = float("inf")
    for number in range(1, rounds + 1):
        outbox = Outbox(0)
        for target in backend.program.sources["tickets"]["out"]:
            channel = outbox.channel(target)
            for _ in range(chunks):  # a ticket for each chunk: output is passed on in between, as with a reader
                channel.batch(Batch.of([1] * SLOTS))
        begun = time.perf_counter()
        answer = backend.run(WindowTask(number, tuple(outbox.rest())))
        best = min(best, time.perf_counter() - begun)
        counts: list[Any] = [report.state["receive"]["seen"] for report in answer.reports if "receive" in report.state]
        assert sum(counts) == lines, f"every line arrives once: {sum(counts)} of {lines}"
    moved = lines * LINE_BYTES / 1e6
    return Measured(name, moved, best, moved / best, least)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if a rate is too low."""
    parser = argparse.ArgumentParser(prog="python -m bench exchange", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--megabytes", type=int, default=1000, help="megabytes that each window moves")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; the best counts")
    parser.add_argument("--only", default="", help="only ways of routing whose name contains this")
    asked = parser.parse_args(arguments)
    found = list(_all(asked.megabytes, asked.rounds, asked.only))
    kept = all(one.holds for one in found)
    if asked.json:
        ways = [{**asdict(one), "holds": one.holds} for one in found]
        print(json.dumps({"schema": "dagkit.bench.exchange/1", "ways": ways, "holds": kept}, indent=2))
        return 0 if kept else 1
    print(f"{'':<22}{'MB':>8}{'seconds':>10}{'MB/s':>8}{'least':>8}")
    for one in found:
        least = "" if one.least is None else f"{one.least:.0f}"
        missed = "" if one.holds else "  MISSED"
        print(f"{one.name:<22}{one.megabytes:>8.0f}{one.seconds:>10.2f}{one.mb_per_second:>8.0f}{least:>8}{missed}")
    return 0 if kept else 1


def _all(megabytes: int, rounds: int, only: str) -> Iterator[Measured]:
    spark = local_session(SLOTS)
    for name, (receiver, slots, least) in WAYS.items():
        if only in name:
            backend = SparkBackend(moving(receiver, slots), spark)
            measured(backend, name, 20, None, 2)
            yield measured(backend, name, megabytes, least, rounds)
            backend.close()
    spark.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
