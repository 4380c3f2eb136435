"""Reading Parquet, row group by row group. A row group belongs to the range in which its first byte lies."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from pydantic import PositiveInt

from dagkit import Block
from dagkit.errors import RunFailure
from dagkit.ranges import OFFSET_INFINITY
from dagkit_operators.contexts.reader_context import Broken, Tracker
from dagkit_operators.filesystem.access import Seekable, StreamFile, filled
from dagkit_operators.formats.selection import arrow_of, is_shown_by_statistics
from dagkit_operators.formats.tabular import ColumnsMismatched, Made, Places, RecordsReader, TabularContext, V, dropped
from dagkit_operators.values.record_types import reason_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pa_parquet

MAGIC = b"PAR1"
"""The first and the last bytes of a Parquet file."""
MAGIC_ENCRYPTED = b"PARE"
"""The last bytes of a file with an encrypted footer."""
WHOLE = 8 << 20
"""Bytes that are read at a time of a stream whose length is unknown."""


class ParquetBroken(Broken):
    """A file is no Parquet file, or a row group of it cannot be read."""

    code = "parquet-broken"
    usual_help = "bring back an undamaged copy of the file, or read it as what it is"

    def __init__(self, path: str, place: int, reason: str) -> None:
        what = f"the row group at byte {place} cannot be read" if place else "this is no Parquet file"
        super().__init__(path, place, what, reason)


class ParquetContext(TabularContext):
    """Reads Parquet. A row group is claimed as a whole, and read in batches.

    Only the wanted columns are read, and no row group whose statistics show that `where` holds for none of its rows. A
    row group that cannot be read is rejected; reading continues with the next one.
    """

    shows_its_end: ClassVar[bool] = True

    batch_rows: PositiveInt = 64 << 10
    """The most rows of a batch."""

    def is_cut_off(self, stream: Seekable, block: Block) -> bool:
        """Whether the file does not end as a Parquet file: without its end, no block of it can be read."""
        # All positions are in the footer at the end. So a file that is still being written has no readable part.
        length = int((block.facts or {})["length"])
        end = bytearray(min(length, len(MAGIC)))
        stream.seek(length - len(end))
        return filled(stream, memoryview(end)) < len(MAGIC) or bytes(end) not in (MAGIC, MAGIC_ENCRYPTED)

    def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Made]:
        import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - not loaded when only compiling

        try:
            with _broken(block.path):
                source = _file(stream, block)
                file = pa_parquet.ParquetFile(source, pre_buffer=True)
        except ParquetBroken as fault:
            yield fault
            tracker.try_claim(block.end)
            return
        names = self._checked_names(file.schema_arrow, block.path)
        wanted = self._wanted_groups(source, file)
        begin = tracker.current_restriction().start
        for number in range(file.num_row_groups):
            with _broken(block.path):
                start = start_of(file.metadata.row_group(number))
            if begin <= start < block.end:
                if not tracker.try_claim(start):
                    return
                try:
                    if number in wanted:
                        yield from self._rows(file, number, start, names, block)
                    else:
                        yield from dropped(file.metadata.row_group(number).num_rows)
                except ParquetBroken as fault:
                    yield fault
        tracker.try_claim(block.end)

    def record_end(self, stream: Seekable, block: Block, start: int, stop: int) -> int:  # noqa: ARG002 - as its base
        """Return the end of a row group. Other parts of the file may follow it."""
        import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - not loaded when only compiling

        metadata = pa_parquet.ParquetFile(_file(stream, block)).metadata
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        return max(end_of(group) for group in groups if start_of(group) == start)

    def _rows(
        self, file: "pa_parquet.ParquetFile", number: int, start: int, names: list[str], block: Block
    ) -> Iterator[Made]:
        """The records of a row group, and the columns of it that are not read."""
        reading = file.iter_batches(self.batch_rows, [number], names, use_threads=False)
        while True:
            with _broken(block.path, start):
                batch = next(reading, None)
            if batch is None:
                break
            yield from self.made(block, self._typed(batch, block.path), Places(lambda: None, start=start))
        ignored = self.ignored_columns(file.metadata.row_group(number).num_rows, file.schema_arrow.names)
        if ignored is not None:
            yield ignored

    def _wanted_groups(self, source: Any, file: "pa_parquet.ParquetFile") -> set[int]:
        """The row groups that may have rows for which `where` holds, by their statistics."""
        where = None if self.where is None else arrow_of(self.where, file.schema_arrow)
        if where is None or not is_shown_by_statistics(self.where, file.schema_arrow):
            return set(range(file.num_row_groups))
        import pyarrow.dataset as pa_dataset  # noqa: PLC0415 - not loaded when only compiling

        # pyarrow compares a condition with statistics only for a dataset.
        fragment = pa_dataset.ParquetFileFormat().make_fragment(source)
        return {group.id for group in fragment.subset(where, schema=file.schema_arrow).row_groups}

    def _checked_names(self, schema: "pa.Schema", path: str) -> list[str]:
        """The columns to read. Raise ColumnsMismatched if one is missing or has a type that does not fit."""
        names = self.needed(schema.names, path)
        for name, kind in self.declared().items():
            if name in names and kind is not None and not _fits(schema.field(name).type, kind):
                found = schema.field(name).type
                raise ColumnsMismatched(path, f"its column {name!r} has the type {found}, and {kind} is wanted")
        return names

    def _typed(self, batch: "pa.RecordBatch", path: str) -> "pa.RecordBatch":
        """The rows with the declared types."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        for name, kind in self.declared().items():
            index = batch.schema.get_field_index(name)
            if index >= 0 and kind is not None and batch.schema.field(index).type != kind:
                try:
                    batch = batch.set_column(index, name, batch.column(index).cast(kind))
                except pa.ArrowException as fault:
                    raise ColumnsMismatched(path, f"its column {name!r}: {reason_of(fault)}") from None
        return batch


def _fits(found: "pa.DataType", wanted: "pa.DataType") -> bool:
    """Whether values of a type in a file may be read as another type. The cast raises an error if it loses digits."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    kinds = (
        (pa.types.is_integer, pa.types.is_integer),
        (lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind), pa.types.is_floating),
        (lambda kind: pa.types.is_integer(kind) or pa.types.is_decimal(kind), pa.types.is_decimal),
        (_is_text, _is_text),
        (_is_bytes, _is_bytes),
        (pa.types.is_timestamp, pa.types.is_timestamp),
        (pa.types.is_date, pa.types.is_date),
        (pa.types.is_nested, pa.types.is_nested),
    )
    return (
        found == wanted or pa.types.is_null(found) or any(is_from(found) and is_to(wanted) for is_from, is_to in kinds)
    )


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - as above

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - as above

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def start_of(group: "pa_parquet.RowGroupMetaData") -> int:
    """The first byte of a row group."""
    # A row group without bytes is taken to begin behind the magic of the file, so that one block has it.
    return min((start for start, _ in _columns(group)), default=4)


def end_of(group: "pa_parquet.RowGroupMetaData") -> int:
    """The end of the last byte of a row group."""
    return max((end for _, end in _columns(group)), default=4)


def _columns(group: "pa_parquet.RowGroupMetaData") -> Iterator[tuple[int, int]]:
    """The start and the end of each column of a row group that has bytes."""
    for column in map(group.column, range(group.num_columns)):
        places = [place for place in (column.dictionary_page_offset, column.data_page_offset) if place]
        if places:
            yield min(places), min(places) + column.total_compressed_size


@contextmanager
def _broken(path: str, place: int = 0) -> Iterator[None]:
    """Raise ParquetBroken for each error of Arrow; errors of the stream pass."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        yield
    except pa.ArrowException as fault:
        raise ParquetBroken(path, place, reason_of(fault)) from fault
    except OSError as fault:
        if isinstance(fault, RunFailure) or fault.errno is not None:
            raise
        # Arrow raises an OSError for damaged pages, which has no number of an error of the system.
        raise ParquetBroken(path, place, reason_of(fault)) from fault


def _file(stream: Seekable, block: Block) -> Any:
    """The stream as a file for Arrow, which begins with the end of a file: content of unknown length is kept whole."""
    length = (block.facts or {}).get("length")
    if length is not None and block.end != OFFSET_INFINITY:
        return StreamFile(stream, int(length))
    content, buffer = io.BytesIO(), memoryview(bytearray(WHOLE))
    stream.seek(0)
    while count := filled(stream, buffer):
        content.write(buffer[:count])
    return content


class ParquetReader(RecordsReader[V], Generic[V]):
    """Reads blocks of Parquet files, and sends a record for each row. A row group comes from one block."""

    kind = "files.parquet-reader/1"

    reader_context: ParquetContext = ParquetContext()
    """How rows become records."""
