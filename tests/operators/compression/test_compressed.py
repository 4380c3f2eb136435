"""Compressed files give the lines that were compressed, by one reader; errors name the broken file."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

from dagkit import Block
from dagkit.errors import RunFailure
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone, FakeClock, SplitsBroken, check_every_split_of
from dagkit_operators import (
    AvroReader,
    BlockReader,
    CompressionBroken,
    CsvReader,
    FileChanged,
    FileInfo,
    FileSplitterInput,
    FixedLengthReader,
    JsonLinesReader,
    LineReader,
    ParquetReader,
    ReadFiles,
    RecordReader,
)
from dagkit_operators.compression.codec import ENDINGS, MAGIC
from dagkit_operators.reading.file_slices import FSSliceReader
from tests.operators.reading.cast import SIZES, found, read, written


def by_arrow(codec: str) -> Callable[[bytes], bytes]:
    def compressed(content: bytes) -> bytes:
        target = pa.BufferOutputStream()
        with pa.CompressedOutputStream(target, codec) as stream:
            stream.write(content)
        return bytes(target.getvalue())

    return compressed


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".deflate": zlib.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".lzma": lambda content: lzma.compress(content, format=lzma.FORMAT_ALONE),
    ".zst": by_arrow("zstd"),
    ".lz4": by_arrow("lz4"),
}
codecs = pytest.mark.parametrize(("ending", "compress"), COMPRESS.items(), ids=COMPRESS.keys())
FIFTEEN = [f"line{number}" for number in range(15)]


CONTENT = "\n".join(FIFTEEN).encode()
APPENDED = pytest.mark.parametrize("ending", [".gz", ".deflate", ".bz2", ".xz", ".zst"])
"""Formats of files that can be put one behind the other."""


def kept(folder: Path, name: str, content: bytes) -> FileInfo:
    path = written(folder, content, name)
    return FileInfo(str(path), len(content), path.stat().st_mtime_ns // 10**6, 1)


def read_file(file: FileInfo, **properties: object) -> list[str]:
    alone = Alone(ReadFiles(**properties))
    assert alone.work(file) is None
    return alone.sent()


def test_every_ending_has_its_tests():
    assert ENDINGS.keys() == COMPRESS.keys()


@codecs
def test_the_lines_are_those_that_were_compressed(ending, compress, tmp_path):
    content = compress(CONTENT)
    for size in SIZES:
        assert read_file(kept(tmp_path, f"file{ending}", content), chunk_size=size) == FIFTEEN
    assert read_file(kept(tmp_path, "file", content), compression=ENDINGS[ending]) == FIFTEEN
    assert read_file(kept(tmp_path, f"FILE{ending.upper()}", content), skip_header_lines=2) == FIFTEEN[2:]
    many = "line\n" * 10_000
    assert read_file(kept(tmp_path, f"many{ending}", compress(many.encode())), chunk_size=1000) == many.split()
    assert read_file(kept(tmp_path, f"none{ending}", compress(b""))) == []


@APPENDED
@pytest.mark.parametrize("parts", [(b"a\nb\nc\n", b"p\nq\nr\n", b"x\ny\nz"), (b"", b"a\nb\n", b"", b"", b"c\n", b"")])
def test_files_that_were_put_one_behind_the_other_are_read_as_one(ending, parts, tmp_path):
    file = kept(tmp_path, f"file{ending}", b"".join(map(COMPRESS[ending], parts)))
    assert read_file(file) == b"".join(parts).decode().split()


@codecs
def test_a_file_that_was_cut_off_when_it_was_found_is_read_when_the_rest_is_there(ending, compress, tmp_path):
    content = compress(CONTENT)
    found = kept(tmp_path, f"file{ending}", content[:-3])
    with pytest.raises(CompressionBroken):
        read_file(found)
    kept(tmp_path, f"file{ending}", content)
    assert read_file(found) == FIFTEEN


def test_only_what_was_cut_off_is_read_further_and_what_became_shorter_fails_as_any_other(tmp_path):
    one, two = gzip.compress(b"a\n"), gzip.compress(b"b\n")
    for name, before, after in (("whole.gz", one, one + two), ("cut.gz", one[:-3], one)):
        found = kept(tmp_path, name, before)
        kept(tmp_path, name, after)
        assert read_file(found) == ["a"]
    kept(tmp_path, "cut.gz", b"\x1f\x8b")
    with pytest.raises(FileChanged, match="ends at byte 2"):
        read_file(found)


@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_zstd_frame_with_another_length_than_it_states_is_broken(wrong, tmp_path):
    """The frames of a writer have no checksum, and state the length of their content."""
    frame = bytearray(pa.Codec("zstd").compress(b"line\n" * 1000, asbytes=True))
    assert frame[5] + 256 * frame[6] + 256 == 5000, "the field after the magic number and the descriptor"
    frame[5] += wrong
    with pytest.raises(CompressionBroken, match=r"file\.zst cannot be read as zstd"):
        read_file(kept(tmp_path, "file.zst", bytes(frame)))


def test_xz_may_be_padded_between_and_behind_by_fours(tmp_path):
    one, two = lzma.compress(b"a\n"), lzma.compress(b"b\n")
    for padding in (b"", bytes(4), bytes(1 << 18)):
        assert read_file(kept(tmp_path, "file.xz", one + padding + two + padding)) == ["a", "b"]
    for content in (one + bytes(3) + two, one + bytes((1 << 18) + 2)):
        with pytest.raises(CompressionBroken, match=r"padded by [0-9]+ bytes, which is no multiple of 4"):
            read_file(kept(tmp_path, "file.xz", content))


@APPENDED
def test_damage_where_a_later_one_begins_is_reported(ending, tmp_path):
    one, two = COMPRESS[ending](b"a\n"), COMPRESS[ending](b"b\n")
    for later in (bytes([two[0] ^ 1]) + two[1:], two[:3], b"\1" * len(two)):
        with pytest.raises(CompressionBroken, match=f"file{ending} cannot be read"):
            read_file(kept(tmp_path, f"file{ending}", one + later))


def damaged(whole: bytes) -> Iterator[bytes]:
    middle = len(whole) // 2
    yield whole[:-3]
    yield whole[:middle]
    yield whole[:middle] + bytes([whole[middle] ^ 0xFF, whole[middle + 1] ^ 0xFF]) + whole[middle + 2 :]
    yield b"corrupt"


@codecs
def test_a_truncated_or_corrupt_file_is_an_error_with_its_place(ending, compress, tmp_path):
    place = r"near byte [0-9]+ of the file and byte [0-9]+ of its content"
    for content in damaged(compress(CONTENT * 50)):
        with pytest.raises(CompressionBroken) as fault:
            read_file(kept(tmp_path, f"file{ending}", content))
        assert re.search(rf"file{ending} cannot be read as {ENDINGS[ending]}: .+, {place}", str(fault.value))
        assert 0 <= fault.value.position <= len(content)
        assert str(pickle.loads(pickle.dumps(fault.value))) == str(fault.value)  # noqa: S301 - made here


def test_it_is_allocated_as_one_and_never_split(tmp_path):
    file = kept(tmp_path, "file.gz", gzip.compress(CONTENT))
    operator = ReadFiles(part_size=10, chunk_size=10)
    whole = operator.initial_restriction(file)
    assert list(operator.split(file, whole)) == [whole] == [OffsetRange(0, file.length)]
    with pytest.raises(SplitsBroken, match="never splits"):
        check_every_split_of(operator, file, positions=[5, 20])
    tracker = LineReader().tracker(*blocks_of(Path(file.path)), whole)
    assert (tracker.try_split_at(20), tracker.try_split(0.5)) == (None, None)


# ---- every reader, however its blocks were found

WITH_MAGIC = sorted(set(MAGIC.values()))
ENDING_OF = {codec: ending for ending, codec in reversed(ENDINGS.items())}


def blocks_of(path: Path, **properties: object) -> list[Block]:
    """The blocks of a file, as a splitter finds them."""
    splitter = Alone(FileSplitterInput(scanner={"files": [str(path)]}, **properties), now=FakeClock().now)
    splitter.look()
    return splitter.sent()


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


def test_files_are_read_as_they_are_if_both_say_so_and_slices_always_are(tmp_path):
    """A part of a compressed file is refused otherwise."""
    path = written(tmp_path, gzip.compress(CONTENT), "file.gz")
    blocks = blocks_of(path, block_size=20, compression="none")
    assert len(blocks) > 1
    assert b"".join(read(FixedLengthReader(length=4, compression="none"), *blocks)) == path.read_bytes()
    assert b"".join(each.to_bytes() for each in read(FSSliceReader(), *blocks)) == path.read_bytes()
    with pytest.raises(RunFailure, match="it is a part of a gzip file, which can only be read from its beginning"):
        read(LineReader(), blocks[0])
    assert read_file(kept(tmp_path, "file.gz", b"a\nb"), compression="none") == ["a", "b"]


def test_damage_of_a_compressed_file_of_another_format_is_no_bad_record(tmp_path):
    whole = gzip.compress(as_avro([f"{number}" for number in range(30_000)]))
    for wrong in (whole[:-3], whole[:100], whole[: len(whole) // 2]):
        with pytest.raises(CompressionBroken):
            read(AvroReader(), *blocks_of(written(tmp_path, wrong, "file.avro.gz")))


def zipped():
    with zipfile.ZipFile(sink := io.BytesIO(), "w") as archive:
        archive.writestr("lines", CONTENT)
    return sink.getvalue()


def tarred():
    with tarfile.open(fileobj=(sink := io.BytesIO()), mode="w") as archive:
        archive.addfile(tarfile.TarInfo("lines"))
    return sink.getvalue()


UNREAD = {
    "zip": zipped(),
    "tar": tarred(),
    "7z": b"7z\xbc\xaf\x27\x1c\0\4\n1\n2\n",
    "compress": b"\x1f\x9d\x90\n1\n2\n",
    "snappy": b"\xff\x06\0\0sNaPpY\n1\n2\n",
    "brotli": b"\x0b\x05\n1\n2\n",
}


@pytest.mark.parametrize("form", UNREAD)
def test_bytes_of_a_format_that_is_not_read_never_pass_as_lines(form, tmp_path):
    path = written(tmp_path, UNREAD[form], "file.br" if form == "brotli" else "file.txt")
    for block_size in (4, None):
        for block in blocks_of(path, block_size=block_size):
            with pytest.raises(CompressionBroken, match=f"{path} is a {form} file, and files of that format are not"):
                read(LineReader(), block)
    with pytest.raises(CompressionBroken, match="unpack it, or compress it with gzip"):
        read_file(found(path))
    blocks = blocks_of(path, block_size=4)
    assert b"".join(each.to_bytes() for each in read(FSSliceReader(), *blocks)) == UNREAD[form]
    assert len(read_file(found(path), compression="none")) == len(UNREAD[form].removesuffix(b"\n").split(b"\n"))
