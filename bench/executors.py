"""How much faster two and four executors are than one, on a standalone cluster whose processes run on this machine.

Each number of executors has its own driver and its own session, which stays. They take turns. An executor has one core.
Work that computes is done by as many executors as there are cores; work that waits, as for a server, also by more.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from bench._chart import Bar, Chart
from bench._page import machine_in_words, spread, write_part
from bench.ingesting.asking import process_of
from bench.ingesting.contestants import Contestant
from bench.ingesting.sizes import cores
from bench.ingesting.text import age
from bench.skewing.work import burning, rounds_for
from dagkit import Config, Dag, DagContext, PortContext, StreamingApplication
from dagkit.backends.spark.session.session import session_at
from dagkit.launching import launch
from dagkit_operators import FileSplitterInput, LineReader, Map, RecordWriter
from dagkit_operators.finding.scanner import DirectoryScanner
from tests.cluster.driver import cluster_settings
from tests.cluster.standalone import Standalone

MASTER = "DAGKIT_BENCH_MASTER"
"""The variable that gives the address of the cluster to the drivers."""
LINES, BLOCKS = 4000, 32
LEAST = 1.8
"""The least speed of two executors, in speeds of one."""
WARMING = 1
EXECUTORS = {
    each: Contestant(f"executors-{each}", f"{each} executor{'s' * (each > 1)}", "", f"bench.executors:with_{word}")
    for each, word in ((1, "one"), (2, "two"), (4, "four"))
}
KINDS = {"computing": (1, 2), "waiting": (1, 2, 4)}
"""The numbers of executors that do each kind of work."""


def work(line: str) -> str:
    """Compute or wait as long as the line says."""
    kind, amount, _ = line.split(" ", 2)
    if kind == "waiting":
        time.sleep(float(amount))
        return line
    return burning(int(amount))(f"1 {line}")


class Work(StreamingApplication):
    """Reads one file, works on each line, and writes a file for each block."""

    source: Path
    target: Path
    executors: int

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        size = -(-self.source.stat().st_size // BLOCKS)
        scanner = DirectoryScanner(files=(str(self.source),))
        splitter = dag.add_operator("Splitter", FileSplitterInput(scanner=scanner, block_size=size))
        reader = dag.add_operator("Reader", LineReader(min_readers=self.executors, max_readers=self.executors))
        worker: Map[Any, Any] = dag.add_operator("Worker", Map(work))
        writer = dag.add_operator("Writer", RecordWriter(file_path=str(self.target)))
        for inlet in (worker.input, writer.input):
            dag.set_input_port_attribute(inlet, PortContext.PARTITION_PARALLEL, True)
        dag.set_attribute(DagContext.APPLICATION_PATH, str(self.target.parent / "application"))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, worker.input)
        dag.add_stream("results", worker.output, writer.input)


@cache
def _session(executors: int) -> SparkSession:
    return session_at(os.environ[MASTER], {**cluster_settings(), "spark.cores.max": str(executors)})


def _with(executors: int, source: Path, target: Path) -> None:
    launch(Work(source=source, target=target, executors=executors), spark=_session(executors), until="once")


def with_one(source: Path, target: Path) -> None:
    _with(1, source, target)


def with_two(source: Path, target: Path) -> None:
    _with(2, source, target)


def with_four(source: Path, target: Path) -> None:
    _with(4, source, target)


Found = Mapping[str, Mapping[int, Sequence[float]]]
"""The seconds of each run, by kind of work and number of executors."""


def measured(home: Path, seconds: float, rounds: int) -> Found:
    """Let all drivers take turns."""
    sources = {kind: home / f"{kind}.txt" for kind in KINDS}
    for kind, amount in (("computing", rounds_for(seconds, LINES)), ("waiting", seconds / LINES)):
        sources[kind].write_text("".join(f"{kind} {amount:<12.8g} {number:06}\n" for number in range(LINES)))
        age(sources[kind])
    found: dict[str, dict[int, list[float]]] = {kind: {each: [] for each in KINDS[kind]} for kind in KINDS}
    with ExitStack() as stack:
        os.environ[MASTER] = stack.enter_context(Standalone(home / "cluster", sum(EXECUTORS))).url
        drivers = {each: stack.enter_context(process_of(one, home / one.name)) for each, one in EXECUTORS.items()}
        for number in range(WARMING + rounds):
            for kind, executors in ((kind, each) for kind, numbers in KINDS.items() for each in numbers):
                target = home / f"{kind}-{executors}-{number}" / "out"
                target.mkdir(parents=True)
                answer = drivers[executors].ask({"source": str(sources[kind]), "target": str(target)})
                lines = sum(len(path.read_bytes().splitlines()) for path in target.rglob("[!._]*") if path.is_file())
                assert lines == LINES, f"{executors} executors wrote {lines} lines"
                print(f"{kind}, {executors}: {answer['seconds']:.2f} s", file=sys.stderr, flush=True)
                if number >= WARMING:
                    found[kind][executors].append(answer["seconds"])
    return found


def speed(found: Mapping[int, Sequence[float]], executors: int) -> float:
    """The speed with this many executors, in speeds with one."""
    return median(found[1]) / median(found[executors])


def page(found: Found, seconds: float, rounds: int) -> Iterator[str]:
    """This benchmark's part of the page."""
    yield "## More executors"
    yield "```sh\npython -m bench executors --write-docs\n```"
    yield (
        f"A function works on {LINES} lines in {BLOCKS} blocks, which takes about {seconds:g} s on one core: it "
        "computes, or it waits. A standalone cluster runs on this machine, with executors of one core; each number of "
        "executors has its own driver and its own warm session, and they take turns. A launch includes finding the "
        "file, its windows, and their commits, which are synced. Medians, with the fastest and the slowest run; "
        f"rounds: {rounds}. Measured with {machine_in_words()}."
    )
    lines = ["| work | executors | seconds | speed of one = 1 | at least |", "|---|---:|---:|---:|---:|"]
    for kind, by_number in found.items():
        for executors, runs in by_number.items():
            least = f"{LEAST:g}" if executors == 2 else ""
            ratio = speed(by_number, executors)
            lines.append(f"| {kind} | {executors} | {spread(runs, 2)} | {ratio:.2f} | {least} |")
    yield "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if two executors are too slow."""
    parser = argparse.ArgumentParser(prog="python -m bench executors", description=__doc__)
    parser.add_argument("--seconds", type=float, default=16.0, help="work for one core, about")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write-docs", action="store_true")
    asked = parser.parse_args(arguments)
    if cores() < 2:
        print("two executors that compute need two cores", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), asked.seconds, asked.rounds)
    text = "\n\n".join(page(found, asked.seconds, asked.rounds))
    print(json.dumps(found, indent=1) if asked.json else text)
    if asked.write_docs:
        bars = [Bar(f"{kind}, {each} executors", found[kind][each]) for kind in found for each in found[kind]]
        write_part("executors", text, Chart("bench-executors", "More executors, seconds", bars))
    return int(any(speed(by_number, 2) < LEAST for by_number in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
