"""Writing items to files that are rolled by length or age."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic

from pydantic import Field, NonNegativeInt, PositiveInt, PrivateAttr, field_validator
from typing_extensions import TypeVar

from dagkit import Batch, Context, InputPort, Lines, Operator, OutputFiles, State
from dagkit_operators.records.processed import processed_column, processed_value
from dagkit_operators.writing.record_writer import as_bytes, path_as_text
from dagkit_operators.writing.templates import values_in

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T", default=Any)

_NAMED = ("partition", "number", "window")
"""The values that file names may contain."""
_TRIED = (1, 2, 11)
"""Sample numbers that reveal ambiguous names: without a separator, 1 and 11 give the same name as 11 and 1."""


class PartWriter(Operator, Generic[T]):
    """Writes items to a sequence of files for each partition; a file becomes visible when it is finished.

    A file is finished when it is longer than `max_length`, when it is `rotation_windows` old, or when the input is
    drained. The next item begins another file; an item is never divided. In an application that runs without end, set
    one of the two properties, or a file never becomes visible.
    """

    kind = "files.part-writer/1"
    input = InputPort[T]()
    files = OutputFiles(
        lambda writer: writer.file_path,
        of_blocks=False,
        examples=lambda writer: [writer.file_name.format(partition=0, number=0, window=1)],
    )

    file_path: str = Field(default=..., min_length=1)
    """The directory that the files are written to: a path or a URL."""
    file_name: str = "part-{partition:05}-{number:05}"
    """The pattern of file names. `{partition}` is the partition's number, `{number}` the file's number in it,
    `{window}` the window in which the file was begun; each may have a width of up to 32. Names may contain folders.
    """
    max_length: PositiveInt | None = None
    """Bytes after which a file is finished; None: no limit."""
    rotation_windows: NonNegativeInt = 0
    """Windows after which a file is finished, including the one in which it was begun; 0: no limit."""
    format: Callable[[Any], str | bytes] | None = None
    """Converts an item to text or bytes; None: items are text or bytes already, or records of them."""
    record_separator: str = "\n"
    """The text after each item."""

    number = State(0)
    """The number of the current file."""
    length = State(0)
    """Bytes of the current file."""

    windows = State(0)
    """Windows that ended since the current file was begun."""
    begun = State(0)
    """The window in which the current file was begun, if names contain it; else, or before a file is begun, 0."""

    _partition: int = PrivateAttr(default=0)
    _window: int = PrivateAttr(default=0)
    _names_window: bool = PrivateAttr(default=False)
    """Whether file names contain the window in which the file was begun."""

    @field_validator("file_path", mode="before")
    @classmethod
    def _as_text(cls, given: Any) -> Any:
        return path_as_text(given)

    @field_validator("file_name")
    @classmethod
    def _distinguishes_parts(cls, pattern: str) -> str:
        values_in(pattern, _NAMED)
        names = [
            {pattern.format(partition=partition, number=number, window=window) for window in _TRIED}
            for partition in _TRIED
            for number in _TRIED
        ]
        every = set().union(*names)
        if len(every) < sum(map(len, names)):
            raise ValueError(f"{pattern!r} does not give every {{partition}} and {{number}} a file of its own")
        if any(not name or name.startswith("/") or ".." in name.split("/") for name in every):
            raise ValueError(f"{pattern!r} leads out of file_path")
        return pattern

    def setup(self, context: Context) -> None:
        self._partition = context.partition
        self._window = context.window_id
        self._names_window = "window" in values_in(self.file_name, _NAMED)

    def begin_window(self, window_id: int) -> None:
        self._window = window_id

    def process(self, item: T) -> None:
        content = self._bytes(item)
        self._write(content, [len(content)])

    def process_batch(self, batch: Batch[T]) -> None:
        if not len(batch):
            return
        column = None if self.format is not None else processed_column(batch, None)
        if isinstance(column, Lines) and column.delimiter == self.record_separator.encode():
            self._write(column.content, _ends(column))
            return
        contents = [self._bytes(item) for item in (batch.items() if column is None else column.values())]
        self._write(b"".join(contents), list(accumulate(map(len, contents))))

    def drained(self) -> None:
        if self.length:
            self._roll()

    def end_window(self) -> None:
        if self.length and self.rotation_windows:
            self.windows += 1
            if self.windows >= self.rotation_windows:
                self._roll()

    def _bytes(self, item: Any) -> bytes:
        made = processed_value(item, None) if self.format is None else self.format(item)
        if not isinstance(made, str | bytes):
            raise TypeError(f"{made!r:.60} is neither text nor bytes; set format to a function that makes either of it")
        return as_bytes(made) + self.record_separator.encode()

    def _write(self, content: bytes | memoryview, ends: "Sequence[int] | npt.NDArray[np.int64]") -> None:
        """Write consecutive items, whose ends are given, to as many files as they need."""
        view = memoryview(content)
        place = index = 0
        while index < len(ends):
            room = len(view) if self.max_length is None else self.max_length - self.length
            index = min(len(ends), bisect_right(ends, place + room, index) + 1)
            end = int(ends[index - 1])
            self.files.open(self._name()).write(view[place:end])
            self.length += end - place
            place = end
            if self.max_length is not None and self.length > self.max_length:
                self._roll()

    def _name(self) -> str:
        """The name of the current file; begins one if there is none."""
        if not self._names_window:
            return self.file_name.format(partition=self._partition, number=self.number)
        self.begun = self.begun or self._window
        return self.file_name.format(partition=self._partition, number=self.number, window=self.begun)

    def _roll(self) -> None:
        self.files.finish(self._name())
        self.number += 1
        self.length = 0
        if self.windows:
            self.windows = 0
        if self._names_window:
            self.begun = 0


def _ends(lines: Lines) -> "npt.NDArray[np.int64]":
    """The end of each line, relative to the start of the first."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow.compute as pc  # noqa: PLC0415

    return np.cumsum(pc.binary_length(lines.ended).to_numpy(), dtype=np.int64)
