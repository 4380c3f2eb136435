"""Property files as they are written: keys, values and true lines, from Hadoop XML, `.properties` and TOML."""

import codecs
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import javaproperties

from dagkit.api.traces import shown_path
from dagkit.conf.formats.hadoop import read_hadoop
from dagkit.conf.formats.nesting import TOO_DEEP, is_too_deep
from dagkit.conf.formats.regular_files import regular_bytes
from dagkit.conf.formats.toml_lines import toml_lines
from dagkit.conf.formats.written import ParseError, WrittenKey, wrong_bytes
from dagkit.conf.grammar.property_keys import PREFIXES, SECTION_WORDS
from dagkit.errors import Diagnostic, Where

LARGEST = 1 << 26
"""Bytes that a property file may hold."""


@dataclass(frozen=True, slots=True)
class PropertyFile:
    """What a file holds, in its own order, and what in it could not be read."""

    shown: str
    written: tuple[WrittenKey, ...] = ()
    faults: tuple[Diagnostic, ...] = ()


def read_file(path: Path, instead: str = "check the path; it is taken from the working directory") -> PropertyFile:
    """What the file holds; a file that cannot be read holds nothing and has a fault that says why, and what instead."""
    shown = shown_path(str(path))
    read = _READERS.get(path.suffix.lower())
    if read is None:
        return _unreadable(
            shown, ParseError("it is none of .xml, .properties and .toml", "give it the ending of its format")
        )
    try:
        data = regular_bytes(path, LARGEST)
    except FileNotFoundError:
        return _unreadable(shown, ParseError("there is no such file", instead))
    except OSError as refused:
        return _unreadable(
            shown, ParseError(f"it cannot be opened: {refused.strerror}", "check its kind and its permissions")
        )
    try:
        written, slips = read(data)
    except ParseError as slip:
        return _unreadable(shown, slip)
    located = (WrittenKey(w.key, w.value, Where(shown, w.where.line), w.final) for w in written)
    return PropertyFile(shown, tuple(located), tuple(slip.told_of(shown, "key-malformed") for slip in slips))


def _unreadable(shown: str, slip: ParseError) -> PropertyFile:
    return PropertyFile(shown, (), (slip.told_of(shown, "file-unreadable"),))


# -- .properties -----------------------------------------------------------------------------------------------------


def read_properties(data: bytes) -> tuple[list[WrittenKey], list[ParseError]]:
    """Java's format. Text that is UTF-8 is read as that, other text as Java does, in ISO-8859-1."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ParseError("it is written in UTF-16", "save it as UTF-8, or in ISO-8859-1 with \\uXXXX escapes", 1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    if (nul := text.find("\0")) >= 0:
        raise ParseError("it holds a NUL byte, so it is no text", "save it as UTF-8", text.count("\n", 0, nul) + 1)
    return list(_pairs(text)), []


def _pairs(text: str) -> Iterator[WrittenKey]:
    line = 1
    elements = javaproperties.parse(text)
    while True:
        try:
            element = next(elements, None)
        except javaproperties.InvalidUEscapeError as malformed:
            raise ParseError(
                f"{malformed.escape!r} is no escape", "write \\u and four hexadecimal digits", line
            ) from malformed
        if element is None:
            return
        if isinstance(element, javaproperties.KeyValue):
            valued = element.value or _SEPARATOR.search(element.source.strip())
            yield WrittenKey(element.key, element.value if valued else None, Where("", line))
        line += len(_NEWLINE.findall(element.source))


_NEWLINE = re.compile(r"\r\n|\r|\n")
_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*[=:]")


# -- TOML ------------------------------------------------------------------------------------------------------------


def read_toml(data: bytes) -> tuple[list[WrittenKey], list[ParseError]]:
    """Tables become dotted keys, and values keep their types."""
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
            f"it is no TOML: {problem[:1].lower()}{problem[1:]}", "mend the line", int(found[1]) if found else None
        ) from malformed
    except RecursionError as malformed:
        raise ParseError(TOO_DEEP, "write a flatter value") from malformed
    except ValueError as malformed:  # of Python's own, for a number of thousands of digits
        raise ParseError(f"a value cannot be read: {malformed}", "write it as a text, or shorter") from malformed
    if is_too_deep(tables):
        raise ParseError(TOO_DEEP, "write a flatter value")
    lines = toml_lines(text)
    return [WrittenKey(_dotted(parts), value, Where("", _line(parts, lines))) for parts, value in _flat((), tables)], []


def _flat(above: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for part, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _flat((*above, part), value)
        else:
            yield (*above, part), value


def _dotted(parts: tuple[str, ...]) -> str:
    """The parts as one key. A quoted part with dots goes on with the path, unless it is the key of a map."""
    key = parts[0]
    for part in parts[1:]:
        is_marked = key.endswith((".attr", ".prop")) or f"{key}." in PREFIXES
        is_path = "." not in part or is_marked or part.partition(".")[0] in (*SECTION_WORDS, "attr", "prop")
        key = f"{key}.{part}" if is_path else f"{key}({part})"
    return key


def _line(parts: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int | None:
    """The line of the key, or of the nearest table around it that has one."""
    return next((lines[parts[:n]] for n in range(len(parts), 0, -1) if parts[:n] in lines), None)


Reader = Callable[[bytes], tuple[list[WrittenKey], list[ParseError]]]
_READERS: Mapping[str, Reader] = {".xml": read_hadoop, ".properties": read_properties, ".toml": read_toml}
ENDINGS = tuple(_READERS)
