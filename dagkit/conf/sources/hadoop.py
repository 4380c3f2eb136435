"""Hadoop's XML: `<configuration>` with `<property>` elements, or `<property>` elements alone."""

import codecs
import re
from collections.abc import Mapping
from xml.parsers.expat import ErrorString, ExpatError, ParserCreate

from dagkit.api.configuration import Source
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.sources.user_files import ParseError, wrong_bytes
from dagkit.errors import Where, did_you_mean

_PROLOG = re.compile(r"\s*(<\?xml.*?\?>)?(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_BARE = re.compile(r"<property[\s>/]")
_DECLARATION = re.compile(rb"\s*<\?xml(?:\s[^>]*?)?\sencoding\s*=\s*[\"']([\w.-]+)[\"']")
_ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "us-ascii",
    "ascii": "us-ascii",
    "iso-8859-1": "iso-8859-1",
    "latin-1": "iso-8859-1",
    "latin1": "iso-8859-1",
    "windows-1252": "windows-1252",
    "cp1252": "windows-1252",
}
"""The encodings that a file may declare. Python knows many more; some of them take quadratic time to decode."""
_FIELDS = ("name", "value", "final", "description", "source", "tag")


def read_hadoop(
    data: bytes, file: str = "", source: Source = Source.FILE
) -> tuple[list[ParsedEntry], list[ParseError]]:
    """The properties in an XML file. A list without `<configuration>` around it is accepted too."""
    text = _decoded(data)
    prolog = _PROLOG.match(text)
    assert prolog is not None, "every part of the prolog may be absent"
    if _BARE.match(text, prolog.end()):
        text = f"{text[: prolog.end()]}<configuration>{text[prolog.end() :]}</configuration>"
    reader = _Reader(file, source)
    try:
        # Decoded before, since a file can declare an encoding that takes quadratic time, such as punycode.
        reader.parser.Parse(text.encode(), True)
    except ExpatError as malformed:
        raise ParseError(
            f"it is not XML: {ErrorString(malformed.code)}", "fix the line", malformed.lineno
        ) from malformed
    return reader.entries, reader.errors


def _decoded(data: bytes) -> str:
    """The text, decoded by the encoding that the first bytes or the first line of the file declare."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _in_encoding(data, "utf-16")
    data = data.removeprefix(codecs.BOM_UTF8)
    declared = _DECLARATION.match(data)
    name = "utf-8" if declared is None else declared[1].decode("ascii")
    if name.lower() == "utf-16":
        raise ParseError("it declares UTF-16, but its first bytes are not UTF-16", "save it as UTF-8", 1)
    if name.lower() not in _ENCODINGS:
        known = "UTF-8, UTF-16, ISO-8859-1, windows-1252 and US-ASCII"
        problem = f"it declares the encoding {name!r}, but dagkit reads only {known}"
        raise ParseError(problem, 'save it as UTF-8 and declare encoding="UTF-8"', 1)
    return _in_encoding(data, _ENCODINGS[name.lower()])


def _in_encoding(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as wrong:
        if encoding == "utf-16":
            raise ParseError("it begins as UTF-16, but not all of it is UTF-16", "save it as UTF-8") from wrong
        help_ = "save the file as UTF-8, or declare its encoding in the first line"
        raise wrong_bytes(data, wrong, help_) from wrong


class _Reader:
    """Collects properties while the parser reads the file."""

    def __init__(self, file: str, source: Source) -> None:
        self.file, self.source = file, source
        # Whatever encoding the file declares: the parser gets text that is encoded as UTF-8.
        self.parser = ParserCreate(encoding="UTF-8")
        self.parser.StartDoctypeDeclHandler = self.refuse_doctype
        self.parser.StartElementHandler = self.start_element
        self.parser.EndElementHandler = self.end_element
        self.parser.CharacterDataHandler = self.characters
        self.entries: list[ParsedEntry] = []
        self.errors: list[ParseError] = []
        self.depth = 0
        self.fields: dict[str, str] = {}
        self.text: list[str] | None = None
        self.property_line = self.name_line = 0

    @property
    def line(self) -> int:
        return self.parser.CurrentLineNumber

    def refuse_doctype(self, *_: object) -> None:
        """Refuse a DOCTYPE: without one, a file cannot declare entities or refer to other files."""
        raise ParseError("it contains a DOCTYPE", "remove it, and replace entities by their text", self.line)

    def start_element(self, name: str, attributes: Mapping[str, str]) -> None:
        self.depth += 1
        if self.depth == 1 and name != "configuration":
            raise ParseError(f"its root is <{name}>", "put the properties into <configuration>", self.line)
        if self.depth == 2:
            self._open(name, attributes)
        elif self.depth == 3:
            self._begin(name)
        elif self.depth > 3:
            self.errors.append(ParseError(f"<{name}> is inside a field of a property", "write text there", self.line))

    def _open(self, name: str, attributes: Mapping[str, str]) -> None:
        if name != "property":
            self.errors.append(
                ParseError(f"<{name}> is not a property", did_you_mean(name, ["property"], "remove it"), self.line)
            )
        self.fields = {field: value for field, value in attributes.items() if field in _FIELDS}
        self.property_line = self.name_line = self.line

    def _begin(self, name: str) -> None:
        if name not in _FIELDS:
            self.errors.append(ParseError(f"a property has no <{name}>", did_you_mean(name, _FIELDS), self.line))
        elif name in self.fields:
            self.errors.append(ParseError(f"a property has a second <{name}>", "keep one of the two", self.line))
        self.name_line = self.line if name == "name" else self.name_line
        self.text = []

    def characters(self, content: str) -> None:
        if self.text is not None:
            self.text.append(content)
        elif content.strip():
            self.errors.append(
                ParseError(f"the text {content.strip()!r} is outside a property", "remove it", self.line)
            )

    def end_element(self, name: str) -> None:
        if self.depth == 3:
            self.fields[name] = "".join(self.text or ())
            self.text = None
        elif self.depth == 2 and name == "property":
            self._close()
        self.depth -= 1

    def _close(self) -> None:
        key = self.fields.get("name", "").strip()
        if not key:
            self.errors.append(ParseError("a property has no name", "give it a <name>", self.property_line))
            return
        value = _value(self.fields.get("value"))
        final = self.fields.get("final", "").strip().lower() == "true"
        self.entries.append(ParsedEntry.of(key, value, Where(self.file, self.name_line), self.source, final=final))


def _value(text: str | None) -> str | None:
    """The value without surrounding spaces. None if it is empty or blank lines; spaces alone are a value."""
    if text is None:
        return None
    return text.strip() or (text if text and "\n" not in text else None)
