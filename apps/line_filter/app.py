"""Reads text files with parallel readers, and drops the lines that begin with a dot.

The reader, the filter and the writer run as one stage: `properties.xml` makes the last two mirror the partitions of the
reader.
"""

from dagkit import Config, Dag, StreamingApplication
from dagkit_operators import FileSplitterInput, Filter, LineReader, RecordWriter


class LineFilter(StreamingApplication):
    """Treats lines that begin with a dot as invalid, and writes the valid ones, one file for each block."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        splitter = dag.add_operator("File-splitter", FileSplitterInput())
        reader = dag.add_operator("Block-reader", LineReader())
        keep = dag.add_operator("Filter", Filter(lambda line: not line.startswith(".")))
        writer = dag.add_operator("Record-writer", RecordWriter())

        dag.add_stream("file-block metadata", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("records", reader.messages, keep.input)
        dag.add_stream("filtered-records", keep.output, writer.input)
