"""Launches of a small text: cold, in a warm driver, the windows alone, and a minimal script of PySpark, in turns.

The windows alone are those of a launch in a session that has run some. The others are whole processes, from their start
to their exit. Each output is checked.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench._page import ROOT, machine_in_words, write_part
from bench.ingesting.sizes import cores
from bench.ingesting.text import NOTHING, left_in, write_text
from dagkit.backends.spark import local_session
from dagkit.launching import launch

COLD, WARM, WINDOWS, SCRIPT = "cold", "in a warm driver", "the windows alone", "a minimal script of PySpark"
MOST_SECONDS = 0.5
"""The most that a launch in a warm driver takes over the windows alone."""
MOST_OF_SCRIPT = 0.8
"""The most that a cold launch takes, as a share of a minimal script of PySpark that does the same."""
APPLICATION = """
from dagkit import Config, Dag
from dagkit_operators import FileSplitterInput, Filter, LineReader, RecordWriter, value


def populate_dag(dag: Dag, conf: Config) -> None:
    find = dag.add_operator("Find", FileSplitterInput(scanner={"files": ["text"]}))
    read = dag.add_operator("Read", LineReader())
    keep = dag.add_operator("Keep", Filter(~value.starts_with(".")))
    write = dag.add_operator("Write", RecordWriter(file_path="out"))
    dag.add_stream("blocks", find.blocks_metadata_output, read.blocks_metadata_input)
    dag.add_stream("lines", read.messages, keep.input)
    dag.add_stream("kept", keep.output, write.input)
"""
MINIMAL = """
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

spark = SparkSession.builder.master(f"local[{sys.argv[1]}]").getOrCreate()
spark.read.text("text").filter(~col("value").startswith(".")).write.text("out")
spark.stop()
"""


class WrongResult(RuntimeError):
    """The output of a launch is wrong."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The seconds of each way to launch, by name."""

    mib: int
    seconds: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    @property
    def over(self) -> float:
        """The seconds that a launch in a warm driver takes over the windows alone."""
        return self.median(WARM) - self.median(WINDOWS)

    @property
    def of_script(self) -> float:
        """What a cold launch takes, as a share of a minimal script of PySpark."""
        return self.median(COLD) / self.median(SCRIPT)

    @property
    def holds(self) -> bool:
        return self.over <= MOST_SECONDS and self.of_script <= MOST_OF_SCRIPT


def measured(mib: int, rounds: int) -> Measured:
    """Measure in a folder that becomes the working directory, after two rounds that are not counted."""
    text = write_text(Path("text"), mib << 20)
    with _ways() as ways:
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(rounds + 2):
            for name, way in ways.items():
                began = time.perf_counter()
                way()
                took = time.perf_counter() - began
                if left_in(Path("out")) != (text.kept, NOTHING):
                    raise WrongResult(f"the output of the launch is wrong: {name}")
                for made in ("out", ".dagkit"):
                    shutil.rmtree(made, ignore_errors=True)  # the script makes no ledger
                if number >= 2:
                    seconds[name].append(took)
    return Measured(mib, seconds)


@contextlib.contextmanager
def _ways() -> Iterator[dict[str, Callable[[], object]]]:
    """Each way to launch the application of this directory, whose warm driver has a folder of its own."""
    Path("app.py").write_text(APPLICATION, encoding="utf-8")
    Path("minimal.py").write_text(MINIMAL, encoding="utf-8")
    warm = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "operators")])}
    cold = {**warm, "XDG_RUNTIME_DIR": str(Path.cwd())}
    namespace: dict[str, Callable[..., None]] = {}
    exec(APPLICATION, namespace)  # noqa: S102 - the text above
    spark = local_session(cores())
    try:
        _dagkit(warm, "serve", "--cores", str(cores()))
        yield {
            COLD: lambda: _dagkit(cold, *_LAUNCH),
            WARM: lambda: _dagkit(warm, *_LAUNCH),
            WINDOWS: lambda: launch(namespace["populate_dag"], spark=spark, until="once"),
            SCRIPT: lambda: _python(cold, "minimal.py", str(cores())),
        }
    finally:
        _dagkit(warm, "serve", "--stop")
        spark.stop()


_LAUNCH = ("launch", "app.py", "--once", "--cores", str(cores()))


def _dagkit(environment: Mapping[str, str], *arguments: str) -> None:
    _python(environment, "-m", "dagkit.cli", *arguments)


def _python(environment: Mapping[str, str], *arguments: str) -> None:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode:
        raise WrongResult(f"{arguments} ended with {done.returncode}: {done.stderr}")


def page(measured: Measured) -> str:
    """This benchmark's part of the documents."""
    about = (
        f"Launches read a text of {measured.mib} MiB, drop the lines that begin with a dot and write the others. "
        "A cold launch starts its own Spark. The windows alone are those of a launch in a session that has run some. "
        "The script starts a Spark, too, and does the same with a DataFrame. "
        f"They take turns; rounds: {len(measured.seconds[WARM])}. Measured with {machine_in_words()}."
    )
    lines = ["## Launches", "", "```sh", "python -m bench launches --write-docs", "```", "", about, ""]
    lines += ["|  | seconds | fastest to slowest |", "|---|---:|---:|"]
    for name, taken in measured.seconds.items():
        lines.append(f"| {name} | {measured.median(name):.2f} | {min(taken):.2f} to {max(taken):.2f} |")
    lines += [
        "",
        f"In a warm driver over the windows alone: {measured.over:.2f} s; at most {MOST_SECONDS:g} s is wanted.",
        f"A cold launch over the script: {measured.of_script:.2f}; at most {MOST_OF_SCRIPT:g} is wanted.",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if a launch is too slow, cold or in a warm driver."""
    parser = argparse.ArgumentParser(prog="python -m bench launches", description=__doc__)
    parser.add_argument("--mib", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--write-docs", action="store_true", help="write the results into docs/benchmarks.md")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        result = measured(asked.mib, asked.rounds)
    if asked.json:
        head = {"schema": "dagkit.bench.launches/1", **asdict(result)}
        print(json.dumps({**head, "over": result.over, "of_script": result.of_script, "holds": result.holds}))
    else:
        print(page(result))
    if asked.write_docs:
        write_part("launches", page(result))
    return 0 if result.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
