"""Reading files whose names arrive on an input port."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic

from pydantic import PositiveInt

from dagkit import Batch, Block, InputPort, OutputPort, SplittableOperator
from dagkit.errors import InputUnreadable
from dagkit.ranges import OffsetRange
from dagkit_operators.compression.opening import FOUND_AGAIN, facts_of
from dagkit_operators.contexts.line_contexts import ReadAheadLineReaderContext
from dagkit_operators.contexts.reader_context import ReaderContext, Tracker
from dagkit_operators.filesystem.access import BadFile
from dagkit_operators.filesystem.identities import witness_in
from dagkit_operators.payloads import BLOCK_SIZE, VALUE, FileInfo, Record
from dagkit_operators.reading.conversion import Conversion
from dagkit_operators.reading.reader import LinesReader, T
from dagkit_operators.values.processed import returned_by


class ReadFiles(LinesReader[T], SplittableOperator[FileInfo], Generic[T]):
    """Reads files as they were when they were found, and sends their records, or what `parse` returns for each.

    Records are lines unless another reader context is set. All partitions share the reading of a file, in parts that
    can be split where the reader context allows it. If `parse` refuses a record, the record goes to `rejected`; if that
    is not connected, the run fails with LineRejected.
    """

    kind = "files.read/1"
    position_unit = "byte"
    stateless = True
    files = InputPort(FileInfo, main=True)
    messages = OutputPort[T](main=True)

    reader_context: ReaderContext[Any] = ReadAheadLineReaderContext()
    """How the bytes of a file become records; the properties of lines below are its properties."""
    parse: Callable[[Any], T] | None = None
    """Makes an item of a record, and raises ValueError if the record is invalid; None: the records are sent."""
    part_size: PositiveInt = BLOCK_SIZE
    """Bytes of the parts into which a file is divided at first."""

    def sent_payload(self, port: str, received: Mapping[str, Any]) -> Any:  # noqa: ARG002 - what the files hold
        if port != "messages" or self.converts:
            return None
        if self.parse is not None:
            return returned_by(self.parse)
        sent = self.reader_context.sent_type
        return None if sent is Any else sent

    def initial_restriction(self, element: FileInfo) -> OffsetRange:
        return OffsetRange(0, self.block_of(element).end)

    def split(self, element: FileInfo, restriction: OffsetRange) -> Iterable[OffsetRange]:
        try:
            is_whole = self.is_read_whole(self.block_of(element))
        except (BadFile, InputUnreadable):
            # `process` raises it again. The file is work in the queue by then, which `on_bad_file` can set aside.
            return [restriction]
        if is_whole:
            return [restriction]
        return self.context_for(element.path).parts_of(restriction, self.part_size)

    def tracker(self, element: FileInfo, restriction: OffsetRange) -> Tracker:
        return self.tracker_of(self.block_of(element).part(restriction.start, restriction.stop))

    def process(self, element: FileInfo, tracker: Tracker) -> Iterator[Batch[T]]:
        granted = tracker.current_restriction()
        block = self.block_of(element).part(granted.start, granted.stop)
        yield from self.items(block, self.read(block, tracker))

    def block_of(self, element: FileInfo) -> Block:
        """The whole file as a block: of its content, if that can be divided."""
        is_content = self.compression in ("auto", "gzip")
        content_length = element.content_length if is_content else None
        witness = witness_in(element.identity, element.length)
        facts = facts_of(element.length, element.modified_millis, content_length, witness)
        facts |= {} if element.receipt is None else {"receipt": element.receipt}
        facts |= {FOUND_AGAIN: True} if element.is_found_again else {}
        return Block(0, element.path, 0, facts["length"], facts=facts)

    def items(self, block: Block, batches: Iterable[Batch[Record[T]]]) -> Iterator[Batch[T]]:
        """The values of records, parsed. Rejected lines are sent to `rejected`."""
        parsing = None if self.parse is None else Conversion(block.path, self.parse, self.reject)
        for batch in batches:
            column = batch.column(VALUE)
            if parsing is None:
                items = self.reader_context.items(column)
            else:
                column = parsing.of(column, column.values())
                items = Batch.of_column(column)
            yield self.timed(block.path, items, column)
