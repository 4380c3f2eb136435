"""Writing items to a sequence of files for each partition."""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from string import Formatter
from typing import TYPE_CHECKING, Any, Generic

from pydantic import Field, NonNegativeInt, field_validator
from typing_extensions import TypeVar

from dagkit import Batch, InputPort, Lines
from dagkit.errors import clipped
from dagkit_operators.values.processed import processed_column, processed_value
from dagkit_operators.writing.content import ENDINGS, as_bytes, may_be_text
from dagkit_operators.writing.rolled import OpenPart, RolledFiles

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


WIDEST = 32
"""Characters that a value may be padded to."""
_FORM = re.compile(r"0?(\d{0,2})[bdoxX]?", re.ASCII)


def values_in(template: str, known: Sequence[str]) -> frozenset[str]:
    """Return the names of the values in a template. Raise ValueError unless each is known and has a simple form."""
    # Templates come from property files, and `str.format` also reads attributes and elements of values, and pads to any
    # width. So only whole numbers of a bounded width are allowed.
    try:
        fields = [
            (name, form, conversion) for _, name, form, conversion in Formatter().parse(template) if name is not None
        ]
    except ValueError as error:
        raise ValueError(f"{template!r} is not a template: {error}; write {{{{ for a brace") from error
    for name, form, conversion in fields:
        if name not in known:
            names = ", ".join(f"{{{value}}}" for value in known)
            raise ValueError(f"{{{name}}} is not a value of a file name; known are {names}")
        matched = _FORM.fullmatch(form or "")
        if conversion or matched is None or int(matched[1] or 0) > WIDEST:
            shown = f"{{{name}{f'!{conversion}' if conversion else ''}{f':{form}' if form else ''}}}"
            raise ValueError(
                f"{shown} is not a form of a number here; write {{{name}}}, or a width up to {WIDEST}, as {{{name}:05}}"
            )
    return frozenset(name for name, _, _ in fields)


T = TypeVar("T", default=Any)

VISIBLE_MILLIS = 60_000
"""A minute: who starts an application sees its first file soon, and a partition makes at most 1440 files a day."""
_NAMED = ("partition", "number", "window")
"""The values that file names may contain."""
ONLY = ""
"""The name of the file that each partition has."""
_TRIED = (1, 2, 11)
"""Sample numbers that reveal ambiguous names: without a separator, 1 and 11 give the same name as 11 and 1."""


def check_part_names(pattern: str) -> str:
    """Return a pattern of file names. Raise ValueError unless each partition and number has a file of its own."""
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


class NumberedParts(RolledFiles):
    """Rolls one file for each partition, and numbers its parts."""

    file_name: str = "part-{partition:05}-{number:05}"
    """The pattern of file names. `{partition}` is the partition's number, `{number}` the file's number in it,
    `{window}` the window in which the file was begun; each may have a width of up to 32. Names may contain folders.
    """
    visible_millis: NonNegativeInt = Field(default=VISIBLE_MILLIS)
    """The time after which a file is finished in a launch that runs until it is stopped; 0: no limit."""

    @field_validator("file_name")
    @classmethod
    def _distinguishes_parts(cls, pattern: str) -> str:
        return check_part_names(pattern)

    def example_names(self) -> Sequence[str]:
        return (self.file_name.format(partition=0, number=0, window=1) + ENDINGS[self.compression],)

    def _write_items(self, contents: Sequence[bytes]) -> None:
        self._write(ONLY, b"".join(contents), len(contents), lambda: list(accumulate(map(len, contents))))

    def _part_name(self, name: str, part: OpenPart) -> str:  # noqa: ARG002 - there is one file
        return self.file_name.format(partition=self._partition, number=part.number, window=part.begun)


class PartWriter(NumberedParts, Generic[T]):
    """Writes items to a sequence of files for each partition; a file becomes visible when it is finished.

    `RolledFiles` describes when that is. In a launch that runs until it is stopped, it is after a minute at the latest.
    """

    kind = "files.part-writer/2"
    input = InputPort[T]()

    format: Callable[[Any], str | bytes] | None = None
    """Converts an item to text or bytes; None: items are text or bytes already, or records of them."""
    record_separator: str = "\n"
    """The text after each item."""

    def refused_payload(self, port: str, payload: Any) -> str | None:  # noqa: ARG002 - there is one input
        if self.format is not None or may_be_text(payload):
            return None
        return "set format to a function that makes text or bytes of an item"

    def process(self, item: T) -> None:
        content = self._bytes(item)
        self._write(ONLY, content, 1, lambda: [len(content)])

    def process_batch(self, batch: Batch[T]) -> None:
        if not len(batch):
            return
        column = None if self.format is not None else processed_column(batch, None)
        if isinstance(column, Lines) and column.delimiter == self.record_separator.encode():
            self._write(ONLY, column.content, len(column), lambda: _ends(column))
            return
        self._write_items([self._bytes(item) for item in (batch.items() if column is None else column.values())])

    def _bytes(self, item: Any) -> bytes:
        content = processed_value(item, None) if self.format is None else self.format(item)
        if not isinstance(content, str | bytes):
            raise TypeError(
                f"{clipped(content, 60)} is neither text nor bytes; set format to a function that makes either of it"
            )
        return as_bytes(content) + self.record_separator.encode()


def _ends(lines: Lines) -> "npt.NDArray[np.int64]":
    """The end of each line, relative to the start of the first."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow.compute as pc  # noqa: PLC0415

    return np.cumsum(pc.binary_length(lines.ended).to_numpy(), dtype=np.int64)
