"""Reading Avro container files, data block by data block.

A file is a header and data blocks; a marker of sixteen bytes, the file's own, stands behind the header and behind each
block. So a reader that begins anywhere finds the next block by the marker before it. A data block is claimed as one: it
belongs to the stretch in which it starts.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from dagkit import Batch, Block, OutputPort
from dagkit.schema.columns import Listed
from dagkit.urls import shown
from dagkit_operators.blocks import Record
from dagkit_operators.contexts import ReaderContext, Tracker, records_of
from dagkit_operators.lines import CHUNK_SIZE, Seekable
from dagkit_operators.reader import BlockReader
from dagkit_operators.seen import FileChanged

MARKER = 16
"""Bytes of the marker between data blocks."""


class AvroBroken(ValueError):
    """What stands at a place of a file is not what Avro puts there."""

    def __init__(self, path: str, place: int, reason: str) -> None:
        self.path = path
        self.place = place
        self.reason = reason
        what = f"the data block at byte {place} cannot be read" if place else "this is no Avro container file"
        super().__init__(f"{shown(path)}: {what}: {reason}")

    def __reduce__(self) -> tuple[type[Self], tuple[str, int, str]]:
        return type(self), (self.path, self.place, self.reason)


@dataclass(frozen=True, slots=True)
class DataBlocks(ReaderContext[Any]):
    """The records of data blocks, as Python values; what ends a block must be the file's marker, and is looked at."""

    chunk_size: int = CHUNK_SIZE

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[Any]]]:
        source = io.BufferedReader(_Raw(stream), self.chunk_size)
        reading, marker = _headed(source, block.path)
        first = source.tell()
        start = tracker.current_restriction().start
        place = first if start <= first else _found(source, marker, start, block.end)
        while place is not None and source.peek(1):
            if not tracker.try_claim(place):
                return
            records = _decoded(reading, block.path, place)
            if records:
                yield records_of(block, Listed(records))
            place = source.tell()
        tracker.try_claim(block.end)


def _headed(source: "io.BufferedReader[_Raw]", path: str) -> tuple[Iterator[Any], bytes]:
    """What reads the data block at which the source stands, which is the first one now, and the file's marker."""
    import fastavro  # noqa: PLC0415 - whoever reads no Avro does not load it

    try:
        reading = fastavro.block_reader(source)
    except FileChanged:
        raise
    except Exception as fault:
        raise AvroBroken(path, 0, _said(fault)) from fault
    first = source.tell()
    source.seek(first - MARKER)
    return reading, source.read(MARKER)


def _found(source: "io.BufferedReader[_Raw]", marker: bytes, start: int, stop: int) -> int | None:
    """Where the first data block starts that starts at `start` or behind it, and the source stands there.

    None where there is none before `stop`.
    """
    place = start - MARKER
    source.seek(place)
    kept = b""
    while place < stop:
        more = source.read1()
        if not more:
            return None
        content = kept + more
        found = content.find(marker)
        if found >= 0:
            return source.seek(place + found + MARKER)
        kept = content[1 - MARKER :]  # the marker may have begun
        place += len(content) - len(kept)
    return None


def _decoded(reading: Iterator[Any], path: str, place: int) -> list[Any]:
    """The records of the data block at which the source stands; the source stands behind it then."""
    try:
        data = next(reading)
        records = list(data)
    except FileChanged:
        raise
    except (StopIteration, IndexError):  # the library looks at bytes that are not there
        raise AvroBroken(path, place, "it ends too soon") from None
    except Exception as fault:
        raise AvroBroken(path, place, _said(fault)) from fault
    left = len(data.bytes_.read())
    if left:
        raise AvroBroken(path, place, f"{left} bytes are left behind its {len(records)} records")
    return records


def _said(fault: Exception) -> str:
    return str(fault) or type(fault).__name__


class _Raw(io.RawIOBase):
    """A stream as Python's own buffers want it."""

    def __init__(self, stream: Seekable) -> None:
        self._stream = stream
        self._place = stream.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        assert whence != io.SEEK_END, "nobody asks where a stretch of a file ends"
        self._place = self._stream.seek(offset + (self._place if whence == io.SEEK_CUR else 0))
        return self._place

    def readinto(self, buffer: Any, /) -> int:
        got = self._stream.readinto(memoryview(buffer).cast("B")) or 0
        self._place += got
        return got


class AvroReader(BlockReader[Any]):
    """Reads blocks of Avro container files, a record for each of their records.

    A block of the file is the least that is claimed: its records come together. The codec is what the file says.
    """

    kind = "files.avro-reader/1"
    messages = OutputPort[Record[Any]](main=True)

    def reader_context(self) -> DataBlocks:
        return DataBlocks(self.chunk_size)
