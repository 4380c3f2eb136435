"""Compressed files give the lines that were compressed, by one reader; errors name the broken file."""

import bz2
import gzip
import io
import lzma
import pickle
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dagkit.ranges import OffsetRange
from dagkit.testing import Alone, SplitsBroken, check_every_split_of
from dagkit_operators import CompressionBroken, FileChanged, FileInfo, FileSplitterBase, LineReader, ReadFiles
from dagkit_operators.compression.codec import ENDINGS
from dagkit_operators.compression.decompressed import Decompressed
from tests.operators.reading import cast
from tests.operators.reading.cast import written
from tests.operators.reading_text import SIZES


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


def read(file: FileInfo, **properties: object) -> list[str]:
    alone = Alone(ReadFiles(**properties))
    assert alone.work(file) is None
    return alone.sent()


def test_every_ending_has_its_tests():
    assert ENDINGS.keys() == COMPRESS.keys()


@codecs
def test_the_lines_are_those_that_were_compressed(ending, compress, tmp_path):
    content = compress(CONTENT)
    for size in SIZES:
        assert read(kept(tmp_path, f"file{ending}", content), chunk_size=size) == FIFTEEN
    assert read(kept(tmp_path, "file", content), compression=ENDINGS[ending]) == FIFTEEN
    assert read(kept(tmp_path, f"FILE{ending.upper()}", content), skip_header_lines=2) == FIFTEEN[2:]


@codecs
def test_many_lines_and_none_at_all(ending, compress, tmp_path):
    many = [f"line{number}" for number in range(10_000)]
    assert read(kept(tmp_path, f"many{ending}", compress("\n".join([*many, ""]).encode())), chunk_size=1000) == many
    assert read(kept(tmp_path, f"none{ending}", compress(b""))) == []


@APPENDED
@pytest.mark.parametrize("parts", [(b"a\nb\nc\n", b"p\nq\nr\n", b"x\ny\nz"), (b"", b"a\nb\n", b"", b"", b"c\n", b"")])
def test_files_that_were_put_one_behind_the_other_are_read_as_one(ending, parts, tmp_path):
    file = kept(tmp_path, f"file{ending}", b"".join(map(COMPRESS[ending], parts)))
    assert read(file) == b"".join(parts).decode().split()


@codecs
def test_a_file_that_was_cut_off_when_it_was_found_is_read_when_the_rest_is_there(ending, compress, tmp_path):
    content = compress(CONTENT)
    found = kept(tmp_path, f"file{ending}", content[:-3])
    with pytest.raises(CompressionBroken):
        read(found)
    kept(tmp_path, f"file{ending}", content)
    assert read(found) == FIFTEEN
    splitter = Alone(FileSplitterBase())
    kept(tmp_path, f"file{ending}", content[:-3])
    splitter.work(FileInfo(found.path))
    kept(tmp_path, f"file{ending}", content)
    assert cast.read(LineReader(), *splitter.sent()) == FIFTEEN


def test_only_what_was_cut_off_is_read_further(tmp_path):
    one, two = gzip.compress(b"a\n"), gzip.compress(b"b\n")
    whole = kept(tmp_path, "whole.gz", one)
    kept(tmp_path, "whole.gz", one + two)
    assert read(whole) == ["a"]
    cut = kept(tmp_path, "cut.gz", one[:-3])
    kept(tmp_path, "cut.gz", one)
    assert read(cut) == ["a"]


@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_zstd_frame_with_another_length_than_it_states_is_broken(wrong, tmp_path):
    """The frames of a writer have no checksum, and state the length of their content."""
    frame = bytearray(pa.Codec("zstd").compress(b"line\n" * 1000, asbytes=True))
    assert frame[5] + 256 * frame[6] + 256 == 5000, "the field after the magic number and the descriptor"
    frame[5] += wrong
    with pytest.raises(CompressionBroken, match=r"file\.zst cannot be read as zstd"):
        read(kept(tmp_path, "file.zst", bytes(frame)))


def test_xz_may_be_padded_between_and_behind_by_fours(tmp_path):
    one, two = lzma.compress(b"a\n"), lzma.compress(b"b\n")
    for padding in (b"", bytes(4), bytes(1 << 18)):
        assert read(kept(tmp_path, "file.xz", one + padding + two + padding)) == ["a", "b"]
    for content in (one + bytes(3) + two, one + bytes((1 << 18) + 2)):
        with pytest.raises(CompressionBroken, match=r"padded by [0-9]+ bytes, which is no multiple of 4"):
            read(kept(tmp_path, "file.xz", content))


@APPENDED
def test_damage_where_a_later_one_begins_is_reported(ending, tmp_path):
    one, two = COMPRESS[ending](b"a\n"), COMPRESS[ending](b"b\n")
    for later in (bytes([two[0] ^ 1]) + two[1:], two[:3], b"\1" * len(two)):
        with pytest.raises(CompressionBroken, match=f"file{ending} cannot be read"):
            read(kept(tmp_path, f"file{ending}", one + later))


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
            read(kept(tmp_path, f"file{ending}", content))
        assert re.search(rf"file{ending} cannot be read as {ENDINGS[ending]}: .+, {place}", str(fault.value))
        assert 0 <= fault.value.position <= len(content)
        assert str(pickle.loads(pickle.dumps(fault.value))) == str(fault.value)  # noqa: S301 - made here


def test_a_file_that_became_shorter_fails_as_any_other(tmp_path):
    file = kept(tmp_path, "file.gz", gzip.compress(b"a\n" * 1000))
    Path(file.path).write_bytes(b"\x1f\x8b")
    with pytest.raises(FileChanged, match="ends at byte 2"):
        read(file)


def test_a_file_is_read_as_it_is_where_that_is_asked_for(tmp_path):
    assert read(kept(tmp_path, "file.gz", b"a\nb"), compression="none") == ["a", "b"]


def test_it_is_allocated_as_one_and_never_split(tmp_path):
    file = kept(tmp_path, "file.gz", gzip.compress(CONTENT))
    operator = ReadFiles(part_size=10, chunk_size=10)
    whole = operator.initial_restriction(file)
    assert list(operator.split(file, whole)) == [whole] == [OffsetRange(0, file.length)]
    with pytest.raises(SplitsBroken, match="never splits"):
        check_every_split_of(operator, file, positions=[5, 20])


def test_going_back_and_going_on_are_exact():
    content = bytes(range(256)) * 9
    stream = Decompressed(io.BytesIO(gzip.compress(content)), "gzip", "")
    found = bytearray(7)
    for place in (0, 100, 5, 2000, 2290, 1, len(content) - 7):
        assert stream.seek(place) == place
        assert stream.readinto(memoryview(found)) == 7
        assert found == content[place : place + 7]
    assert stream.seek(9999) == len(content), "nothing lies behind its end"
    assert stream.readinto(memoryview(found)) == 0
