"""The cost of metrics: a slot that counts the items at its ports, alternating with a slot that does not.

A slot reads lines and passes them through operators, as on a worker; it writes nothing, so that the counting has a
larger share. A window lasts long enough that samples of the stack fall into it. Four windows, in which each kind comes
first and last of a pair, give one ratio; the median of the ratios is judged. Times are processor times, which other
processes hardly affect.
"""

import argparse
import json
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench._page import machine_in_words, write_part
from bench.ingesting.text import write_text
from dagkit import Batch, Block, Dag, InputOperator, InputPort, Operator, OutputPort, PortContext, RowOperator, State
from dagkit.api.operators import handler_of
from dagkit.compiler import compile_application
from dagkit.engine.program.address import Address
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.program import Program
from dagkit.engine.record.run_events import Measured
from dagkit.engine.record.statistics import AggregatedMetrics, stage_runs, window_stats
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker import instances as live
from dagkit.engine.worker.busy import BusyTime
from dagkit.engine.worker.instances import Receiver
from dagkit.engine.worker.protocol import Report, WindowTask
from dagkit.engine.worker.slot import SlotRun
from dagkit.observers.prometheus import Prometheus
from dagkit_operators import Filter, LineReader, Record, value

MOST_OVERHEAD = 0.01
"""The most that metrics may add, as a share of the time without them."""
MOST_MILLIS_FOR_A_SLOT = 1.0
"""The most driver time for the figures of one slot: a hundredth of a window of a tenth of a second."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it
MILLIS = 60.0
"""How long a window lasts: three samples of the stack."""
TRIED = 1 << 18
"""Bytes of text, at least, by which the text for a longer window is measured."""
SLOTS = 64
"""Slots in the window whose figures the driver processes."""


class Source(InputOperator):
    """Takes the place of the source of blocks."""

    output = OutputPort(Block)


class Keep(RowOperator):
    """Keeps nine lines in ten, called line by line."""

    input = InputPort[Record[str]]()
    output = OutputPort[Record[str]]()

    def process(self, item: Record[str]) -> Iterator[Record[str]]:
        if not item.value.startswith("."):
            yield item


class Pass(Operator):
    """Passes each item on."""

    input = InputPort[Record[str]]()
    output = OutputPort[Record[str]]()

    def process(self, item: Record[str]) -> None:
        self.output.emit(item)


class Split(RowOperator):
    """Splits each line into words, as many programs do first."""

    input = InputPort[Record[str]]()
    output = OutputPort(list)

    def process(self, item: Record[str]) -> Iterator[list[str]]:
        yield item.value.split()


class AddUp(Operator):
    """Adds up the lengths of the lines' first words, by their first letter."""

    input = InputPort(list)
    lengths = State[dict[str, int]](dict)

    def process(self, item: list[str]) -> None:
        first = item[0] if item else ""
        self.lengths[first[:1]] = self.lengths.get(first[:1], 0) + len(first)


class Drop(Operator):
    """Discards each item."""

    input = InputPort[Record[str]]()

    def process(self, item: Record[str]) -> None:
        """Do nothing."""


class DropInBatches(Drop):
    """Discards whole batches."""

    def process_batch(self, batch: Batch[Record[str]]) -> None:
        """Do nothing."""


PATHS: dict[str, Sequence[Callable[[], Operator]]] = {
    "batch": (lambda: Filter(~value.starts_with(".")), DropInBatches),
    "record": (Keep, Split, AddUp),
    "bare": (Keep, Pass, Drop),
}
"""The operators on each path: in batches, item by item, and item by item through operators that do nothing."""
JUDGED = ("batch", "record")


def fused(after: Sequence[Callable[[], Operator]]) -> Program:
    """A reader and what comes after it, in one stage."""

    def draw(dag: Dag, _: Any) -> None:
        before = dag.add_operator("reader", LineReader())
        dag.add_stream("blocks", dag.add_operator("source", Source()).output, before.blocks_metadata_input)
        outlet: Any = before.messages
        for number, make in enumerate(after):
            operator: Any = dag.add_operator(f"{number}", make())
            dag.set_input_port_attribute(operator.input, PortContext.PARTITION_PARALLEL, True)
            dag.add_stream(f"stream {number}", outlet, operator.input)
            outlet = getattr(operator, "output", None)

    program = program_of(compile_application(draw))
    assert len(program.stages) == 1, "the benchmark measures one stage"
    return program


def work_on(program: Program, text: Path) -> list[WorkItem]:
    """The work: the whole text as one block."""
    (into,) = (".".join(target.into) for target in program.targets.values())
    block = Block(0, str(text), 0, text.stat().st_size, last=True)
    return [*Elements(Address(into), LineReader(), Block).work_of(block, (0,), str(text))]


@contextmanager
def unmeasured() -> Iterator[None]:
    """Within the block, nothing is counted, sampled or reported."""
    with ExitStack() as patches:
        patches.enter_context(patch.object(live, "_counted", _uncounted))
        patches.enter_context(patch.object(SlotRun, "_figures", lambda *_: iter(())))
        patches.enter_context(patch.object(BusyTime, "sampling", lambda _: nullcontext()))
        yield


def _uncounted(operator: Operator, port: str, by_batch: Any, keyed: Any, keying: Any, *, called: str) -> Receiver:
    """The receiver of an input without counting."""
    single = live.of_items(live._with_code(called, handler_of(operator, port), keyed, keying))  # noqa: SLF001
    return single if by_batch is None else replace(single, batch=by_batch)


def window(program: Program, work: Sequence[WorkItem]) -> tuple[int, Report]:
    """The processor nanoseconds of a window in one slot, and its report."""
    began = time.thread_time_ns()
    run = SlotRun(program, 0, 0, WindowTask(1), {}, work=work)
    for _ in run.run(()):
        pass
    report = run.report()
    return time.thread_time_ns() - began, report


@dataclass(frozen=True, slots=True)
class Overhead:
    """The overhead of figures in a window."""

    path: str
    million_lines_per_second: float
    """Without figures."""
    ratios: int
    ratio: float
    """The time with figures divided by the time without: the median."""
    lower_quartile: float
    upper_quartile: float


def overhead(path: str, text: Path, lines: int, rounds: int) -> Overhead:
    """Measure one path, alternately with figures and without."""
    program = fused(PATHS[path])
    work = work_on(program, text)
    ratios, without = [], []
    for number in range(rounds + 1):
        nanos = {True: 0, False: 0}
        for counting in (True, False, False, True) if number % 2 else (False, True, True, False):
            with ExitStack() as off:
                if not counting:
                    off.enter_context(unmeasured())
                took, report = window(program, work)
            nanos[counting] += took
            assert not counting or report.figures["reader"].sent == {"messages": lines}, "all lines were counted"
        if number:  # the first round warms up
            ratios.append(nanos[True] / nanos[False])
            without.append(nanos[False] / 2)
    lower, median, upper = statistics.quantiles(ratios, n=4)
    rate = lines * 1e3 / statistics.median(without)
    return Overhead(path, rate, len(ratios), median, lower, upper)


def write_for(millis: float, program: Program, text: Path) -> int:
    """Write a text with which a window lasts about so long; return its number of lines."""
    size = TRIED
    while True:
        lines = write_text(text, size).all.lines
        took = min(window(program, work_on(program, text))[0] for _ in range(3)) / 1e6
        if took > 0.8 * millis:
            return lines
        size = round(size * max(1.2, min(16.0, millis / took)))


def reporting_millis(rounds: int) -> float:
    """The milliseconds for each slot until its figures reach the driver and a Prometheus registry there."""
    program = fused(PATHS["bare"])
    _, report = window(program, ())
    reports = [replace(report, slot=slot) for slot in range(SLOTS)]
    bare = [replace(report, figures={}) for report in reports]
    aggregated, metrics, millis = AggregatedMetrics({}), Prometheus(), []
    for _ in range(rounds):
        now = datetime.now(UTC)
        began = time.thread_time_ns()
        arrived = [pickle.loads(pickle.dumps(report)) for report in reports]  # noqa: S301 - our own
        operators = window_stats(program, 1, arrived, found={}, waiting={}, ended=now)
        stages = tuple(stage_runs(program, arrived))
        metrics(Measured(1, now, now, now, operators, aggregated.of(program, 1, operators), stages))
        between = time.thread_time_ns()
        for report in bare:  # the cost of the reports themselves is subtracted
            pickle.loads(pickle.dumps(report))  # noqa: S301 - our own
        ended = time.thread_time_ns()
        millis.append((between - began - (ended - between)) / 1e6 / SLOTS)
    return statistics.median(millis)


def page(overheads: Sequence[Overhead], millis: float) -> str:
    """This benchmark's part of the documents."""
    said = (
        "One slot reads lines in memory and passes them through operators, alternately with metrics and without; it "
        f"writes nothing. A window lasts some {MILLIS:g} ms. **Overhead** is the median over all rounds, in processor "
        f"time, with its quartiles; it may be at most {MOST_OVERHEAD:.0%}. Measured with {machine_in_words()}."
    )
    lines = ["## Cost of metrics", "", "```sh", "python -m bench figures --write-docs", "```", "", said, ""]
    lines += ["| path | million lines/s without | overhead | quartiles | rounds |", "|---|---:|---:|---:|---:|"]
    words = {
        "batch": "in batches: reader, filter, sink",
        "record": "one by one: reader, filter, words, sums",
        "bare": "one by one, operators that do nothing: not judged",
    }
    lines += [
        f"| {words[one.path]} | {one.million_lines_per_second:.2f} | {one.ratio - 1:+.2%} | "
        f"{one.lower_quartile - 1:+.2%} to {one.upper_quartile - 1:+.2%} | {one.ratios} |"
        for one in overheads
    ]
    driver = (
        f"On the driver, the figures of a slot with four operators take {millis:.2f} ms in each window, from the "
        f"report to Prometheus; at most {MOST_MILLIS_FOR_A_SLOT:g} ms is allowed."
    )
    lines += ["", driver]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if metrics cost more than allowed."""
    parser = argparse.ArgumentParser(prog="python -m bench figures", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--millis", type=float, default=MILLIS, help="about how long a window lasts")
    parser.add_argument("--rounds", type=int, default=100, help="how often each path is measured")
    parser.add_argument("--write-docs", action="store_true", help="write the part of docs/benchmarks.md")
    asked = parser.parse_args(arguments)
    overheads = []
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        for path, operators in PATHS.items():
            text, program = Path(folder) / path, fused(operators)
            lines = write_for(asked.millis, program, text)
            overheads.append(overhead(path, text, lines, asked.rounds))
    millis = reporting_millis(max(3, asked.rounds))
    kept = all(_holds(one) for one in overheads) and millis <= MOST_MILLIS_FOR_A_SLOT
    if asked.json:
        measured = {"overheads": [asdict(one) for one in overheads], "millis_for_a_slot": millis}
        bars = {"most_overhead": MOST_OVERHEAD, "most_millis_for_a_slot": MOST_MILLIS_FOR_A_SLOT, "holds": kept}
        print(json.dumps({"schema": "dagkit.bench.figures/1", **measured, **bars}, indent=2))
    else:
        _print(overheads, millis)
    if asked.write_docs:
        write_part("figures", page(overheads, millis))
    return 0 if kept else 1


def _holds(one: Overhead) -> bool:
    return one.path not in JUDGED or one.ratio <= 1 + MOST_OVERHEAD


def _print(overheads: Sequence[Overhead], millis: float) -> None:
    print(f"{'path':<12}{'M lines/s without':>20}{'overhead':>10}{'quartiles':>22}")
    for one in overheads:
        quartiles = f"{one.lower_quartile - 1:+.2%} to {one.upper_quartile - 1:+.2%}"
        missed = "" if _holds(one) else "  MISSED"
        print(f"{one.path:<12}{one.million_lines_per_second:>20.2f}{one.ratio - 1:>+10.2%}{quartiles:>22}{missed}")
    missed = "" if millis <= MOST_MILLIS_FOR_A_SLOT else "  MISSED"
    print(f"on the driver, for each slot and window: {millis:.3f} ms{missed}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
