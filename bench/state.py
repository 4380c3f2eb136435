"""The cost of a window as the state and the queue of an application grow, on the reference backend.

Each window touches the same number of keys, or reads about as many blocks, whatever there is besides. The time of a
window is that from one commit to the next, which includes syncing to disk; of a window that reads blocks, it is the
processor time, since its blocks only wait. Its bytes are those of its checkpoint.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dagkit import Block, Dag, InputOperator, InputPort, KeyedState, Operator, OutputPort, SplittableOperator, State
from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.compiler import compile_application
from dagkit.engine.reports.run_events import Committed, RunEvent
from dagkit.engine.run.loop import Loop
from dagkit.engine.run.run_state import RunSettings, RunState
from dagkit.ledger import ExecuteTransform, Ledger
from dagkit.ranges import OffsetRange, RestrictionTracker

MOST_TIMES_STATE = 1.3
"""The most time of a window with 100 times the state that it touches, over one with nothing else."""
MOST_TIMES_QUEUE = 1.2
"""The most time of a window with many blocks waiting, over one with 1000."""
WINDOWS = 7
READING_SECONDS = 0.02
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
        windows = self.keys // self.touched
        if self.at < windows + WINDOWS:
            self.ranges.emit(((self.at % windows) * self.touched, self.touched))
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
            self.texts[key] = f"{len(self.texts[key]) + 1:0{VALUE}}"


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


def main(arguments: Sequence[str]) -> int:
    """Measure windows with little and with much besides, and compare them."""
    parser = argparse.ArgumentParser(prog="python -m bench state")
    parser.add_argument("--touched", type=int, default=1000, help="how many keys of 1 kB a window touches")
    parser.add_argument("--keys", type=int, default=100_000, help="how many keys there are in the large state")
    parser.add_argument("--blocks", type=int, default=100_000, help="how many blocks wait in the long queue")
    parser.add_argument("--only", choices=("state", "queue"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    measured, met = [], True
    if given.only != "queue":
        pair = [_state(given.touched, keys) for keys in (given.touched, given.keys)]
        measured += pair
        met &= pair[1].millis <= MOST_TIMES_STATE * pair[0].millis
    if given.only != "state":
        pair = [_queue(blocks) for blocks in (1000, given.blocks)]
        measured += pair
        met &= pair[1].millis <= MOST_TIMES_QUEUE * pair[0].millis
    for one in measured:
        line = f"{one.what:6} besides {one.besides:>9,}: {one.millis:10.1f} ms, {one.written:>12,} bytes a window"
        print(json.dumps(asdict(one)) if given.json else line)
    return 0 if met else 1


def _state(touched: int, keys: int) -> Measured:
    def draw(dag: Dag, _: Any) -> None:
        dag.add_stream(
            "ranges", dag.add_operator("touches", Touches(touched=touched, keys=keys)).ranges,
            dag.add_operator("keep", Keep()).ranges,
        )  # fmt: skip

    return Measured("state", keys, *_windows(draw, keys // touched, time.perf_counter))


def _queue(blocks: int) -> Measured:
    def draw(dag: Dag, _: Any) -> None:
        many, skip = dag.add_operator("many", Many(most=blocks)), dag.add_operator("skip", Skip())
        dag.add_stream("blocks", many.blocks, skip.blocks)

    return Measured("queue", blocks, *_windows(draw, 3, time.process_time))


def _windows(draw: Callable[[Dag, Any], None], before: int, timer: Callable[[], float]) -> tuple[float, int]:
    """Run so many windows, then those that count; return the medians of their times and bytes."""
    with tempfile.TemporaryDirectory(prefix="dagkit-state-") as folder:
        commits: list[float] = []

        def note(event: RunEvent) -> None:
            if isinstance(event, Committed):
                commits.append(timer())

        compilation = compile_application(draw)
        ledger = Ledger.create(folder)
        settings = RunSettings(folder, Until.STOPPED, before + WINDOWS, overlap=1)
        Loop(RunState(compilation, ReferenceBackend(compilation), ledger, settings, observers=[note])).run()
        millis = [1000 * (after - since) for since, after in pairwise(commits)]
        return statistics.median(millis[-WINDOWS:]), int(statistics.median(_written(Path(folder))[-WINDOWS:]))


def _written(folder: Path) -> list[int]:
    """The sizes of all checkpoints, in bytes."""
    ledger = Ledger.open(str(folder))
    chains = [ledger.chain(name) for name in ledger.names()]
    events = [record.block.event for chain in chains for record in chain.records()]
    return [e.new_checkpoint.size for e in events if isinstance(e, ExecuteTransform) and e.new_checkpoint is not None]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
