"""Reading Avro container files, data block by data block.

A file consists of a header and data blocks. A marker of sixteen bytes, which differs from file to file, follows the
header and each block. A reader that begins anywhere finds the next block by the marker before it. A data block is
claimed as a whole; it belongs to the range in which it starts.
"""

import io
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Generic

from pydantic import PositiveInt

from dagkit import Block, Listed
from dagkit_operators.compression.codec import CompressionBroken
from dagkit_operators.contexts.lines import CHUNK_SIZE
from dagkit_operators.contexts.reader_context import Broken, Tracker
from dagkit_operators.filesystem.access import Seekable, StreamFile
from dagkit_operators.filesystem.snapshot import FileChanged
from dagkit_operators.formats.selection import names_in, selected
from dagkit_operators.formats.tabular import NUMBER, ColumnsMismatched, Made, RecordsReader, TabularContext, V, dropped
from dagkit_operators.payloads import Rejected
from dagkit_operators.values.record_types import checked_maker_of

_MAGIC = b"Obj\x01"
"""The beginning of a container file: its last byte is the version of the format, of which there is one."""
MARKER = 16
"""Bytes of the marker between data blocks."""


class AvroBroken(Broken):
    """The bytes at a position of a file are not valid Avro."""

    code = "avro-broken"
    usual_help = (
        "bring back an undamaged copy that is exactly as long; otherwise connect the output `rejected` to continue "
        "without what cannot be read"
    )

    def __init__(self, path: str, place: int, reason: str) -> None:
        what = f"the data block at byte {place} cannot be read" if place else "this is no Avro container file"
        super().__init__(path, place, what, reason)


class AvroReaderContext(TabularContext):
    """Reads the records of data blocks. Checks that the file's marker ends each block.

    Without a `record_type`, `columns` and `where`, an Avro value of any type is a record. A data block that cannot be
    decoded is rejected; reading continues after the next marker.
    """

    shows_its_end: ClassVar[bool] = True

    chunk_size: PositiveInt = CHUNK_SIZE
    """Bytes that are read at a time."""

    def is_cut_off(self, stream: Seekable, block: Block) -> bool:
        """Whether the file ends within its header or within a data block. The content of data blocks is not read."""
        source = io.BufferedReader(StreamFile(stream), self.chunk_size)
        try:
            _, marker = _read_header(source, block.path)
        except AvroBroken:
            # A broken header with more bytes behind it is damaged, and not cut off.
            return not source.peek(1)
        if block.start > source.tell() and _seek_block(source, marker, block.start, block.end) is None:
            return False
        ended = marker
        while ended == marker and source.peek(1):
            _read_number(source)  # how many records
            source.seek(_read_number(source), io.SEEK_CUR)
            ended = source.read(MARKER)
        # The file ends within a marker, or without one. Other bytes there are damage.
        return ended != marker and marker.startswith(ended)

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Made]:
        source = io.BufferedReader(StreamFile(stream), self.chunk_size)
        try:
            reading, marker, names = self._open_blocks(source, block.path)
        except AvroBroken as fault:
            yield fault
            tracker.try_claim(block.end)
            return
        first = source.tell()
        start = tracker.current_restriction().start
        place = first if start <= first else _seek_block(source, marker, start, block.end)
        while place is not None and source.peek(1):
            if not tracker.try_claim(place):
                return
            try:
                records = _decode(reading, block.path, place)
            except AvroBroken as fault:
                yield fault
                reading = self._open_blocks(source, block.path)[0]  # a reader ends with its first error
                # The search begins a marker before this position, so with the block that is broken.
                place = _seek_block(source, marker, place + MARKER, block.end)
                continue
            if self.selects:
                yield from self._select(records, block, place)
                ignored = self.ignored_columns(len(records), names)
                if ignored is not None:
                    yield ignored
            elif records:
                yield self.records(block, Listed(records, lambda: None, place))
            place = source.tell()
        tracker.try_claim(block.end)

    @property
    def is_typed(self) -> bool:
        """Whether records have a type: fastavro makes values of Python, which have none of Arrow."""
        return bool(self.fields)

    @property
    def selects(self) -> bool:
        """Whether records have a type, or columns or rows are selected."""
        return bool(self.wanted) or self.where is not None

    def _open_blocks(
        self, source: "io.BufferedReader[StreamFile]", path: str
    ) -> tuple[Iterator[Any], bytes, Sequence[str]]:
        """A reader of data blocks, of the needed columns only, the file's marker, and the columns of the file."""
        reading, marker = _read_header(source, path)
        if not self.selects:
            return reading, marker, ()
        projected, names = self._project(source, reading, path)
        return projected, marker, names

    def _project(
        self, source: "io.BufferedReader[StreamFile]", reading: Any, path: str
    ) -> tuple[Iterator[Any], Sequence[str]]:
        """A reader of data blocks that decodes only the columns that are needed, and the columns of the file.

        The source stays where it is.
        """
        import fastavro  # noqa: PLC0415 - loaded only when Avro is read
        from fastavro.schema import UnknownType  # noqa: PLC0415

        schema = reading.writer_schema
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ColumnsMismatched(path, "its values are no records, so they have no columns")
        names = [field["name"] for field in schema["fields"]]
        needed = self.needed(names, path)
        projection = {**schema, "fields": [field for field in schema["fields"] if field["name"] in needed]}
        projection.pop("__fastavro_parsed__", None)  # with this mark, fastavro would not parse the schema again
        place = source.tell()
        source.seek(0)
        try:
            return iter(fastavro.block_reader(source, fastavro.parse_schema(projection))), names
        except UnknownType:
            # A column that is left out defines a type that another one names. Then all columns are decoded.
            return iter(reading), names
        finally:
            source.seek(place)

    def _select(self, rows: list[Any], block: Block, place: int) -> Iterator[Made]:
        """The records of rows that `where` keeps, with their type; each one that its type refuses as rejected."""
        passing = rows if self.where is None else self._passing(rows)
        yield from dropped(len(rows) - len(passing))
        names = self.wanted
        values = [{name: row.get(name) for name in names} if names else row for row in passing]
        records = []
        for row, (record, reason) in zip(values, checked_maker_of(self.record_type).checked(values), strict=True):
            if reason is None:
                records.append(record)
            else:
                yield Rejected(block.path, place, repr(row), reason)
        if records:
            yield self.records(block, Listed(records, lambda: None, place))

    def _passing(self, rows: list[Any]) -> list[Any]:
        import numpy as np  # noqa: PLC0415 - not loaded when only compiling
        import pyarrow as pa  # noqa: PLC0415

        names = {name for name in names_in(self.where) if name}
        tested = [{name: row[name] for name in names} for row in rows] if names else rows
        batch = pa.RecordBatch.from_pylist(tested)
        numbered = batch.append_column(NUMBER, pa.array(np.arange(len(rows))))
        return [rows[index] for index in selected(self.where, numbered).column(NUMBER).to_pylist()]


def _read_header(source: "io.BufferedReader[StreamFile]", path: str) -> tuple[Iterator[Any], bytes]:
    """Return a reader of data blocks, positioned at the first one, and the file's marker.

    The reader decodes the data block at the source's current position.
    """
    import fastavro  # noqa: PLC0415 - loaded only when Avro is read

    source.seek(0)
    begun = source.read(len(_MAGIC))
    # fastavro does not compare these bytes, and would decode a later version of the format as this one.
    if begun != _MAGIC[: len(begun)]:
        raise AvroBroken(path, 0, f"it begins with {begun!r} instead of {_MAGIC!r}")
    source.seek(0)
    try:
        reading = fastavro.block_reader(source)
    except (FileChanged, CompressionBroken):
        raise
    except Exception as fault:  # fastavro raises errors of many types for damaged bytes
        raise AvroBroken(path, 0, _message(fault)) from fault
    first = source.tell()
    source.seek(first - MARKER)
    return reading, source.read(MARKER)


def _seek_block(source: "io.BufferedReader[StreamFile]", marker: bytes, start: int, stop: int) -> int | None:
    """Seek the first data block that starts at or after `start`, and return its position.

    Return None if no marker is found before `stop`.
    """
    place = start - MARKER
    source.seek(place)
    rest = b""
    while place < stop:
        more = source.read1()
        if not more:
            return None
        content = rest + more
        found = content.find(marker)
        if found >= 0:
            return source.seek(place + found + MARKER)
        rest = content[1 - MARKER :]  # these bytes may be the beginning of a marker
        place += len(content) - len(rest)
    return None


def _read_number(source: "io.BufferedReader[StreamFile]") -> int:
    """Read a number as Avro writes it: seven bits in a byte, the lowest ones first, and the sign in the last bit."""
    number = shift = 0
    while got := source.read(1):
        number |= (got[0] & 0x7F) << shift
        shift += 7
        if got[0] < 0x80:
            break
    return (number >> 1) ^ -(number & 1)


def _decode(reading: Iterator[Any], path: str, place: int) -> list[Any]:
    """Decode the data block at the source's position. The source is positioned after the block then."""
    try:
        data = next(reading)
        records = list(data)
    except (FileChanged, CompressionBroken):
        raise
    except (StopIteration, IndexError):  # fastavro raises these if bytes are missing
        raise AvroBroken(path, place, "it ends too soon") from None
    except Exception as fault:
        raise AvroBroken(path, place, _message(fault)) from fault
    rest = len(data.bytes_.read())
    if rest:
        raise AvroBroken(path, place, f"{rest} bytes are left behind its {len(records)} records")
    return records


def _message(fault: Exception) -> str:
    return str(fault) or type(fault).__name__


class AvroReader(RecordsReader[V], Generic[V]):
    """Reads blocks of Avro container files, and sends each Avro record as a record.

    A data block of the file is claimed as a whole, so its records come together. The file's header names the codec.
    """

    kind = "files.avro-reader/1"

    reader_context: AvroReaderContext = AvroReaderContext()
    """How data blocks are read."""
