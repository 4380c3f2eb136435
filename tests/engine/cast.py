"""Small applications on the reference, each in a folder of its own, run, crashed and resumed."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dagkit import (
    Batch,
    Block,
    Config,
    Dag,
    InputOperator,
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    Shutdown,
    SplittableOperator,
    State,
    StatelessPartitioner,
)
from dagkit.api.running import Until
from dagkit.backends.reference import ReferenceBackend
from dagkit.compiler import compile_application
from dagkit.engine.parts.run_state import RunSettings, RunState
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.points import Point
from dagkit.engine.run.loop import Loop
from dagkit.engine.worker.outbox import Arrived
from dagkit.engine.worker.protocol import Answer, Attempt, Backend, WindowTask
from dagkit.engine.worker.slot import SlotRun
from dagkit.ledger import Ledger
from dagkit.ledger.audit.verify import verify
from dagkit.plan import fingerprint
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit.testing import FakeClock
from dagkit.testing.crashes import Crash, CrashAfter
from dagkit_operators import FileSplitterInput, Filter, LineReader, RecordWriter
from tests.backends.slots import InSlots
from tests.old_files import aged
from tests.patience import within

Draw = Callable[[Dag, Any], None]


class Script(InputOperator):
    """Emits what is written for each look, and nothing once all was emitted."""

    out = OutputPort(int)
    looks: tuple[tuple[int, ...], ...] = ()
    ends: bool = False
    """Whether it says at the end of its script that nothing will ever come again."""
    pause_millis: int = 1000
    at = State(0)

    def emit_tuples(self) -> None:
        if self.at < len(self.looks):
            for number in self.looks[self.at]:
                self.out.emit(number)
            self.at += 1
        elif self.ends:
            raise Shutdown

    def looks_again_in_millis(self) -> int | None:
        return self.pause_millis


class Ranges(InputOperator):
    """Finds stretches of numbers: those of one look after the other."""

    blocks = OutputPort(Block)
    looks: tuple[tuple[int, ...], ...] = ()
    """The lengths of the stretches that are found in each look."""
    at = State(0)
    next_id = State(0)
    next_start = State(0)

    def emit_tuples(self) -> None:
        if self.at == len(self.looks):
            return
        for length in self.looks[self.at]:
            block = Block(self.next_id, "numbers", self.next_start, self.next_start + length)
            self.blocks.emit(block)
            self.next_id += 1
            self.next_start += length
        self.at += 1


class Digits(SplittableOperator[Block]):
    """Reads every position of a block as the number that it is."""

    served_by_engine = True
    blocks = InputPort(Block)
    numbers = OutputPort(int)
    waits_every: int = 0
    """After so many numbers it goes on only when the rest was taken away, or there is none."""

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[int]:
        position, pause = element.start, threading.Event()
        while tracker.try_claim(position):
            yield position
            position += 1
            while self.waits_every and (position - element.start) % self.waits_every == 0:
                stop = tracker.current_restriction().stop
                if stop <= position or stop < element.end:
                    break
                pause.wait(0.0002)


class Collect(Operator):
    """Keeps what arrives, for the test to look at."""

    input = InputPort[Any]()
    arrived = State[list[Any]](list)

    def process(self, item: Any) -> None:
        self.arrived.append(item)


class Swallow(Operator):
    input = InputPort[Any]()

    def process(self, item: Any) -> None: ...


@dataclass
class Around:
    """A backend that does as another one does, but for what a subclass defines."""

    inner: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@dataclass
class Hurried(Around):
    """A backend whose windows are over as soon as they have begun."""

    lasts_millis: float = 0.0

    def run(self, assignment: WindowTask) -> Answer:
        hurried = None if assignment.lasts_millis is None else self.lasts_millis
        return self.inner.run(replace(assignment, lasts_millis=hurried))


@dataclass
class InPairs(Around):
    """A backend on which the first window of a run does not end before the second has begun."""

    second_began: threading.Event = field(default_factory=threading.Event)
    first_began: bool = False

    def run(self, assignment: WindowTask) -> Answer:
        if self.first_began:
            self.second_began.set()
        else:
            self.first_began = True
            assert self.second_began.wait(within(30)), "there is a second window"
        return self.inner.run(assignment)

    def close(self) -> None:
        self.second_began.set()
        self.inner.close()


def reference(backend: Backend) -> Backend:
    return backend


def slots(backend: Any) -> InSlots:
    """A backend for a desk on which operators are fused as on Spark."""
    return InSlots(backend.compilation)


on_both = pytest.mark.parametrize("backend", [reference, slots], ids=["reference", "slots"])
"""On either backend of a desk: both must do the same."""


@dataclass
class Desk:
    """An application's folder, and the driver that runs the application in it."""

    home: Path
    draw: Draw
    until: Until = Until.ONCE
    backend: Callable[[Backend], Backend] = reference
    clock: FakeClock | None = None
    overlap: int = 2
    conf: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return str(self.home / "app")

    @property
    def out(self) -> Path:
        return self.home / "out"

    def loop(self, *, windows: int | None = None, ledger: Ledger | None = None, **given: Any) -> Loop:
        """A loop that knows nothing but what is in the folder."""
        compilation = compile_application(self.draw, Config.of(self.conf))
        return Loop(
            RunState(
                compilation,
                self.backend(ReferenceBackend(compilation)),
                ledger or Ledger.create(self.place, durable=False),
                RunSettings(self.place, self.until, windows, overlap=self.overlap, durable=False, home=str(self.home)),
                fingerprint=fingerprint(compilation.plan),
                clock=self.clock,
                **given,
            )
        )

    def run(self, **given: Any) -> Loop:
        """Run a loop to its end; `probe` and `observers` are those of its state."""
        loop = self.loop(**given)
        loop.run()
        return loop

    def crash(self, *probes: CrashAfter) -> int:
        """Run into one crash after the other; return how many of them came."""
        came = 0
        for probe in probes:
            try:
                self.run(probe=probe)
            except Crash:
                came += 1
        return came

    def ledger(self) -> Ledger:
        return Ledger.open(self.place)

    def faults(self) -> list[str]:
        """What is wrong with the ledger, or still to be read; of what has no end there is always more."""
        return [str(fault) for fault in verify(self.ledger()).faults if "inf) is pending" not in fault.problem]

    def blocks(self) -> dict[str, int]:
        ledger = self.ledger()
        return {name: ledger.chain(name).standing.next_seq for name in ledger.names()}

    def outputs(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.out)): path.read_bytes() for path in files_in(self.out)}

    def text(self) -> str:
        """What stands in the files of all blocks, in the order of the blocks."""
        return b"".join(
            self.outputs()[name] for name in sorted(self.outputs(), key=lambda name: int(name, 16))
        ).decode()

    def leftovers(self) -> list[str]:
        """Staged files, and files that were being made; those of windows that are still to come are swept with them."""
        staging, last = Path(self.place) / "staging", self.loop().run_state.checkpoint.window
        staged = [path for path in files_in(staging) if int(path.relative_to(staging).parts[0]) <= last]
        return [str(path) for path in [*staged, *self.home.rglob("*.finishing"), *self.home.rglob("*.whole")]]

    def troubles(self) -> list[str]:
        return [*self.faults(), *self.leftovers()]


def blocks_after_polls(desk: Desk, *counts: int) -> list[dict[str, int]]:
    """The blocks of an endless application after so many windows have begun; those that find nothing count, too."""
    begun, blocks = 0, []

    def probe(point, window_id):
        nonlocal begun
        begun += point is Point.PLANNED
        if len(blocks) < len(counts) and begun == counts[len(blocks)]:
            blocks.append(desk.blocks())
        if begun == counts[-1]:
            loop.stop()

    loop = desk.loop(probe=probe)
    loop.run()
    return blocks


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def arrived(loop: Loop, operator: str = "collect") -> list[Any]:
    """What a collector was left with, one partition after the other."""
    return [item for state in loop.state.get(operator, ()) for item in state.get("arrived", [])]


def chain(**operators: Any) -> Draw:
    """Operators by name, each of which sends to the next one; a pair is an operator and how many partitions it has.

    Each drawing has operators of its own.
    """

    def draw(dag: Dag, conf: object) -> None:
        before: Any = None
        for name, operator in operators.items():
            one, partitions = operator if isinstance(operator, tuple) else (operator, None)
            placed = dag.add_operator(name, one.configured({}))
            if partitions is not None:
                dag.set_operator_attribute(placed, OperatorContext.PARTITIONER, StatelessPartitioner(partitions))
            before = placed if before is None else before >> placed

    return draw


def one_slot(draw: Draw, **attempt: Any) -> tuple[SlotRun, Arrived]:
    """The one slot behind an input in window 1, and the number that arrives there."""
    program = program_of(compile_application(draw))
    (wire,) = program.targets
    return SlotRun(program, 0, 0, WindowTask(1, attempt=Attempt(**attempt)), {}), Arrived(wire, Batch.of([1]))


def files_given(home: Path, *texts: str) -> str:
    """Write files to be read, `0.txt` and so on; return their folder."""
    (home / "in").mkdir(parents=True)
    for number, text in enumerate(texts):
        (path := home / "in" / f"{number}.txt").write_text(text)
        aged(path)
    return str(home / "in")


def with_lines(home: Path, **given: Any) -> Desk:
    """Three files that end without a newline, in blocks that no line ends with."""
    files_given(home, *(some_lines(9, seed=number).rstrip("\n") for number in range(3)))
    return Desk(home, lines_through_filter(home, **given))


def lines_through_filter(
    home: Path, *, block_size: int = 64, readers: int = 2, threshold: int = 3, chunk: int = 16, fused: bool = True
) -> Draw:
    """The application of three operators that everybody writes first: lines in, some of them out."""

    def draw(dag: Dag, conf: object) -> None:
        splitter = dag.add_operator(
            "splitter",
            FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=block_size, blocks_threshold=threshold),
        )
        reader = dag.add_operator("reader", LineReader(min_readers=readers, chunk_size=chunk))
        keep = dag.add_operator("filter", Filter(lambda line: not line.startswith("#")))
        writer = dag.add_operator("writer", RecordWriter(file_path=str(home / "out")))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, keep.input)
        dag.add_stream("kept", keep.output, writer.input)
        if fused:
            for port in (keep.input, writer.input):
                dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)

    return draw


def numbers_collected(looks: tuple[tuple[int, ...], ...], *, readers: int = 1, waits_every: int = 0) -> Draw:
    """Stretches of numbers, read by several, and collected by one."""
    return chain(ranges=Ranges(looks=looks), digits=(Digits(waits_every=waits_every), readers), collect=Collect())


def some_lines(count: int, *, seed: int = 0) -> str:
    """Lines of all lengths, every third of them a comment."""
    return "".join(
        ("#" if number % 3 == 0 else "") + f"{seed}:{number} " + "x" * ((number * 7 + seed) % 23) + "\n"
        for number in range(count)
    )
