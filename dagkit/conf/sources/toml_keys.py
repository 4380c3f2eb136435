"""TOML as keys, values and lines: tables become dotted keys. The parser of Python reports no lines."""

import codecs
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from dagkit.api.configuration import Source
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import PREFIXES, SECTION_WORDS
from dagkit.conf.sources.user_files import TOO_DEEP, ParseError, is_too_deep, wrong_bytes
from dagkit.errors import Where


def read_toml(data: bytes, file: str = "", source: Source = Source.FILE) -> tuple[list[ParsedEntry], list[ParseError]]:
    """Read TOML. Tables become dotted keys; values keep their types."""
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise wrong_bytes(data, wrong) from wrong
    text = text.replace("\r\n", "\n")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as malformed:
        found = re.search(r"\(at line (\d+), column \d+\)", str(malformed))
        problem = str(malformed).partition(" (at ")[0]
        raise ParseError(
            f"it is not TOML: {problem[:1].lower()}{problem[1:]}",
            QUOTED if problem in _UNQUOTED else "fix the line",
            int(found[1]) if found else None,
        ) from malformed
    except RecursionError as malformed:
        raise ParseError(TOO_DEEP, "write a flatter value") from malformed
    except ValueError as malformed:  # Python refuses numbers of thousands of digits
        raise ParseError(f"a value cannot be read: {malformed}", "write it as text, or shorten it") from malformed
    if is_too_deep(tables):
        raise ParseError(TOO_DEEP, "write a flatter value")
    lines = toml_lines(text)
    flat = ((_dotted(parts), value, Where(file, _line(parts, lines))) for parts, value in _flat((), tables))
    return [ParsedEntry.of(*keyed, source) for keyed in flat], []


QUOTED = r"fix the line; put names with punctuation into single quotes, as in [dt.operator.'Tok\w*']"
_UNQUOTED = (
    "Invalid initial character for a key part",
    "Expected ']' at the end of a table declaration",
    "Expected '=' after a key in a key/value pair",
    "Unescaped '\\' in a string",
)
"""What the parser says of a name that should be in quotes, or in single quotes."""


def _flat(above: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for part, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _flat((*above, part), value)
        else:
            yield (*above, part), value


def _dotted(parts: tuple[str, ...]) -> str:
    """The parts as one key. A quoted part with dots continues the path, unless it is the key of a map."""
    key = parts[0]
    for part in parts[1:]:
        is_marked = key.endswith((".attr", ".prop")) or f"{key}." in PREFIXES
        is_path = "." not in part or is_marked or part.partition(".")[0] in (*SECTION_WORDS, "attr", "prop")
        key = f"{key}.{part}" if is_path else f"{key}({part})"
    return key


def _line(parts: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int | None:
    """The line of the key, or else of the innermost table around it that has one."""
    return next((lines[parts[:n]] for n in range(len(parts), 0, -1) if parts[:n] in lines), None)


# -- lines -------------------------------------------------------------------------------------------------------------

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
