"""Reading blocks: each record belongs to exactly one block, however the file was split."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, Self, TypeVar

from pydantic import NonNegativeInt, PositiveInt, field_validator, model_validator

from dagkit import (
    Batch,
    Block,
    InputPort,
    OutputPort,
    Partition,
    Partitioner,
    PartitioningContext,
    SplittableOperator,
)
from dagkit.ranges import OffsetRange, RestrictionTracker
from dagkit_operators.blocks import Record
from dagkit_operators.contexts import FixedLength, ReadAheadLines, ReaderContext
from dagkit_operators.lines import CHUNK_SIZE, LONGEST_LINE, delimiter_of
from dagkit_operators.seen import as_seen
from dagkit_operators.strides import StrideTracker

T = TypeVar("T")


class BlockReader(SplittableOperator[Block], Partitioner, Generic[T]):
    """Reads blocks; how their bytes become records is said by a reader context.

    The reader partitions itself: it starts with `min_readers` partitions, which all take from one queue of blocks.

    `blocks_metadata_output` tells each stretch that was read to its end. A block that was cut, for several readers or
    at the end of a window, is told several times then, by the same `block_id` and other bounds; of a stretch that was
    given back in the middle, only the rest is told, when that was read.
    """

    stateless = True
    blocks_metadata_input = InputPort(Block)
    blocks_metadata_output = OutputPort(Block)
    messages = OutputPort[Record[T]](main=True)

    min_readers: PositiveInt = 1
    """Partitions at least; for as long as their number does not follow the backlog, just so many."""
    max_readers: PositiveInt = 16
    """Partitions at most, once their number follows the backlog; so far `min_readers` stays."""
    collect_stats: bool = True
    """Whether the number of partitions is to follow the backlog; no effect so far."""
    interval_millis: NonNegativeInt = 120_000
    """The time between two looks at the backlog; no effect so far."""
    chunk_size: PositiveInt = CHUNK_SIZE
    """Bytes that are read, and handed on, at a time."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.min_readers > self.max_readers:
            raise ValueError(f"min_readers {self.min_readers} is greater than max_readers {self.max_readers}")
        return self

    @abstractmethod
    def reader_context(self) -> ReaderContext[T]:
        """How the bytes of a block become records."""

    def process(self, element: Block, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Batch[Record[T]]]:
        """The records of what the tracker grants; the stretch itself follows if it was read to its end."""
        with as_seen(element) as stream:
            yield from self.reader_context().batches(stream, element, tracker)
        if tracker.current_restriction().stop == element.end:
            self.blocks_metadata_output.emit(element)

    def define_partitions(self, partitions: Sequence[Partition], context: PartitioningContext) -> Sequence[Partition]:
        """As many as were asked to mirror, or are wanted; else `min_readers` to begin with, and later as there are."""
        begins = len(partitions) == 1 and partitions[0].stats is None
        wanted = context.parallel_count or context.wanted or (self.min_readers if begins else len(partitions))
        return [*partitions[:wanted], *[Partition(self)] * (wanted - len(partitions))]


class LineReader(BlockReader[str]):
    """Reads blocks of text files, a record for each line.

    A line belongs to the block in which it starts. What ends it is no part of the record; the last line of a file need
    not be ended. Bytes that are no UTF-8 come as lone surrogates, and are written as the bytes that they were.
    """

    kind = "files.line-reader/1"
    messages = OutputPort[Record[str]](main=True)

    delimiter: str = "\n"
    """What ends a line."""
    longest_line: PositiveInt = LONGEST_LINE
    """Bytes of a line at most; a longer one is a fault."""

    @field_validator("delimiter")
    @classmethod
    def _unambiguous(cls, delimiter: str) -> str:
        delimiter_of(delimiter)
        return delimiter

    def reader_context(self) -> ReadAheadLines:
        return ReadAheadLines(delimiter_of(self.delimiter), self.chunk_size, self.longest_line)


class FixedLengthReader(BlockReader[bytes]):
    """Reads blocks of records of one length, as bytes.

    Records are counted from where each block starts, and none goes beyond its block: the last may be shorter.
    """

    kind = "files.fixed-length-reader/1"
    messages = OutputPort[Record[bytes]](main=True)

    length: PositiveInt
    """Bytes of a record."""

    def tracker(self, element: Block, restriction: OffsetRange) -> StrideTracker:  # noqa: ARG002 - all are alike
        return StrideTracker(restriction, self.length)

    def reader_context(self) -> FixedLength:
        return FixedLength(self.length, self.chunk_size)
