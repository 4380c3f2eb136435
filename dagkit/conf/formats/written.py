"""One key as it is written in one file, before the sources are merged."""

from dataclasses import dataclass, field
from typing import Any

from dagkit.errors import Code, Diagnostic, Where


@dataclass(frozen=True, slots=True)
class WrittenKey:
    """A key, its value, and its line."""

    key: str
    value: Any = field(repr=False)
    """None if the file has no value for the key: then another source must set one."""
    where: Where
    final: bool = False
    """Whether the file forbids stronger sources to set another value."""


class ParseError(Exception):
    """A fault in a file's text, with its line. The parser that raises it does not know the file's name."""

    def __init__(self, problem: str, help_: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.help, self.line = problem, help_, line

    def diagnostic(self, file: str, code: Code) -> Diagnostic:
        """The fault as a diagnostic of this file."""
        return Diagnostic(code, self.problem, self.help, Where(file, self.line))


def wrong_bytes(data: bytes, wrong: UnicodeDecodeError, help_: str = "save the file as UTF-8") -> ParseError:
    """The error for a file whose bytes are not valid text in its encoding."""
    line = data.count(b"\n", 0, wrong.start) + 1
    return ParseError(f"byte 0x{data[wrong.start]:02X} on this line is not {wrong.encoding.upper()}", help_, line)
