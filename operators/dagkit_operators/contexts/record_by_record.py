"""The simple way to write a reader context: `next` returns one record at a time."""

import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

from dagkit import Batch, Block, Listed
from dagkit.errors import RunFailure
from dagkit.ground.urls import shown
from dagkit_operators.contexts.chunk import ClaimPace
from dagkit_operators.contexts.reader_context import ReaderContext, Splits, Tracker, content_end, records_of
from dagkit_operators.filesystem.access import Seekable, filled
from dagkit_operators.payloads import Record

T = TypeVar("T")
READ_AHEAD = 64 << 10
"""Bytes that `read` takes from the stream at least."""
MOST_RECORDS = 1024
"""The most records of a batch."""


@dataclass(frozen=True, slots=True)
class Entity(Generic[T]):
    """A record, and the bytes of the stream that it took, delimiters included."""

    record: T
    used_bytes: int


def _entity_empty(context: str, path: str, position: int, used_bytes: int) -> RunFailure:
    """A reader context returned an entity that used no bytes, so reading would never end."""
    return RunFailure(
        f"{path}, byte {position}: {context}.next returned an entity that used {used_bytes} bytes",
        "count the bytes of the record and of its delimiter; return None if there is no record",
        code="entity-empty",
        caused_by_author=True,
    )


def _entity_overlong(context: str, path: str, position: int, used_bytes: int, rest: int) -> RunFailure:
    """A reader context returned an entity that used more bytes than its file has."""
    return RunFailure(
        f"{path}, byte {position}: {context}.next returned an entity that used {used_bytes} bytes, and only {rest} "
        "are left",
        "reject a record whose end is missing; count the bytes that the file has for it",
        code="entity-overlong",
        caused_by_author=True,
    )


def _block_indivisible(context: str, path: str, position: int) -> RunFailure:
    """A file was cut into blocks where the reader context cannot find the next record."""
    return RunFailure(
        f"{path}, byte {position}: a block begins here, and {context} finds no records from there",
        "set sequential_file_read of the splitter, so that each file is one block, and start over under another "
        "APPLICATION_PATH; or override `initialize` to find the first record of a block, and call `start_at`",
        code="block-indivisible",
    )


class RecordByRecordContext(ReaderContext[T]):
    """Reads one record after the other: an author writes `next`, and `initialize` if records must be searched for.

    The records belong to the block in which they start. The context claims each record before it is sent, stops at the
    end of the block, and is split only after a claimed record; the rest is then read by `initialize` and `next` again,
    as a block that begins with a record.

    `stream`, `block` and `offset` are the open stream, the block, and the position of the next record. `offset` moves
    on by the used bytes of each entity. Other state belongs into private attributes: `_count: int = 0`.
    """

    splits: ClassVar[Splits] = "between records"

    _stream: Seekable | None = None
    _block: Block | None = None
    _offset: int = 0
    _ahead: bytes = b""
    """Bytes of the stream that were read ahead."""
    _ahead_at: int = 0
    """The position of these bytes."""

    @property
    def stream(self) -> Seekable:
        """The open stream of the block."""
        assert self._stream is not None, "a stream is there once `initialize` is called"
        return self._stream

    @property
    def block(self) -> Block:
        """The block that is read."""
        assert self._block is not None, "a block is there once `initialize` is called"
        return self._block

    @property
    def offset(self) -> int:
        """The position at which the next record starts."""
        return self._offset

    def initialize(self, stream: Seekable, block: Block, consecutive: bool) -> None:  # noqa: FBT001, ARG002 - as in Apex
        """Called before a block is read. Here, its first record starts at its first byte.

        A block that the splitter cut from the middle of a file need not begin with a record; unless the context is
        split `anywhere`, such a block raises `block-indivisible`.

        Override it to find the first record that starts at or after `block.start`, and call `start_at` with its
        position. If a record starts exactly at `block.start`, it must be found: a block may be the rest of one that was
        split. With `consecutive`, the same context just read the block before this one from the same stream; that must
        not change the records.
        """
        if block.previous_block_id is not None and self.splits != "anywhere":
            raise _block_indivisible(type(self).__name__, shown(block.path), block.start)
        self.start_at(block.start)

    @abstractmethod
    def next(self) -> Entity[T] | None:
        """Return the record at `offset`, or None if there is none. Called until a record would start after the block.

        The stream may be anywhere: `read` seeks.
        """

    def start_at(self, position: int) -> None:
        """Set the position of the next record."""
        self._offset = position

    def read(self, count: int, offset: int | None = None) -> bytes:
        """Return `count` bytes at `offset`, by default those of the next record; fewer at the end of the file."""
        start = (self._offset if offset is None else offset) - self._ahead_at
        if not 0 <= start <= start + count <= len(self._ahead):
            self._ahead_at, start = self._ahead_at + start, 0
            buffer = memoryview(bytearray(max(count, READ_AHEAD)))
            self.stream.seek(self._ahead_at)
            self._ahead = bytes(buffer[: filled(self.stream, buffer)])
        return self._ahead[start : start + count]

    def record_end(self, stream: Seekable, block: Block, start: int, stop: int) -> int:  # noqa: ARG002 - as its base
        # With the ID, `initialize` would refuse a position in the middle of the file.
        self._stream, self._block = stream, replace(block, start=start, previous_block_id=None)
        self.initialize(stream, self.block, consecutive=False)
        entity = self.next()
        return content_end(stream, start) if entity is None else self._after(entity, block)

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[T]]]:
        # The same context gets the same stream only for the block after the last one: see `OpenStream`.
        consecutive = self._stream is stream
        if not consecutive:
            self._ahead = b""
        self._stream, self._block = stream, block
        self.initialize(stream, block, consecutive)
        # One record at first: the time that a record takes is unknown, and claimed records are not handed over.
        pace, is_over = ClaimPace(1), False
        while not is_over:
            began = time.perf_counter()
            starts: list[int] = []
            records, is_over = self._claim_next(block, tracker, min(pace.most or MOST_RECORDS, MOST_RECORDS), starts)
            if records:
                yield records_of(block, Listed(records, starts.copy))
                pace.took(len(records), time.perf_counter() - began)

    def _claim_next(self, block: Block, tracker: Tracker, most: int, starts: list[int]) -> tuple[list[T], bool]:
        """Up to `most` records that the tracker granted, and whether the reader is done. Their starts are added."""
        records: list[T] = []
        while len(records) < most:
            entity = self.next() if self._offset < block.end else None
            if entity is None:
                tracker.try_claim(block.end)
                return records, True
            after = self._after(entity, block)
            # A range that is split between records ends with the last byte of one, so that byte is claimed.
            if not tracker.try_claim(self._offset if self.splits == "anywhere" else min(after, block.end) - 1):
                return records, True
            records.append(entity.record)
            starts.append(self._offset)
            self._offset = after
        return records, False

    def _after(self, entity: Entity[T], block: Block) -> int:
        """The position after an entity."""
        name, used = type(self).__name__, entity.used_bytes
        if used < 1:
            raise _entity_empty(name, shown(block.path), self._offset, used)
        if block.last and used > block.end - self._offset:
            raise _entity_overlong(name, shown(block.path), self._offset, used, block.end - self._offset)
        return self._offset + used
