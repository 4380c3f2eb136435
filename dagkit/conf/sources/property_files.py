"""Reading property files: keys, values and lines, from Hadoop XML, `.properties` and TOML."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import javaproperties

from dagkit.api.configuration import Source
from dagkit.api.traces import shown_path
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.sources.hadoop import read_hadoop
from dagkit.conf.sources.toml_keys import read_toml
from dagkit.conf.sources.user_files import ParseError, regular_bytes
from dagkit.errors import Diagnostic, Where

LARGEST = 1 << 26
"""The greatest size of a property file in bytes."""

CHECK_THE_PATH = "check the path; relative paths start at the working directory"


def read_file(
    path: Path, instead: str = CHECK_THE_PATH, source: Source = Source.FILE
) -> tuple[list[ParsedEntry], list[Diagnostic]]:
    """The keys of a file, in its order, and the faults in it. `instead` is the help if the file is missing."""
    shown = shown_path(str(path))
    try:
        entries, errors = _read(path, shown, source, instead)
    except ParseError as error:
        return [], [error.diagnostic(shown, "file-unreadable")]
    return entries, [error.diagnostic(shown, "key-malformed") for error in errors]


def _read(path: Path, shown: str, source: Source, instead: str) -> tuple[list[ParsedEntry], list[ParseError]]:
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise ParseError("its name does not end in .xml, .properties or .toml", "give it the ending of its format")
    try:
        return read(regular_bytes(path, LARGEST), shown, source)
    except FileNotFoundError:
        raise ParseError("there is no such file", instead) from None
    except OSError as refused:
        help_ = "check its kind and its permissions"
        raise ParseError(f"it cannot be opened: {refused.strerror}", help_) from refused


# -- .properties -----------------------------------------------------------------------------------------------------


def read_properties(
    data: bytes, file: str = "", source: Source = Source.FILE
) -> tuple[list[ParsedEntry], list[ParseError]]:
    """Read Java's format. Decode as UTF-8 if the text is valid UTF-8, or else as ISO-8859-1, like Java."""
    # ISO-8859-1 accepts all bytes, so UTF-16 would become text with other keys.
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ParseError("it is encoded in UTF-16", "save it as UTF-8, or in ISO-8859-1 with \\uXXXX escapes", 1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    if (nul := text.find("\0")) >= 0:
        raise ParseError("it contains a NUL byte, so it is not text", "save it as UTF-8", text.count("\n", 0, nul) + 1)
    return list(_pairs(text, file, source)), []


def _pairs(text: str, file: str, source: Source) -> Iterator[ParsedEntry]:
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
            # `key=` sets an empty text; `key` alone leaves the value to another source.
            valued = element.value or _SEPARATOR.search(element.source.strip())
            yield ParsedEntry.of(element.key, element.value if valued else None, Where(file, line), source)
        # The parser reports no line numbers, but the text of each element.
        line += len(_NEWLINE.findall(element.source))


_NEWLINE = re.compile(r"\r\n|\r|\n")
_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*[=:]")


Reader = Callable[[bytes, str, Source], tuple[list[ParsedEntry], list[ParseError]]]
_READERS: Mapping[str, Reader] = {".xml": read_hadoop, ".properties": read_properties, ".toml": read_toml}
ENDINGS = tuple(_READERS)
