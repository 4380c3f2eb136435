"""The format of text files: where lines end, and which lines are records. All line readers share these properties."""

from typing import Self

from pydantic import NonNegativeInt, PositiveInt, field_validator, model_validator

from dagkit import Operator
from dagkit_operators.reading.contexts import ReadAheadLines
from dagkit_operators.reading.lines import LONGEST_LINE, delimiter_of, escape_of


class TextForm(Operator):
    """The properties of a reader of lines, and the reader context built from them."""

    delimiter: str = "\n"
    """The text that ends a line."""
    longest_line: PositiveInt = LONGEST_LINE
    """The most bytes of a line; a longer one fails the run."""
    escape: str = ""
    """The escape byte. A delimiter after an odd number of escapes ends no line. Values keep their escapes."""
    keep_returns: bool = True
    """Whether a carriage return before the newline stays in the value; if not, LF and CRLF may both end lines."""
    skip_header_lines: NonNegativeInt = 0
    """The number of lines at the beginning of each file that are not records."""

    @field_validator("delimiter")
    @classmethod
    def _unambiguous(cls, delimiter: str) -> str:
        delimiter_of(delimiter)
        return delimiter

    @model_validator(mode="after")
    def _that_go_together(self) -> Self:
        escape_of(self.escape, delimiter_of(self.delimiter))
        if not (self.keep_returns or self.delimiter == "\n"):
            raise ValueError(f"keep_returns is False, and lines end with {self.delimiter!r}; leave the delimiter away")
        return self

    def line_context(self, chunk_size: int) -> ReadAheadLines:
        """The reader context for these properties, which reads `chunk_size` bytes at a time."""
        delimiter = delimiter_of(self.delimiter)
        return ReadAheadLines(
            delimiter,
            chunk_size,
            self.longest_line,
            escape_of(self.escape, delimiter),
            self.keep_returns,
            self.skip_header_lines,
        )
