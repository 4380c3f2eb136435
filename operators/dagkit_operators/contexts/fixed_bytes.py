"""The reader context for records of a fixed length."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Self

from pydantic import PositiveInt

from dagkit import Arrowed, Batch, Block
from dagkit.ranges import OffsetRange
from dagkit_operators.contexts.lines import CHUNK_SIZE
from dagkit_operators.contexts.reader_context import ReaderContext, Tracker, binary_array, content_end, records_of
from dagkit_operators.contexts.trackers import StrideTracker
from dagkit_operators.filesystem.access import Seekable, filled
from dagkit_operators.native.bytewise import places_in
from dagkit_operators.payloads import BLOCK_SIZE, Record


class FixedBytesReaderContext(ReaderContext[bytes]):
    """Reads records of `length` bytes, counted from the block's start.

    A record never exceeds its block, so the last record of a block may be shorter.
    """

    reads: ClassVar[Any] = bytes

    length: PositiveInt | None = None
    """Bytes of a record; None: as many as a block that a splitter makes of the file."""
    chunk_size: PositiveInt = CHUNK_SIZE
    """Bytes that are read and sent at a time; a longer record is read at once."""

    @property
    def stride(self) -> int:
        """Bytes of a record."""
        return self.length or BLOCK_SIZE

    def with_block_size(self, size: int) -> Self:
        return self if self.length else self.model_copy(update={"length": size})

    def tracker_of(self, restriction: OffsetRange) -> StrideTracker:
        return StrideTracker(restriction, self.stride)

    def parts_of(self, restriction: OffsetRange, size: int) -> Iterable[OffsetRange]:
        return restriction.split(max(1, size // self.stride) * self.stride)

    def record_end(self, stream: Seekable, block: Block, start: int, stop: int) -> int:  # noqa: ARG002 - as its base
        return content_end(stream, start, min(start + self.stride, block.end))

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[bytes]]]:
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        # The buffer is used again for each batch, which is valid only until the next one is requested.
        stride, position = self.stride, tracker.current_restriction().start
        most = max(1, self.chunk_size // stride) * stride
        buffer = np.empty(min(most, block.end - position), np.uint8)
        stream.seek(position)
        while position < block.end:
            count = filled(stream, memoryview(buffer)[: min(len(buffer), block.end - position)])  # type: ignore[arg-type]
            if not count:
                break
            starts = np.arange(0, count, stride)
            granted = tracker.claim_many(position + starts)
            end = min(count, granted * stride)
            if granted:
                offsets = np.append(starts[:granted], end).astype(places_in(end))
                places = partial(range, position, position + end, stride)
                yield records_of(block, Arrowed(binary_array(buffer[:end], offsets), places))
            if granted < len(starts):
                return
            position += count
        tracker.try_claim(block.end)
