"""The values of lines, in UTF-8: over the bytes that were read, or, where they differ from these, over a copy."""

from collections.abc import Iterator
from functools import partial
from typing import Literal, Protocol

from dagkit import Batch, Block, Column, Listed
from dagkit_operators.contexts.chunk import Chunk
from dagkit_operators.contexts.encodings import MARKED, UTF_8, Encoding, foreign_mark_of, text_undecodable
from dagkit_operators.contexts.line_columns import (
    CopiedLines,
    ReadLines,
    bare_lines,
    line_of,
    starts_of,
    texts,
    with_end,
    without_mark,
    without_returns,
)
from dagkit_operators.contexts.reader_context import binary_array, records_of
from dagkit_operators.contexts.scanned_lines import collapsed
from dagkit_operators.payloads import Record, Rejected


class TextForm(Protocol):
    """The properties of lines on which their values depend: see `TextContext`."""

    @property
    def encoding(self) -> str: ...
    @property
    def escape(self) -> str: ...
    @property
    def keep_returns(self) -> bool: ...
    @property
    def collapse_line_ends(self) -> bool: ...
    @property
    def skip_byte_order_mark(self) -> bool: ...
    @property
    def undecodable(self) -> Literal["keep", "reject", "fail"]: ...


class LineTexts:
    """Makes batches of the lines of a block: values in UTF-8, and what is rejected because it is no text."""

    def __init__(self, form: TextForm, encoding: Encoding, block: Block) -> None:
        self._form = form
        self._encoding = encoding
        self._block = block
        changes = form.escape or form.collapse_line_ends or not form.keep_returns or encoding.name != UTF_8
        self._is_as_read = not changes
        self._keeps = form.undecodable == "keep" and encoding.unit == 1  # wider units have no place for other bytes
        self._skips_mark = form.skip_byte_order_mark or form.encoding.replace("_", "-").lower() in MARKED

    def of(self, chunk: Chunk) -> Iterator[Batch[Record[str]] | Rejected]:
        """The lines of a chunk. Raise `text-undecodable` if the file begins with the mark of another encoding."""
        mark = self._encoding.mark
        if chunk.base == 0 and self._skips_mark and chunk.data[: len(mark) + 1].tobytes() == mark:
            return  # the file has nothing else, so it has no line
        if chunk.base == 0 and self._encoding.name == UTF_8:
            self._check_mark(chunk.data[:4].tobytes())
        if not self._keeps and not self._encoding.is_text(chunk.data.tobytes()):
            yield from self._checked(chunk)
        else:
            yield records_of(self._block, self._column(chunk))

    def _check_mark(self, begin: bytes) -> None:
        """Raise text-undecodable for a mark of UTF-16 or UTF-32: ASCII text in these would pass as lines with NULs."""
        name = foreign_mark_of(begin)
        if name is not None:
            reason = f"it begins with the byte order mark of {name.removesuffix('-le').removesuffix('-be')}"
            raise text_undecodable(self._block.path, 0, UTF_8, reason)

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
            # values may hold escaped delimiters, so a column of bytes would be split wrongly downstream
            return Listed(texts(bare), starts)
        bare = bare if bare.is_ended else with_end(bare)
        return CopiedLines(binary_array(bare.data, bare.offsets), bare.delimiter, chunk)

    def _checked(self, chunk: Chunk) -> Iterator[Batch[Record[str]] | Rejected]:
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
