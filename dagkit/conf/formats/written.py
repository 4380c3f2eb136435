"""One key as one file wrote it, before the sources are weighed against each other."""

from dataclasses import dataclass, field
from typing import Any

from dagkit.errors import Code, Diagnostic, Where


@dataclass(frozen=True, slots=True)
class WrittenKey:
    """A key, its value, and the line where it stands."""

    key: str
    value: Any = field(repr=False)
    """None where the file gives no value: then somebody else must."""
    where: Where
    final: bool = False
    """Whether the file forbids stronger sources to give another."""


class ParseError(Exception):
    """A fault in a file's text, by its line; what reads the text does not know the file's name."""

    def __init__(self, problem: str, help_: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.help, self.line = problem, help_, line

    def told_of(self, file: str, code: Code) -> Diagnostic:
        """The fault as it is reported."""
        return Diagnostic(code, self.problem, self.help, Where(file, self.line))


def wrong_bytes(data: bytes, wrong: UnicodeDecodeError, help_: str = "save the file as UTF-8") -> ParseError:
    """The slip of a file whose bytes are no text in the encoding it should have."""
    line = data.count(b"\n", 0, wrong.start) + 1
    return ParseError(f"byte 0x{data[wrong.start]:02X} on this line is not {wrong.encoding.upper()}", help_, line)
