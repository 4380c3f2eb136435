"""Reading property files: keys, values and lines, from Hadoop XML, `.properties` and TOML."""

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
"""The greatest size of a property file in bytes."""

CHECK_THE_PATH = "check the path; relative paths start at the working directory"


@dataclass(frozen=True, slots=True)
class PropertyFile:
    """The keys of a file, in its order, and the faults in it."""

    shown: str
    written: tuple[WrittenKey, ...] = ()
    faults: tuple[Diagnostic, ...] = ()


def read_file(path: Path, instead: str = CHECK_THE_PATH) -> PropertyFile:
    """The keys of a file. If it cannot be read: no keys and one fault, with the help `instead` if it is missing."""
    shown = shown_path(str(path))
    read = _READERS.get(path.suffix.lower())
    if read is None:
        return _unreadable(
            shown, ParseError("its name does not end in .xml, .properties or .toml", "give it the ending of its format")
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
        written, errors = read(data)
    except ParseError as error:
        return _unreadable(shown, error)
    located = (WrittenKey(w.key, w.value, Where(shown, w.where.line), w.final) for w in written)
    return PropertyFile(shown, tuple(located), tuple(error.diagnostic(shown, "key-malformed") for error in errors))


def _unreadable(shown: str, error: ParseError) -> PropertyFile:
    return PropertyFile(shown, (), (error.diagnostic(shown, "file-unreadable"),))


# -- .properties -----------------------------------------------------------------------------------------------------


def read_properties(data: bytes) -> tuple[list[WrittenKey], list[ParseError]]:
    """Read Java's format. Decode as UTF-8 if the text is valid UTF-8, or else as ISO-8859-1, like Java."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ParseError("it is encoded in UTF-16", "save it as UTF-8, or in ISO-8859-1 with \\uXXXX escapes", 1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    if (nul := text.find("\0")) >= 0:
        raise ParseError("it contains a NUL byte, so it is not text", "save it as UTF-8", text.count("\n", 0, nul) + 1)
    return list(_pairs(text)), []


def _pairs(text: str) -> Iterator[WrittenKey]:
    line = 1
    elements = javaproperties.parse(text)
    while True:
        try:
            element = next(elements, None)
        except javaproperties.InvalidUEscapeError as malformed:
            raise ParseError(
                f"{malformed.escape!r} is not an escape", "write \\u and four hexadecimal digits", line
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
    return [WrittenKey(_dotted(parts), value, Where("", _line(parts, lines))) for parts, value in _flat((), tables)], []


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


Reader = Callable[[bytes], tuple[list[WrittenKey], list[ParseError]]]
_READERS: Mapping[str, Reader] = {".xml": read_hadoop, ".properties": read_properties, ".toml": read_toml}
ENDINGS = tuple(_READERS)
