"""The output of an application as rows: what its ledger names, if the files are as they were committed."""

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from traceback import format_exception
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from dagkit import Config, Dag
from dagkit.dataframes import file_contents, written_files
from dagkit.dataframes.data_source import DagkitSource
from dagkit.dataframes.source_options import batch_options
from dagkit.dataframes.written_files import WrittenFiles, schema_of
from dagkit.errors import RunFailure
from dagkit.ground.urls import as_text
from dagkit.launching import Machine, launch
from dagkit_operators import FileSplitterInput, LineReader, Map, ParquetPartWriter, PartWriter
from tests.old_files import aged

LINES = StructType().add("value", "string")
TEXTS = [f"line {number:5}" for number in range(2000)]


@dataclass(frozen=True)
class Row:
    text: str
    length: int


def lines(dag: Dag, conf: Config) -> None:
    """Copies lines to one text file, and to one Parquet file."""
    found = dag.add_operator("Found", FileSplitterInput(scanner={"files": ["in"]}))
    read = found >> dag.add_operator("Reader", LineReader())
    parquet = ParquetPartWriter(file_path="parquet", record_type=Row, row_group_rows=100)
    read >> dag.add_operator("Text", PartWriter(file_path="text"))
    read >> dag.add_operator("Rows", Map(_row)) >> dag.add_operator("Parquet", parquet)


def _row(text: str) -> Row:
    return Row(text, len(text))


def write(home: Path, name: str, texts: list[str]) -> None:
    """Write a file of these lines to be read."""
    (home / "in").mkdir(exist_ok=True)
    (path := home / "in" / name).write_text("".join(f"{text}\n" for text in texts))
    aged(path)


@pytest.fixture
def application(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "lines.txt", TEXTS)
    run()
    return tmp_path / "app"


def run(**properties: Any) -> None:
    launch(lines, properties, until="once", path="app", machine=Machine(backend="reference"))


def rows(application: Path, schema: StructType = LINES, **options: str) -> Iterator[dict[str, Any]]:
    reader = WrittenFiles(batch_options({"path": str(application), **options}), schema)
    for partition in reader.partitions():
        for batch in reader.read(partition):
            yield from batch.to_pylist()


def test_lines_are_rows_and_files_that_the_ledger_does_not_name_are_not_read(application):
    (application.parent / "text/foreign.txt").write_text("foreign\n")
    assert [row["value"] for row in rows(application, operator="Text")] == TEXTS


@pytest.mark.parametrize("size", [1, 7, 11, 12, 100, 4096, 100_000])
@pytest.mark.parametrize("chunk", [1, 11, 4096])
def test_a_line_belongs_to_the_stretch_that_holds_its_first_byte(tmp_path, size, chunk, monkeypatch):
    monkeypatch.setattr(file_contents, "CHUNK_BYTES", chunk)
    texts = ["", "a", "bb" * 9, "", "", "the last line has no end"]
    path = tmp_path / "text"
    path.write_text("\n".join(texts))
    length = path.stat().st_size
    schema = pa.schema([("value", pa.string())])
    stretches = [(start, min(start + size, length)) for start in range(0, length, size)]
    batches = [batch for each in stretches for batch in file_contents.rows_of_lines(str(path), *each, schema)]
    assert [text for batch in batches for text in batch.column(0).to_pylist()] == texts


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_compressed_parts_are_decompressed(tmp_path, monkeypatch, compression):
    monkeypatch.chdir(tmp_path)
    for number in range(3):  # a window, and a compressed member of the file, for each
        write(tmp_path, f"{number}.txt", TEXTS[number * 10 : number * 10 + 10])
        run(**{"dt.operator.Text.prop.compression": compression})
    assert sorted(row["value"] for row in rows(tmp_path / "app", operator="Text")) == TEXTS[:30]


def test_of_a_local_file_a_question_mark_is_a_part_of_the_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "lines.txt", TEXTS)
    names = {
        "dt.operator.Text.prop.file_name": "a?{partition}-{number}",
        "dt.operator.Parquet.prop.file_name": "a?{partition}-{number}.parquet",
    }
    run(**names, **{"dt.operator.Text.prop.compression": "gzip"})
    assert [row["value"] for row in rows(tmp_path / "app", operator="Text")] == TEXTS
    schema = schema_of(batch_options({"path": str(tmp_path / "app"), "operator": "Parquet"}))
    assert isinstance(schema, StructType)
    assert [row["text"] for row in rows(tmp_path / "app", schema, operator="Parquet")] == TEXTS
    assert not file_contents.is_divisible("a?b.gz")


def test_the_options_of_a_url_may_contain_slashes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "lines.txt", TEXTS)
    run(**{"dt.operator.Text.prop.file_path": "mock://bucket/text?endpoint_override=http://host"})
    assert [row["value"] for row in rows(tmp_path / "app", operator="Text")] == TEXTS


def test_a_name_that_is_not_utf_8_is_read_as_the_ledger_writes_it(tmp_path):
    lines, columns = (os.fsdecode(os.fsencode(tmp_path) + name) for name in (b"/\xff.gz", b"/\xff.parquet"))
    Path(lines).write_bytes(gzip.compress(b"line\n"))
    (batch,) = file_contents.rows_of_lines(as_text(lines), 0, 5, pa.schema([("value", pa.string())]))
    assert batch.column(0).to_pylist() == ["line"]
    with Path(columns).open("wb") as file:
        pq.write_table(pa.table({"length": [4]}), file)
    assert file_contents.parquet_file(as_text(columns)).schema_arrow.names == ["length"]


def test_the_columns_of_parquet_files_are_those_of_the_dataframe(application, monkeypatch):
    monkeypatch.setattr(written_files, "PARTITION_BYTES", 1000)
    schema = schema_of(batch_options({"path": str(application), "operator": "Parquet"}))
    assert isinstance(schema, StructType)
    assert schema.simpleString() == "struct<text:string,length:bigint>"
    assert [row["text"] for row in rows(application, schema, operator="Parquet")] == TEXTS
    only = StructType().add("length", "integer")
    assert next(rows(application, only, operator="Parquet")) == {"length": 10}


def test_of_several_operators_one_must_be_chosen_and_spark_prints_no_frames_above_that(application):
    with pytest.raises(RunFailure, match="no operator Txt has completed a file"):
        list(rows(application, operator="Txt"))
    with pytest.raises(RunFailure, match="choose one") as raised:
        DagkitSource({"path": str(application)}).schema()
    printed = "".join(format_exception(raised.value))
    assert "schema_of" not in printed
    assert printed.count('File "') == 2, "the caller's, and one of the data source"


def test_a_folder_without_a_ledger_is_refused(tmp_path):
    with pytest.raises(RunFailure, match="contains no ledger"):
        schema_of(batch_options({"path": str(tmp_path)}))


def test_a_file_that_is_missing_or_has_another_length_is_refused(application):
    (file,) = (application.parent / "text").iterdir()
    file.write_text(file.read_text() + "more\n")
    with pytest.raises(RunFailure, match="instead of"):
        list(rows(application, operator="Text"))
    file.unlink()
    with pytest.raises(RunFailure, match="is missing"):
        list(rows(application, operator="Text"))


def test_a_damaged_ledger_is_refused(application):
    slices = [path for path in (application / "ledger").rglob("*") if path.is_file() and path.parent.name == "blocks"]
    damaged = sorted(slices)[2]
    damaged.write_bytes(damaged.read_bytes().replace(b"Text", b"text").replace(b"Found", b"found"))
    with pytest.raises(RunFailure, match="is not valid"):
        list(rows(application, operator="Text"))


def test_text_that_is_not_utf_8_needs_a_column_of_bytes(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good\nb\xffd\n")
    with pytest.raises(RunFailure, match="byte 0"):
        list(file_contents.rows_of_lines(str(path), 0, 10, pa.schema([("value", pa.string())])))
    (batch,) = file_contents.rows_of_lines(str(path), 0, 10, pa.schema([("value", pa.binary())]))
    assert batch.column(0).to_pylist() == [b"good", b"b\xffd"]
    with pytest.raises(RunFailure, match="one column"):
        list(file_contents.rows_of_lines(str(path), 0, 10, pa.schema([("a", pa.binary()), ("b", pa.binary())])))
