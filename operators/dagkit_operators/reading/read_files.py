"""Reading files whose names arrive on an input port."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic

from pydantic import PositiveInt

from dagkit import Batch, Block, InputPort, OutputPort, SplittableOperator
from dagkit.ranges import OFFSET_INFINITY, OffsetRange
from dagkit_operators.compression.compressed import Codec, Compression, Decompressed, codec_of
from dagkit_operators.contexts.line_contexts import ReadAheadLineReaderContext
from dagkit_operators.contexts.reader_context import ReaderContext, Tracker, unsplittable
from dagkit_operators.payloads import BLOCK_SIZE, VALUE, FileInfo, Record
from dagkit_operators.reading.conversion import Conversion
from dagkit_operators.reading.reader import T
from dagkit_operators.reading.text_format import TextForm


class ReadFiles(TextForm[T], SplittableOperator[FileInfo], Generic[T]):
    """Reads files as they were when they were found, and sends their records, or what `parse` returns for each.

    Records are lines unless another reader context is set. All partitions share the reading of a file, in parts that
    can be split where the reader context allows it. If `parse` refuses a record, the record goes to `rejected`; if that
    is not connected, the run fails with LineRejected.
    """

    kind = "files.read/1"
    stateless = True
    files = InputPort(FileInfo, main=True)
    messages = OutputPort[T](main=True)

    reader_context: ReaderContext[Any] = ReadAheadLineReaderContext()
    """How the bytes of a file become records; the properties of lines below are its properties."""
    parse: Callable[[Any], T] | None = None
    """Makes an item of a record, and raises ValueError if the record is invalid; None: the records are sent."""
    part_size: PositiveInt = BLOCK_SIZE
    """Bytes of the parts into which a file is divided at first."""
    compression: Compression = "auto"
    """How files are compressed; `auto`: by file name extension. A compressed file is read by one partition."""

    def initial_restriction(self, element: FileInfo) -> OffsetRange:
        return OffsetRange(0, element.length)

    def split(self, element: FileInfo, restriction: OffsetRange) -> Iterable[OffsetRange]:
        if codec_of(element.path, self.compression):
            return [restriction]
        return self.context.parts_of(restriction, self.part_size)

    def tracker(self, element: FileInfo, restriction: OffsetRange) -> Tracker:
        tracker = self.context.tracker_of(restriction)
        return unsplittable(tracker) if codec_of(element.path, self.compression) else tracker

    def process(self, element: FileInfo, tracker: Tracker) -> Iterator[Batch[T]]:
        stretch = tracker.current_restriction()
        facts = {"length": element.length, "modified_millis": element.modified_millis}
        block = Block(0, element.path, stretch.start, stretch.stop, facts=facts)
        codec = codec_of(element.path, self.compression)
        if codec is None:
            yield from self.items(block, self.read(block, tracker))
        elif tracker.try_claim(stretch.start):
            yield from self.items(block, self._decompressed(block, codec))
            tracker.try_claim(stretch.stop)

    def _decompressed(self, block: Block, codec: Codec) -> Iterator[Batch[Record[T]]]:
        """All records of a compressed file. Positions in its content are not those in the file, which are tracked."""
        whole = OffsetRange(0, OFFSET_INFINITY)
        content = Block(0, block.path, whole.start, whole.stop)
        with self.setup_stream(block) as stream:
            decompressed = Decompressed(stream, codec, block.path)
            context = self.context.model_copy()
            yield from self.converted(block, context.batches(decompressed, content, context.tracker_of(whole)))

    def items(self, block: Block, batches: Iterable[Batch[Record[T]]]) -> Iterator[Batch[T]]:
        """The values of records, parsed. Rejected lines are sent to `rejected`."""
        parsing = None if self.parse is None else Conversion(block.path, self.parse, self.reject)
        for batch in batches:
            column = batch.column(VALUE)
            yield Batch.of_column(column if parsing is None else parsing.of(column, column.values()))
