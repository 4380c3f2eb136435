"""A source without an end that finds more than anybody reads: it waits, and neither the queue nor the driver grows."""

from typing import Any

import pytest

from dagkit import Block, Dag, InputOperator, OutputPort, PortContext, State
from dagkit.engine.record.run_events import Committed
from dagkit_operators import FileSplitterInput, LineReader, RecordWriter
from tests.engine.cast import Desk, Digits, Hurried, Swallow, chain, files_given, some_lines

BURST = 50


class Torrent(InputOperator):
    """Finds a burst of blocks in every look, for ever."""

    blocks = OutputPort(Block)
    next_id = State(0)

    def emit_tuples(self) -> None:
        for number in range(self.next_id, self.next_id + BURST):
            self.blocks.emit(Block(number, "numbers", 10 * number, 10 * number + 10))
        self.next_id += BURST

    def looks_again_in_millis(self) -> int | None:
        return 0


CAPACITY = 30
"""How much may wait."""


FLOODED = chain(source=Torrent(), digits=(Digits(waits_every=5), 2), swallow=Swallow())
CONF = {"dt.operator.digits.port.blocks.attr.QUEUE_CAPACITY": str(CAPACITY)}


def waited(desk: Desk, **given: Any) -> list[int]:
    committed: list[Any] = []
    desk.run(observers=[committed.append], **given)
    return [event.waiting for event in committed if isinstance(event, Committed)]


@pytest.mark.parametrize("overlap", [1, 2])
def test_the_queue_of_an_endless_source_stays_as_long_as_it_is(tmp_path, overlap):
    desk = Desk(tmp_path, FLOODED, backend=Hurried, overlap=overlap, conf=CONF)
    counts = waited(desk, windows=60)
    assert len(counts) == 60
    assert max(counts) <= CAPACITY + 2 * BURST  # a window that overlaps may give back what it was given
    assert desk.ledger().chain("source").standing.next_seq < 60


@pytest.mark.trial
@pytest.mark.slow
def test_a_splitter_describes_no_more_than_its_threshold_ahead_of_a_slow_reader(tmp_path):
    scanner = {"files": [files_given(tmp_path, some_lines(500))]}

    def draw(dag: Dag, conf: object) -> None:
        splitter = FileSplitterInput(scanner=scanner, block_size=100, blocks_threshold=5)
        writer = RecordWriter(file_path=str(tmp_path / "out"))
        chain(splitter=splitter, reader=LineReader(chunk_size=16), writer=writer)(dag, conf)
        port = dag.operator("reader").blocks_metadata_input
        dag.set_input_port_attribute(port, PortContext.QUEUE_CAPACITY, CAPACITY)

    desk = Desk(tmp_path, draw, backend=Hurried)
    assert CAPACITY <= max(waited(desk)) <= CAPACITY + 5
    assert desk.text() == some_lines(500)
