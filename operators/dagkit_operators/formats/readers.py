"""Readers of blocks for formats with columns: each has the reader context of its format."""

from typing import Any, Generic

from typing_extensions import TypeVar

from dagkit import OutputPort
from dagkit_operators.formats.csv import CsvContext
from dagkit_operators.formats.json_lines import JsonLinesContext
from dagkit_operators.formats.parquet import ParquetContext
from dagkit_operators.payloads import Record
from dagkit_operators.reading.block_reader import BlockReader

V = TypeVar("V", default=Any)


class RecordsReader(BlockReader[Any], Generic[V]):
    """Reads records whose type is that of its reader context, if it has one."""

    messages = OutputPort[Record[V]](main=True)


class JsonLinesReader(RecordsReader[V], Generic[V]):
    """Reads blocks of JSON lines, and sends a record for each line."""

    kind = "files.json-lines-reader/1"

    reader_context: JsonLinesContext = JsonLinesContext()
    """How lines become records."""


class CsvReader(RecordsReader[V], Generic[V]):
    """Reads blocks of CSV files, and sends a record for each row."""

    kind = "files.csv-reader/1"

    reader_context: CsvContext = CsvContext()
    """How rows become records."""


class ParquetReader(RecordsReader[V], Generic[V]):
    """Reads blocks of Parquet files, and sends a record for each row. A row group comes from one block."""

    kind = "files.parquet-reader/1"

    reader_context: ParquetContext = ParquetContext()
    """How rows become records."""
