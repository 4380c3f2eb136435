"""The format of text files: where lines end, and which lines are records. All readers of lines have these."""

from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveInt, model_validator

from dagkit_operators.contexts.lines import LONGEST_LINE
from dagkit_operators.reading.reader import Reader, T

LINE_PROPERTIES = (
    "delimiter",
    "longest_line",
    "escape",
    "keep_returns",
    "collapse_line_ends",
    "skip_header_lines",
    "encoding",
    "skip_byte_order_mark",
    "undecodable",
)
"""The properties that only reader contexts for lines have."""


class TextForm(Reader[T]):
    """The properties that a reader of lines shares with its reader context."""

    delimiter: str = "\n"
    """The text that ends a line."""
    longest_line: PositiveInt = LONGEST_LINE
    """The most bytes of a line; a longer one fails the run."""
    escape: str = ""
    """The escape byte. A delimiter after an odd number of escapes ends no line. Values keep their escapes."""
    keep_returns: bool = True
    """Whether a carriage return before the newline stays in the value; if not, LF and CRLF may both end lines."""
    collapse_line_ends: bool = False
    """Whether a run of carriage returns and newlines ends one line, as in Malhar: empty lines are no records."""
    skip_header_lines: NonNegativeInt = 0
    """The number of lines at the beginning of each file that are not records."""
    encoding: str = "utf-8"
    """The encoding of the file, by the name that Python gives it. Values and outputs are UTF-8."""
    skip_byte_order_mark: bool = False
    """Whether a byte order mark at the beginning of a file is no part of its first line; `utf-16` always skips it."""
    undecodable: Literal["keep", "reject", "fail"] = "keep"
    """What happens to a line with bytes that are no text in its encoding: see `TextContext`."""

    @model_validator(mode="after")
    def _have_an_effect(self) -> Self:
        """Refuse a property of lines beside a reader context for something else, which would ignore it."""
        context = type(self.reader_context)
        unused = [name for name in LINE_PROPERTIES if name in self.model_fields_set - context.model_fields.keys()]
        if unused:
            raise ValueError(f"{unused[0]} is set, and {context.__name__} has no such property; leave it away")
        return self
