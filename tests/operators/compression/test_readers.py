"""Every reader decompresses, by name or by the first bytes, however its blocks were found."""

import gzip
import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from dagkit import Block
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone, FakeClock
from dagkit_operators import (
    AvroReader,
    BlockReader,
    CsvReader,
    FileInfo,
    FileSplitterInput,
    FixedLengthReader,
    JsonLinesReader,
    LineReader,
    MatchFiles,
    ParquetReader,
    ReadFiles,
    RecordReader,
)
from dagkit_operators.compression.codec import ENDINGS, MAGIC, CompressedBlock, CompressionBroken
from dagkit_operators.reading.slices import FSSliceReader
from tests.operators.compression.test_compressed import COMPRESS, FIFTEEN

CONTENT = "\n".join(FIFTEEN).encode()
WITH_MAGIC = sorted(set(MAGIC.values()))
ENDING_OF = {codec: ending for ending, codec in reversed(ENDINGS.items())}


def blocks_of(path: Path, **properties: object) -> list[Block]:
    splitter = Alone(FileSplitterInput(scanner={"files": [str(path)]}, **properties), now=FakeClock().now)
    splitter.look()
    return splitter.sent()


def read(reader: Any, blocks: list[Block]) -> list[Any]:
    alone = Alone(reader)
    for block in blocks:
        assert alone.work(block) is None
    return [record.value for record in alone.sent()]


@pytest.mark.parametrize(("ending", "compress"), COMPRESS.items(), ids=COMPRESS.keys())
def test_a_splitter_and_a_line_reader_decompress_by_name(ending, compress, tmp_path):
    path = tmp_path / f"file{ending}"
    path.write_bytes(compress(CONTENT))
    blocks = blocks_of(path, block_size=10)
    assert [(block.start, block.end, block.last) for block in blocks] == [(0, path.stat().st_size, True)]
    assert read(LineReader(), blocks) == FIFTEEN


def as_parquet(numbers: list[str]) -> bytes:
    content = io.BytesIO()
    pa_parquet.write_table(pa.table({"n": numbers}), content, row_group_size=500)
    return content.getvalue()


def as_avro(numbers: list[str]) -> bytes:
    content = io.BytesIO()
    fastavro.writer(content, "string", numbers, sync_interval=1000)
    return content.getvalue()


FORMATS: dict[str, tuple[type[BlockReader[Any]], Callable[[list[str]], bytes]]] = {
    "lines": (LineReader, lambda numbers: "\n".join(numbers).encode()),
    "records": (RecordReader, lambda numbers: "\n".join(numbers).encode()),
    "csv": (CsvReader, lambda numbers: "\n".join(["n", *numbers]).encode()),
    "json": (JsonLinesReader, lambda numbers: "\n".join(f'{{"n": "{number}"}}' for number in numbers).encode()),
    "parquet": (ParquetReader, as_parquet),
    "avro": (AvroReader, as_avro),
}
NUMBERS = [f"{number:04}" for number in range(3000)]


def numbers_in(records: list[Any]) -> list[str]:
    return [number for record in records for number in re.findall(r"\d{4}", str(record))]


@pytest.mark.parametrize("name", ["file{}", "file"], ids=["by name", "by its first bytes"])
@pytest.mark.parametrize("ending", [ENDING_OF[codec] for codec in WITH_MAGIC])
@pytest.mark.parametrize("form", FORMATS)
def test_every_reader_reads_compressed_files_from_a_splitter_and_from_match_files(form, ending, name, tmp_path):
    reader, made = FORMATS[form]
    path = tmp_path / name.format(ending)
    path.write_bytes(COMPRESS[ending](made(NUMBERS)))
    os.utime(path, (1, 1))
    assert numbers_in(read(reader(), blocks_of(path, block_size=4000))) == NUMBERS
    found, files = Alone(MatchFiles()), Alone(ReadFiles(reader_context=reader().reader_context, part_size=4000))
    assert found.work(str(path)) is None
    assert files.work(*found.sent()) is None
    assert numbers_in(files.sent()) == NUMBERS


@pytest.mark.parametrize("block_size", [10, None], ids=["longer than a block", "one block"])
@pytest.mark.parametrize("codec", WITH_MAGIC)
def test_a_file_without_an_ending_is_known_by_its_first_bytes(codec, block_size, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(COMPRESS[ENDING_OF[codec]](CONTENT))
    assert read(LineReader(), blocks_of(path, block_size=block_size)) == FIFTEEN
    file = FileInfo(str(path), path.stat().st_size, path.stat().st_mtime_ns // 10**6, 1)
    alone = Alone(ReadFiles(part_size=block_size or 100))
    assert alone.work(file) is None
    assert alone.sent() == FIFTEEN


def test_a_file_that_took_the_place_of_another_is_looked_at_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    assert read(LineReader(), blocks_of(path)) == FIFTEEN
    path.write_bytes(gzip.compress(CONTENT))
    os.utime(path, (1, 1))
    assert read(LineReader(), blocks_of(path)) == FIFTEEN


def test_records_of_a_fixed_length_are_counted_in_the_content(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(bytes(range(100)) * 3))
    records = read(FixedLengthReader(length=70), blocks_of(path, block_size=7))
    assert b"".join(records) == bytes(range(100)) * 3
    assert [len(record) for record in records] == [70, 70, 70, 70, 20]


def test_files_are_read_as_they_are_if_both_say_so_and_slices_always_are(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(CONTENT))
    blocks = blocks_of(path, block_size=20, compression="none")
    assert len(blocks) > 1
    assert b"".join(read(FixedLengthReader(length=4, compression="none"), blocks)) == path.read_bytes()
    assert b"".join(slice_.to_bytes() for slice_ in read(FSSliceReader(), blocks)) == path.read_bytes()


def test_a_part_of_a_compressed_file_is_refused(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(CONTENT))
    first, *_ = blocks_of(path, block_size=20, compression="none")
    with pytest.raises(CompressedBlock, match="it is a part of a gzip file, which can only be read from its beginning"):
        Alone(LineReader()).work(first)


def test_a_whole_compressed_file_is_never_split(tmp_path):
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(CONTENT))
    (block,) = blocks_of(path)
    tracker = LineReader().tracker(block, OffsetRange(block.start, block.end))
    assert tracker.try_split_at(20) is None
    assert tracker.try_split(0.5) is None


def damaged(codec: str) -> Iterator[tuple[str, bytes]]:
    whole = COMPRESS[ENDING_OF[codec]](CONTENT * 50)
    yield "truncated", whole[:-3]
    yield "without its end", whole[: len(whole) // 2]
    middle = len(whole) // 2
    yield "corrupt", whole[:middle] + bytes([whole[middle] ^ 0xFF, whole[middle + 1] ^ 0xFF]) + whole[middle + 2 :]


@pytest.mark.parametrize("codec", WITH_MAGIC)
def test_a_truncated_or_corrupt_file_is_an_error_with_its_place(codec, tmp_path):
    for name, content in damaged(codec):
        path = tmp_path / f"{name}{ENDING_OF[codec]}"
        path.write_bytes(content)
        with pytest.raises(CompressionBroken) as broken:
            read(LineReader(), blocks_of(path))
        place = r"near byte [0-9]+ of the file and byte [0-9]+ of its content"
        assert re.search(rf"{re.escape(path.name)} cannot be read as {codec}: .+, {place}", str(broken.value)), name
        assert 0 < broken.value.position <= len(content)


def test_other_formats_are_read_from_compressed_files_and_damage_is_no_bad_record(tmp_path):
    path, content = tmp_path / "file.avro.gz", io.BytesIO()
    fastavro.writer(content, "int", range(30_000), sync_interval=1000)
    whole = gzip.compress(content.getvalue())
    path.write_bytes(whole)
    assert read(AvroReader(), blocks_of(path)) == list(range(30_000))
    for wrong in (whole[:-3], whole[:100], whole[: len(whole) // 2]):
        path.write_bytes(wrong)
        with pytest.raises(CompressionBroken):
            read(AvroReader(), blocks_of(path))


def test_a_pattern_finds_compressed_files_for_read_files(tmp_path):
    (tmp_path / "file.gz").write_bytes(gzip.compress(CONTENT))
    match = Alone(MatchFiles())
    match.work(str(tmp_path))
    (found,) = match.sent()
    alone = Alone(ReadFiles())
    alone.work(found)
    assert alone.sent() == FIFTEEN
