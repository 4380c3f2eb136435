"""The line of each key in a TOML text, which the parser does not report."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]

_ENDINGS = ("]", "}", '"""', "'''")
"""A value of several lines ends on a line that contains one of these."""


def toml_lines(text: str) -> dict[Path, int]:
    """The line of every table and key; the first if there are several. The text must be valid TOML.

    A statement is the fewest lines that the parser accepts: it refuses an unfinished array or text.
    """
    # tomllib has no positions, and tomlkit keeps none. A value of 2000 lines that all hold a closing bracket is parsed
    # for each of them, which takes two seconds; a scanner of our own would be a second grammar of TOML.
    lines: dict[Path, int] = {}
    table: Path = ()
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), start=1):
        continues = bool(statement)
        first = first if continues else number
        statement += f"{line}\n"
        if continues and not any(ending in line for ending in _ENDINGS):
            continue
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if line.lstrip().startswith("[") and not continues:
            table = max(_paths(parsed), key=len)
            lines.setdefault(table, first)
        else:
            for path in _paths(parsed):
                lines.setdefault(table + path, first)
        statement = ""
    return lines


def _paths(parsed: Mapping[str, Any]) -> Iterator[Path]:
    """The keys of a statement, including those of tables inside it."""
    for key, value in parsed.items():
        yield (key,)
        if isinstance(value, Mapping):
            yield from ((key, *path) for path in _paths(value))
