"""Encodings of text files: which can be read in blocks, and how lines become UTF-8."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from dagkit import Batch, Block, Column, Lines, Listed
from dagkit.ground.urls import shown
from dagkit.schema.columns import TEXT_ERRORS
from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.line_columns import (
    ReadLines,
    bare_lines,
    line_of,
    starts_of,
    texts,
    with_end,
    without_mark,
    without_returns,
)
from dagkit_operators.contexts.lines import LineForm
from dagkit_operators.contexts.reader_context import binary_array, records_of
from dagkit_operators.contexts.scanned_lines import collapsed
from dagkit_operators.filesystem.access import BadFile, Seekable, filled
from dagkit_operators.payloads import Record, Rejected

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
"""Encodings that include a byte order mark."""
LOOKED_AT = 1 << 10
"""Bytes at the beginning of a file that may show that it is text of wider units."""
LEAST_UNITS = 4
"""The least units that show it."""
MOSTLY = 0.75
"""The part of the characters of such text that have 8 bits."""
_LEAST_LATER_BYTE = 0x30
"""The least value of a byte within a character of these encodings: a delimiter of lower bytes is always itself."""


def text_undecodable(path: str, position: int, encoding: str, reason: str, likely: str = "") -> BadFile:
    """A line is no text in its encoding, and `undecodable` is `fail`; or its file seems to have another encoding."""
    help_ = "set the encoding of the file, or undecodable to keep or reject"
    if likely:
        help_ = f'set encoding="{likely}", or "latin-1" if each byte is a character'
    return BadFile(
        f"{shown(path)}: the line at byte {position} is not {encoding}: {reason}", help_, code="text-undecodable"
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
    def order(self) -> Literal["big", "little"]:
        """The order of the bytes of a unit."""
        return "big" if self.name.endswith("-be") else "little"

    @property
    def mark(self) -> bytes:
        """The byte order mark of a file in this encoding; empty if it has none."""
        return _MARKS.get(self.name, b"")

    def to_utf_8(self, chunk: Chunk) -> Chunk | None:
        """The same lines in UTF-8; None if it has another number of them. Positions begin with 0.

        Several bytes may be the character of the delimiter, and only one ends lines: Mac Arabic has two vertical bars.
        """
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling

        text = self.decoded(chunk.data.tobytes())
        delimiter = chunk.delimiter.decode(self.name).encode()
        data = np.frombuffer(text.encode(UTF_8, TEXT_ERRORS), np.uint8)
        recoded = Chunk(data, 0, delimiter, escape=chunk.escape)
        return recoded if len(recoded) == len(chunk) else None

    def decoded(self, content: bytes) -> str:
        """Decode bytes. Undecodable ones become lone surrogates, and U+FFFD in an encoding of wider units."""
        return content.decode(self.name, TEXT_ERRORS if self.unit == 1 else "replace")

    def escaped(self, content: bytes) -> str:
        """Decode bytes for people. Undecodable ones become escapes, and a byte order mark is left out."""
        return content.removeprefix(self.mark).decode(self.name, "backslashreplace")

    def fault_in(self, line: bytes) -> str | None:
        """Why bytes are no text in this encoding; None if they are."""
        try:
            line.decode(self.name)
        except UnicodeDecodeError as fault:
            return f"byte {fault.start} of it, {line[fault.start]:#04x}: {fault.reason}"
        return None


def foreign_mark_of(begin: bytes) -> str | None:
    """The encoding whose byte order mark a file begins with; None for UTF-8 and no mark.

    No text in UTF-8 begins with the mark of another encoding.
    """
    # The wider units first: the mark of UTF-32 begins with that of UTF-16.
    of_wide = sorted(_UNITS, key=_UNITS.__getitem__, reverse=True)
    return next((name for name in of_wide if name in _MARKS and begin.startswith(_MARKS[name])), None)


def unmarked_of(begin: bytes) -> str | None:
    """The encoding of a file that begins with text in UTF-16 or UTF-32 without a mark; None for other bytes.

    Such text has characters of 8 bits for the most part, so the other bytes of its units are NUL, and its newlines are
    whole units. Text of other scripts looks like text in an 8-bit encoding, and is not recognised.
    """
    for name, unit in _UNITS.items():
        encoding = Encoding(name)
        count = len(begin) // unit
        units = begin[: count * unit]
        if name not in _MARKS or count < LEAST_UNITS or units.count(0) < count * (unit - 1) * MOSTLY:
            continue
        text = encoding.decoded(units)
        narrow = sum("\0" < character < "\u0100" for character in text)
        if narrow < len(text) * MOSTLY or units.count(b"\n") != text.count("\n"):
            continue
        if all(character.isprintable() or character in "\t\r\n\f" for character in text):
            return name
    return None


def check_wide_text(path: str, begin: bytes) -> None:
    """Raise text-undecodable if a file that is read as UTF-8 begins with text in UTF-16 or UTF-32.

    ASCII text in these would pass as lines with NULs.
    """
    marked, unmarked = foreign_mark_of(begin), unmarked_of(begin)
    if marked is not None:
        # Without the order of bytes, which the mark shows: such an encoding skips the mark.
        name = marked.removesuffix("-le").removesuffix("-be")
        raise text_undecodable(path, 0, UTF_8, f"it begins with the byte order mark of {name}", name)
    if unmarked is not None:
        reason = f"it seems to be text in {unmarked} without a byte order mark"
        raise text_undecodable(path, 0, UTF_8, reason, unmarked)


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
    # These keep no state, and a byte of a delimiter cannot be within a character, so that reading may begin anywhere.
    if codec.name in _ASIAN:
        if max(ends) >= _LEAST_LATER_BYTE:
            raise ValueError(f"the delimiter {delimiter!r} may be part of a character of {codec.name}")
        return Encoding(codec.name)
    # Of all others, only those of one byte for each character.
    if codec.name.startswith(_WITH_STATE) or len(bytes(range(256)).decode(name, "replace")) != 256:
        raise ValueError(f"the encoding {codec.name} cannot be read from the middle of a file")
    return Encoding(codec.name)


def in_order_of(encoding: Encoding, stream: Seekable) -> Encoding:
    """The encoding with the byte order of a file: that of its mark, or little-endian if it has none."""
    if encoding.name not in ("utf-16", "utf-32"):
        return encoding
    big = Encoding(f"{encoding.name}-be")
    return big if begin_of(stream, encoding.unit) == big.mark else Encoding(f"{encoding.name}-le")


def begin_of(stream: Seekable, count: int = LOOKED_AT) -> bytes:
    """The first bytes of a stream."""
    begin = memoryview(bytearray(count))
    stream.seek(0)
    return bytes(begin[: filled(stream, begin)])


class LineTexts:
    """Makes batches of the lines of a block, in UTF-8. Lines that are no text in their encoding are rejected."""

    def __init__(self, form: LineForm, encoding: Encoding, block: Block) -> None:
        self._form = form
        self._encoding = encoding
        self._block = block
        changes = form.escape or form.collapse_line_ends or not form.keep_returns or encoding.name != UTF_8
        self._is_as_read = not changes
        self._keeps = form.undecodable == "keep" and encoding.unit == 1  # wider units have no place for other bytes
        self._skips_mark = form.skip_byte_order_mark or codecs.lookup(form.encoding).name in MARKED

    def of(self, chunk: Chunk) -> Iterator[Batch[Record[str]] | Rejected]:
        """The lines of a chunk."""
        mark = self._encoding.mark
        if chunk.base == 0 and self._skips_mark and chunk.data[: len(mark) + 1].tobytes() == mark:
            return  # the file has nothing else, so it has no line
        if not self._keeps and self._encoding.fault_in(chunk.data.tobytes()) is not None:
            yield from self._check_each(chunk)
        else:
            yield records_of(self._block, self._column(chunk))

    def _column(self, chunk: Chunk) -> Column:
        """The values of lines: over the bytes that were read, or, where they differ from these, over a copy."""
        mark = self._encoding.mark if self._skips_mark and chunk.base == 0 else b""
        if mark and chunk.data[: len(mark)].tobytes() == mark:
            return self._copied(chunk, without_mark(chunk, mark))
        return ReadLines(chunk) if self._is_as_read else self._copied(chunk, chunk)

    def _copied(self, chunk: Chunk, bare: Chunk) -> Column:
        """The values of lines as a copy, with the positions of the chunk that was read."""
        form, starts = self._form, partial(starts_of, chunk)
        if form.collapse_line_ends:
            bare = collapsed(bare)
        if self._encoding.name != UTF_8:
            recoded = self._encoding.to_utf_8(bare)
            if recoded is None:
                return Listed([self._encoding.decoded(line) for line in bare_lines(bare)], starts)
            bare = recoded
        if not form.keep_returns:
            bare = without_returns(bare)
        if form.escape:
            # Values may hold escaped delimiters, so a column of bytes would be split wrongly downstream.
            return Listed(texts(bare), starts)
        bare = bare if bare.is_ended else with_end(bare)
        return Lines(binary_array(bare.data, bare.offsets), bare.delimiter, starts=starts)

    def _check_each(self, chunk: Chunk) -> Iterator[Batch[Record[str]] | Rejected]:
        """The lines of a chunk one by one, since some of them are no text."""
        values: list[str] = []
        starts: list[int] = []
        for index, line in enumerate(bare_lines(chunk)):
            fault = self._encoding.fault_in(line)
            start = chunk[index]
            if fault is None:
                values += self._column(line_of(chunk, index)).values()
                starts.append(start)
            elif self._form.undecodable == "fail":
                raise text_undecodable(self._block.path, start, self._encoding.name, fault)
            else:
                reason = f"it is not {self._encoding.name}: {fault}"
                yield Rejected(self._block.path, start, self._encoding.decoded(line), reason)
        yield records_of(self._block, Listed(values, starts.copy))
