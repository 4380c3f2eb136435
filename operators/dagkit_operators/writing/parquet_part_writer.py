"""Writing records to Parquet files, which become visible with the window that wrote them."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote

from pydantic import Field, PositiveInt, PrivateAttr, field_validator, model_validator
from typing_extensions import TypeVar

from dagkit import Context, OutputFiles, OutputPort, State
from dagkit.ground.urls import name_fault
from dagkit_operators.writing.arrow_records import GathersRecords, schema_of
from dagkit_operators.writing.content import FolderPath
from dagkit_operators.writing.part_writer import check_part_names
from dagkit_operators.writing.rolled import FinishedPart

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
# A Parquet file ends with the positions of all its row groups, so a window that continues a file needs those of earlier
# windows. Rejected: keeping them as state, a hundred bytes for each column and row group in each checkpoint, in a
# format that Arrow cannot move. So each window with items makes a file; a longer STREAMING_WINDOW_SIZE_MILLIS makes
# fewer.
_MOST_OPEN = 256
"""How many files of different folders a partition writes at a time: each has row groups in memory."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Stands in the name of a folder for rows without a value."""


class ParquetPartWriter(GathersRecords[T]):
    """Writes records, or Arrow record batches and tables, to a sequence of Parquet files for each partition.

    A file is finished at the end of the window that began it, or before that when it reaches a limit. It is never
    continued in another window, since the end of a Parquet file describes all of its row groups. An empty file is never
    made. With `partition_by`, the files lie in folders such as `city=Rome/`, one for each value.
    """

    kind = "files.parquet-part-writer/1"
    holds_records = True
    checkpointable_within_app_window = False
    """False, because an unfinished file is no part of the state."""
    finished_parts = OutputPort(FinishedPart)
    files = OutputFiles(
        lambda writer: writer.file_path,
        of_blocks=False,
        examples=lambda writer: writer.example_names(),
        content=lambda _, piece: _as_lines(piece),
    )

    file_path: FolderPath = Field(default=..., kw_only=False)
    """The directory that the files are written to: a path or a URL."""
    file_name: str = "part-{partition:05}-{number:05}.parquet"
    """The pattern of file names, with the values that it may have in `PartWriter`."""
    partition_by: tuple[str, ...] = ()
    """The columns whose values name the folders of files, as Hive names them; files do not contain these columns."""
    max_count: PositiveInt | None = None
    """Records after which a file is finished; None: no limit."""
    max_length: PositiveInt | None = None
    """Bytes of a file after which it is finished: its last row group goes beyond them. None: no limit."""
    row_group_rows: PositiveInt = 1 << 16
    """The most records of a row group."""
    compression: Literal["none", "snappy", "gzip", "zstd"] = "zstd"
    """How the columns are compressed."""

    next_number = State(0)
    """The number of the next file of the partition."""

    _partition: int = PrivateAttr(default=0)
    _window: int = PrivateAttr(default=0)
    _parts: "dict[str, _OpenPart]" = PrivateAttr(default_factory=dict)
    """The unfinished files by their folders; the one that was written last is the last."""

    @field_validator("file_name")
    @classmethod
    def _distinguishes_parts(cls, pattern: str) -> str:
        return check_part_names(pattern)

    @model_validator(mode="after")
    def _has_the_columns_of_folders(self) -> Self:
        if self.record_type is not None:
            names = schema_of(self.record_type).names
            for name in self.partition_by:
                if name not in names:
                    raise ValueError(f"partition_by: records have no field {name}; they have {', '.join(names)}")
            if not set(names) - set(self.partition_by):
                raise ValueError("partition_by names all fields, so that files would have no column")
        return self

    def example_names(self) -> Sequence[str]:
        """Examples of the names of files, with which the compiler checks that no input reads them."""
        folders = "".join(f"{quote(name, safe='')}=0/" for name in self.partition_by)
        return (folders + self.file_name.format(partition=0, number=0, window=1),)

    def setup(self, context: Context) -> None:
        self._partition = context.partition

    def begin_window(self, window_id: int) -> None:
        self._window = window_id

    def end_window(self) -> None:
        self._arrow.flush()
        for folder in list(self._parts):
            self._end_part(folder)

    def _rows_together(self) -> int:
        return self.row_group_rows

    def _take_table(self, table: "pa.Table") -> None:
        for folder, rows in _by_folder(table, self.partition_by):
            self._add_to(folder, rows)

    def _add_to(self, folder: str, table: "pa.Table") -> None:
        """Add a table to as many row groups and files of a folder as it needs."""
        while table.num_rows:
            part = self._part_in(folder, table.schema)
            room = self.row_group_rows - part.pending_rows
            if self.max_count is not None:
                room = min(room, self.max_count - part.count)
            taken, table = table.slice(0, room), table.slice(room)
            part.add(taken)
            if taken.num_rows == room:
                part.end_row_group()
                is_long = self.max_length is not None and part.length > self.max_length
                if is_long or part.count == self.max_count:
                    self._end_part(folder)

    def _part_in(self, folder: str, schema: "pa.Schema") -> "_OpenPart":
        """The file in a folder that takes rows with these columns."""
        # Taken out and put in again below: the first one of `_parts` is the one that was not written to for longest.
        part = self._parts.pop(folder, None)
        if part is not None and part.schema != schema:
            self._finish(part)
            part = None
        if part is None:
            if len(self._parts) >= _MOST_OPEN:
                self._end_part(next(iter(self._parts)))
            name = folder + self.file_name.format(
                partition=self._partition, number=self.next_number, window=self._window
            )
            self.next_number += 1
            part = _OpenPart(name, self.files.open(name), schema, self.compression, self.row_group_rows)
        self._parts[folder] = part
        return part

    def _end_part(self, folder: str) -> None:
        self._finish(self._parts.pop(folder))

    def _finish(self, part: "_OpenPart") -> None:
        part.close()
        self.files.finish(part.name)
        self.finished_parts.emit(FinishedPart(part.name, part.length, part.count))


def _as_lines(piece: bytes) -> bytes:
    """Return the rows of a file, each as a line of JSON: the bytes of a file depend on which rows are in it."""
    import pyarrow as pa  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - as above

    batches = pa_parquet.ParquetFile(pa.BufferReader(piece)).iter_batches()
    rows = (row for batch in batches for row in batch.to_pylist())
    return "".join(f"{json.dumps(row, ensure_ascii=False, default=str)}\n" for row in rows).encode()


def _by_folder(table: "pa.Table", columns: Sequence[str]) -> "Iterator[tuple[str, pa.Table]]":
    """The rows of a table by their folders, without the columns that name these."""
    import numpy as np  # noqa: PLC0415 - not loaded when only compiling
    import pyarrow.compute as pa_compute  # noqa: PLC0415 - as above

    if not columns:
        yield "", table
        return
    for name in columns:
        if name not in table.column_names:
            raise ValueError(f"rows have no column {name}, which is in partition_by; they have {table.column_names}")
    labels = pa_compute.binary_join_element_wise(*(_labels(name, table.column(name)) for name in columns), "/")
    encoded = labels.dictionary_encode()
    codes = encoded.indices.to_numpy()
    # Stable, so that the rows of a folder keep their order.
    rows = table.drop_columns(list(columns)).take(np.argsort(codes, kind="stable"))
    start = 0
    for folder, count in zip(encoded.dictionary.to_pylist(), np.bincount(codes).tolist(), strict=True):
        yield f"{folder}/", rows.slice(start, count)
        start += count


def _labels(name: str, values: "pa.ChunkedArray") -> "pa.Array":
    """The folder of each value of a column, such as `city=Rome`."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    encoded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    texts = encoded.dictionary.cast(pa.string()).to_pylist()
    if unfit := [text for text in texts if text in ("", _NO_VALUE)]:
        raise ValueError(f"the value {unfit[0]!r} of {name} cannot be part of the name of a folder")
    labels = [f"{quote(name, safe='')}={_NO_VALUE if text is None else quote(text, safe='')}" for text in texts]
    if long := next((text for text, label in zip(texts, labels, strict=True) if name_fault(label)), None):
        raise ValueError(f"the value {long[:80]!r}… of {name} is too long for the name of a folder")
    return pa.array(labels, pa.string()).take(encoded.indices)


class _OpenPart:
    """A Parquet file that is written."""

    def __init__(self, name: str, file: Any, schema: "pa.Schema", compression: str, row_group_rows: int) -> None:
        import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - as above

        self.name = name
        self.schema = schema
        self.count = 0
        """Records that were added."""
        self.pending_rows = 0
        """Records of the next row group."""
        self._pending: list[pa.Table] = []
        self._row_group_rows = row_group_rows
        self._sink = _Sink(file)
        self._writer = pa_parquet.ParquetWriter(self._sink, schema, compression=compression)

    @property
    def length(self) -> int:
        """Bytes that were written."""
        return self._sink.length

    def add(self, table: "pa.Table") -> None:
        """Add rows to the next row group, which has room for them."""
        self._pending.append(table)
        self.pending_rows += table.num_rows
        self.count += table.num_rows

    def end_row_group(self) -> None:
        """Write the rows that were added."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending), row_group_size=self._row_group_rows)
            self._pending, self.pending_rows = [], 0

    def close(self) -> None:
        """Write the rest, and the end of the file, which describes its row groups."""
        self.end_row_group()
        self._writer.close()


class _Sink:
    """The methods of a file that Arrow calls."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.length = 0

    def write(self, content: bytes) -> int:
        self._file.write(content)
        self.length += len(content)
        return len(content)

    def tell(self) -> int:
        return self.length

    def flush(self) -> None:
        """Do nothing: the engine flushes the file."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False
