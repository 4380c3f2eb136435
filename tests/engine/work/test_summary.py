"""What is read off a program: which work may be cut so that several are at it at once."""

import pytest

from dagkit import Dag, OperatorContext, PortContext, StatelessPartitioner
from dagkit.compiler import compile_application
from dagkit.engine.program.lower import program_of
from dagkit.engine.work.summary import ProgramSummary
from dagkit_operators import FileSplitterInput, Filter, LineReader, PartWriter, RecordWriter

INTO = "reader.blocks_metadata_input"


@pytest.mark.parametrize(
    ("writer", "fused", "cut"),
    [
        (RecordWriter, True, {INTO}),
        (RecordWriter, False, set()),
        (PartWriter, True, {INTO}),
        (PartWriter, False, {INTO}),
    ],
    ids=[
        "a writer in the reader's slots knows where each piece of a block belongs",
        "a writer elsewhere does not",
        "files of no block have no order that a cut could change",
        "wherever they are written",
    ],
)
def test_a_block_is_read_by_several_at_once_where_its_order_can_be_kept(tmp_path, writer, fused, cut):
    def draw(dag: Dag, conf: object) -> None:
        splitter = dag.add_operator("splitter", FileSplitterInput(scanner={"files": [str(tmp_path / "in")]}))
        reader = dag.add_operator("reader", LineReader(min_readers=2))
        keep = dag.add_operator("filter", Filter(bool))
        last = dag.add_operator("writer", writer(file_path=str(tmp_path / "out")))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, keep.input)
        dag.add_stream("kept", keep.output, last.input)
        if fused:
            for port in (keep.input, last.input):
                dag.set_input_port_attribute(port, PortContext.PARTITION_PARALLEL, True)
        else:
            dag.set_operator_attribute(keep, OperatorContext.PARTITIONER, StatelessPartitioner(3))

    assert set(ProgramSummary.of(program_of(compile_application(draw))).near) == cut
