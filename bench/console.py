"""The console: how long a page takes to show a long ledger, and what an open page takes from a run.

The page is opened in Chromium, each time from a console that has just started. A run without the console takes turns
with one whose console is asked as by an open page: a process of its own waits for each event, and asks what the page
asks then. It draws nothing, since a page is mostly open on another machine.
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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench._page import machine_in_words, spread, write_part
from bench.ingesting.text import age, write_text
from dagkit import Config, Dag
from dagkit.backends.spark import local_session
from dagkit.console.run_folder import RunFolder
from dagkit.console.serving import Console
from dagkit.launching import Machine, launch
from dagkit.ledger import Chain, Ledger, checkpoint_of
from dagkit_operators import FileSplitterInput, Filter, LineReader, RecordWriter, value

MOST_SECONDS = 1.0
"""The most seconds until the page shows the run."""
FEW = 100
"""Windows of a short run, which its charts show."""
MOST_COST = 0.02
"""The most that an open page may cost, as a share of the throughput."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it
ASKING = """
import sys
from http.client import HTTPConnection

address, token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}"}

def ask(path):
    connection = HTTPConnection(address, timeout=60)
    connection.request("GET", f"/api/v1/{path}", headers=headers)
    return connection.getresponse()

ask("overview").read()
for line in ask("events"):
    if line.startswith(b"data:"):
        for path in ("operators?limit=40", "series", "windows?limit=10"):
            ask(path).read()
"""
"""Asks a console as an open page does, until it closes."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured."""

    windows: int
    shown: Sequence[float]
    """The seconds until a browser shows the run."""
    shown_short: Sequence[float]
    """The seconds until it shows a run with FEW windows."""
    gib: float
    without: Sequence[float]
    """The seconds of each run without the console."""
    beside: Sequence[float]
    """The seconds of each run with an open page."""

    @property
    def cost(self) -> float:
        """The throughput that an open page takes away, as a share."""
        return 1 - statistics.median(self.without) / statistics.median(self.beside)

    @property
    def holds(self) -> bool:
        return statistics.median(self.shown) <= MOST_SECONDS and self.cost <= MOST_COST


def filtering(dag: Dag, _: Config) -> None:
    """Reads lines, and writes the few that begin with two dots."""
    find = dag.add_operator("Find", FileSplitterInput(scanner={"files": ["text"]}))
    read = dag.add_operator("Read", LineReader())
    keep = dag.add_operator("Keep", Filter(value.starts_with("..")))
    write = dag.add_operator("Write", RecordWriter(file_path="out"))
    dag.add_stream("blocks", find.blocks_metadata_output, read.blocks_metadata_input)
    dag.add_stream("lines", read.messages, keep.input)
    dag.add_stream("kept", keep.output, write.input)


def shown_after(windows: int, rounds: int) -> tuple[list[float], list[float]]:
    """The seconds until a browser shows a run of so many windows, and the same run when it had FEW.

    One round of each is not counted.
    """
    Path("text").mkdir()
    Path("text/few").write_text("..one\n.two\n", encoding="utf-8")
    age(Path("text/few"))
    launched = launch(filtering, until="once", path="long", machine=Machine("reference"), durable=False)
    place = launched.application_path
    chain = Ledger.open(place, durable=False).chain(launched.application)
    grow(chain, FEW - launched.window_id)
    short = opened(place, rounds)
    grow(chain, windows - FEW)
    return opened(place, rounds), short


def opened(place: str, rounds: int) -> list[float]:
    """The seconds until a browser shows the run of an application's folder."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - part of the test kit

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    seconds = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(rounds + 1):
            with Console(RunFolder(place)).served() as url:
                page = browser.new_page()
                began = time.perf_counter()
                page.goto(url)
                page.locator(".chart canvas").first.wait_for()
                seconds.append(time.perf_counter() - began)
                page.close()
            print(f"shown after {seconds[-1]:.2f} s", file=sys.stderr, flush=True)
        browser.close()
    return seconds[1:]


def grow(chain: Chain, count: int) -> None:
    """Append windows like the last one."""
    document = json.loads(chain.checkpoint_at(chain.read(chain.head.seq)) or b"")
    for _ in range(count):
        planned = chain.plan_next()
        document["window"] += 1
        text = json.dumps(document).encode()
        chain.append(planned.execute(checkpoint=checkpoint_of(text)), [text], planned=planned)


def runs(gib: float, rounds: int) -> tuple[list[float], list[float]]:
    """The seconds of runs without the console, and with an open page, after a pair that is not counted."""
    shutil.rmtree("text", ignore_errors=True)
    Path("text").mkdir()
    write_text(Path("part"), 256 << 20)
    age(Path("part"))
    for number in range(round(gib * 4)):
        Path(f"text/{number}").hardlink_to("part")  # a file with several hard links is read by each of its names
    spark = local_session(len(os.sched_getaffinity(0)))
    without: list[float] = []
    beside: list[float] = []
    for _ in range(rounds + 1):
        for console, seconds in ((None, without), (Console(RunFolder(str(Path("run").absolute()))), beside)):
            began = time.perf_counter()
            with _asked(console) if console is not None else contextlib.nullcontext():
                launch(filtering, spark=spark, until="once", path="run", durable=False)
                seconds.append(time.perf_counter() - began)
            name = "without the console" if console is None else "with an open page"
            print(f"a run {name}: {seconds[-1]:.2f} s", file=sys.stderr, flush=True)
            for made in ("run", "out"):
                shutil.rmtree(made, ignore_errors=True)
    spark.stop()
    return without[1:], beside[1:]


@contextlib.contextmanager
def _asked(console: Console) -> Iterator[None]:
    """Serve a console that is asked as by an open page."""
    with console.served() as url:
        address, token = urlsplit(url).netloc, url.partition("token=")[2]
        asking: subprocess.Popen[Any]
        with subprocess.Popen([sys.executable, "-c", ASKING, address, token], stderr=subprocess.DEVNULL) as asking:  # noqa: S603 - our own
            yield
            asking.terminate()


def page(measured: Measured) -> str:
    """This benchmark's part of the documents."""
    about = (
        f"How long it takes from opening the page of a run with {measured.windows} windows in Chromium until its "
        "charts are drawn, with a console that has just started. And a run on Spark that reads "
        f"{measured.gib:g} GiB of lines, by turns without the console and with a page open, which asks for news once a "
        "second. The browser is not part of this; it mostly runs on another machine. "
        f"All files are in memory. Rounds: {len(measured.without)}. Measured with {machine_in_words()}."
    )
    lines = ["## The console", "", "```sh", "python -m bench console --write-docs", "```", "", about, ""]
    lines += ["|  | seconds |", "|---|---:|"]
    lines += [f"| until the page shows the run | {spread(measured.shown, 2)} |"]
    lines += [f"| the same when it had {FEW} windows | {spread(measured.shown_short, 2)} |"]
    lines += [f"| a run without the console | {spread(measured.without, 2)} |"]
    lines += [f"| with an open page | {spread(measured.beside, 2)} |"]
    lines += ["", f"Until the page shows the run, at most {MOST_SECONDS:g} s is wanted. An open page takes"]
    lines += [f"{measured.cost:.1%} of the throughput; at most {MOST_COST:.0%} is wanted."]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if a bound is not met."""
    parser = argparse.ArgumentParser(prog="python -m bench console", description=__doc__)
    parser.add_argument("--windows", type=int, default=100_000, help="windows in the long ledger")
    parser.add_argument("--gib", type=float, default=8, help="what a run reads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--write-docs", action="store_true", help="write the results into docs/benchmarks.md")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder, contextlib.chdir(folder):
        shown, short = shown_after(asked.windows, asked.rounds)
        without, beside = runs(asked.gib, asked.rounds)
    result = Measured(asked.windows, shown, short, asked.gib, without, beside)
    if asked.json:
        head = {"schema": "dagkit.bench.console/1", **asdict(result)}
        print(json.dumps({**head, "cost": result.cost, "holds": result.holds}))
    else:
        print(page(result))
    if asked.write_docs:
        write_part("console", page(result))
    return 0 if result.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
