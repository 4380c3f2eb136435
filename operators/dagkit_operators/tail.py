"""Reading files on and on while somebody writes to them."""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Generic, Literal

from pydantic import NonNegativeInt

from dagkit import Batch, Block, OutputPort
from dagkit.ranges import OFFSET_INFINITY, GrowableOffsetRestrictionTracker, OffsetRange, RestrictionTracker
from dagkit.urls import is_url, parent, shown
from dagkit_operators.blocks import FileInfo, Lost, Record
from dagkit_operators.compressed import codec_of
from dagkit_operators.files import ReadFiles, T
from dagkit_operators.identities import has_identity
from dagkit_operators.places import Found, NotRegular, Stream, files_below, looked_up, opened, reading_from
from dagkit_operators.seen import FileChanged

RENAMED_MILLIS = 60_000
"""How long a file that was renamed may still be written to."""

Tracker = RestrictionTracker[OffsetRange, int]


class TailFiles(ReadFiles[T], Generic[T]):
    """Reads text files, and what is appended to them, for as long as the application runs.

    What is there already is read by as many as there are, as any file; what comes, when it is looked for. A line is a
    line once it is ended. When the application stops, all that was read is known, and it goes on from there.

    A file may be renamed meanwhile: it is looked for in its folder, read to its end, and done with. One that is gone,
    or was cut or written anew in its place, cannot be read on. That is told by `lost`, and is an error where that leads
    nowhere. What takes its place is another file, and whoever finds files tells of it.
    """

    kind = "files.tail/1"
    lost = OutputPort(Lost)

    compression: Literal["none"] = "none"
    """Nobody appends to a compressed file."""
    interval_millis: NonNegativeInt = 1000
    """How long nothing is looked for in a file that had nothing new."""
    ends_after_millis: NonNegativeInt | None = None
    """After how long without a change a file is done with; none: never, or after a minute if it was renamed."""

    def initial_restriction(self, element: FileInfo) -> OffsetRange:  # noqa: ARG002 - none of them has an end
        return OffsetRange(0, OFFSET_INFINITY)

    def split(self, element: FileInfo, restriction: OffsetRange) -> Iterable[OffsetRange]:
        """The lines that were there when the file was found are dealt out in parts; the last one has no end.

        A line that is not ended is of the last one: all others can be read to their end without waiting for anybody.
        """
        *parts, last = OffsetRange(0, max(1, self._ended(element, 0, element.length))).split(self.part_size)
        yield from parts
        yield OffsetRange(last.start, restriction.stop)

    def truncate(self, element: FileInfo, restriction: OffsetRange) -> OffsetRange | None:
        """What is ended by now is still read."""
        if restriction.is_bounded():
            return restriction
        end = self._ended(element, restriction.start)
        return restriction.truncate(end) if end > restriction.start else None  # a later launch tells of what is lost

    def _ended(self, element: FileInfo, start: int, stop: int = OFFSET_INFINITY) -> int:
        """Up to where, from a line's start on, all lines of the file are ended; the start where none is."""
        with ExitStack() as opens:
            there, stream = _found(element, opens)
            if there is None or there.length < start:
                return start
            assert stream is not None, "what is there was opened"
            stop = min(stop, there.length)
            end = self.line_context(self.chunk_size).last_end(stream, start, stop)
            return start if end is None else min(end, stop)

    def tracker(self, element: FileInfo, restriction: OffsetRange) -> GrowableOffsetRestrictionTracker:
        return GrowableOffsetRestrictionTracker(restriction, partial(length_of, element.path))

    def process(self, element: FileInfo, tracker: Tracker) -> Iterator[Batch[T]]:
        if codec_of(element.path, "auto") is not None:
            raise ValueError(
                f"{shown(element.path)} is compressed, and nobody can append lines to it; leave it out of the "
                "patterns, or let ReadFiles read it"
            )
        stretch = tracker.current_restriction()
        with ExitStack() as opens:
            there, stream = _found(element, opens)
            if there is None:
                reason = "is gone, or was cut or written anew, or another file has its name"
                self._lose(Lost(element.path, stretch.start, reason))
            elif there.length < (stretch.stop if stretch.is_bounded() else stretch.start):
                self._lose(Lost(element.path, stretch.start, f"was cut to {there.length} bytes"))
            else:
                assert stream is not None, "what is there was opened"
                yield from self.records(element.path, self._batches(element, there, stream, tracker))
                return
            tracker.try_claim(OFFSET_INFINITY)

    def _batches(
        self, element: FileInfo, there: Found, stream: Stream, tracker: Tracker
    ) -> Iterator[Batch[Record[str]]]:
        """The lines that are ended, or all of them where nobody will write any more."""
        lines = self.line_context(self.chunk_size)
        block = Block(0, element.path, tracker.current_restriction().start, there.length)
        if self._is_over(element, there):
            yield from lines.batches(stream, block, tracker)
            tracker.try_claim(OFFSET_INFINITY)
        elif not (yield from lines.ended_batches(stream, block, tracker)):
            tracker.defer_remainder(timedelta(milliseconds=self.interval_millis))

    def _is_over(self, element: FileInfo, there: Found) -> bool:
        limits = [self.ends_after_millis, RENAMED_MILLIS if there.path != element.path else None]
        known = [limit for limit in limits if limit is not None]
        return bool(known) and time.time() * 1000 - there.modified_millis >= min(known)

    def _lose(self, lost: Lost) -> None:
        if not self.lost.is_connected:
            raise FileChanged(
                f"{shown(lost.path)} {lost.reason}, after it was read to byte {lost.start}: what it held from there "
                "on is lost; lead the output `lost` to somebody who is to know, and reading goes on with what is there"
            )
        self.lost.emit(lost)


def length_of(path: str) -> int:
    """How long a file is by now; one that is gone has no length."""
    there = looked_up(path)
    return 0 if there is None else there.length


def _found(element: FileInfo, opens: ExitStack) -> tuple[Found, Stream] | tuple[None, None]:
    """The very file that was found once, opened, under whatever name it lies in its folder now."""
    for path in _names(element):
        with reading_from(path):
            there = looked_up(path)
            if there is None:
                continue
            try:
                stream = opens.enter_context(opened(path))
            except (FileNotFoundError, NotRegular):
                continue
            # asked last: whatever had taken the name before would be seen now
            if has_identity(path, element.identity):
                return there, stream
    return None, None


def _names(element: FileInfo) -> Iterator[str]:
    """Its own, and then those beside it."""
    yield element.path
    if element.identity and not is_url(element.path):
        for found in files_below(parent(element.path), recursive=False):
            yield found.path
