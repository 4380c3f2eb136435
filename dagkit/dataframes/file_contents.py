"""The rows of a file, as Arrow batches: lines of text, compressed or not, and Parquet."""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dagkit.errors import RunFailure, printable
from dagkit.ground.urls import is_url, local_path, plain, resolved

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

CHUNK_BYTES = 4 << 20
_PARQUET = ".parquet"
_CODECS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}


def row_unfit(place: str, error: Exception | str) -> RunFailure:
    """A row has not the type of its column in the schema of the DataFrame."""
    return RunFailure(
        f"{printable(place)}: a row does not have the columns of the DataFrame: {error}",
        "give the DataFrame another schema: for text that is not UTF-8, `value BINARY`",
        code="row-unfit",
    )


def is_parquet(path: str) -> bool:
    return plain(path).endswith(_PARQUET)


def is_divisible(path: str) -> bool:
    """Whether a file can be read in stretches: Parquet by its row groups, text if it is not compressed."""
    return not plain(path).endswith(tuple(_CODECS))


def parquet_file(path: str) -> "pq.ParquetFile":
    import pyarrow.parquet as pq  # noqa: PLC0415 - on workers, for Parquet files only

    return pq.ParquetFile(_opened(path))


def rows_of_parquet(path: str, start: int, end: int, schema: "pa.Schema") -> Iterator["pa.RecordBatch"]:
    """The row groups that start in a stretch of a Parquet file."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    file = parquet_file(path)
    groups = [
        number for number in range(file.num_row_groups) if start <= _start_of(file.metadata.row_group(number)) < end
    ]
    if not groups:
        return
    try:
        for batch in file.iter_batches(row_groups=groups, columns=schema.names):
            yield pa.RecordBatch.from_arrays(
                [batch.column(field.name).cast(field.type) for field in schema], schema=schema
            )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError) as error:
        raise row_unfit(path, error) from error


def _start_of(group: Any) -> int:
    chunk = group.column(0)
    offsets = [chunk.data_page_offset, chunk.dictionary_page_offset]
    return int(min(offset for offset in offsets if offset is not None))


def rows_of_lines(path: str, start: int, end: int, schema: "pa.Schema") -> Iterator["pa.RecordBatch"]:
    """The lines that start in a stretch of a text file; the only column gets them without their line ends."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if len(schema) != 1:
        raise row_unfit(path, f"a line has one column, and the schema has {len(schema)}")
    column = schema.field(0)
    for place, lines in _lines(path, start, end):
        try:
            yield pa.RecordBatch.from_arrays([lines.cast(column.type)], schema=schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise row_unfit(f"{path}, byte {place}", error) from error


def _lines(path: str, start: int, end: int) -> Iterator[tuple[int, "pa.Array"]]:
    """Chunks of whole lines, each with its place. A compressed file is one stretch."""
    codec = next((name for ending, name in _CODECS.items() if plain(path).endswith(ending)), None)
    with _opened(path) as file:
        # `end` counts compressed bytes.
        source, limit = (file, end) if codec is None else (_decompressed(file, codec), sys.maxsize)
        at, rest = _first_line(source, start), b""
        while at < limit:
            chunk = source.read(CHUNK_BYTES)
            whole = rest + chunk
            cut = _end_of_lines(whole, limit - at) if chunk else len(whole)
            if cut:
                yield at, _split(whole[:cut])
            if not chunk:
                return
            at, rest = at + cut, whole[cut:]


def _first_line(source: Any, start: int) -> int:
    """Where the first line starts at `start` or after it: a line belongs to the stretch that holds its first byte."""
    if not start:
        return 0
    # The byte before may end a line, and then the first line starts exactly at `start`.
    at = start - 1
    source.seek(at)
    while chunk := source.read(CHUNK_BYTES):
        found = chunk.find(b"\n")
        if found >= 0:
            source.seek(at + found + 1)
            return int(at + found + 1)
        at += len(chunk)
    return at


def _end_of_lines(content: bytes, limit: int) -> int:
    """The end of the last complete line that starts before the limit; 0 if more content is needed to find it."""
    if len(content) < limit:
        return content.rfind(b"\n") + 1
    return content.find(b"\n", limit - 1) + 1


def _opened(path: str) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - on workers, and for Parquet files

    if not is_url(path):
        # Arrow encodes text as UTF-8, which not every name is.
        return pa.OSFile(os.fsencode(local_path(path)))
    return resolved(path).filesystem.open_input_file(resolved(path).path)


def _decompressed(file: Any, codec: str) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - on workers only

    return pa.CompressedInputStream(pa.PythonFile(file, "r"), codec)


def _split(content: bytes) -> "pa.Array":
    import pyarrow as pa  # noqa: PLC0415 - on workers only
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    if content.endswith(b"\n"):
        content = content[:-1]
    return pc.split_pattern(pa.array([content], pa.large_binary()), pattern="\n").values
