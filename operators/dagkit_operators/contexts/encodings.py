"""Encodings of text files: which can be read in blocks, and how lines become UTF-8."""

import codecs
from dataclasses import dataclass

from dagkit.schema.columns import TEXT_ERRORS
from dagkit.urls import shown
from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.lines import filled
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.filesystem.bad_files import BadFile

UTF_8 = "utf-8"
_UNITS = {"utf-16": 2, "utf-16-le": 2, "utf-16-be": 2, "utf-32": 4, "utf-32-le": 4, "utf-32-be": 4}
"""Encodings of more than one byte for each unit, with the bytes of a unit."""
_MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
"""The byte order mark of each encoding that has one."""
_ASIAN = ("gbk", "gb18030", "gb2312", "big5", "big5hkscs", "cp950", "shift_jis", "cp932", "euc_jp", "euc_kr", "cp949")
"""Encodings whose characters have one or more bytes, and keep no state from one character to the next."""
_WITH_STATE = ("iso2022", "hz", "idna", "punycode", "unicode", "raw")
"""Encodings in which the meaning of a byte depends on those before it."""
MARKED = ("utf-16", "utf-32", "utf-8-sig")
"""Encodings of which a byte order mark is part."""
_LEAST_LATER_BYTE = 0x30
"""The least value of a byte within a character of these encodings: a delimiter of lower bytes is always itself."""


def text_undecodable(path: str, position: int, encoding: str, reason: str) -> BadFile:
    """A line has bytes that are no text in its encoding, and `undecodable` is `fail`."""
    return BadFile(
        f"{shown(path)}: the line at byte {position} is not {encoding}: {reason}",
        "set the encoding of the file, or undecodable to keep or reject",
        code="text-undecodable",
    )


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding, and the order of its bytes."""

    name: str

    @property
    def unit(self) -> int:
        """The bytes of a unit: characters and delimiters start at multiples of it."""
        return _UNITS.get(self.name, 1)

    @property
    def mark(self) -> bytes:
        """The byte order mark of a file in this encoding; empty if it has none."""
        return _MARKS.get(self.name, b"")

    def to_utf_8(self, chunk: Chunk) -> Chunk | None:
        """The same lines in UTF-8; None if two of them are equal in it. Positions begin with 0."""
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        text = self.decoded(chunk.data.tobytes())
        delimiter = chunk.delimiter.decode(self.name).encode()
        data = np.frombuffer(text.encode(UTF_8, TEXT_ERRORS), np.uint8)
        made = Chunk(data, 0, delimiter, escape=chunk.escape)
        return made if len(made) == len(chunk) else None

    def decoded(self, content: bytes) -> str:
        """Decode bytes. Undecodable ones become lone surrogates, and U+FFFD in an encoding of wider units."""
        return content.decode(self.name, TEXT_ERRORS if self.unit == 1 else "replace")

    def fault_in(self, line: bytes) -> str | None:
        """Why bytes are no text in this encoding; None if they are."""
        try:
            line.decode(self.name)
        except UnicodeDecodeError as fault:
            return f"byte {fault.start} of it, {line[fault.start]:#04x}: {fault.reason}"
        return None

    def is_text(self, content: bytes) -> bool:
        """Whether all of the bytes are text in this encoding."""
        return self.fault_in(content) is None


def foreign_mark_of(begin: bytes) -> str | None:
    """The encoding of whose byte order mark these bytes are the beginning of a file; None for UTF-8 and no mark.

    No text in UTF-8 begins with the mark of another encoding.
    """
    of_wide = sorted(_UNITS, key=_UNITS.__getitem__, reverse=True)  # a mark of UTF-32 begins with one of UTF-16
    return next((name for name in of_wide if name in _MARKS and begin.startswith(_MARKS[name])), None)


def encoding_of(name: str, delimiter: str) -> Encoding:
    """The encoding of a name. Raise ValueError if its files cannot be read in blocks, with lines of this delimiter."""
    try:
        codec = codecs.lookup(name)
        ends = delimiter.encode(name)
    except (LookupError, UnicodeError) as fault:
        raise ValueError(f"the encoding {name!r} cannot be used: {fault}") from None
    if codec.name == "utf-8-sig":
        return Encoding(UTF_8)
    if codec.name == UTF_8 or codec.name in _UNITS:
        return Encoding(codec.name)
    if codec.name in _ASIAN:
        if max(ends) >= _LEAST_LATER_BYTE:
            raise ValueError(f"the delimiter {delimiter!r} may be part of a character of {codec.name}")
        return Encoding(codec.name)
    if codec.name.startswith(_WITH_STATE) or len(bytes(range(256)).decode(name, "replace")) != 256:
        raise ValueError(f"the encoding {codec.name} cannot be read from the middle of a file")
    return Encoding(codec.name)


def in_order_of(encoding: Encoding, stream: Seekable) -> Encoding:
    """The encoding with the byte order of a file: that of its mark, or little-endian if it has none."""
    if encoding.name not in ("utf-16", "utf-32"):
        return encoding
    begin = memoryview(bytearray(encoding.unit))
    stream.seek(0)
    count = filled(stream, begin)
    big = Encoding(f"{encoding.name}-be")
    return big if bytes(begin[:count]) == big.mark else Encoding(f"{encoding.name}-le")
