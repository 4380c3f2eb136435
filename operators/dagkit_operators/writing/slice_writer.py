"""Writing copies of files from slices that several readers read, and the stretches of them that are written."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field, PrivateAttr

from dagkit import Batch, InputPort, Operator, OutputFiles, OutputPort
from dagkit.ground.urls import shown
from dagkit_operators.filesystem.access import opened, reading_from
from dagkit_operators.filesystem.snapshot import FileChanged
from dagkit_operators.payloads import VALUE, FileSlice, Record
from dagkit_operators.writing.content import FolderPath

_POLYNOMIAL = 0xEDB88320
"""Of CRC-32, with its bits reversed."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The bytes from `start` to `end` of a file."""

    key: str
    """The file, as `FileSlice.key` names it."""
    start: int
    end: int
    checksum: int | None = None
    """Their CRC-32; None if it was not computed."""


def joined_with(stretches: Sequence[Stretch], more: Stretch) -> tuple[Stretch, ...]:
    """Return sorted stretches of one file with another one; those that touch are joined. None of them overlap."""
    place = bisect_left(stretches, more.start, key=lambda stretch: stretch.start)
    before, after = list(stretches[:place]), list(stretches[place:])
    if before and before[-1].end == more.start:
        more = _joined(before.pop(), more)
    if after and after[0].start == more.end:
        more = _joined(more, after.pop(0))
    return (*before, more, *after)


def _joined(first: Stretch, second: Stretch) -> Stretch:
    checksum = None
    if first.checksum is not None and second.checksum is not None:
        checksum = crc32_of_both(first.checksum, second.checksum, second.end - second.start)
    return Stretch(first.key, first.start, second.end, checksum)


def crc32_of_both(first: int, second: int, length: int) -> int:
    """Return the CRC-32 of two texts in succession from theirs, and the length of the second.

    Zero bytes after a text multiply its checksum with a power of x, modulo the polynomial.
    """
    power = _power_of_x(8 * length)
    return _product(power, first) ^ second


def _power_of_x(exponent: int) -> int:
    # 1 and x: the highest bit is the lowest power.
    power, square = 1 << 31, 1 << 30
    while exponent:
        if exponent & 1:
            power = _product(square, power)
        square = _product(square, square)
        exponent >>= 1
    return power


def _product(one: int, other: int) -> int:
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = (other >> 1) ^ (_POLYNOMIAL if other & 1 else 0)
    return product


try:
    from isal.isal_zlib import crc32
except ImportError:
    # Workers need not have isal. zlib gives the same numbers, ten times slower.
    from zlib import crc32


CHUNK = 128 << 10
"""Bytes that are read, checksummed and written at a time: they stay in the processor's cache meanwhile. Longer writes
take longer where memory is scarce or scattered, since the system looks for that much of it in one place."""


class FSSliceWriter(Operator):
    """Writes slices to their places in copies of their files, and reports which bytes it wrote.

    The copies are invisible until a `FileMerger` names them. Any number of writers write one file, in any order. They
    need an APPLICATION_PATH that is a mounted folder; on another disk than the target, a copy is copied once more.
    """

    kind = "files.slice-writer/1"
    stateless = True
    checkpointable_within_app_window = False
    """False, because the stretches that are not reported yet are no part of the state."""
    input = InputPort[Record[FileSlice]]()
    written = OutputPort(Stretch)
    files = OutputFiles(lambda writer: writer.file_path, of_blocks=False)

    file_path: FolderPath = Field(default=..., kw_only=False)
    """The directory in which the copies are to become visible: a path or a URL."""
    checksums: bool = True
    """Whether to compute the CRC-32 of each file."""

    _written: list[Stretch] = PrivateAttr(default_factory=list)
    _buffer: memoryview | None = PrivateAttr(default=None)

    def process(self, record: Record[FileSlice]) -> None:
        self._write(record.value)

    def process_batch(self, batch: Batch[Record[FileSlice]]) -> None:
        for part in batch.column(VALUE).values():
            self._write(part)

    def end_window(self) -> None:
        for stretch in self._written:
            self.written.emit(stretch)
        self._written.clear()

    def _write(self, part: FileSlice) -> None:
        start, end = part.start, part.start + (part.length if part.path else len(part.content))
        # Slices that follow each other are one stretch, whose checksum continues: to join two checksums takes longer.
        last = self._written[-1] if self._written else None
        before = last if last is not None and (last.key, last.end) == (part.key, start) else None
        checksum = (0 if before is None else before.checksum) if self.checksums else None
        if not part.path:
            self.files.write_at(part.key, start, part.content)
            checksum = None if checksum is None else crc32(part.content, checksum)
        elif checksum is None:
            _refuse_short(part, self.files.copy_at(part.key, start, part.path, part.length))
        else:
            checksum = self._copy(part, checksum)
        if before is None:
            self._written.append(Stretch(part.key, start, end, checksum))
        else:
            self._written[-1] = Stretch(part.key, before.start, end, checksum)

    def _copy(self, part: FileSlice, checksum: int) -> int:
        """Copy the bytes that a slice names, by way of this process. Return their checksum, after a given one."""
        if self._buffer is None:
            # Made for the first such slice, and used for all: to clear a buffer for each takes time.
            self._buffer = memoryview(bytearray(CHUNK))
        done = 0
        with reading_from(part.path), opened(part.path) as source:
            source.seek(part.start)
            while done < part.length:
                count = source.readinto(self._buffer[: part.length - done])
                if not count:
                    break
                content = self._buffer[:count]
                checksum = crc32(content, checksum)
                self.files.write_at(part.key, part.start + done, content)
                done += count
        _refuse_short(part, done)
        return checksum


def _refuse_short(part: FileSlice, length: int) -> None:
    """Raise FileChanged if a file has fewer bytes than the slice names."""
    if length < part.length:
        raise FileChanged(
            f"{shown(part.path)} ends at byte {part.start + length}, and was longer when it was split",
            "bring its content back, and do not cut files before they are copied",
        )
