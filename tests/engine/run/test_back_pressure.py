"""A source without an end that finds more than anybody reads: it waits, and neither the queue nor the driver grows."""

import gc
import tracemalloc
from typing import Any

import pytest

from dagkit import (
    Block,
    Dag,
    InputOperator,
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    PortContext,
    State,
    StatelessPartitioner,
)
from dagkit.engine.reports.run_events import Committed
from dagkit.testing import FakeClock
from dagkit_operators import FileSplitterInput, LineReader, RecordWriter
from tests.engine.cast import Desk, Digits, Draw, Hurried, some_lines

BURST = 50


class Torrent(InputOperator):
    """Finds a burst of blocks in every look, for ever."""

    kind = "pressure.torrent/1"
    blocks = OutputPort(Block)
    next_id = State(0)

    def emit_tuples(self) -> None:
        for number in range(self.next_id, self.next_id + BURST):
            self.blocks.emit(Block(number, "numbers", 10 * number, 10 * number + 10))
        self.next_id += BURST

    def looks_again_in_millis(self) -> int | None:
        return 0


class Spring(InputOperator):
    """Sends a burst of items in every look, for ever."""

    kind = "pressure.spring/1"
    out = OutputPort(str)
    looks = State(0)

    def emit_tuples(self) -> None:
        for number in range(BURST):
            self.out.emit(f"{number} " * 100)
        self.looks += 1

    def looks_again_in_millis(self) -> int | None:
        return 0


class Swallow(Operator):
    """Takes all there is."""

    kind = "pressure.swallow/1"
    input = InputPort[Any]()

    def process(self, item: Any) -> None: ...


CAPACITY = 30
"""How much may wait."""


def flooded(source: type[InputOperator], readers: int = 2) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        swallow = dag.add_operator("swallow", Swallow())
        if source is Spring:
            dag.add_operator("source", source()) >> swallow
            return
        digits = dag.add_operator("digits", Digits(waits_every=5))
        dag.set_operator_attribute(digits, OperatorContext.PARTITIONER, StatelessPartitioner(readers))
        dag.set_input_port_attribute(digits.blocks, PortContext.QUEUE_CAPACITY, CAPACITY)
        dag.add_operator("source", source()) >> digits >> swallow

    return draw


@pytest.mark.parametrize("overlap", [1, 2])
def test_the_queue_of_an_endless_source_stays_as_long_as_it_is(tmp_path, overlap):
    waited: list[int] = []

    def observe(happening: object) -> None:
        if isinstance(happening, Committed):
            waited.append(happening.waiting)

    desk = Desk(tmp_path, flooded(Torrent), backend=Hurried, overlap=overlap)
    desk.run(windows=60, observers=[observe])
    assert len(waited) == 60
    assert max(waited) <= CAPACITY + 2 * BURST  # a window that overlaps may give back what it was given
    found = desk.ledger().chain("source").standing.next_seq
    assert found < 60


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("source", [Torrent, Spring])
def test_the_driver_of_an_endless_source_does_not_grow(tmp_path, source):
    held: dict[int, int] = {}
    clock = FakeClock()

    def observe(happening: object) -> None:
        if isinstance(happening, Committed):
            clock.advance(seconds=1)  # averages are of the last seconds
        if isinstance(happening, Committed) and happening.window_id in (60, 180):
            gc.collect()
            # a chain keeps the lines of its last thousand blocks, to pack them
            snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, "*/dagkit/ledger/*")])
            held[happening.window_id] = sum(trace.size for trace in snapshot.traces)

    tracemalloc.start()
    try:
        Desk(tmp_path, flooded(source), backend=Hurried, clock=clock).run(windows=181, observers=[observe])
    finally:
        tracemalloc.stop()
    assert held[180] < held[60] + 100_000


@pytest.mark.trial
@pytest.mark.slow
def test_a_splitter_describes_no_more_than_its_threshold_ahead_of_a_slow_reader(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "long.txt").write_text(some_lines(500))
    waited: list[int] = []

    def observe(happening: object) -> None:
        if isinstance(happening, Committed):
            waited.append(happening.waiting)

    def draw(dag: Dag, conf: object) -> None:
        scanner = {"files": [str(tmp_path / "in")]}
        splitter = FileSplitterInput(scanner=scanner, block_size=100, blocks_threshold=5)
        blocks = dag.add_operator("splitter", splitter).blocks_metadata_output
        reader = dag.add_operator("reader", LineReader(chunk_size=16))
        writer = dag.add_operator("writer", RecordWriter(file_path=str(tmp_path / "out")))
        dag.add_stream("blocks", blocks, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, writer.input)
        dag.set_input_port_attribute(reader.blocks_metadata_input, PortContext.QUEUE_CAPACITY, CAPACITY)

    desk = Desk(tmp_path, draw, backend=Hurried)
    desk.run(observers=[observe])
    assert CAPACITY <= max(waited) <= CAPACITY + 5
    written = b"".join(desk.outputs()[name] for name in sorted(desk.outputs(), key=lambda name: int(name, 16)))
    assert written.decode() == some_lines(500)
