"""Writing records to Parquet files, which become visible with the window that wrote them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal

from pydantic import Field, PositiveInt, PrivateAttr, field_validator
from typing_extensions import TypeVar

from dagkit import Batch, Context, InputPort, Operator, OutputFiles, OutputPort, State
from dagkit_operators.writing.arrow_records import ArrowRecords, check_columns
from dagkit_operators.writing.content import FolderPath
from dagkit_operators.writing.part_writer import check_part_names
from dagkit_operators.writing.rolled import FinishedPart

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)


class ParquetPartWriter(Operator, Generic[T]):
    """Writes records, or Arrow record batches and tables, to a sequence of Parquet files for each partition.

    A file is finished at the end of the window that began it, or before that when it reaches a limit. It is never
    continued in another window, since the end of a Parquet file describes all of its row groups. An empty file is never
    made.
    """

    kind = "files.parquet-part-writer/1"
    checkpointable_within_app_window = False
    """False, because an unfinished file is no part of the state."""
    input = InputPort[T]()
    finished_parts = OutputPort(FinishedPart)
    files = OutputFiles(
        lambda writer: writer.file_path, of_blocks=False, examples=lambda writer: writer.example_names()
    )

    file_path: FolderPath = Field(default=...)
    """The directory that the files are written to: a path or a URL."""
    file_name: str = "part-{partition:05}-{number:05}.parquet"
    """The pattern of file names, with the values that it may have in `PartWriter`."""
    record_type: type | None = None
    """A dataclass, pydantic model, TypedDict or NamedTuple, whose fields are the columns; None: items are of Arrow."""
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
    _records: ArrowRecords | None = PrivateAttr(default=None)
    _pending: "list[pa.Table]" = PrivateAttr(default_factory=list)
    """The tables of the next row group."""
    _part: "_OpenPart | None" = PrivateAttr(default=None)

    @field_validator("file_name")
    @classmethod
    def _distinguishes_parts(cls, pattern: str) -> str:
        return check_part_names(pattern)

    @field_validator("record_type")
    @classmethod
    def _has_columns(cls, record_type: type | None) -> type | None:
        return check_columns(record_type)

    def example_names(self) -> Sequence[str]:
        """Examples of the names of files, with which the compiler checks that no input reads them."""
        return (self.file_name.format(partition=0, number=0, window=1),)

    def setup(self, context: Context) -> None:
        self._partition = context.partition

    def begin_window(self, window_id: int) -> None:
        self._window = window_id

    def process(self, item: T) -> None:
        self._arrow.take(item)

    def process_batch(self, batch: Batch[T]) -> None:
        self._arrow.take_batch(batch)

    def end_window(self) -> None:
        self._arrow.flush()
        self._end_part()

    @property
    def _arrow(self) -> ArrowRecords:
        if self._records is None:
            self._records = ArrowRecords(self.record_type, self.row_group_rows, self._add)
        return self._records

    def _add(self, table: "pa.Table") -> None:
        """Add a table to as many row groups and files as it needs."""
        while table.num_rows:
            if self._part is not None and self._part.schema != table.schema:
                self._end_part()
            if self._part is None:
                self._part = self._begin_part(table.schema)
            part = self._part
            room = self.row_group_rows - sum(one.num_rows for one in self._pending)
            if self.max_count is not None:
                room = min(room, self.max_count - part.count)
            taken, table = table.slice(0, room), table.slice(room)
            self._pending.append(taken)
            part.count += taken.num_rows
            if taken.num_rows == room:
                self._end_row_group(part)
                is_long = self.max_length is not None and part.length > self.max_length
                if is_long or part.count == self.max_count:
                    self._end_part()

    def _begin_part(self, schema: "pa.Schema") -> "_OpenPart":
        name = self.file_name.format(partition=self._partition, number=self.next_number, window=self._window)
        self.next_number += 1
        return _OpenPart(name, self.files.open(name), schema, self.compression)

    def _end_row_group(self, part: "_OpenPart") -> None:
        import pyarrow as pa  # noqa: PLC0415 - as above

        if self._pending:
            part.write(pa.concat_tables(self._pending), self.row_group_rows)
            self._pending = []

    def _end_part(self) -> None:
        part = self._part
        if part is None:
            return
        self._end_row_group(part)
        part.close()
        self.files.finish(part.name)
        self.finished_parts.emit(FinishedPart(part.name, part.length, part.count))
        self._part = None


class _OpenPart:
    """A Parquet file that is written."""

    def __init__(self, name: str, file: Any, schema: "pa.Schema", compression: str) -> None:
        import pyarrow.parquet as pa_parquet  # noqa: PLC0415 - as above

        self.name = name
        self.schema = schema
        self.count = 0
        """Records that were added."""
        self._sink = _Sink(file)
        self._writer = pa_parquet.ParquetWriter(self._sink, schema, compression=compression)

    @property
    def length(self) -> int:
        """Bytes that were written."""
        return self._sink.length

    def write(self, table: "pa.Table", rows: int) -> None:
        self._writer.write_table(table, row_group_size=rows)

    def close(self) -> None:
        """Write the end of the file, which describes its row groups."""
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
