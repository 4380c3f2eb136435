"""What the readers of all formats share: a key as it is written, faults in a text, and reading and nesting limits."""

import errno
import os
import stat
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dagkit.api.configuration import Source
from dagkit.conf.grammar.names import folded
from dagkit.conf.grammar.property_keys import Address, Malformed, canonical, is_variable, parse_key
from dagkit.errors import Code, Diagnostic, Where

DEEPEST = 100
"""The greatest depth of lists and objects in a value."""

TOO_DEEP = f"it nests lists and objects deeper than {DEEPEST}"


@dataclass(frozen=True, eq=False)
class WrittenKey:
    """One key as it is written in one place, before the sources are merged."""

    key: str
    value: Any = field(repr=False)
    """None if the file has no value for the key: then another source must set one."""
    where: Where
    final: bool = False
    """Whether the file forbids stronger sources to set another value."""
    source: Source = Source.FILE

    @cached_property
    def address(self) -> Address | Malformed | None:
        return parse_key(self.key)

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """Equal for two keys that set the same thing."""
        if not isinstance(self.address, Address):
            return (canonical(self.key),)
        identity = self.address.identity
        return tuple(map(folded, identity)) if is_variable(self.key) else identity

    @cached_property
    def bearer(self) -> tuple[str, ...]:
        return self.address.bearer if isinstance(self.address, Address) else self.identity

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The bearer as environment variables spell it: the index under which related keys are found."""
        return tuple(map(folded, self.bearer))

    @cached_property
    def way(self) -> tuple[str, ...]:
        return self.address.way if isinstance(self.address, Address) else ()

    def sets_the_same_as(self, other: "WrittenKey") -> bool:
        """Whether both set the same thing. Names in environment variables compare by their folded form."""
        return len(self.way) == len(other.way) and self.touches(other)

    def touches(self, other: "WrittenKey") -> bool:
        """Whether one sets the same as the other, or a part of it, or contains it, in any spelling."""
        length = min(len(self.way), len(other.way))
        if is_variable(self.key) or is_variable(other.key):
            one, two = (tuple(folded(step).replace("_", "") for step in key.way[:length]) for key in (self, other))
            return self.folded == other.folded and one == two
        return self.bearer == other.bearer and self.way[:length] == other.way[:length]


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


def regular_bytes(path: str | Path, most: int) -> bytes:
    """The content of a regular file, since a user's path may name an endless device, or a pipe without a writer.

    Raise `OSError` if it cannot be read, or has more than `most` bytes.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ValueError as refused:  # a NUL, or characters that the file system cannot encode
        raise OSError(errno.EINVAL, f"this is not a path: {refused}") from refused
    with os.fdopen(descriptor, "rb") as file:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is not a regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes")
    return data


def is_too_deep(value: Any) -> bool:
    """Whether a value nests lists and objects deeper than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST):
        level = [part for part in level if isinstance(part, dict | list)]
        level = [part for outer in level for part in (outer.values() if isinstance(outer, dict) else outer)]
    return any(isinstance(part, dict | list) for part in level)
