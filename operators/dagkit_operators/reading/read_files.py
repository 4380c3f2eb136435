"""Reading files whose names arrive on an input port."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, Generic

from pydantic import PositiveInt
from typing_extensions import TypeVar

from dagkit import Batch, Block, Column, InputPort, OutputPort, SplittableOperator
from dagkit.errors import RunFailure
from dagkit.ranges import (
    OFFSET_INFINITY,
    OffsetRange,
    OffsetRestrictionTracker,
    RestrictionTracker,
    UnsplittableRestrictionTracker,
)
from dagkit.schema.batch import ITEM
from dagkit.urls import shown
from dagkit_operators.compression.compressed import Codec, Compression, Decompressed, codec_of
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.filesystem.snapshot import open_snapshot
from dagkit_operators.payloads import BLOCK_SIZE, VALUE, FileInfo, Record, Rejected
from dagkit_operators.reading.contexts import Tracker
from dagkit_operators.reading.lines import CHUNK_SIZE
from dagkit_operators.reading.text_format import TextForm

T = TypeVar("T", default=Any)


class LineRejected(RunFailure):
    """A line could not be parsed, and the output `rejected` is not connected."""

    code = "line-rejected"
    usual_help: ClassVar[str] = "connect the output `rejected` to continue without such lines"
    caused_by_author: ClassVar[bool] = True

    def __init__(self, rejected: Rejected) -> None:
        self.rejected = rejected
        where = line_at(rejected.start)
        super().__init__(f"{shown(rejected.path)}: {where} is rejected: {rejected.reason}: {rejected.text!r:.80}")


class ReadFiles(TextForm, SplittableOperator[FileInfo], Generic[T]):
    """Reads text files as they were when they were found, and sends their lines, or what `parse` returns for each.

    All partitions share the reading of a file, in parts that can be split anywhere. If `parse` refuses a line, the line
    goes to `rejected`; if that is not connected, the run fails with LineRejected.
    """

    kind = "files.read/1"
    stateless = True
    files = InputPort(FileInfo, main=True)
    messages = OutputPort[T](main=True)
    rejected = OutputPort(Rejected)

    parse: Callable[[str], T] | None = None
    """Parses a line, and raises ValueError if the line is invalid; None: the lines themselves are sent."""
    part_size: PositiveInt = BLOCK_SIZE
    """Bytes of the parts into which a file is divided at first."""
    chunk_size: PositiveInt = CHUNK_SIZE
    """Bytes that are read and sent at a time."""
    compression: Compression = "auto"
    """How files are compressed; `auto`: by file name extension. A compressed file is read by one partition."""

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
        with open_snapshot(block) as stream:
            if codec is None:
                yield from self.records(
                    element.path, self.line_context(self.chunk_size).batches(stream, block, tracker)
                )
            elif tracker.try_claim(stretch.start):
                yield from self.records(element.path, self._decompressed(stream, element.path, codec))
                tracker.try_claim(stretch.stop)

    def _decompressed(self, stream: Seekable, path: str, codec: Codec) -> Iterator[Batch[Record[str]]]:
        """All lines of a compressed file. Positions in its content differ from those in the file, which are tracked."""
        whole = Block(0, path, 0, OFFSET_INFINITY)
        tracker: Tracker = OffsetRestrictionTracker(OffsetRange(0, OFFSET_INFINITY))
        return self.line_context(self.chunk_size).batches(Decompressed(stream, codec, path), whole, tracker)

    def records(self, path: str, batches: Iterable[Batch[Record[str]]]) -> Iterator[Batch[T]]:
        """Parse lines. Rejected lines are sent to `rejected`."""
        for batch in batches:
            column = batch.column(VALUE)
            yield Batch({ITEM: column}) if self.parse is None else Batch.of(self._parsed(self.parse, path, column))

    def _parsed(self, parse: Callable[[str], T], path: str, column: Column) -> list[T]:
        parsed = []
        starts = cache(column.starts)  # computed for the first line that fails, and kept for the others
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
    """A line as messages name it."""
    return "a line" if start is None else f"the line at byte {start}"


def _start(starts: Sequence[int] | None, index: int) -> int | None:
    return None if starts is None else starts[index]
