"""On which line each key of a TOML text stands, which its parser does not say."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]

_ENDINGS = ("]", "}", '"""', "'''")
"""A value of several lines ends on a line that holds one of these."""


def toml_lines(text: str) -> dict[Path, int]:
    """The line of every table and key, the first where there are several. The text is known to be TOML.

    A statement is the fewest lines that the parser accepts: an array or a text that goes on is not accepted before it
    ends.
    """
    lines: dict[Path, int] = {}
    table: Path = ()
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), start=1):
        goes_on = bool(statement)
        first = first if goes_on else number
        statement += f"{line}\n"
        if goes_on and not any(ending in line for ending in _ENDINGS):
            continue
        try:
            said = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        if line.lstrip().startswith("[") and not goes_on:
            table = max(_paths(said), key=len)
            lines.setdefault(table, first)
        else:
            for path in _paths(said):
                lines.setdefault(table + path, first)
        statement = ""
    return lines


def _paths(said: Mapping[str, Any]) -> Iterator[Path]:
    """The keys of a statement, those of tables inside it included."""
    for key, value in said.items():
        yield (key,)
        if isinstance(value, Mapping):
            yield from ((key, *path) for path in _paths(value))
