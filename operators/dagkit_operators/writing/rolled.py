"""Files that are written part by part: when a part is finished, shared by all operators that roll their files."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import Field, NonNegativeInt, PositiveInt, PrivateAttr

from dagkit import Context, DagContext, Operator, OperatorContext, OutputFiles, OutputPort, State
from dagkit.ground.urls import name_as_text
from dagkit_operators.writing.content import ENDINGS, Compressed, Compressing, FolderPath, decompressed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(slots=True)
class OpenPart:
    """The current part of one file. It has no content until `count` is positive."""

    number: int = 0
    length: int = 0
    """Bytes before compression."""
    count: int = 0
    """Items."""
    windows: int = 0
    """Windows that ended since the part was begun, including the first; 0 unless they are limited."""
    idle: int = 0
    """The last windows in which nothing was written; 0 unless they are limited."""
    begun: int = 0
    """The window in which the part was begun."""
    begun_at: datetime | None = None
    """When that window began, in a launch that runs until it is stopped."""
    written_at: datetime | None = None
    """When the last window began in which something was written."""


@dataclass(frozen=True, slots=True)
class FinishedPart:
    """A part of a file that gets no more items."""

    name: str
    """Its name below `file_path`; a `file:` URL if it is not UTF-8, which `dagkit.ground.urls.local_path` decodes."""
    length: int
    """Bytes before compression."""
    count: int
    """Items."""


class RolledFiles(Operator):
    """Writes files in parts. A part is finished, and becomes visible, when the first of these limits is reached:

    `max_length` and `max_count` after an item; `rotation_windows` and `max_idle_windows` at the end of a window;
    `visible_millis` at the end of a window that began so long after the part was begun; and when the input is drained.
    An item is never divided, and an empty part is never made. A window without work does not run, so for the last three
    limits the driver starts a window at the time by which they are reached: a window counts as long as its streaming
    windows.

    `finished_parts` sends each finished part. The part becomes visible after the commit of that window.

    A subclass names the parts in `_part_name`, and calls `_write` and `_end_window`.
    """

    files = OutputFiles(
        lambda writer: writer.file_path,
        of_blocks=False,
        examples=lambda writer: writer.example_names(),
        content=lambda writer, piece: decompressed(piece, writer.compression),
    )

    finished_parts = OutputPort(FinishedPart, main=True)

    file_path: FolderPath = Field(default=..., kw_only=False)
    """The directory that the files are written to: a path or a URL."""
    max_length: PositiveInt | None = None
    """Bytes, before compression, after which a part is finished: its last item goes beyond them. None: no limit."""
    max_count: PositiveInt | None = None
    """Items after which a part is finished; None: no limit."""
    rotation_windows: NonNegativeInt = 0
    """Windows after which a part is finished, including the one in which it was begun; 0: no limit."""
    max_idle_windows: NonNegativeInt = 0
    """Windows in succession without an item for the part, after which it is finished; 0: no limit."""
    visible_millis: NonNegativeInt = 0
    """The time after which a part is finished in a launch that runs until it is stopped; 0: no limit."""
    compression: Compressing = "none"
    """How the parts are compressed; `.gz` or `.zst` is appended to their names.

    A part consists of members, each of which can be decompressed by itself: one for each mebibyte, and for each window.
    The members of `gzip` have a CRC-32. The frames of `zstd` state the length of their content, which readers check,
    and have no checksum, since Arrow writes none: other damage in them may go unnoticed.
    """

    parts = State[dict[str, OpenPart]]({})
    """The current part of each file, by its name; a name that is not UTF-8 is a `file:` URL."""

    _partition: int = PrivateAttr(default=0)
    _partitions: int = PrivateAttr(default=1)
    _window: int = PrivateAttr(default=0)
    _window_millis: int = PrivateAttr(default=0)
    _compressed: dict[str, Compressed] = PrivateAttr(default_factory=dict)
    """What compresses the parts that this window writes, by file."""

    def example_names(self) -> Sequence[str]:
        """Examples of the names of parts, with which the compiler checks that no input reads them."""
        return (f"file{ENDINGS[self.compression]}",)

    def _beginning(self) -> bytes:
        """What each part begins with, such as a header."""
        return b""

    def _part_name(self, name: str, part: OpenPart) -> str:
        """The name of a part of a file, without the ending of the compression."""
        raise NotImplementedError

    def setup(self, context: Context) -> None:
        self._partition = context.partition
        self._partitions = context.partitions
        # `begin_window` is called in the first streaming window of an application window only.
        self._window = context.window_id
        count = context.value(OperatorContext.APPLICATION_WINDOW_COUNT)
        self._window_millis = count * context.value(DagContext.STREAMING_WINDOW_SIZE_MILLIS)

    def begin_window(self, window_id: int) -> None:
        self._window = window_id

    def drained(self) -> None:
        for name, part in self.parts.items():
            if part.count:
                self._roll(name, part)

    def end_window(self) -> None:
        for name, part in self.parts.items():
            if part.count:
                self._end_part(name, part)

    def before_checkpoint(self, window_id: int) -> None:  # noqa: ARG002 - the same for every window
        """Write what is not compressed yet."""
        # It is no part of the state. With several streaming windows in one of the application, `end_window` is not
        # called in each of them, and the next one has another instance.
        for compressed in self._compressed.values():
            compressed.close()
        self._compressed.clear()

    def _write(
        self,
        name: str,
        content: bytes | bytearray | memoryview,
        count: int,
        ends_of: Callable[[], "Sequence[int] | npt.NDArray[np.int64]"],
    ) -> None:
        """Write this many consecutive items to as many parts of a file as they need.

        `ends_of` computes where they end; only limits need that.
        """
        part = self.parts.get(name)
        if part is None:
            part = self.parts[name] = OpenPart()
        view = memoryview(content)
        if self.max_length is None and self.max_count is None:
            if count:
                self._add(name, part, view, count)
            return
        if self._is_full(part):  # a limit was lowered since the last item
            part = self._roll(name, part)
        ends = ends_of()
        place = index = 0
        while index < len(ends):
            last = len(ends)
            if self.max_length is not None:
                # The header counts, also that of a part that is not begun.
                length = part.length or len(self._beginning())
                last = min(last, bisect_right(ends, place + self.max_length - length, index) + 1)
            if self.max_count is not None:
                last = min(last, index + self.max_count - part.count)
            end = int(ends[last - 1])
            self._add(name, part, view[place:end], last - index)
            place, index = end, last
            if self._is_full(part):
                part = self._roll(name, part)

    def _add(self, name: str, part: OpenPart, content: memoryview, count: int) -> None:
        if not part.count:
            part.begun, part.begun_at = self._window, self.files.began
            content = memoryview(self._beginning() + content) if self._beginning() else content
        sink = self._compressed.get(name)
        if sink is None:
            file = self.files.open(self._name(name, part))
            if self.compression == "none":
                file.write(content)
            else:
                sink = self._compressed[name] = Compressed(file, self.compression)
        if sink is not None:
            sink.write(content)
        part.length += len(content)
        part.count += count
        part.written_at = self.files.began
        if self.max_idle_windows:
            part.idle = -1  # this window makes it 0, though perhaps another instance ends it

    def _is_full(self, part: OpenPart) -> bool:
        too_long = self.max_length is not None and part.length > self.max_length
        return too_long or (self.max_count is not None and part.count >= self.max_count)

    def _end_part(self, name: str, part: OpenPart) -> None:
        """Finish a part at the end of a window if its time is over; otherwise ask for a window at that time."""
        # Count for limits only: a window that only polls has to be committed if it changes the state.
        if self.rotation_windows:
            part.windows += 1
        if self.max_idle_windows:
            part.idle += 1
        due, began = self._due(part), self.files.began
        aged = 0 < self.rotation_windows <= part.windows or 0 < self.max_idle_windows <= part.idle
        if aged or (due is not None and began is not None and began >= due):
            self._roll(name, part)
        elif due is not None:
            self.files.wake(self._name(name, part), due)

    def _due(self, part: OpenPart) -> datetime | None:
        """When the part is finished unless something is written; None if no limit of time applies."""
        window = timedelta(milliseconds=self._window_millis)
        limits = (
            (part.begun_at, timedelta(milliseconds=self.visible_millis)),
            (part.begun_at, self.rotation_windows * window),
            (part.written_at, self.max_idle_windows * window),
        )
        return min((start + limit for start, limit in limits if start is not None and limit), default=None)

    def _roll(self, name: str, part: OpenPart) -> OpenPart:
        """Finish a part, and return the one that follows it."""
        compressed = self._compressed.pop(name, None)
        if compressed is not None:
            compressed.close()
        finished = self._name(name, part)
        self.files.finish(finished)
        self.finished_parts.emit(FinishedPart(name_as_text(finished), part.length, part.count))
        self.parts[name] = OpenPart(part.number + 1)
        return self.parts[name]

    def _name(self, name: str, part: OpenPart) -> str:
        return self._part_name(name, part) + ENDINGS[self.compression]
