"""Writing items to files that are rolled when they are long enough."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic

from pydantic import Field, NonNegativeInt, PositiveInt, PrivateAttr, field_validator
from typing_extensions import TypeVar

from dagkit import Batch, Context, InputPort, Lines, Operator, OutputFiles, State
from dagkit_operators.looking import seen, seen_column
from dagkit_operators.templates import values_in
from dagkit_operators.writer import as_bytes, path_as_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T", default=Any)

_NAMED = ("partition", "number", "window")
"""The values that names of files may hold."""
_TRIED = (1, 2, 11)
"""Numbers for a name: of a pattern without anything between them, the first and the last make one name of two."""


class PartWriter(Operator, Generic[T]):
    """Writes items to files of its partition, one after the other; a file is whole when it is rolled.

    An item is never divided: a file that has become longer than `max_length` is finished, and the next item begins
    another; so is one that is `rotation_windows` old. What is being written is finished, too, when nothing more comes
    for now. In an application that runs on and on nothing is seen of a file before, so set one of the two there.
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
    """The names of the files, by the number of the partition, that of the file in it, and the `{window}` that it was
    begun in, each with a width of up to 32 if it is to have one; names with "/" lie in folders.
    """
    max_length: PositiveInt | None = None
    """Bytes after which a file is finished; none: it is not."""
    rotation_windows: NonNegativeInt = 0
    """Windows after which a file is finished, the one that it was begun in counted; 0: it is not."""
    format: Callable[[Any], str | bytes] | None = None
    """Makes text or bytes of an item; none: items are text or bytes themselves, or records of them."""
    record_separator: str = "\n"
    """What ends each item."""

    number = State(0)
    """Of the file that is being written."""
    length = State(0)
    """Bytes that it has."""

    windows = State(0)
    """Windows that ended since it was begun."""
    begun = State(0)
    """The window that it was begun in, where names tell that; 0: it is not begun, or they do not."""

    _partition: int = PrivateAttr(default=0)
    _window: int = PrivateAttr(default=0)
    _names_window: bool = PrivateAttr(default=False)
    """Whether names tell the window that their file was begun in."""

    @field_validator("file_path", mode="before")
    @classmethod
    def _as_text(cls, given: Any) -> Any:
        return path_as_text(given)

    @field_validator("file_name")
    @classmethod
    def _tells_parts_apart(cls, pattern: str) -> str:
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
        column = None if self.format is not None else seen_column(batch, None)
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
        made = seen(item, None) if self.format is None else self.format(item)
        if not isinstance(made, str | bytes):
            raise TypeError(f"{made!r:.60} is neither text nor bytes; set format to a function that makes either of it")
        return as_bytes(made) + self.record_separator.encode()

    def _write(self, content: bytes | memoryview, ends: "Sequence[int] | npt.NDArray[np.int64]") -> None:
        """Write items that stand one after the other, in as many files as they need."""
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
        """Of the file that is being written, or that begins here."""
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
    """Where each line ends, counted from where the first starts."""
    import numpy as np  # noqa: PLC0415 - whoever only compiles does not load it
    import pyarrow.compute as pc  # noqa: PLC0415

    return np.cumsum(pc.binary_length(lines.ended).to_numpy(), dtype=np.int64)
