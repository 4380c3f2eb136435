"""What is read off a program: which work may be cut so that several are at it at once."""

import pytest

from dagkit import Dag, PortContext
from dagkit.compiler import compile_application
from dagkit.engine.program.lower import program_of
from dagkit.engine.work.summary import ProgramSummary
from dagkit_operators import FileSplitterInput, Filter, LineReader, PartWriter, RecordWriter
from tests.engine.cast import chain

INTO = "reader.blocks_metadata_input"


@pytest.mark.parametrize(
    ("writer", "fused", "cut"),
    [
        (RecordWriter, True, {INTO}),  # a writer in the reader's slots knows where each piece of a block belongs
        (RecordWriter, False, set()),
        (PartWriter, True, {INTO}),  # files of no block have no order that a cut could change
        (PartWriter, False, {INTO}),
    ],
)
def test_a_block_is_read_by_several_at_once_where_its_order_can_be_kept(tmp_path, writer, fused, cut):
    def draw(dag: Dag, conf: object) -> None:
        chain(
            splitter=FileSplitterInput(scanner={"files": [str(tmp_path / "in")]}),
            reader=LineReader(min_readers=2),
            filter=Filter(bool) if fused else (Filter(bool), 3),
            writer=writer(file_path=str(tmp_path / "out")),
        )(dag, conf)
        for name in ("filter", "writer") if fused else ():
            dag.set_input_port_attribute(dag.operator(name).input, PortContext.PARTITION_PARALLEL, True)

    assert set(ProgramSummary(program_of(compile_application(draw))).near) == cut
