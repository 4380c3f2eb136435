"""From one topic of Kafka to another, on two cores and on one: dagkit, Structured Streaming and Bytewax, by turns.

Each contestant copies all messages of a topic, in a process of its own, on the machine of the broker. Each run begins
from nothing, with an empty topic and without a checkpoint, and is timed from the first call until everything is there
and committed. Then the messages are checked: each is there once, with its key. Spark is started once for each process,
before the first run. Latency is the time from sending a message until a consumer with `read_committed` has it.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from bench._chart import Bar, Chart
from bench._jars import jars
from bench._page import machine_in_words, write_part
from bench.ingesting.asking import process_of
from bench.ingesting.contestants import Contestant
from bench.ingesting.environments import Environment
from bench.messages.cluster import PARTITIONS, VALUE_BYTES, Cluster
from bench.messages.task import Task
from tests.services.broker import running

MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it
SPARK_JARS = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
"""The jars of the Kafka source of Structured Streaming; Spark has the others that it needs."""
BROKER = "-Xmx1g -Xms1g -XX:+UseG1GC"
"""The options of the broker's Java: those of a server, not of a test."""
BYTEWAX = Environment("bytewax-kafka", ("bytewax>=0.21", "confluent-kafka>=2.6"))
WARMING = 4
"""Runs of each before those that count: Java compiles code during the first ones."""

_SPARK = ("pyspark",)
COPIES = (
    Contestant("dagkit-batch", "dagkit, batch", "", "bench.messages.with_dagkit:batch", _SPARK),
    Contestant("dagkit-record", "dagkit, per record", "", "bench.messages.with_dagkit:record", _SPARK),
    Contestant("dagkit-objects", "dagkit, per message object", "", "bench.messages.with_dagkit:objects", _SPARK),
    Contestant("structured", "Structured Streaming", "", "bench.messages.with_spark:available", _SPARK),
    Contestant(
        "structured-record",
        "Structured Streaming, per record",
        "",
        "bench.messages.with_spark:with_function",
        _SPARK,
    ),
    Contestant(
        "dagkit-one",
        "dagkit, per message object, one core",
        "",
        "bench.messages.with_dagkit:objects_on_one_core",
        _SPARK,
    ),
    Contestant("bytewax", "Bytewax, one core", "", "bench.messages.with_bytewax:dataflow", ("bytewax",), BYTEWAX),
)
RUNNING = (
    Contestant("dagkit", "dagkit", "", "bench.messages.with_dagkit:running"),
    Contestant("structured", "Structured Streaming", "", "bench.messages.with_spark:running"),
)


@dataclass(frozen=True, slots=True)
class Law:
    """A ratio that must be met: of rates at least, of latencies at most."""

    name: str
    ours: str
    theirs: str
    bound: float
    is_latency: bool = False

    def ratio(self, figures: Mapping[str, Sequence[float]]) -> float | None:
        """The ratio of the medians; None if one was not measured."""
        if not (figures.get(self.ours) and figures.get(self.theirs)):
            return None
        return statistics.median(figures[self.ours]) / statistics.median(figures[self.theirs])

    def holds(self, ratio: float) -> bool:
        return ratio <= self.bound if self.is_latency else ratio >= self.bound


LAWS = (
    Law("batch over Structured Streaming", "dagkit-batch", "structured", 1.5),
    Law("per record over Structured Streaming", "dagkit-record", "structured", 1.5),
    Law("per message object over Structured Streaming", "dagkit-objects", "structured", 1.5),
    Law("per record over Structured Streaming, per record", "dagkit-record", "structured-record", 1.5),
    Law("per message object over Bytewax, one core", "dagkit-one", "bytewax", 1.0),
    Law("latency over Structured Streaming", "dagkit", "structured", 0.5, is_latency=True),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured."""

    rates: Mapping[str, Sequence[float]]
    """Thousands of messages a second in each warm run."""
    latencies: Mapping[str, Sequence[float]]
    """Milliseconds of each message."""

    def verdicts(self) -> Iterator[tuple[Law, float]]:
        """The ratios of which both sides were measured."""
        for law in LAWS:
            ratio = law.ratio(self.latencies if law.is_latency else self.rates)
            if ratio is not None:
                yield law, ratio


@contextmanager
def cluster(home: Path) -> Iterator[Cluster]:
    """A broker with its data in a folder."""
    os.environ.setdefault("KAFKA_JVM_PERFORMANCE_OPTS", BROKER)
    with running(home / "broker") as broker:
        yield Cluster(broker.address)


def rates(
    contestants: Sequence[Contestant], at: Cluster, home: Path, messages: int, rounds: int
) -> dict[str, list[float]]:
    """Thousands of messages a second in the warm runs of each, by turns."""
    at.fill(at.make("source"), messages)
    found: dict[str, list[float]] = {one.name: [] for one in contestants}
    with ExitStack() as stack:
        asking = {one.name: stack.enter_context(process_of(one, home / one.name)) for one in contestants}
        for number in range(WARMING + rounds):
            for name, contestant in asking.items():
                folder = home / name / f"run-{number}"
                folder.mkdir()
                task = Task(at.address, "source", at.make(f"{name}-{number}"))
                task.write(folder / "task")
                seconds = contestant.ask({"source": str(folder / "task"), "target": str(folder)})["seconds"]
                at.check(task.target, messages)
                at.remove(task.target)
                shutil.rmtree(folder)
                _say(f"{name}: {messages / seconds / 1e3:.0f} thousand messages a second")
                if number >= WARMING:
                    found[name].append(messages / seconds / 1e3)
    return found


def latencies(contestants: Sequence[Contestant], at: Cluster, home: Path, seconds: float) -> dict[str, list[float]]:
    """The milliseconds until messages of each contestant are visible."""
    found = {}
    for one in contestants:
        task = Task(at.address, at.make(f"in-{one.name}"), at.make(f"out-{one.name}"))
        with process_of(one, home / f"running-{one.name}") as contestant, ThreadPoolExecutor(1) as beside:
            folder = home / f"running-{one.name}" / "run"
            folder.mkdir()
            task.write(folder / "task")
            ended = beside.submit(contestant.ask, {"source": str(folder / "task"), "target": str(folder)})
            found[one.name] = at.latencies(
                task.source, task.target, every=0.005, seconds=seconds, said=(folder / "stop").touch
            )
            ended.result()
        _say(f"{one.name}: median {statistics.median(found[one.name]):.0f} ms of {len(found[one.name])} messages")
    return found


def measured(home: Path, options: argparse.Namespace) -> Found:
    """Measure what is asked for."""
    asked = [one for one in COPIES if one.name in options.only]
    for one in asked:
        one.environment.make(_say)
    os.environ["DAGKIT_BENCH_JARS"] = jars(*SPARK_JARS)
    with cluster(home) as at:
        late = latencies(RUNNING, at, home, options.seconds) if options.seconds else {}
        return Found(rates(asked, at, home, options.messages, options.rounds) if asked else {}, late)


def in_words(found: Found, messages: int, rounds: int) -> str:
    """The report as a part of the page."""
    about = (
        f"Each copies {messages} messages with a key and a value of {VALUE_BYTES} bytes from a topic with {PARTITIONS} "
        "partitions to another one, on the machine on which the broker runs, which shares its cores. Each run begins "
        "without a checkpoint and ends when everything is committed; Spark runs already. Then each message was checked "
        "to be there once. dagkit writes with transactions, exactly once, and syncs its ledger. The sinks of "
        "Structured Streaming (with `availableNow`) and of Bytewax write at least once. **Per record**, a Python "
        "function gets the content of each message; **per message object**, as with Bytewax, an object of it. "
        "Structured Streaming calls no function, and **per record** a function in Python of each content (`udf`); its "
        "connector for Kafka is that of Spark 4.2. "
        "On one core, the process is bound to one, and the broker is not. "
        "Thousands of messages a second, "
        f"medians of {rounds} runs after {WARMING}, by turns. Measured with {machine_in_words()}, "
        f"{', '.join(f'{name} {metadata.version(name)}' for name in ('pyspark', 'confluent-kafka', 'pyarrow'))}."
    )
    lines = ["## Kafka", "", "```sh", "python -m bench kafka --write-docs", "```", "", about, ""]
    titles = {one.name: one.title for one in (*RUNNING, *COPIES)}
    if found.rates:
        lines += ["|  | thousand messages/s | slowest to fastest |", "|---|---:|---:|"]
        for name, each in found.rates.items():
            lines.append(f"| {titles[name]} | {statistics.median(each):.0f} | {min(each):.0f} to {max(each):.0f} |")
        lines.append("")
    if found.latencies:
        latency = (
            "Latency is the time from sending a message, one every 5 ms, until a consumer with `read_committed` has "
            "it, in milliseconds. Structured Streaming has its default trigger, and writes without transactions."
        )
        lines += [
            latency,
            "",
            "|  | median | 99 in 100 | messages |",
            "|---|---:|---:|---:|",
        ]
        for name, each in found.latencies.items():
            late = statistics.quantiles(each, n=100)[98]
            lines.append(f"| {titles[name]} | {statistics.median(each):.0f} | {late:.0f} | {len(each)} |")
        lines.append("")
    lines += ["|  | ratio | bound |  |", "|---|---:|---:|---|"]
    for law, ratio in found.verdicts():
        bound = f"at {'most' if law.is_latency else 'least'} {law.bound}"
        lines.append(f"| {law.name} | {ratio:.2f} | {bound} | {'holds' if law.holds(ratio) else 'falls short'} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure, print the figures, and return 1 if a ratio is not met."""
    parser = argparse.ArgumentParser(prog="python -m bench kafka", description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15, help="for latencies; 0: do not measure them")
    parser.add_argument("--only", nargs="*", choices=[one.name for one in COPIES], default=[one.name for one in COPIES])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        found = measured(Path(folder), options)
    report = in_words(found, options.messages, options.rounds)
    print(json.dumps(asdict(found), indent=1) if options.json else report)
    if options.write_docs:
        titles = {one.name: one.title for one in COPIES}
        bars = [Bar(titles[name], each) for name, each in found.rates.items()]
        charts = [Chart("bench-kafka", "From topic to topic, thousand messages/s", bars)] if bars else []
        write_part("kafka", report, *charts)
    return int(not all(law.holds(ratio) for law, ratio in found.verdicts()))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
