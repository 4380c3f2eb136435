"""What it costs that a run is measured: a slot that counts what passes its ports, by turns with one that does not.

A slot reads lines and hands them through operators, as the engine has it do on a worker; nothing is written, so that
what is counted weighs the more. Four windows, of which each kind is the first and the last of a pair, give one ratio,
and the median of the ratios is judged. Time is that of the processor, which others on the machine hardly lengthen.
"""

import argparse
import json
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.program import Program
from dagkit.engine.reports.measuring import Measuring
from dagkit.engine.work.elements import Elements
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker import instances as live
from dagkit.engine.worker.instances import Receiver
from dagkit.engine.worker.protocol import Report, WindowTask
from dagkit.engine.worker.slot import SlotRun
from dagkit.observers.prometheus import Prometheus
from dagkit_operators import Filter, LineReader, Record, value

MOST_OVERHEAD = 0.01
"""Of the time without figures: what figures may add."""
MOST_MILLIS_FOR_A_SLOT = 1.0
"""What the driver may take for the figures of one slot: a hundredth of a window of a tenth of a second."""
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of ours is made in it
SLOTS = 64
"""Of a window that is told to the driver."""


class Source(InputOperator):
    """Stands where blocks come from."""

    output = OutputPort(Block)


class Keep(RowOperator):
    """Nine lines in ten, asked one by one."""

    input = InputPort[Record[str]]()
    output = OutputPort[Record[str]]()

    def process(self, item: Record[str]) -> Iterator[Record[str]]:
        if not item.value.startswith("."):
            yield item


class Pass(Operator):
    """Hands each on."""

    input = InputPort[Record[str]]()
    output = OutputPort[Record[str]]()

    def process(self, item: Record[str]) -> None:
        self.output.emit(item)


class Split(RowOperator):
    """The words of each line, as many programs begin."""

    input = InputPort[Record[str]]()
    output = OutputPort(list)

    def process(self, item: Record[str]) -> Iterator[list[str]]:
        yield item.value.split()


class AddUp(Operator):
    """How long the words are that begin lines, by their first letter."""

    input = InputPort(list)
    lengths = State[dict[str, int]](dict)

    def process(self, item: list[str]) -> None:
        first = item[0] if item else ""
        self.lengths[first[:1]] = self.lengths.get(first[:1], 0) + len(first)


class Drop(Operator):
    """Takes each, and that is all."""

    input = InputPort[Record[str]]()

    def process(self, item: Record[str]) -> None:
        """Nothing is less."""


class DropInBatches(Drop):
    """Takes them many at once."""

    def process_batch(self, batch: Batch[Record[str]]) -> None:
        """Nothing is less."""


PATHS: dict[str, Sequence[Callable[[], Operator]]] = {
    "batch": (lambda: Filter(~value.starts_with(".")), DropInBatches),
    "record": (Keep, Split, AddUp),
    "bare": (Keep, Pass, Drop),
}
"""What lines go through: at the two speeds, and one by one through operators that do nothing."""
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
    assert len(program.stages) == 1, "what is measured is one stage"
    return program


def work_on(program: Program, text: Path) -> list[WorkItem]:
    """The whole of a text, as one block."""
    (into,) = (".".join(target.into) for target in program.targets.values())
    block = Block(0, str(text), 0, text.stat().st_size, last=True)
    return [*Elements(into, LineReader(), Block).work_of(block, (0,), str(text))]


@contextmanager
def unmeasured() -> Iterator[None]:
    """Meanwhile nothing is counted, and nothing told."""
    with ExitStack() as patches:
        patches.enter_context(patch.object(live, "_counted", _uncounted))
        patches.enter_context(patch.object(SlotRun, "_figures", lambda _: iter(())))
        yield


def _uncounted(operator: Operator, port: str, by_batch: Any, keyed: Any, keying: Any) -> Receiver:
    """What `live` would make of an input, were nothing counted."""
    single = live.of_items(live._with_code(operator, handler_of(operator, port), keyed, keying))  # noqa: SLF001
    return single if by_batch is None else replace(single, batch=by_batch)


def window(program: Program, work: Sequence[WorkItem]) -> tuple[int, Report]:
    """The nanoseconds of a processor that a window takes in one slot, and what it reports."""
    began = time.thread_time_ns()
    run = SlotRun(program, 0, 0, WindowTask(1), {}, work=work)
    for _ in run.run(()):
        pass
    report = run.report()
    return time.thread_time_ns() - began, report


@dataclass(frozen=True, slots=True)
class Overhead:
    """What figures add to a window."""

    path: str
    million_lines_per_second: float
    """Without figures."""
    ratios: int
    ratio: float
    """Of the time with figures to that without, the median."""
    lower_quartile: float
    upper_quartile: float


def overhead(path: str, text: Path, lines: int, rounds: int) -> Overhead:
    """One path, with figures and without by turns."""
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


def told(rounds: int) -> float:
    """The milliseconds for each slot in which figures come to the driver, and to a registry of Prometheus there."""
    program = fused(PATHS["bare"])
    _, report = window(program, ())
    reports = [replace(report, slot=slot) for slot in range(SLOTS)]
    bare = [replace(each, figures={}) for each in reports]
    measuring, metrics, millis = Measuring({}), Prometheus(), []
    for _ in range(rounds):
        now = datetime.now(UTC)
        began = time.thread_time_ns()
        arrived = [pickle.loads(pickle.dumps(each)) for each in reports]  # noqa: S301 - our own
        metrics(
            measuring.after(program, 1, arrived, found={}, queues=(), facts=(), began=now, ended=now, committed=now)
        )
        between = time.thread_time_ns()
        for each in bare:  # the reports come in any case
            pickle.loads(pickle.dumps(each))  # noqa: S301 - our own
        ended = time.thread_time_ns()
        millis.append((between - began - (ended - between)) / 1e6 / SLOTS)
    return statistics.median(millis)


def page(overheads: Sequence[Overhead], millis: float) -> str:
    """This benchmark's part of the documents."""
    said = (
        "One slot reads lines in memory and hands them through operators, with figures and without by turns; "
        "nothing is written. **Overhead** is the median over all rounds, in time of the processor, with the quartiles "
        f"beside it; it may be {MOST_OVERHEAD:.0%}. Measured with {machine_in_words()}."
    )
    lines = ["## What figures cost", "", "```sh", "python -m bench figures --write-docs", "```", "", said, ""]
    lines += ["| lines go | million lines/s without | overhead | quartiles | rounds |", "|---|---:|---:|---:|---:|"]
    words = {
        "batch": "in batches: reader, filter, sink",
        "record": "one by one: reader, filter, words, sums",
        "bare": "one by one, and nothing is done: told, not judged",
    }
    lines += [
        f"| {words[one.path]} | {one.million_lines_per_second:.2f} | {one.ratio - 1:+.2%} | "
        f"{one.lower_quartile - 1:+.2%} to {one.upper_quartile - 1:+.2%} | {one.ratios} |"
        for one in overheads
    ]
    driver = (
        f"On the driver the figures of a slot with four operators take {millis:.2f} ms in each window, from the report "
        f"to Prometheus; they may take {MOST_MILLIS_FOR_A_SLOT:g}."
    )
    lines += ["", driver]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and answer whether figures are as cheap as they must be."""
    parser = argparse.ArgumentParser(prog="python -m bench figures", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--mib", type=float, default=16, help="MiB of text that goes in batches; a 32nd goes singly")
    parser.add_argument("--rounds", type=int, default=400, help="how often each path is measured")
    parser.add_argument("--write-docs", action="store_true", help="write the part of docs/benchmarks.md")
    asked = parser.parse_args(arguments)
    overheads = []
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        for path, share in (("batch", 1.0), ("record", 1 / 32), ("bare", 1 / 32)):
            text = Path(folder) / path
            lines = write_text(text, round(asked.mib * share * 2**20)).all.lines
            overheads.append(overhead(path, text, lines, asked.rounds))
    millis = told(max(3, asked.rounds))
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
    print(f"{'lines go':<12}{'M lines/s without':>20}{'overhead':>10}{'quartiles':>22}")
    for one in overheads:
        quartiles = f"{one.lower_quartile - 1:+.2%} to {one.upper_quartile - 1:+.2%}"
        missed = "" if _holds(one) else "  MISSED"
        print(f"{one.path:<12}{one.million_lines_per_second:>20.2f}{one.ratio - 1:>+10.2%}{quartiles:>22}{missed}")
    missed = "" if millis <= MOST_MILLIS_FOR_A_SLOT else "  MISSED"
    print(f"on the driver, for each slot and window: {millis:.3f} ms{missed}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
