"""The example of Malhar's document about the block reader, line by line."""

from contextlib import AbstractContextManager
from typing import Any

from pyarrow import fs as pa_fs
from pydantic import PrivateAttr

from dagkit import Block, Config, Dag, InputPort, Operator, OutputPort, StreamingApplication
from dagkit_operators import FileOutput, FileSplitterInput, ReadAheadLineReaderContext, Record
from dagkit_operators import LineReader as AbstractFSReadAheadLineReader
from dagkit_operators.filesystem.access import Seekable, opened


class LineReader(AbstractFSReadAheadLineReader):
    """A record is a line in the file."""

    reader_context: ReadAheadLineReaderContext = ReadAheadLineReaderContext()

    def convert_to_record(self, content: bytes) -> str:
        return content.decode()


class Filter(Operator):
    """A line that begins with a "." is invalid. Valid records are sent."""

    output = OutputPort[Record[str]]()
    input = InputPort[Record[str]]()

    def process(self, string_record: Record[str]) -> None:
        if not string_record.value.startswith("."):
            self.output.emit(string_record)


class RecordOutputOperator(FileOutput[Record[str]]):
    """Writes the valid records of each block to a file."""

    def file_name(self, item: Record[str]) -> str:
        return f"{item.block_id:x}"

    def bytes_for(self, item: Record[str]) -> bytes:
        return item.value.encode()


class ExampleApplication(StreamingApplication):
    """Splits files, reads their blocks, filters the records, and writes a file for each block."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        input_ = dag.add_operator("File-splitter", FileSplitterInput())
        block_reader = dag.add_operator("Block-reader", LineReader())
        filter_ = dag.add_operator("Filter", Filter())
        record_output_operator = dag.add_operator("Record-writer", RecordOutputOperator())

        dag.add_stream("file-block metadata", input_.blocks_metadata_output, block_reader.blocks_metadata_input)
        dag.add_stream("records", block_reader.messages, filter_.input)
        dag.add_stream("filtered-records", filter_.output, record_output_operator.input)


class HookedReader(LineReader):
    """What the document shows of AbstractFSBlockReader: it makes the filesystem, and opens the stream of a block."""

    _opened_paths: list[str] = PrivateAttr(default_factory=list)

    def get_fs_instance(self) -> pa_fs.FileSystem:
        return pa_fs.LocalFileSystem()

    def setup_stream(self, block: Block) -> AbstractContextManager[Seekable]:
        self._opened_paths.append(block.path)
        stream: Any = opened(block.path, self.get_fs_instance())
        return stream
