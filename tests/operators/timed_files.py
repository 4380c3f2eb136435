"""Files of every format whose records have a time and a number, and the operators that read them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from dagkit import Block
from dagkit_operators import (
    AvroReader,
    AvroReaderContext,
    CsvContext,
    CsvReader,
    JsonLinesContext,
    JsonLinesReader,
    LineReader,
    ParquetContext,
    ParquetReader,
    ReadFiles,
)

Row = tuple[float | None, int]
SCHEMA = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "at", "type": ["null", "double"]}, {"name": "n", "type": "long"}],
}


def parsed(line: str) -> dict[str, Any]:
    at, number = line.split(",")
    return {"at": float(at) if at else None, "n": int(number)}


def time_in(line: str) -> float | None:
    return parsed(line)["at"]


def _lines(rows: Sequence[Row]) -> list[str]:
    return [f"{'' if at is None else at},{number}\n" for at, number in rows]


def _as_lines(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(_lines(rows)))


def _as_json(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(json.dumps({"at": at, "n": number}) + "\n" for at, number in rows))


def _as_csv(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(["at,n\n", *_lines(rows)]))


def _as_parquet(path: Path, rows: Sequence[Row]) -> None:
    columns = {"at": pa.array([at for at, _ in rows], pa.float64()), "n": [number for _, number in rows]}
    pq.write_table(pa.table(columns), path, row_group_size=2)


def _as_avro(path: Path, rows: Sequence[Row]) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, SCHEMA, [{"at": at, "n": number} for at, number in rows], sync_interval=20)


@dataclass(frozen=True)
class Format:
    """A format of files, and how its records are read."""

    name: str
    write: Callable[[Path, Sequence[Row]], None]
    reads_blocks: Callable[..., Any]
    reads_files: Callable[..., Any]
    time: Any = "at"
    """The event time of a record of a block."""

    def written(self, path: Path, *rows: Row) -> Block:
        """Write a file. Return it as one block."""
        path.parent.mkdir(exist_ok=True)
        self.write(path, rows)
        return Block(1, str(path), 0, path.stat().st_size, last=True)


CSV = CsvContext(types={"at": "double", "n": "int64"})


FORMATS = [
    Format("lines", _as_lines, LineReader, partial(ReadFiles, parse=parsed), time_in),
    Format("JSON lines", _as_json, JsonLinesReader, partial(ReadFiles, reader_context=JsonLinesContext())),
    Format("CSV", _as_csv, partial(CsvReader, reader_context=CSV), partial(ReadFiles, reader_context=CSV)),
    Format("Parquet", _as_parquet, ParquetReader, partial(ReadFiles, reader_context=ParquetContext())),
    Format("Avro", _as_avro, AvroReader, partial(ReadFiles, reader_context=AvroReaderContext())),
]
"""Every format with records."""


def number_in(item: Any) -> int:
    value = getattr(item, "value", item)
    return int((parsed(value) if isinstance(value, str) else value)["n"])
