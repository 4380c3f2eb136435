"""Readers of blocks for formats with columns: each has the reader context of its format."""

from typing import Generic

from dagkit_operators.formats.csv import CsvContext
from dagkit_operators.formats.json_lines import JsonLinesContext
from dagkit_operators.formats.parquet import ParquetContext
from dagkit_operators.formats.records_reader import RecordsReader, V


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
