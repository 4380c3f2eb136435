"""Reading files continuously while another program appends to them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Generic, Literal, Self, cast

from pydantic import NonNegativeInt, PrivateAttr, model_validator

from dagkit import Batch, Block, Context, OutputPort
from dagkit.ground.urls import is_url, local_path, parent, shown
from dagkit.ranges import OFFSET_INFINITY, GrowableOffsetRestrictionTracker, OffsetRange, RestrictionTracker
from dagkit_operators.compression.codec import codec_of
from dagkit_operators.contexts.encodings import encoding_of
from dagkit_operators.contexts.line_contexts import ReadAheadLineReaderContext
from dagkit_operators.filesystem.access import (
    Found,
    NotRegular,
    Seekable,
    Stream,
    looked_up,
    opened,
    reading_from,
    status_of,
)
from dagkit_operators.filesystem.identities import has_identity
from dagkit_operators.filesystem.listing import files_below
from dagkit_operators.filesystem.snapshot import FileChanged
from dagkit_operators.payloads import FileInfo, Lost, Record, Rejected
from dagkit_operators.reading.read_files import ReadFiles
from dagkit_operators.reading.reader import T

RENAMED_MILLIS = 60_000
"""How long a renamed file may still be written to."""

Tracker = RestrictionTracker[OffsetRange, int]


class TailFiles(ReadFiles[T], Generic[T]):
    """Reads text files, and what is appended to them, for as long as the application runs.

    All partitions share the reading of the existing content, as for any file. Appended lines are read at intervals, and
    only after their delimiter was written. A later launch resumes where the last one stopped.

    If a file is renamed, it is searched for in its folder, read to its end, and finished. If it is deleted, truncated
    or rewritten in place, it cannot be read further: it is sent to `lost`; if that is not connected, the run fails with
    FileChanged. A file that takes its name is a new file, which the operator upstream must find.
    """

    kind = "files.tail/1"
    follows_files = True
    lost = OutputPort(Lost)

    reader_context: ReadAheadLineReaderContext = ReadAheadLineReaderContext()
    """How lines are read; the properties of lines are its properties."""
    compression: Literal["none"] = "none"
    """Compressed files cannot be appended to."""
    interval_millis: NonNegativeInt = 1000
    """The time until a file without new lines is read again."""
    ends_after_millis: NonNegativeInt | None = None
    """The time without a change after which a file is finished.

    None: never, or for a renamed file a minute after it was renamed or written to last.
    """

    _now: Callable[[], datetime] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _knows_when_a_line_is_complete(self) -> Self:
        for lines in (self.reader_context, *map(self.reader_context.changed, self.by_file.values())):
            if lines.collapse_line_ends:
                raise ValueError("collapse_line_ends is True, and a run of line ends may still grow; leave it away")
            if encoding_of(lines.encoding, lines.delimiter).unit > 1:
                raise ValueError(
                    f"encoding is {lines.encoding!r}, and a file that grows may end within a character of it"
                )
        if self.on_bad_file == "quarantine":
            raise ValueError("on_bad_file is 'quarantine', and the rest of a file that grows has no end; connect lost")
        return self

    def setup(self, context: Context) -> None:
        super().setup(context)
        self._now = context.now

    def initial_restriction(self, element: FileInfo) -> OffsetRange:  # noqa: ARG002 - unbounded for every file
        return OffsetRange(0, OFFSET_INFINITY)

    def split(self, element: FileInfo, restriction: OffsetRange) -> Iterable[OffsetRange]:
        """Divide the lines that existed when the file was found into parts; the last part is unbounded."""
        # Parts end with complete lines, so that all but the last can be read to their end without waiting.
        # One byte at least: an empty range has no parts, and the last part is needed for what will be appended.
        *parts, last = OffsetRange(0, max(1, self._last_end(element, 0, element.length))).split(self.part_size)
        yield from parts
        yield OffsetRange(last.start, restriction.stop)

    def truncate(self, element: FileInfo, restriction: OffsetRange) -> OffsetRange | None:
        """Read the lines that are complete by now, and no more."""
        if restriction.is_bounded():
            return restriction
        end = self._last_end(element, restriction.start)
        # Without a complete line nothing is read now, and a file that is gone is reported as lost by a later launch.
        return restriction.truncate(end) if end > restriction.start else None

    def _last_end(self, element: FileInfo, start: int, stop: int = OFFSET_INFINITY) -> int:
        """The end of the last complete line after `start`, which is the start of a line; `start` if there is none."""
        with ExitStack() as opens:
            found = _open_tailed(element, opens)
            if found is None or found[0].length < start:
                return start
            there, stream = found
            stop = min(stop, there.length)
            end = self.context_for(element.path).last_end(stream, start, stop)
            return start if end is None else min(end, stop)

    def tracker(self, element: FileInfo, restriction: OffsetRange) -> GrowableOffsetRestrictionTracker:
        return GrowableOffsetRestrictionTracker(restriction, partial(length_of, element.path))

    def context_for(self, path: str) -> ReadAheadLineReaderContext:
        return cast("ReadAheadLineReaderContext", super().context_for(path))

    def block_of(self, element: FileInfo) -> Block:
        """The whole file as a block without an end, since it grows."""
        return Block(0, element.path, 0, OFFSET_INFINITY)

    @contextmanager
    def opened_content(self, element: FileInfo) -> Iterator[Seekable]:
        with ExitStack() as opens:
            found = _open_tailed(element, opens)
            if found is None:
                raise FileChanged(f"{shown(element.path)} is gone, or another file has its name")
            yield found[1]

    def process(self, element: FileInfo, tracker: Tracker) -> Iterator[Batch[T]]:
        if codec_of(element.path, "auto") is not None:
            raise ValueError(
                f"{shown(element.path)} is compressed, so no lines can be appended to it; leave it out of the "
                "patterns, or let ReadFiles read it"
            )
        stretch = tracker.current_restriction()
        with ExitStack() as opens:
            found = _open_tailed(element, opens)
            # A part with an end was made of complete lines, so that the file had those bytes.
            if found is None:
                reason = "is gone, or was cut or rewritten, or another file has its name"
                self._lose(Lost(element.path, stretch.start, reason))
            elif found[0].length < (stretch.stop if stretch.is_bounded() else stretch.start):
                self._lose(Lost(element.path, stretch.start, f"was cut to {found[0].length} bytes"))
            else:
                there, stream = found
                tracker.see_end(there.length)
                if self.times_by_change:
                    self.observe([there.modified_millis * 1000])
                block = Block(0, element.path, stretch.start, there.length)
                batches = self.converted(block, self._batches(element, there, stream, block, tracker))
                yield from self.items(block, batches)
                return
            tracker.try_claim(OFFSET_INFINITY)  # nothing more can be read of the file

    def _batches(
        self, element: FileInfo, there: Found, stream: Stream, block: Block, tracker: Tracker
    ) -> Iterator[Batch[Record[Any]] | Rejected]:
        """The complete lines; all lines if the file is finished."""
        lines, part = self.context_for(element.path), tracker.current_restriction()
        if self._is_over(element, there):
            yield from lines.batches(stream, block, tracker)
            tracker.try_claim(OFFSET_INFINITY)
        elif not (yield from lines.ended_batches(stream, block, tracker)):
            # A part with an end whose last line has no delimiter any more was rewritten. To wait for the delimiter
            # would keep a launch with an end open for ever.
            if part.is_bounded():
                self._lose_rest(element, there, stream, part, tracker)
            else:
                tracker.see_end(part.start)  # the rest is no whole line, which could be read
                tracker.defer_remainder(timedelta(milliseconds=self.interval_millis))

    def _lose_rest(self, element: FileInfo, there: Found, stream: Stream, part: OffsetRange, tracker: Tracker) -> None:
        """Report the rest of a part whose last line was complete when the part was made, and is no longer."""
        ended = self.context_for(element.path).last_end(stream, part.start, there.length)
        start = part.start if ended is None else ended
        if tracker.try_claim(start):
            self._lose(Lost(element.path, start, f"was rewritten: no line ends at byte {part.stop} or later"))
            tracker.try_claim(part.stop)

    def _is_over(self, element: FileInfo, there: Found) -> bool:
        now = datetime.now(UTC) if self._now is None else self._now()
        now_millis = now.timestamp() * 1000
        if self.ends_after_millis is not None and now_millis - there.modified_millis >= self.ends_after_millis:
            return True
        return there.path != element.path and now_millis - _renamed_or_written_millis(there) >= RENAMED_MILLIS

    def _lose(self, lost: Lost) -> None:
        if not self.lost.is_connected:
            raise FileChanged(
                f"{shown(lost.path)} {lost.reason}, after it was read to byte {lost.start}: its content from there "
                "on is lost",
                "connect the output `lost` to continue with the other files",
            )
        self.lost.emit(lost)


def length_of(path: str) -> int:
    """The current length of a file; 0 if it is gone."""
    there = looked_up(path)
    return 0 if there is None else there.length


def _renamed_or_written_millis(there: Found) -> float:
    """When a local file was renamed or written to last."""
    # Programs that rotate logs rename a file before its writer opens another one, and the last line may be old by then.
    # So a minute counts from the rename, which changes the status of the file and not its content.
    status = status_of(local_path(there.path))
    return there.modified_millis if status is None else max(status.st_mtime_ns, status.st_ctime_ns) / 1_000_000


def _open_tailed(element: FileInfo, opens: ExitStack) -> tuple[Found, Stream] | None:
    """Open the file with the identity that was found, under whichever name it now has in its folder."""
    for path in _names(element):
        with reading_from(path):
            there = looked_up(path)
            if there is None:
                continue
            try:
                stream = opens.enter_context(opened(path))
            except (FileNotFoundError, NotRegular):
                continue
            # After opening: if another file took the name before, this check sees it.
            if has_identity(path, element.identity):
                return there, stream
    return None


def _names(element: FileInfo) -> Iterator[str]:
    """The file's own path, then those of the other files in its folder."""
    yield element.path
    if element.identity and not is_url(element.path):
        for found in files_below(parent(element.path), recursive=False):
            yield found.path
