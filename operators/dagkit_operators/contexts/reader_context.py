"""Reader contexts: how the bytes of a block become records.

A reader context is a property of a reader. It is configuration, so it is frozen; its memory while it reads a block
belongs into private attributes. The reader works with a copy of it for each stream that it opens.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from dagkit import Batch, Block, Column, Constant
from dagkit.ground.urls import shown
from dagkit.ranges import (
    OFFSET_INFINITY,
    OffsetRange,
    OffsetRestrictionTracker,
    RestrictionTracker,
    UnsplittableRestrictionTracker,
)
from dagkit.schema.columns import TEXT_ERRORS
from dagkit_operators.contexts.lines import CHUNK_SIZE
from dagkit_operators.contexts.trackers import BetweenRecordsTracker, RefusingTracker
from dagkit_operators.filesystem.access import BadFile, Seekable, filled
from dagkit_operators.payloads import Record, Rejected
from dagkit_operators.values.record_types import Ignored

if TYPE_CHECKING:
    import pyarrow as pa

    from dagkit_operators.native.bytewise import Bytes, Places

T = TypeVar("T")
Tracker = RestrictionTracker[OffsetRange, int]
# Malhar never splits a block that is being read, so its contexts say nothing about splits. A context that cannot find
# the next record from any position claims the last byte of each, so that all that is unclaimed begins with a record.
# Rejected: reading such a block again from its start, once for each window that it spans. `apex_compat` does not choose
# a context: it belongs to scaling already, and changed records would surprise those who set it.
Splits = Literal["anywhere", "between records", "never"]


if TYPE_CHECKING:

    class _Of(Generic[T]):
        """A class with a type parameter."""
else:

    class _Of:
        """A type parameter for type checkers only: no field depends on it, and one class takes any context."""

        def __class_getitem__(cls, _: Any) -> Any:
            return cls


class Broken(BadFile):
    """Bytes of a file that cannot be read. A context that continues after them yields this instead of raising it."""

    def __init__(self, path: str, place: int, what: str, reason: str) -> None:
        self.path = path
        self.place = place
        """The position of these bytes; 0 if they are the whole file."""
        self.reason = reason
        super().__init__(f"{shown(path)}: {what}: {reason}")

    @property
    def rejected(self) -> Rejected:
        """What the reader sends to its output `rejected`."""
        return Rejected(self.path, self.place, "", self.reason)


class Dropped(NamedTuple):
    """Records that were read, and that are not to be sent."""

    records: int


Unsent = Rejected | Broken | Ignored | Dropped
"""The values that a context yields beside records."""


class ReaderContext(_Of[T], BaseModel, ABC):
    """Reads the records of a block. The type parameter is the type of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    reads: ClassVar[Any] = Any
    """The type of its records. A reader that sends another type must convert them."""
    splits: ClassVar[Splits] = "anywhere"
    """Where the range that is read may be split.

    `anywhere`: the context finds the first record after any position, and claims the start of each record. `between
    records`: a range is split only while it is read, after the last claimed record, and the context claims the last
    byte of each record. `never`: one reader reads the whole range in one window, as for a compressed file.
    """

    shows_its_end: ClassVar[bool] = False
    """Whether `is_cut_off` can recognise a file that ends too soon."""

    @abstractmethod
    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[T]] | Unsent]:
        """Yield the records of the range that the tracker grants, claimed, and `Unsent` values between them.

        A batch is valid until the next one is requested. The last claim, at the end of the block, marks all of it as
        read. The reader of the block decides what happens to a `Rejected`, and raises a `Broken` unless it can reject
        these bytes; it counts what was `Ignored` or `Dropped`.
        """

    def batches_of(
        self,
        content: bytearray,  # noqa: ARG002 - for overrides
        block: Block,  # noqa: ARG002 - as above
    ) -> Iterator[Batch[Record[T]] | Unsent] | None:
        """Yield the records of a small file whose whole content is given, as `batches` does; None if it cannot."""
        return None

    @property
    def sent_type(self) -> Any:
        """The type of the records that it sends as it is configured; Any if it is unknown."""
        return self.reads

    def tracker_of(self, restriction: OffsetRange) -> Tracker:
        """Return the tracker for a range, which splits it only where `splits` allows that."""
        tracker = OffsetRestrictionTracker(restriction)
        if self.splits == "anywhere":
            return tracker
        return (
            BetweenRecordsTracker(tracker)
            if self.splits == "between records"
            else UnsplittableRestrictionTracker(tracker)
        )

    def parts_of(self, restriction: OffsetRange, size: int) -> Iterable[OffsetRange]:
        """Divide a range that is not begun into parts of about this size; it stays whole unless it splits anywhere."""
        return restriction.split(size) if self.splits == "anywhere" else [restriction]

    def is_cut_off(self, stream: Seekable, block: Block) -> bool:  # noqa: ARG002 - for overrides
        """Whether a block cannot be read since its file, as the stream shows it, ends too soon."""
        return False

    def record_end(self, stream: Seekable, block: Block, start: int, stop: int) -> int:  # noqa: ARG002 - for overrides
        """Return the end of the record that starts at a position, in a range that was read up to `stop`.

        Called for `dagkit trace`, on a copy of the context. By default, reading begins at the record, and the first
        refused claim shows where the record ends. A context that never splits cannot begin there: the record is taken
        to be the rest of the content.
        """
        if self.splits == "never":
            return content_end(stream, start)
        if self.splits == "between records":
            return self.first_claim(stream, block, start, start) + 1
        return self.first_claim(stream, block, start, start + 1)

    def text_of(self, content: bytes, stream: Seekable) -> str:  # noqa: ARG002 - for overrides
        """Return the text of bytes of a record, read from this stream. Bytes that are no text are escaped."""
        return content.decode(errors="backslashreplace")

    def first_claim(self, stream: Seekable, block: Block, start: int, least: int) -> int:
        """Return the first position from `least` on that is claimed if reading begins at `start`, where a record does.

        Return the end of the content if there is none.
        """
        size = None if block.end == OFFSET_INFINITY else block.source_size
        end = OFFSET_INFINITY if size is None else size
        # To the end of the file, since the record may end behind its block.
        rest = replace(block, start=start, end=end, last=True, previous_block_id=None)
        # The tracker grants the one record at `start`, and keeps the first position that it refuses: the next record.
        tracker = RefusingTracker(OffsetRange(start, least))
        for _ in self.batches(stream, rest, tracker):
            pass
        refused = end if tracker.refused is None else tracker.refused
        return content_end(stream, start) if refused == OFFSET_INFINITY else refused

    def changed(self, values: Mapping[str, Any]) -> Self:
        """Return the context with other values of some properties. Raise ValidationError if they are invalid."""
        return self.model_validate({**dict(self), **values})

    def with_block_size(self, size: int) -> Self:  # noqa: ARG002 - for overrides
        """Return the context for files whose filesystem has this block size; here, the context itself."""
        return self

    def items(self, values: Column) -> Batch[Any]:
        """Return a batch whose items are these values of records. A context may keep their fields as columns."""
        return Batch.of_column(values)

    def contents(self, values: Column) -> Sequence[bytes]:
        """Return the bytes of each record, which `convert_to_record` receives."""
        return [value.encode("utf-8", TEXT_ERRORS) if isinstance(value, str) else value for value in values.values()]


def content_end(stream: Seekable, start: int, most: int = OFFSET_INFINITY) -> int:
    """The end of a stream, which is read from `start`, or `most` if that comes first."""
    stream.seek(start)
    buffer = memoryview(bytearray(CHUNK_SIZE))
    while count := filled(stream, buffer[: most - start]):
        start += count
    return start


def binary_array(data: "Bytes", offsets: "Places") -> "pa.BinaryArray | pa.LargeBinaryArray":
    """An Arrow array over consecutive values in `data`, without a copy."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling

    kind = pa.binary() if offsets.itemsize == 4 else pa.large_binary()
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def records_of(block: Block, values: Column) -> "Batch[Record[Any]]":
    """A batch of the records of a block, given their values."""
    return Batch({"block_id": Constant(block.block_id, len(values), block.path), "value": values}, Record)
