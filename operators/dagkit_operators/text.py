"""What the text of files is like: where lines end, and which of them are records. Whoever reads lines has these."""

from typing import Self

from pydantic import NonNegativeInt, PositiveInt, field_validator, model_validator

from dagkit import Operator
from dagkit_operators.contexts import ReadAheadLines
from dagkit_operators.lines import LONGEST_LINE, delimiter_of, escape_of


class TextForm(Operator):
    """The properties of a reader of lines, and the reader context that they make."""

    delimiter: str = "\n"
    """What ends a line."""
    longest_line: PositiveInt = LONGEST_LINE
    """Bytes of a line at most; a longer one is a fault."""
    escape: str = ""
    """One byte; a delimiter behind it, or behind an odd number of it, ends no line. Values keep their escapes."""
    keep_returns: bool = True
    """Whether a return before the newline stays in the value; without, lines end in LF or CRLF, also by turns."""
    skip_header_lines: NonNegativeInt = 0
    """Lines at the beginning of each file that are no records."""

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
        """How bytes become lines, so many being read at a time."""
        delimiter = delimiter_of(self.delimiter)
        return ReadAheadLines(
            delimiter,
            chunk_size,
            self.longest_line,
            escape_of(self.escape, delimiter),
            self.keep_returns,
            self.skip_header_lines,
        )
