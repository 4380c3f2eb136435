"""Hadoop's XML: `<configuration>` with `<property>` elements, or these alone."""

import codecs
import re
from typing import Any
from xml.sax import SAXException, SAXParseException, handler

from defusedxml.common import DefusedXmlException, DTDForbidden, EntitiesForbidden, ExternalReferenceForbidden
from defusedxml.sax import parseString

from dagkit.conf.formats.written import ParseError, WrittenKey, wrong_bytes
from dagkit.errors import Where, did_you_mean

_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?\s*(<\?xml.*?\?>)?(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_BARE = re.compile(rb"<property[\s>/]")
_ENCODING = re.compile(rb"""encoding\s*=\s*["']([\w.-]+)["']""")
_FIELDS = ("name", "value", "final", "description", "source", "tag")


def read_hadoop(data: bytes) -> tuple[list[WrittenKey], list[ParseError]]:
    """The properties that an XML file holds; a bare list of them is read like one inside `<configuration>`."""
    data = _as_utf_8(data)
    prolog = _PROLOG.match(data)
    assert prolog is not None, "every part of the prolog may be absent"
    _refuse_wrong_bytes(data, prolog[1])
    if _BARE.match(data, prolog.end()):
        data = data[: prolog.end()] + b"<configuration>" + data[prolog.end() :] + b"</configuration>"
    reader = _Reader()
    try:
        parseString(data, reader, handler.ErrorHandler())
    except DefusedXmlException as refused:
        raise ParseError(*_refusal(refused), reader.line) from refused
    except SAXParseException as malformed:
        raise ParseError(
            f"it is no XML: {malformed.getMessage()}", "mend the line", malformed.getLineNumber()
        ) from malformed
    except (SAXException, LookupError, ValueError) as malformed:
        raise ParseError(
            f"it is no XML: {malformed}", "save it as UTF-8, and say so in the first line", 1
        ) from malformed
    return reader.written, reader.slips


def _as_utf_8(data: bytes) -> bytes:
    """The same text in UTF-8, where its first bytes say that it is UTF-16."""
    if data[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return data
    try:
        text = data.decode("utf-16").encode("utf-8")
    except UnicodeError as wrong:
        raise ParseError("it begins as UTF-16 and does not go on so", "save it as UTF-8") from wrong
    declaration, end, rest = text.partition(b"?>")
    return (_ENCODING.sub(b'encoding="UTF-8"', declaration, count=1) + end + rest) if end else text


def _refuse_wrong_bytes(data: bytes, declaration: bytes | None) -> None:
    """Say which byte is wrong; the XML parser would only say that something is."""
    declared = _ENCODING.search(declaration or b"")
    encoding = declared[1].decode("ascii") if declared else "utf-8"
    try:
        data.decode(encoding)
    except LookupError as unknown:
        raise ParseError(
            f"there is no encoding {encoding!r}", 'save it as UTF-8 and declare encoding="UTF-8"', 1
        ) from unknown
    except UnicodeDecodeError as wrong:
        help_ = "save the file as UTF-8, or declare its encoding in the first line"
        raise wrong_bytes(data, wrong, help_) from wrong
    except (UnicodeError, OverflowError) as wrong:
        raise ParseError(f"it is not {encoding!r}", 'save it as UTF-8 and declare encoding="UTF-8"', 1) from wrong


def _refusal(refused: DefusedXmlException) -> tuple[str, str]:
    if isinstance(refused, EntitiesForbidden):
        return f"it declares the entity {refused.name!r}, which could unfold without end", "write the text out"
    if isinstance(refused, ExternalReferenceForbidden):
        return "it refers to another file", "write the properties into this one"
    assert isinstance(refused, DTDForbidden), "there is no fourth refusal"
    return "it holds a DTD", "remove the DOCTYPE"


class _Reader(handler.ContentHandler):
    """Gathers properties while the parser walks through the file."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[WrittenKey] = []
        self.slips: list[ParseError] = []
        self.depth = 0
        self.fields: dict[str, str] = {}
        self.text: list[str] | None = None
        self.property_line = self.name_line = 0

    @property
    def line(self) -> int:
        return int(self._locator.getLineNumber())

    def setDocumentLocator(self, locator: Any) -> None:  # noqa: N802 - SAX calls it so
        self._locator = locator

    def startElement(self, name: str, attributes: Any) -> None:  # noqa: N802 - SAX calls it so
        self.depth += 1
        if self.depth == 1 and name != "configuration":
            raise ParseError(f"its root is <{name}>", "put the properties into <configuration>", self.line)
        if self.depth == 2:
            self._open(name, attributes)
        elif self.depth == 3:
            self._begin(name)
        elif self.depth > 3:
            self.slips.append(
                ParseError(f"<{name}> stands inside a field of a property", "write text there", self.line)
            )

    def _open(self, name: str, attributes: Any) -> None:
        if name != "property":
            self.slips.append(
                ParseError(f"<{name}> is not a property", did_you_mean(name, ["property"], "remove it"), self.line)
            )
        self.fields = {field: attributes[field] for field in attributes.getNames() if field in _FIELDS}
        self.property_line = self.name_line = self.line

    def _begin(self, name: str) -> None:
        if name not in _FIELDS:
            self.slips.append(ParseError(f"a property has no <{name}>", did_you_mean(name, _FIELDS), self.line))
        elif name in self.fields:
            self.slips.append(ParseError(f"a property has a second <{name}>", "keep one of the two", self.line))
        self.name_line = self.line if name == "name" else self.name_line
        self.text = []

    def characters(self, content: str) -> None:
        if self.text is not None:
            self.text.append(content)
        elif content.strip():
            self.slips.append(
                ParseError(f"the text {content.strip()!r} stands outside a property", "remove it", self.line)
            )

    def endElement(self, name: str) -> None:  # noqa: N802 - SAX calls it so
        if self.depth == 3:
            self.fields[name] = "".join(self.text or ())
            self.text = None
        elif self.depth == 2 and name == "property":
            self._close()
        self.depth -= 1

    def _close(self) -> None:
        key = self.fields.get("name", "").strip()
        if not key:
            self.slips.append(ParseError("a property has no name", "give it a <name>", self.property_line))
            return
        value = _value(self.fields.get("value"))
        final = self.fields.get("final", "").strip().lower() == "true"
        self.written.append(WrittenKey(key, value, Where("", self.name_line), final))


def _value(text: str | None) -> str | None:
    """The value without the blanks around it. Nothing, or blank lines, is no value; blanks alone are one."""
    if text is None:
        return None
    return text.strip() or (text if text and "\n" not in text else None)
