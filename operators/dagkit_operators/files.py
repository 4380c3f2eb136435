"""Reading files that somebody else found, wherever in a graph their names come from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Generic

from pydantic import PositiveInt
from typing_extensions import TypeVar

from dagkit import Batch, Block, Column, InputPort, OutputPort, SplittableOperator
from dagkit.ranges import (
    OFFSET_INFINITY,
    OffsetRange,
    OffsetRestrictionTracker,
    RestrictionTracker,
    UnsplittableRestrictionTracker,
)
from dagkit.schema.batch import ITEM
from dagkit.urls import shown
from dagkit_operators.blocks import FileInfo, Record, Rejected
from dagkit_operators.compressed import Codec, Compression, Decompressed, codec_of
from dagkit_operators.contexts import Tracker
from dagkit_operators.lines import CHUNK_SIZE, Seekable
from dagkit_operators.looking import VALUE
from dagkit_operators.seen import as_seen
from dagkit_operators.splitter import BLOCK_SIZE
from dagkit_operators.text import TextForm

T = TypeVar("T", default=Any)


class LineRejected(ValueError):
    """No record could be made of a line, and nobody takes what is rejected."""

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected
        where = line_at(rejected.start)
        super().__init__(
            f"{shown(rejected.path)}: {where} is rejected: {rejected.reason}: {rejected.text!r:.80}; "
            "lead the output `rejected` to somebody who takes such lines, and reading goes on"
        )

    def __reduce__(self) -> tuple[type["LineRejected"], tuple[Rejected]]:
        return LineRejected, (self.rejected,)


class ReadFiles(TextForm, SplittableOperator[FileInfo], Generic[T]):
    """Reads text files as they were when they were found: their lines, or what `parse` makes of each.

    A file is read by as many as there are, in parts that are cut and split anywhere. A line of which `parse` can make
    nothing goes to `rejected`; where that leads nowhere, it is an error.
    """

    kind = "files.read/1"
    stateless = True
    files = InputPort(FileInfo, main=True)
    messages = OutputPort[T](main=True)
    rejected = OutputPort(Rejected)

    parse: Callable[[str], T] | None = None
    """Makes a record of a line, and raises ValueError where it is none; without it the lines themselves are sent."""
    part_size: PositiveInt = BLOCK_SIZE
    """Bytes of the parts in which a file is dealt out to begin with."""
    chunk_size: PositiveInt = CHUNK_SIZE
    """Bytes that are read, and handed on, at a time."""
    compression: Compression = "auto"
    """How files are compressed; `auto`: as their names end. A compressed file is read by one, and is never split."""

    def initial_restriction(self, element: FileInfo) -> OffsetRange:
        return OffsetRange(0, element.length)

    def split(self, element: FileInfo, restriction: OffsetRange) -> Iterable[OffsetRange]:
        return [restriction] if codec_of(element.path, self.compression) else restriction.split(self.part_size)

    def tracker(self, element: FileInfo, restriction: OffsetRange) -> RestrictionTracker[OffsetRange, int]:
        tracker = OffsetRestrictionTracker(restriction)
        return UnsplittableRestrictionTracker(tracker) if codec_of(element.path, self.compression) else tracker

    def process(self, element: FileInfo, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[Batch[T]]:
        stretch = tracker.current_restriction()
        facts = {"length": element.length, "modified_millis": element.modified_millis}
        block = Block(0, element.path, stretch.start, stretch.stop, facts=facts)
        codec = codec_of(element.path, self.compression)
        with as_seen(block) as stream:
            if codec is None:
                yield from self.records(
                    element.path, self.line_context(self.chunk_size).batches(stream, block, tracker)
                )
            elif tracker.try_claim(stretch.start):
                yield from self.records(element.path, self._decompressed(stream, element.path, codec))
                tracker.try_claim(stretch.stop)

    def _decompressed(self, stream: Seekable, path: str, codec: Codec) -> Iterator[Batch[Record[str]]]:
        """All lines of a compressed file, whose bytes are others than those that are tracked."""
        whole = Block(0, path, 0, OFFSET_INFINITY)
        tracker: Tracker = OffsetRestrictionTracker(OffsetRange(0, OFFSET_INFINITY))
        return self.line_context(self.chunk_size).batches(Decompressed(stream, codec, path), whole, tracker)

    def records(self, path: str, batches: Iterable[Batch[Record[str]]]) -> Iterator[Batch[T]]:
        """What is made of lines; those that are rejected are sent on their own way."""
        for batch in batches:
            column = batch.column(VALUE)
            yield Batch({ITEM: column}) if self.parse is None else Batch.of(self._parsed(self.parse, path, column))

    def _parsed(self, parse: Callable[[str], T], path: str, column: Column) -> list[T]:
        parsed = []
        starts = cache(column.starts)  # asked for by the first line that fails, and kept for the others
        for index, text in enumerate(column.values()):
            try:
                parsed.append(parse(text))
            except ValueError as fault:
                rejected = Rejected(path, _start(starts(), index), text, str(fault))
                if not self.rejected.is_connected:
                    raise LineRejected(rejected) from fault
                self.rejected.emit(rejected)
            except Exception as error:
                line = f"{line_at(_start(starts(), index))} of {shown(path)}: {text!r:.80}"
                error.add_note(f"of {line}; what raises ValueError is rejected, and nothing else")
                raise
        return parsed


def line_at(start: int | None) -> str:
    """A line, in words."""
    return "a line" if start is None else f"the line at byte {start}"


def _start(starts: Sequence[int] | None, index: int) -> int | None:
    return None if starts is None else starts[index]
