"""Files of users: reading their bytes, faults in their text, and how deep their values may nest."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

from dagkit.errors import Code, Diagnostic, Where

DEEPEST = 100
"""The greatest depth of lists and objects in a value."""

TOO_DEEP = f"it nests lists and objects deeper than {DEEPEST}"


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
