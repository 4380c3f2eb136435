"""Every reader decompresses, by name or by the first bytes, however its blocks were found."""

import gzip
import io
import os
import re
from collections.abc import Callable
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
    FileSplitterInput,
    FixedLengthReader,
    JsonLinesReader,
    LineReader,
    ParquetReader,
    ReadFiles,
    RecordReader,
)
from dagkit_operators.compression.codec import ENDINGS, MAGIC, CompressedBlock, CompressionBroken
from dagkit_operators.reading.slices import FSSliceReader
from tests.operators.compression.test_compressed import COMPRESS, CONTENT, FIFTEEN
from tests.operators.reading.cast import found, read, written

WITH_MAGIC = sorted(set(MAGIC.values()))
ENDING_OF = {codec: ending for ending, codec in reversed(ENDINGS.items())}


def blocks_of(path: Path, **properties: object) -> list[Block]:
    """The blocks of a file, as a splitter finds them."""
    splitter = Alone(FileSplitterInput(scanner={"files": [str(path)]}, **properties), now=FakeClock().now)
    splitter.look()
    return splitter.sent()


@pytest.fixture
def compressed(tmp_path):
    """A file that gzip compressed."""
    return written(tmp_path, gzip.compress(CONTENT), "file.gz")


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


@pytest.mark.parametrize(
    ("ending", "name"),
    [*((ending, f"file{ending}") for ending in COMPRESS), *((ENDING_OF[codec], "file") for codec in WITH_MAGIC)],
)
@pytest.mark.parametrize("form", FORMATS)
def test_every_reader_decompresses_by_name_or_by_the_first_bytes_what_splitters_and_match_files_found(
    form, ending, name, tmp_path
):
    reader, made = FORMATS[form]
    path = written(tmp_path, COMPRESS[ending](made(NUMBERS)), name)
    os.utime(path, (1, 1))
    for block_size in (4000, None):
        blocks = blocks_of(path, block_size=block_size)
        assert [(block.start, block.end, block.last) for block in blocks] == [(0, path.stat().st_size, True)]
        assert numbers_in(read(reader(), *blocks)) == NUMBERS
    files = Alone(ReadFiles(reader_context=reader().reader_context, part_size=4000))
    assert files.work(found(path)) is None
    assert numbers_in(files.sent()) == NUMBERS


def test_a_file_that_took_the_place_of_another_is_looked_at_again(tmp_path):
    for content in (CONTENT, gzip.compress(CONTENT)):
        path = written(tmp_path, content)
        os.utime(path, (1, 1))
        assert read(LineReader(), *blocks_of(path)) == FIFTEEN


def test_records_of_a_fixed_length_are_counted_in_the_content(tmp_path):
    path = written(tmp_path, gzip.compress(bytes(range(100)) * 3), "file.gz")
    records = read(FixedLengthReader(length=70), *blocks_of(path, block_size=7))
    assert b"".join(records) == bytes(range(100)) * 3
    assert [len(record) for record in records] == [70, 70, 70, 70, 20]


def test_files_are_read_as_they_are_if_both_say_so_and_slices_always_are(compressed):
    """A part of a compressed file is refused otherwise."""
    blocks = blocks_of(compressed, block_size=20, compression="none")
    assert len(blocks) > 1
    assert b"".join(read(FixedLengthReader(length=4, compression="none"), *blocks)) == compressed.read_bytes()
    assert b"".join(each.to_bytes() for each in read(FSSliceReader(), *blocks)) == compressed.read_bytes()
    with pytest.raises(CompressedBlock, match="it is a part of a gzip file, which can only be read from its beginning"):
        read(LineReader(), blocks[0])


def test_a_whole_compressed_file_is_never_split(compressed):
    (block,) = blocks_of(compressed)
    tracker = LineReader().tracker(block, OffsetRange(block.start, block.end))
    assert (tracker.try_split_at(20), tracker.try_split(0.5)) == (None, None)


def test_damage_of_a_compressed_file_of_another_format_is_no_bad_record(tmp_path):
    whole = gzip.compress(as_avro([f"{number}" for number in range(30_000)]))
    for wrong in (whole[:-3], whole[:100], whole[: len(whole) // 2]):
        with pytest.raises(CompressionBroken):
            read(AvroReader(), *blocks_of(written(tmp_path, wrong, "file.avro.gz")))
