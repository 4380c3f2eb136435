"""The fixed cost of a window: one Spark job of dagkit compared with one trigger of Structured Streaming.

Both alternate in one session on one machine, so that other load affects both. A window runs as in the engine: its input
goes out with the job, and the slots' reports come back.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession

from dagkit import (
    Batch,
    Dag,
    InputOperator,
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    StatelessPartitioner,
)
from dagkit.backends.spark import SparkBackend, local_session
from dagkit.compiler import Compilation, compile_application
from dagkit.engine.program.lower import program_of
from dagkit.engine.worker.outbox import Outbox
from dagkit.engine.worker.protocol import WindowTask

LARGEST_SHARE = 0.5
"""The most time for a window without an exchange, as a share of the time of a trigger."""
SLOTS = 2


class Source(InputOperator):
    """Emits the items that the benchmark sets."""

    out = OutputPort(int)


class Pass(Operator):
    """Passes each item on."""

    input = InputPort(int)
    output = OutputPort(int)

    def process(self, item: int) -> None:
        self.output.emit(item)


def chain(exchanges: int) -> Compilation:
    """An application with this many exchanges, and two slots on every level."""

    def draw(dag: Dag, _: Any) -> None:
        before: Any = dag.add_operator("source", Source()).out
        for number in range(exchanges + 1):
            operator = dag.add_operator(f"pass {number}", Pass())
            dag.set_operator_attribute(operator, OperatorContext.PARTITIONER, StatelessPartitioner(SLOTS))
            dag.add_stream(f"stream {number}", before, operator.input)
            before = operator.output
        last = dag.add_operator("last", Pass())
        dag.set_input_port_attribute(last.input, PortContext.PARTITION_PARALLEL, True)
        dag.add_stream("last stream", before, last.input)

    compilation = compile_application(draw)
    assert program_of(compilation).levels == exchanges + 1, "every stream except the last is an exchange"
    return compilation


class Windows:
    """A program whose windows are timed."""

    def __init__(self, spark: SparkSession, exchanges: int) -> None:
        self.backend = SparkBackend(chain(exchanges), spark)
        self.window = 0

    def timed(self) -> float:
        """The milliseconds of one window, in which each slot gets a few items."""
        begun = time.perf_counter()
        self.window += 1
        outbox = Outbox(0)
        for target in self.backend.program.sources["source"]["out"]:
            outbox.channel(target).batch(Batch.of(list(range(8))))
        self.backend.run(WindowTask(self.window, tuple(outbox.rest())))
        return (time.perf_counter() - begun) * 1000


class Triggers:
    """A query of Structured Streaming that does nothing, triggered as often as possible."""

    def __init__(self, spark: SparkSession, checkpoints: str) -> None:
        self.spark = spark
        self.checkpoints = checkpoints
        self.seen = -1

    def timed(self, seconds: float) -> list[float]:
        """The milliseconds of all triggers within this many seconds, without the first two."""
        stream = self.spark.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", SLOTS).load()
        writing = stream.writeStream.format("noop").option("checkpointLocation", tempfile.mkdtemp(dir=self.checkpoints))
        query = writing.start()
        time.sleep(seconds)
        progress = [json.loads(one.json) for one in query.recentProgress]
        query.stop()
        whole = [one["durationMs"]["triggerExecution"] for one in progress if "addBatch" in one["durationMs"]]
        return [float(millis) for millis in whole[2:]]


@dataclass(frozen=True, slots=True)
class Measured:
    """The times of one contestant."""

    name: str
    runs: int
    median_millis: float
    least_millis: float


def measured(name: str, millis: Sequence[float]) -> Measured:
    """The median and the least of the times."""
    return Measured(name, len(millis), statistics.median(millis), min(millis))


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if a window costs more than allowed."""
    parser = argparse.ArgumentParser(prog="python -m bench window", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=4, help="how often the contestants take turns")
    asked = parser.parse_args(arguments)
    found = list(_race(asked.rounds))
    by_name = {one.name: one for one in found}
    share = by_name["window"].median_millis / by_name["trigger"].median_millis
    kept = share <= LARGEST_SHARE
    if asked.json:
        head = {"schema": "dagkit.bench.window/1", "measured": [asdict(one) for one in found]}
        print(json.dumps({**head, "share": share, "largest_share": LARGEST_SHARE, "holds": kept}, indent=2))
        return 0 if kept else 1
    print(f"{'':<28}{'runs':>6}{'median ms':>12}{'least ms':>12}")
    for one in found:
        print(f"{one.name:<28}{one.runs:>6}{one.median_millis:>12.1f}{one.least_millis:>12.1f}")
    missed = "" if kept else "  MISSED"
    print(f"a window takes {share:.2f} of a trigger; at most {LARGEST_SHARE} is allowed{missed}")
    return 0 if kept else 1


def _race(rounds: int) -> Iterator[Measured]:
    spark = local_session(SLOTS)
    windows = {0: Windows(spark, 0), 1: Windows(spark, 1), 2: Windows(spark, 2)}
    times: dict[int, list[float]] = {exchanges: [] for exchanges in windows}
    triggers: list[float] = []
    with tempfile.TemporaryDirectory() as checkpoints:
        idle = Triggers(spark, checkpoints)
        for contestant in windows.values():
            for _ in range(10):
                contestant.timed()
        idle.timed(4)
        for _ in range(rounds):
            for exchanges, contestant in windows.items():
                times[exchanges] += [contestant.timed() for _ in range(20)]
            triggers += idle.timed(5)
        for contestant in windows.values():
            contestant.backend.close()
        spark.stop()
    yield measured("window", times[0])
    yield measured("window, one exchange", times[1])
    yield measured("window, two exchanges", times[2])
    yield measured("trigger", triggers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
