"""The examples of Malhar's document about the file splitter, line by line."""

from abc import abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from dagkit import Config, Dag, InputOperator, OutputPort, Shutdown, State, StreamingApplication
from dagkit_operators import (
    AbstractFileSplitter,
    FileInfo,
    FileSplitterBase,
    FileSplitterInput,
    FSSliceReader,
    Map,
    PartWriter,
)

T = TypeVar("T")


class AbstractJMSInputOperator(InputOperator, Generic[T]):
    """In the place of Malhar's operator of this name: the lines of a file are the messages of the bus."""

    bus: str = "messages"
    received = State(0)

    @abstractmethod
    def convert(self, message: str) -> T:
        """Make an item of a message."""

    @abstractmethod
    def emit(self, payload: T) -> None:
        """Send an item."""

    def emit_tuples(self) -> None:
        messages = Path(self.bus).read_text().splitlines()[self.received :]
        if not messages:
            raise Shutdown
        for message in messages:
            self.emit(self.convert(message))
        self.received += len(messages)


class JMSInput(AbstractJMSInputOperator[FileInfo]):
    output = OutputPort(FileInfo)

    def convert(self, message: str) -> FileInfo:
        return FileInfo(message)

    def emit(self, payload: FileInfo) -> None:
        self.output.emit(payload)


class ApplicationWithBaseSplitter(StreamingApplication):
    """Reads the files that messages name, in slices."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        input_ = dag.add_operator("Input", JMSInput())
        splitter = dag.add_operator("Splitter", FileSplitterBase())
        block_reader = dag.add_operator("BlockReader", FSSliceReader())

        dag.add_stream("file-info", input_.output, splitter.input)
        dag.add_stream("block-metadata", splitter.blocks_metadata_output, block_reader.blocks_metadata_input)
        block_reader >> written(dag)


class ApplicationWithInputSplitter(StreamingApplication):
    """Reads the files that a scanner finds, in slices."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        input_ = dag.add_operator("Input", FileSplitterInput())
        reader = dag.add_operator("Block Reader", FSSliceReader())

        dag.add_stream("block-metadata", input_.blocks_metadata_output, reader.blocks_metadata_input)
        reader >> written(dag)


def written(dag: Dag) -> Map:
    """Write the bytes of each slice, where the document has three dots."""
    texts: Map = dag.add_operator("Bytes", Map(lambda slice_: slice_.to_bytes().hex()))
    texts >> dag.add_operator("Writer", PartWriter(file_path="output"))
    return texts


class Splitter(AbstractFileSplitter):
    """The body of `process()` in the document, with the parts that it calls; here the method is `emit_tuples`."""

    files: tuple[str, ...]
    at = State(0)

    def emit_tuples(self) -> None:
        block_count = 0
        blocks_threshold = self.blocks_threshold or 1
        if self.cut is not None and block_count < blocks_threshold:
            block_count += self.emit_block_metadata(blocks_threshold - block_count)
        while block_count < blocks_threshold and (file_info := self.get_file_info()) is not None:
            self._begin(file_info)
            block_count += self.emit_block_metadata(blocks_threshold - block_count)
            if self.cut is not None:
                break

    def emit_block_metadata(self, most: int) -> int:
        if self.cut is None:
            return 0
        blocks, self.cut = self._split_next(self.cut, most)
        for block in blocks:
            self.blocks_metadata_output.emit(block)
        return len(blocks)

    def get_file_info(self) -> FileInfo | None:
        self.at += 1
        return FileInfo(self.files[self.at - 1]) if self.at <= len(self.files) else None
