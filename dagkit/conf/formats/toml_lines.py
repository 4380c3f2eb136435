"""On which line each key of a TOML text stands, which its parser does not tell."""

import re
import tomllib
from bisect import bisect_left

_SKIPPED = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_KEY_PART = re.compile(r"""[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*(\.?)""")
_LONG_STRING = re.compile(r"\"\"\"(?:[^\\]|\\.)*?\"{3,5}(?!\")|'''.*?'{3,5}(?!')", re.DOTALL)
_SHORT_STRING = re.compile(r"""\"(?:[^"\\\n]|\\.)*\"|'[^'\n]*'""")
_PLAIN = re.compile(r"[^\"'\[\]{}#\n,]+")

Path = tuple[str, ...]


def line_of_offset(text: str, offset: int) -> int:
    """The line, counted from one, that holds this offset."""
    return text.count("\n", 0, offset) + 1


class Lines:
    """A text whose lines are asked for again and again, so that its ends of line are found once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def line_of(self, offset: int) -> int:
        """The line, counted from one, that holds this offset."""
        return bisect_left(self._ends, offset) + 1


def toml_lines(text: str) -> dict[Path, int]:
    """The line of every table and key, the first where there are several. The text is known to be TOML."""
    lines: dict[Path, int] = {}
    table: Path = ()
    position, line, counted = _after_blanks(text, 0), 1, 0
    while position < len(text):
        line, counted = line + text.count("\n", counted, position), position
        if text[position] == "[":
            start = position + (2 if text.startswith("[[", position) else 1)
            table, position = _key(text, start)
            lines.setdefault(table, line)
            position = text.index("]", position) + (start - counted)
        else:
            key, position = _key(text, position)
            lines.setdefault(table + key, line)
            position = _after_value(text, position + 1)
        position = _after_blanks(text, position)
    return lines


def _after_blanks(text: str, position: int) -> int:
    found = _SKIPPED.match(text, position)
    return found.end() if found else position


def _key(text: str, position: int) -> tuple[Path, int]:
    """The parts of a dotted key, and where it ends: at its `=`, or the bracket of its table."""
    parts: list[str] = []
    while found := _KEY_PART.match(text, position):
        parts.append(_unquoted(found[1]))
        position = found.end()
        if not found[2]:
            break
    return tuple(parts), position


def _unquoted(part: str) -> str:
    if part[0] not in "\"'":
        return part
    return str(tomllib.loads(f"key = {part}")["key"])


def _after_value(text: str, position: int) -> int:
    """Where the value that begins here ends."""
    depth = 0
    while position < len(text):
        sign = text[position]
        if sign == "\n" and depth == 0:
            return position
        if sign == "#":
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif sign in "\"'":
            found = _LONG_STRING.match(text, position) or _SHORT_STRING.match(text, position)
            assert found is not None, "the text was parsed before, so every string ends"
            position = found.end()
        elif sign in "[]{},\n":
            depth += (sign in "[{") - (sign in "]}")
            position += 1
        else:
            found = _PLAIN.match(text, position)
            assert found is not None, "every other sign is one of a plain value"
            position = found.end()
    return position
