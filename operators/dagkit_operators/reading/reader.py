"""The base of all readers of files: a reader context, an open stream, and an output for rejected records."""

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, Self, cast

from pydantic import Field, PositiveInt, PrivateAttr, ValidationError, model_validator
from typing_extensions import TypeVar

from dagkit import Batch, Block, Context, OutputPort, auto_metric
from dagkit.ground.urls import shown
from dagkit.ranges import (
    OFFSET_INFINITY,
    OffsetRange,
    OffsetRestrictionTracker,
    UnsplittableRestrictionTracker,
)
from dagkit_operators.compression.codec import Codec, Compression, CompressionBroken
from dagkit_operators.compression.index_folder import IndexFolder
from dagkit_operators.compression.opening import FOUND_AGAIN, codec_of_block, content_of, facts_of, is_of_content
from dagkit_operators.contexts.lines import CHUNK_SIZE, LineForm
from dagkit_operators.contexts.reader_context import (
    Broken,
    Dropped,
    ReaderContext,
    Tracker,
    Unsent,
    records_of,
)
from dagkit_operators.filesystem.access import Found, Seekable, is_bad_file
from dagkit_operators.filesystem.block_sizes import block_size_of
from dagkit_operators.filesystem.identities import settles_in_millis
from dagkit_operators.filesystem.snapshot import FileReplaced, grown, open_snapshot, refuse_changed
from dagkit_operators.payloads import VALUE, Record, Rejected
from dagkit_operators.reading.conversion import Conversion, LineRejected
from dagkit_operators.reading.open_stream import OpenStream
from dagkit_operators.reading.timed_files import TimedFiles
from dagkit_operators.values.record_types import Ignored, IgnoresFields

T = TypeVar("T", default=Any)
_OF_ALL_FILES = {"record_type", "sends"}
"""Properties of reader contexts whose values cannot depend on the file."""
_log = logging.getLogger(__name__)


class Reader(TimedFiles, IgnoresFields, Generic[T]):
    """Reads ranges of files. A reader context turns their bytes into records.

    A property that both the reader and its reader context have is one property: it may be set in either place.

    A subclass may convert each record: `convert_to_record` makes an item of its bytes, drops it by returning None, or
    rejects it by raising ValueError. What is rejected goes to `rejected`; if that is not connected, the run fails with
    LineRejected.
    """

    rejected = OutputPort(Rejected)
    records_dropped = auto_metric(0, counted="left out")
    """Records that were read and not sent: a conversion made None of them, or `where` does not hold for them."""
    records_rejected = auto_metric(0)
    """Records that were sent to `rejected`."""

    reader_context: ReaderContext[Any] = Field(default=...)
    """How the bytes of a block become records."""
    chunk_size: PositiveInt = CHUNK_SIZE
    """Bytes that are read and sent at a time."""

    by_file: Annotated[Mapping[str, Mapping[str, Any]], Field(exclude_if=lambda files: not files)] = {}
    """Other values of properties of the reader context, for files whose path ends as a pattern says.

    The first pattern that matches counts: `{"*.old.csv": {"encoding": "latin-1"}, "de/*.csv": {"separator": ";"}}`.
    """
    on_bad_file: Literal["stop", "quarantine"] = "stop"
    """What to do with a file that cannot be read: stop the run, or set the rest of the file aside and continue.

    Such a file is damaged, unreadable or gone, has a line that is too long or no text, or other columns. `dagkit work
    ls` lists what is set aside, and `dagkit work retry` puts it back.
    """
    compression: Compression = "auto"
    """How files are compressed; `auto`: by the file name extension, else by the first bytes; `none`: not at all.

    One partition reads a compressed file. Only a gzip file that the application read before is divided: see
    `IndexFolder`.
    """

    _indexes: IndexFolder = PrivateAttr(default=IndexFolder(""))
    _stream: OpenStream = PrivateAttr(default_factory=OpenStream)
    _instead: Mapping[str, Any] | None = PrivateAttr(default=None)
    """Facts that replace those with which the file that was read last was found, for its receipt."""
    _unsent: tuple[int, int] = PrivateAttr(default=(0, 0))
    """How many records were rejected and dropped since the last answer of `unsent_records`."""

    @model_validator(mode="after")
    def _shares_properties_with_its_context(self) -> Self:
        """Set each property that both have to the value that was set in either, else to the reader's default."""
        context, names = self.reader_context, type(self).model_fields
        shared = names.keys() & type(context).model_fields.keys()
        values = {name: getattr(context, name) for name in type(context).model_fields}
        for name in shared:
            own, theirs = getattr(self, name), values[name]
            is_own, is_theirs = name in self.model_fields_set, name in context.model_fields_set
            if is_own and is_theirs and own != theirs:
                problem = f"{name} is {own!r}, and reader_context.{name} is {theirs!r}"
                raise ValueError(f"{problem}: they are one property, so set {name} alone")
            values[name] = own if is_own or not is_theirs else theirs
        if shared:
            joined = type(context).model_validate(values)  # an invalid value is a fault of the property of that name
            # Values from the reader do not count as set in the context: they change with the reader's property.
            object.__setattr__(joined, "__pydantic_fields_set__", set(context.model_fields_set))
            # Past pydantic, which refuses to assign properties of a component.
            self.__dict__.update({"reader_context": joined, **{name: getattr(joined, name) for name in shared}})
        return self

    @model_validator(mode="after")
    def _can_read_each_file(self) -> Self:
        for pattern, values in self.by_file.items():
            for name in sorted(_OF_ALL_FILES & values.keys()):
                raise ValueError(f"by_file[{pattern!r}] has {name}, which decides what is sent; set it for all files")
            try:
                self.reader_context.changed(values)
            except ValidationError as fault:
                first = fault.errors()[0]
                name = "".join(f"{part}: " for part in first["loc"])
                raise ValueError(f"by_file[{pattern!r}]: {name}{first['msg']}") from None
        return self

    def sets_aside(self, error: Exception) -> bool:
        return self.on_bad_file == "quarantine" and is_bad_file(error)

    def refuse_retry(self, element: Any) -> None:
        """Raise FileChanged if the file of an element has changed: it is found again, and read as a whole."""
        block = self.block_of(element)
        if FOUND_AGAIN in (block.facts or {}):
            refuse_changed(block, self.get_fs_instance())

    def setup(self, context: Context) -> None:
        self._indexes = IndexFolder(context.application_path)

    def setup_stream(self, block: Block) -> AbstractContextManager[Seekable]:
        """Open the file of a block. The stream has the positions of the file; leaving the `with` closes it.

        A compressed file is decompressed after that.
        """
        return open_snapshot(block, self.get_fs_instance())

    def get_fs_instance(self) -> Any:
        """The `pyarrow.fs.FileSystem` to which the paths of blocks belong; None: they are local paths or URLs."""
        return None

    def get_default_block_size(self, path: str) -> int:
        """The bytes of a block on the filesystem of a file, for a reader context that needs them."""
        return block_size_of(path)

    def convert_to_record(self, content: bytes) -> T | None:
        """Make a record of its bytes; those of text are UTF-8. None drops the record, ValueError rejects it.

        Without an override, records are sent as the reader context reads them, and this is not called.
        """
        return cast("T", content)

    @property
    def converts(self) -> bool:
        """Whether a subclass converts records."""
        return type(self).convert_to_record is not Reader.convert_to_record

    def tracker_of(self, block: Block) -> Tracker:
        """Return the tracker for a block; that of a whole compressed file is never split."""
        restriction = OffsetRange(block.start, block.end)
        if self.is_read_whole(block):
            return UnsplittableRestrictionTracker(OffsetRestrictionTracker(restriction))
        return self.context_for(block.path).tracker_of(restriction)

    def read(self, block: Block, tracker: Tracker) -> Iterator[Batch[Record[T]]]:
        """Yield the records of the range that the tracker grants.

        If the block was read to its end, its stream stays open for the next block of the file until the window ends.
        """
        self._unsent = (0, 0)
        try:
            yield from self._read_as_it_is(block, tracker)
        except FileReplaced:
            # It is raised before anything is read. The new file is found again and read as a whole, so its blocks are
            # left to that, if no other block of the old file was read: a block that is the whole file.
            if FOUND_AGAIN not in (block.facts or {}) or block.start or not _ends_file(block):
                raise
            self._leave_to_the_finder(block, tracker, "was replaced before it was read")

    def _read_as_it_is(self, block: Block, tracker: Tracker) -> Iterator[Batch[Record[T]]]:
        is_whole = self.is_read_whole(block)
        now = self._completed(block) if is_whole or self.reader_context.shows_its_end else None
        if now is not None:
            yield from self._read_completed(block, now, tracker)
        elif not is_whole:
            yield from self._read(block, block, tracker)
        # Positions of the content are not those of the block. The block is claimed as one, before and after.
        elif tracker.try_claim(block.start):
            yield from self._read(block, self._content_block(block), self._behind(block))
            tracker.try_claim(block.end)

    def _read_completed(self, block: Block, now: Found, tracker: Tracker) -> Iterator[Batch[Record[T]]]:
        """Yield the records of a block of a file that is complete now; none if the file is found again."""
        if FOUND_AGAIN in (block.facts or {}):
            self._leave_to_the_finder(block, tracker, "was found before it was complete")
            return
        _log.warning("%s was found before it was complete; it is read as it is now", shown(block.path))
        there = replace(block, facts=facts_of(now.length, now.modified_millis, None))
        rest = replace(there, start=block.end, end=now.length)
        if self.is_read_whole(block):
            if tracker.try_claim(block.start):
                there = replace(there, end=now.length)
                yield from self._read(there, self._content_block(there), self._behind(there))
                tracker.try_claim(block.end)
        else:
            yield from self._read(there, there, tracker)
            # The bytes that came later belong to no block. The reader of the last part reads them, unless it was split.
            if _ends_file(block) and tracker.current_restriction().stop == block.end:
                yield from self._read(rest, rest, self._behind(rest))

    def _leave_to_the_finder(self, block: Block, tracker: Tracker, reason: str) -> None:
        """Read nothing of a block, since the file is found again and read as a whole."""
        _log.warning("%s %s; it is read when it is found again", shown(block.path), reason)
        # Empty: this reading writes no receipt, since a later one reads the file.
        self._instead = {} if "receipt" in (block.facts or {}) else None
        tracker.try_claim(block.end)

    def _behind(self, block: Block) -> Tracker:
        """A tracker for positions that the tracker of the block does not have: of a content, or behind the block."""
        end = OFFSET_INFINITY if self.is_read_whole(block) else block.end
        return self.context_for(block.path).tracker_of(OffsetRange(block.start, end))

    def read_instead(self) -> Mapping[str, Any] | None:
        instead, self._instead = self._instead, None
        return instead

    def unsent_records(self) -> tuple[int, int]:
        unsent, self._unsent = self._unsent, (0, 0)
        return unsent

    def _completed(self, block: Block) -> Found | None:
        """The file of a block as it is now, if it was found while it was cut off, and has grown since; else None.

        It is also None if a receipt is wanted and the file is being changed: reading it as it was found fails then.
        """
        now, facts = grown(block, self.get_fs_instance()), block.facts or {}
        if now is None or not self._is_cut_off(block):
            return None
        if "receipt" not in facts or FOUND_AGAIN in facts or not _ends_file(block):
            return now
        self._instead = self._describe_grown(block, now)
        return None if self._instead is None else now

    def _describe_grown(self, block: Block, now: Found) -> Mapping[str, Any] | None:
        """The facts of a file as it is now, for its receipt; None if the file is being changed."""
        # Its hash and its status must be those of the same content: a change within a tick would keep the time.
        time.sleep(settles_in_millis(now, time.time_ns() // 1_000_000) / 1000)
        content, buffer = hashlib.sha256(), memoryview(bytearray(self.chunk_size))
        # The block as it was found would end the stream at the old length.
        with self.setup_stream(replace(block, end=now.length, facts={"length": now.length})) as stream:
            while count := stream.readinto(buffer):
                content.update(buffer[:count])
        if grown(block, self.get_fs_instance()) != now:
            return None
        return {"bytes": now.length, "modified_millis": now.modified_millis, "sha256": content.hexdigest()}

    def _is_cut_off(self, block: Block) -> bool:
        """Whether a block cannot be read since its file ended too soon when it was found."""
        if not self.is_read_whole(block):
            with self.setup_stream(block) as stream:
                return self.context_for(block.path).is_cut_off(stream, block)
        buffer = memoryview(bytearray(self.chunk_size))
        try:
            with self._open_content(block) as content:
                while content.readinto(buffer):
                    pass
        except CompressionBroken:
            return True
        return False

    def _content_block(self, block: Block) -> Block:
        """The block with the positions of its content, which has an unknown length if the file is read whole."""
        return replace(block, end=OFFSET_INFINITY, last=True) if self.is_read_whole(block) else block

    def is_read_whole(self, block: Block) -> bool:
        """Whether the positions of a block are those of a file that can only be decompressed from its beginning."""
        return self._codec_of(block) is not None and not is_of_content(block)

    def _codec_of(self, block: Block) -> Codec | None:
        return codec_of_block(block, self.compression, self.get_fs_instance())

    def _read(self, block: Block, content: Block, tracker: Tracker) -> Iterator[Batch[Record[T]]]:
        """Yield the records of a block, whose positions in the stream are those of `content`."""

        def is_done() -> bool:
            return tracker.current_restriction().stop == block.end

        # A context keeps what it learns of a file in private attributes, so each stream has a copy of its own.
        copied = self.context_for(block.path).model_copy
        with self._stream.of(content, lambda _: self._open_content(block), copied, is_done) as opened:
            yield from self.converted(block, opened.context.batches(opened.stream, content, tracker))

    @contextmanager
    def _open_content(self, block: Block) -> Iterator[Seekable]:
        """Open the file of a block; if it is compressed, its content."""
        codec = self._codec_of(block)
        with self.setup_stream(block) as stream:
            yield stream if codec is None else content_of(stream, block, codec, self._indexes, self.get_fs_instance())

    def converted(self, block: Block, results: Iterable[Batch[Record[T]] | Unsent]) -> Iterator[Batch[Record[T]]]:
        """Convert the records of a context. Records that either of them rejects go to `rejected`."""
        conversion = Conversion(block.path, self.convert_to_record, self.reject, self._drop)
        for result in results:
            if isinstance(result, Rejected):
                self.reject(result)
            elif isinstance(result, Broken):
                if not self.rejected.is_connected:
                    raise result
                self._send_rejected(result.rejected)
            elif isinstance(result, Ignored):
                self.note_ignored(result)
            elif isinstance(result, Dropped):
                self._drop(result.records)
            elif self.converts:
                column = result.column(VALUE)
                yield records_of(block, conversion.of(column, self.reader_context.contents(column)))
            else:
                yield result

    def reject(self, rejected: Rejected, fault: Exception | None = None) -> None:
        """Send a record to `rejected`. Raise LineRejected if that output is not connected."""
        if not self.rejected.is_connected:
            raise LineRejected(rejected) from fault
        self._send_rejected(rejected)

    def _send_rejected(self, rejected: Rejected) -> None:
        self.records_rejected += 1
        self._unsent = self._unsent[0] + 1, self._unsent[1]
        self.rejected.emit(rejected)

    def _drop(self, count: int) -> None:
        self.records_dropped += count
        self._unsent = self._unsent[0], self._unsent[1] + count

    def block_of(self, element: Any) -> Block:
        """The block that an element describes; here, the element is one."""
        return cast("Block", element)

    def opened_content(self, element: Any) -> AbstractContextManager[Seekable]:
        """Open the file of an element; if it is compressed, its content."""
        return self._open_content(self._block_as_read(element))

    def decompresses(self, element: Any) -> bool:
        """Whether the records of an element have positions of the decompressed content of its file."""
        return self._codec_of(self.block_of(element)) is not None

    def text_of(self, element: Any, content: bytes, stream: Seekable) -> str:
        """The text of bytes of a record of an element."""
        return self.context_for(self.block_of(element).path).text_of(content, stream)

    def record_end(self, element: Any, start: int, stop: int) -> int:
        """The end of the record that starts at a position of an element's content, which was read up to `stop`."""
        block = self._block_as_read(element)
        context = self.context_for(block.path).model_copy()
        stop = OFFSET_INFINITY if self.is_read_whole(block) else stop  # that of the file
        with self.opened_content(element) as stream:
            return context.record_end(stream, self._content_block(block), start, stop)

    def _block_as_read(self, element: Any) -> Block:
        """The block of an element; if its file was found before it was complete, as the file is now."""
        block = self.block_of(element)
        is_whole = self.is_read_whole(block)
        if is_whole or self.reader_context.shows_its_end:
            now = grown(block, self.get_fs_instance())
            if now is not None and self._is_cut_off(block):
                return replace(
                    block,
                    facts=facts_of(now.length, now.modified_millis, None),
                    end=now.length if is_whole else block.end,
                )
        return block

    def begin_window(self, window_id: int) -> None:  # noqa: ARG002 - the same for every window
        self._stream.keeps = True
        self._instead = None

    def end_window(self) -> None:
        self._stream.keeps = False
        self._stream.close()

    def teardown(self) -> None:
        self._stream.close()

    def context_for(self, path: str) -> ReaderContext[Any]:
        """The reader context for a file, with the block size of its filesystem."""
        context = self.reader_context
        if self.by_file:
            name = PurePosixPath(path)
            values = next((values for pattern, values in self.by_file.items() if name.match(pattern)), None)
            context = context if values is None else context.changed(values)
        return context.with_block_size(self.get_default_block_size(path))


class LinesReader(LineForm, Reader[T], Generic[T]):
    """A reader that shares the properties of lines with its reader context."""

    __hash__ = Reader.__hash__  # else pydantic makes one of the values of all properties, which need not be hashable

    @model_validator(mode="after")
    def _have_an_effect(self) -> Self:
        """Refuse a property of lines beside a reader context for something else, which would ignore it."""
        context, own = type(self.reader_context), LineForm.model_fields.keys() & self.model_fields_set
        unused = [name for name in LineForm.model_fields if name in own - context.model_fields.keys()]
        if unused:
            raise ValueError(f"{unused[0]} is set, and {context.__name__} has no such property; leave it away")
        return self


def _ends_file(block: Block) -> bool:
    """Whether a block, or a part of one, ends where its file ended when it was found."""
    return block.end == (block.facts or {}).get("length")
