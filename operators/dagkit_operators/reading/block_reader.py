"""Reading blocks. However a file is split, each record belongs to exactly one block."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Generic, Self, TypeVar, get_args

from pydantic import model_validator

from dagkit import Batch, Block, InputPort, OutputPort, SplittableOperator, auto_metric
from dagkit.ranges import OffsetRange, SequentialRestrictionTracker
from dagkit_operators.compression.codec import codec_of, codec_of_content
from dagkit_operators.compression.opening import is_of_content
from dagkit_operators.contexts.reader_context import Tracker, Unsent
from dagkit_operators.filesystem.snapshot import whole_content
from dagkit_operators.following import FollowsBacklog
from dagkit_operators.payloads import VALUE, Record
from dagkit_operators.reading.reader import Reader

T = TypeVar("T")

MOST_WHOLE = 64 << 10
"""The most bytes of a file that is read at once."""
_PROCESSING = ("process", "read", "setup_stream", "get_fs_instance", "tracker", "tracker_of", "is_read_whole")
"""The methods by which a subclass may open, read or claim blocks in another way."""


class BlockReader(FollowsBacklog, Reader[T], SplittableOperator[Block], Generic[T]):
    """Reads blocks of files. A reader context turns their bytes into records: see `Reader`.

    The reader is its own partitioner: it starts with `min_readers` partitions, which share one queue of blocks. It is
    also its own stats listener, so the number of partitions follows the length of that queue.

    `blocks_metadata_output` sends each range after it was read. If a block was split, between readers or at the end of
    a window, it is sent several times, with the same `block_id` and different bounds: together they are the block.
    """

    stateless = True
    blocks_metadata_input = InputPort(Block)
    blocks_metadata_output = OutputPort(Block)
    messages = OutputPort[Record[T]](main=True)
    bytes_read = auto_metric(0)
    """Bytes of blocks that were read."""

    @model_validator(mode="after")
    def _sends_what_its_context_reads(self) -> Self:
        """Refuse a reader context whose records are not of the type that the reader sends, unless it converts them."""
        reads, sends = self.reader_context.reads, next(iter(get_args(type(self).messages.payload)), Any)
        are_known = all(inspect.isclass(kind) and kind is not Any for kind in (reads, sends))
        if self.converts or not are_known or issubclass(reads, sends):
            return self
        context, reader = type(self.reader_context).__name__, type(self).__name__
        raise ValueError(
            f"reader_context is wrong: {context} reads {reads.__name__}, and {reader} sends {sends.__name__}; write "
            "convert_to_record, or set another reader context"
        )

    def sent_payload(self, port: str, received: Mapping[str, Any]) -> Any:  # noqa: ARG002 - what the files hold
        sent: Any = self.reader_context.sent_type
        return None if port != "messages" or self.converts else Record[sent]

    def tracker(self, element: Block, restriction: OffsetRange) -> Tracker:
        """Return the tracker for a range of a block. It splits where the reader context and the splitter allow it."""
        tracker = self.tracker_of(element.part(restriction.start, restriction.stop))
        return SequentialRestrictionTracker(tracker) if (element.facts or {}).get("sequential") else tracker

    def process_whole(self, element: Block) -> Iterator[Batch[Record[T]]] | None:
        """Yield the records of a small file of this machine that is one block and is not compressed."""
        # For a file of a kilobyte, claims, a tracker and a stream take longer than its lines. Whatever is unusual about
        # a file is left to `process`.
        if not 0 < element.end <= MOST_WHOLE or not self._is_processed_here or is_of_content(element):
            return None
        if codec_of(element.path, self.compression) is not None:
            return None
        content = whole_content(element)
        if content is None or (self.compression == "auto" and codec_of_content(content) is not None):
            return None
        batches = self.context_for(element.path).batches_of(content, element)
        return None if batches is None else self._sent_whole(element, batches)

    def _sent_whole(self, element: Block, batches: Iterator[Batch[Record[T]] | Unsent]) -> Iterator[Batch[Record[T]]]:
        self.unsent_records()  # those of an element for which no receipt is wanted
        for batch in self.converted(element, batches):
            yield self.timed(element.path, batch, batch.column(VALUE))
        self.bytes_read += element.end
        self.blocks_metadata_output.emit(element)

    @property
    def _is_processed_here(self) -> bool:
        """Whether no subclass changes how a block is opened, read or claimed."""
        return all(getattr(type(self), name) is getattr(BlockReader, name) for name in _PROCESSING)

    def process(self, element: Block, tracker: Tracker) -> Iterator[Batch[Record[T]]]:
        """Yield the records of the granted range, and send the range that was read."""
        start = tracker.current_restriction().start
        # The block of an empty file, for its receipt. It is not opened: some formats cannot be empty.
        if start == element.end:
            return
        for batch in self.read(element, tracker):
            yield self.timed(element.path, batch, batch.column(VALUE))
        done = tracker.current_restriction()
        self.bytes_read += done.stop - start if done.is_bounded() else 0
        if done.is_bounded() and done.stop > start:
            self.blocks_metadata_output.emit(element.part(start, done.stop))
