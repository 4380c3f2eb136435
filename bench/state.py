"""The cost of a window as the state and the queue of an application grow, on the reference backend or on Spark.

Each window touches the same number of keys, or reads about as many blocks, whatever there is besides. The time of a
window is that from one commit to the next, which includes syncing to disk; of a window that reads blocks, it is the
processor time, since its blocks only wait. Its bytes are those of its checkpoint. Each application runs in a process of
its own; its memory is what is resident after the windows, less what was before the application began.
"""

import argparse
import gc
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from dagkit import Block, Dag, InputOperator, InputPort, KeyedState, Operator, OutputPort, SplittableOperator, State
from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.backends.spark import SparkBackend, local_session
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.record.run_events import Committed, RunEvent
from dagkit.engine.run.loop import Loop
from dagkit.ledger import ExecuteTransform, Ledger
from dagkit.ranges import OffsetRange, RestrictionTracker

MOST_TIMES_STATE = 1.3
"""The most time of a window with 100 times the state that it touches, over one with nothing else."""
MOST_TIMES_QUEUE = 1.2
"""The most time of a window with many blocks waiting, over one with 1000."""
WINDOWS = 7
FILLING = 10
"""The windows that write all keys first."""
READING_WINDOWS = 3
"""The windows that read blocks last ten seconds each, whatever waits."""
READING_SECONDS = 0.25
VALUE = 1000
"""The characters of the value of a key."""


class Touches(InputOperator):
    """Emits the first key and the number of keys that each window touches."""

    kind = "bench.touches/1"
    ranges = OutputPort(tuple[int, int])
    touched: int
    keys: int
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at < FILLING:
            share = self.keys // FILLING
            self.ranges.emit((self.at * share, share))
        else:
            self.ranges.emit((0, self.touched))
        self.at += 1

    def looks_again_in_millis(self) -> int | None:
        return 0


class Keep(Operator):
    """Keeps a text for each key."""

    kind = "bench.keep/1"
    ranges = InputPort(tuple[int, int])
    texts = KeyedState[int, str](str)

    def process(self, item: tuple[int, int]) -> None:
        first, count = item
        for key in range(first, first + count):
            self.texts[key] = f"{int(self.texts[key] or 0) + 1:0{VALUE}}"


class Many(InputOperator):
    """Emits many blocks at once, and then one with each look."""

    kind = "bench.many/1"
    blocks = OutputPort(Block)
    most: int
    at = State(0)

    def emit_tuples(self) -> None:
        count = self.most if self.at == 0 else 1
        for number in range(self.at, self.at + count):
            self.blocks.emit(Block(number, f"/in/{number:09}.txt", 0, 1000))
        self.at += count

    def looks_again_in_millis(self) -> int | None:
        return 0


class Skip(SplittableOperator[Block]):
    """Claims each block as a whole, and waits, so that a window reads few of them."""

    kind = "bench.skip/1"
    blocks = InputPort(Block)

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> None:
        if tracker.try_claim(element.end - 1):
            time.sleep(READING_SECONDS)
        tracker.try_claim(element.end)


@dataclass(frozen=True)
class Measured:
    """The windows of one application."""

    what: str
    besides: int
    """How many keys there are, or how many blocks wait."""
    millis: float
    """The median time of a window."""
    written: int
    """The median of the bytes that a window wrote."""
    resident: int
    """The bytes that the application held in memory after its windows."""


def main(arguments: Sequence[str]) -> int:
    """Measure windows with little and with much besides, and compare them."""
    parser = argparse.ArgumentParser(prog="python -m bench state")
    parser.add_argument("--touched", type=int, default=1000, help="how many keys of 1 kB each window touches")
    parser.add_argument("--keys", type=int, default=100_000, help="how many keys there are in the large state")
    parser.add_argument("--blocks", type=int, nargs="+", default=[1_000_000], help="how many blocks wait")
    parser.add_argument("--only", choices=("state", "queue"))
    parser.add_argument("--on", choices=("reference", "spark"), default="reference", help="the backend")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    measured, met = [], True
    if given.only != "queue":
        pair = [_apart(_state, given.touched, keys, given.on) for keys in (given.touched, given.keys)]
        measured += pair
        met &= pair[1].millis <= MOST_TIMES_STATE * pair[0].millis
    if given.only != "state":
        queues = [_apart(_queue, blocks, given.on) for blocks in (1000, *given.blocks)]
        measured += queues
        met &= all(one.millis <= MOST_TIMES_QUEUE * queues[0].millis for one in queues)
    for one in measured:
        line = f"{one.what:6} besides {one.besides:>9,}: {one.millis:10.1f} ms, {one.written:>12,} bytes a window"
        line += f", {one.resident / 1e6:,.0f} MB in memory"
        print(json.dumps(asdict(one)) if given.json else line)
    return 0 if met else 1


def _apart(measure: Callable[..., Measured], *arguments: Any) -> Measured:
    """Measure in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(measure, *arguments).result()


def _state(touched: int, keys: int, on: str) -> Measured:
    def draw(dag: Dag, _: Any) -> None:
        dag.add_stream(
            "ranges", dag.add_operator("touches", Touches(touched=touched, keys=keys)).ranges,
            dag.add_operator("keep", Keep()).ranges,
        )  # fmt: skip

    return Measured("state", keys, *_windows(draw, FILLING, WINDOWS, time.perf_counter, on))


def _queue(blocks: int, on: str) -> Measured:
    def draw(dag: Dag, _: Any) -> None:
        many, skip = dag.add_operator("many", Many(most=blocks)), dag.add_operator("skip", Skip())
        dag.add_stream("blocks", many.blocks, skip.blocks)

    return Measured("queue", blocks, *_windows(draw, 2, READING_WINDOWS, time.process_time, on))


def _windows(
    draw: Callable[[Dag, Any], None], before: int, count: int, timer: Callable[[], float], on: str
) -> tuple[float, int, int]:
    """Run so many windows, then those that count; return the medians of their times and bytes, and the memory."""
    with tempfile.TemporaryDirectory(prefix="dagkit-state-") as folder:
        commits: list[float] = []

        def note(event: RunEvent) -> None:
            if isinstance(event, Committed):
                commits.append(timer())

        compilation = compile_application(draw)
        ledger = Ledger.create(folder)
        settings, resident = RunSettings(folder, Until.STOPPED, before + count, overlap=1), _resident()
        backend = SparkBackend(compilation, local_session(2)) if on == "spark" else ReferenceBackend(compilation)
        loop = Loop(RunState(compilation, backend, ledger, settings, observers=[note]))
        loop.run()
        gc.collect()
        resident = _resident() - resident
        millis = [1000 * (after - since) for since, after in pairwise(commits)]
        written = _written(Path(folder))
        return statistics.median(millis[-count:]), int(statistics.median(written[-count:])), resident


def _resident() -> int:
    """The resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _written(folder: Path) -> list[int]:
    """The sizes of all checkpoints, in bytes."""
    ledger = Ledger.open(str(folder))
    chains = [ledger.chain(name) for name in ledger.names()]
    events = [record.block.event for chain in chains for record in chain.records()]
    return [e.new_checkpoint.size for e in events if isinstance(e, ExecuteTransform) and e.new_checkpoint is not None]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
