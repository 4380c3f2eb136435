"""A gzip file that was read once is divided the second time; what is lost or damaged never changes its content."""

import gzip
import io
import os
import random
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from isal import isal_zlib

from dagkit import Block
from dagkit.errors import RunFailure
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone, FakeClock, Rehearsal
from dagkit_operators import (
    FileInfo,
    FileSplitterBase,
    FileSplitterInput,
    FixedLengthReader,
    LineReader,
    MatchFiles,
    ReadFiles,
)
from dagkit_operators.compression.codec import CompressionBroken
from dagkit_operators.compression.decompressed import Decompressed
from dagkit_operators.compression.gzip_content import GzipContent
from dagkit_operators.compression.gzip_index import GzipIndex
from dagkit_operators.compression.index_folder import FOLDER, IndexFolder
from dagkit_operators.compression.opening import content_length_of
from dagkit_operators.filesystem.access import Found
from dagkit_operators.finding.splitting import Cut
from tests.engine.cast import chain
from tests.operators.reading.cast import read, written

SLOW = pytest.mark.slow
SPACING = 100_000
SIZE = 200_000
"""The bytes of a block."""
ANY = random.Random(17)  # noqa: S311 - test data
WORDS = [ANY.randbytes(ANY.randint(1, 5)).hex() for _ in range(3000)]
TEXT = "".join(f"{number} {' '.join(ANY.choices(WORDS, k=8))}\n" for number in range(25_000)).encode()
"""1.5 MB of lines that compress to half, as logs do."""


def members(content: bytes, *lengths: int, level: int = 6) -> bytes:
    edges = [0, *lengths, len(content)]
    return b"".join(gzip.compress(content[start:end], level) for start, end in pairwise(edges))


KINDS: dict[str, bytes] = {
    "level 1": gzip.compress(TEXT, 1),
    "level 6": gzip.compress(TEXT, 6),
    "level 9": gzip.compress(TEXT, 9),
    "igzip": isal_zlib.compress(TEXT, 1, wbits=31),
    "members": members(TEXT, 150_000, 150_000, 800_000),
    "stored members": members(TEXT, 250_000, 600_000, level=0),
    "padded": gzip.compress(TEXT) + bytes(100_000),
}
kinds = pytest.mark.parametrize(
    "file", [pytest.param(KINDS[kind], id=kind, marks=[SLOW] if kind.startswith("stored") else []) for kind in KINDS]
)


def indexed(file: bytes, spacing: int = SPACING) -> GzipIndex:
    content = GzipContent(io.BytesIO(file), "", spacing=spacing)
    assert b"".join(content.pieces()) == TEXT
    assert content.index is not None
    return content.index


@kinds
def test_the_stored_form_is_read_back_damage_is_noticed_and_decompression_starts_at_each_point(file):
    index = indexed(file)
    assert (index.content_length, len(index.points) >= 2) == (len(TEXT), True)
    places = [0, *(point.content for point in index.points)]
    assert all(after - before >= SPACING // 2 for before, after in pairwise(places))
    for at in places:
        content = GzipContent(io.BytesIO(file), "", index, at)
        assert content.position == at
        assert b"".join(content.pieces()) == TEXT[at:]
    index = indexed(file)
    stored = index.to_bytes()
    assert GzipIndex.from_bytes(stored) == index
    for wrong in (stored[:-1], stored[:100] + b"?" + stored[101:], b""):
        with pytest.raises(ValueError, match="damaged"):
            GzipIndex.from_bytes(wrong)


def test_points_lie_right_before_multiples_of_the_spacing():
    spacing = 32 * 20_000
    first, second, *_ = indexed(KINDS["level 1"], spacing).points
    for number, point in enumerate((first, second), 1):
        assert 0 <= point.content - (number * spacing - 20_000) < 200_000


@kinds
@pytest.mark.parametrize("is_indexed", [True, False])
def test_going_back_and_going_on_are_exact(file, is_indexed):
    stream = Decompressed(io.BytesIO(file), "gzip", "", indexed(file) if is_indexed else None)
    found = bytearray(50)
    for place in (0, 700_000, 5, 1_200_000, 1_200_100, len(TEXT) - 50):
        assert stream.seek(place) == place
        assert stream.readinto(memoryview(found)) == 50
        assert found == TEXT[place : place + 50]
    assert stream.seek(9_999_999) == len(TEXT), "nothing lies behind its end"
    assert stream.readinto(memoryview(found)) == 0


@pytest.mark.slow
def test_a_file_without_block_beginnings_has_no_points():
    assert indexed(gzip.compress(TEXT, 0)).points == ()


def test_each_section_is_compared_with_what_was_read_before():
    file = KINDS["level 6"]
    index = indexed(file)
    for number, point in enumerate(index.points):
        points = (*index.points[:number], replace(point, checksum=point.checksum ^ 1), *index.points[number + 1 :])
        content = GzipContent(io.BytesIO(file), "x.gz", replace(index, points=points))
        with pytest.raises(CompressionBroken, match=r"differs from what was read before, near byte [0-9]+"):
            list(content.pieces())
        assert point.content - 200_000 < content.position <= point.content
    with pytest.raises(CompressionBroken, match="differs from what was read before"):
        list(GzipContent(io.BytesIO(file), "x.gz", replace(index, checksum=index.checksum ^ 1)).pieces())


@pytest.mark.parametrize("kind", ["level 6", "members"])
def test_damage_behind_a_point_is_found_the_second_time_too(kind):
    file = KINDS[kind]
    index = indexed(file)
    point = index.points[1]
    place = point.bit // 8 + 2000
    for wrong in (file[:place], file[:-3], file[:place] + bytes([file[place] ^ 0x55]) + file[place + 1 :]):
        content = GzipContent(io.BytesIO(wrong), "x.gz", index, point.content)
        with pytest.raises(CompressionBroken, match=r"x.gz cannot be read as gzip: .+ of its content") as broken:
            list(content.pieces())
        assert point.bit // 8 < broken.value.position <= len(wrong)
        assert point.content <= broken.value.content_position <= len(TEXT)


# ---- readers


@pytest.fixture
def file(tmp_path):
    path = written(tmp_path, KINDS["level 6"], "file.gz")
    os.utime(path, (1, 1))
    return path


@pytest.fixture
def indexes(tmp_path):
    return IndexFolder(str(tmp_path / "app"), spacing=SPACING, shortest=1000)


def with_indexes(operator: Any, indexes: IndexFolder) -> Alone[Any]:
    alone = Alone(operator, now=FakeClock().now)
    alone.operator._indexes = indexes
    return alone


def blocks_of(file: Path, indexes: IndexFolder, block_size: int | None = SIZE) -> list[Block]:
    splitter = with_indexes(FileSplitterInput(scanner={"files": [str(file)]}, block_size=block_size), indexes)
    splitter.look()
    return splitter.sent()


def lines(blocks: list[Block], indexes: IndexFolder) -> list[str]:
    return read(with_indexes(LineReader(), indexes), *blocks)


@pytest.fixture
def second(file, indexes):
    """The blocks of the content of the file, which was read once."""
    lines(blocks_of(file, indexes), indexes)
    return blocks_of(file, indexes)


@pytest.mark.slow
def test_the_content_of_a_file_is_divided_once_it_was_read(file, indexes):
    first = blocks_of(file, indexes)
    assert [(block.start, block.end) for block in first] == [(0, file.stat().st_size)]
    assert lines(first, indexes) == TEXT.decode().splitlines()
    second = blocks_of(file, indexes)
    assert [block.start for block in second] == list(range(0, len(TEXT), SIZE))
    assert second[-1].end == second[0].source_size == len(TEXT), "the ledger proves that the content was read whole"
    assert lines(second, indexes) == TEXT.decode().splitlines()
    for block in reversed(second):
        assert lines([block], indexes) == lines([block], IndexFolder("")), "a lost index costs only time"


def test_the_last_record_of_a_fixed_length_ends_with_its_block(second, indexes):
    reader = with_indexes(FixedLengthReader(length=3000), indexes).operator
    for block in second:
        assert reader.record_end(block, block.start, block.end) == block.start + 3000
        last = block.start + (block.end - 1 - block.start) // 3000 * 3000
        assert reader.record_end(block, last, block.end) == block.end < last + 3000


@pytest.mark.usefixtures("second")
def test_an_index_is_found_for_the_same_content_under_another_name_and_time(file, indexes):
    other = file.rename(file.with_name("rotated.1.gz"))
    os.utime(other, (2, 2))
    assert len(blocks_of(other, indexes)) > 2
    found = Found(str(other), other.stat().st_size, 2000)
    assert content_length_of(found, "gzip", indexes) == len(TEXT)
    other.write_bytes(KINDS["level 9"])
    assert len(blocks_of(other, indexes)) == 1
    other.unlink()
    assert content_length_of(found, "gzip", indexes) is None


def test_a_damaged_index_is_not_used_and_a_part_of_the_content_is_not_read_as_bytes_of_the_file(
    second, tmp_path, caplog
):
    (kept,) = (tmp_path / "app" / FOLDER).iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    (tmp_path / "app").rename(tmp_path / "moved")  # so that it is not the one that is kept in memory
    elsewhere = IndexFolder(str(tmp_path / "moved"), spacing=SPACING, shortest=1000)
    assert lines(second[:2], elsewhere) == lines(second[:2], IndexFolder(""))
    assert "cannot be read, and is not used: it is damaged" in caplog.text
    with pytest.raises(RunFailure, match="it is a part of the content of a gzip file, and compression is none"):
        read(LineReader(compression="none"), second[1])


@pytest.mark.slow
def test_content_that_became_shorter_without_an_index_is_an_error(file, second):
    shorter, before = gzip.compress(TEXT[:-100_000]), file.stat()
    file.write_bytes(shorter + bytes(len(KINDS["level 6"]) - len(shorter)))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(CompressionBroken, match=f"ends there, and had {len(TEXT)} bytes when it was split"):
        lines(second, IndexFolder(""))


@pytest.mark.parametrize("application", ["{home}/app", "file://{home}/a%20b", "memory://indexes{home}"])
def test_an_index_is_kept_wherever_the_application_is(application, file, tmp_path):
    def folder() -> IndexFolder:
        return IndexFolder(application.format(home=tmp_path), spacing=SPACING, shortest=1000)

    lines(blocks_of(file, folder()), folder())
    assert len(blocks_of(file, folder())) > 5


def test_options_of_a_url_stay_at_its_end(file):
    place = IndexFolder("s3://bucket/app?region=eu-west-1", shortest=1).place_of(str(file), file.stat().st_size)
    assert place is not None
    assert re.fullmatch(r"s3://bucket/app/gzip-indexes/[0-9a-f]{32}\?region=eu-west-1", place)


@pytest.fixture(scope="module")
def index():
    return indexed(KINDS["level 6"])


def test_indexes_behind_urls_have_a_limit_too(index):
    folder = IndexFolder("memory://bounded", most_bytes=2 * len(index.to_bytes()))
    places = [f"memory://bounded/{FOLDER}/{name}" for name in "abc"]
    for place in places:
        folder.save(place, index)
    assert folder.load(places[2]) == index
    assert sum(folder.load(place) is not None for place in places) == 2


def test_an_index_that_cannot_be_kept_leaves_no_file(index, tmp_path, caplog):
    folder = IndexFolder(str(tmp_path))
    place = tmp_path / FOLDER / "taken"
    place.mkdir(parents=True)
    folder.save(str(place), index)
    assert (list(place.parent.iterdir()), list(place.iterdir())) == ([place], [])
    assert "the gzip index" in caplog.text


def test_an_index_that_is_used_is_not_deleted(index, tmp_path):
    folder = IndexFolder(str(tmp_path), most_bytes=2 * len(index.to_bytes()))
    first, second, third = (f"{tmp_path}/{FOLDER}/{name}" for name in ("first", "second", "third"))
    for number, place in enumerate((first, second)):
        folder.save(place, index)
        os.utime(place, (number, number))
    assert folder.load(first) == index
    folder.save(third, index)
    assert sorted(path.name for path in (tmp_path / FOLDER).iterdir()) == ["first", "third"]


def test_read_files_divides_what_match_files_found_with_an_index(file, indexes):
    def found() -> FileInfo:
        match = with_indexes(MatchFiles(), indexes)
        match.work(str(file))
        return match.sent()[0]

    assert found().content_length is None
    reader = with_indexes(ReadFiles(part_size=SIZE), indexes)
    reader.work(found())
    assert reader.sent() == TEXT.decode().splitlines()
    again = found()
    whole = reader.operator.initial_restriction(again)
    assert whole == OffsetRange(0, len(TEXT)) == OffsetRange(0, again.content_length)
    assert len(list(reader.operator.split(again, whole))) == -(-len(TEXT) // SIZE)
    reader.work(again)
    assert reader.sent() == TEXT.decode().splitlines()
    assert ReadFiles(compression="none").initial_restriction(again) == OffsetRange(0, file.stat().st_size)


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_a_file_that_arrives_is_divided_as_one_that_is_found(most, file, indexes):
    def arrived() -> list[Block]:
        splitter = with_indexes(FileSplitterBase(block_size=SIZE, blocks_threshold=most), indexes)
        blocks: list[Block] = []
        within: Any = None
        while True:
            with splitter.window():
                assert splitter.work(FileInfo(str(file)), within) is None
            sent = splitter.sent()
            assert len(sent) <= most
            blocks += sent
            if splitter.deferred is None:
                return blocks
            within = splitter.deferred.residual

    assert lines(arrived(), indexes) == TEXT.decode().splitlines()
    second = arrived()
    found = blocks_of(file, indexes)
    assert [(block.start, block.end) for block in second] == [(block.start, block.end) for block in found]
    assert len(second) > 5
    assert lines(second, indexes) == TEXT.decode().splitlines()


@pytest.mark.parametrize("content_length", [1000, 99_999, 1_032_000])
def test_blocks_of_a_content_have_places_of_their_own_in_the_file(content_length):
    cut: Cut | None = Cut("a.gz", 1000, 0, "", 0, content_length=content_length)
    splitter, places = FileSplitterBase(block_size=1), []
    while cut is not None:
        places.append(cut.place)
        _, cut = splitter._split_next(cut, 1)
    assert places == list(range(len(places)))
    assert len(places) <= 1000


@pytest.mark.slow
def test_an_application_keeps_the_index_beside_its_ledger(file, monkeypatch):
    for name, least in (("spacing", SPACING), ("shortest", 1000)):
        monkeypatch.setitem(IndexFolder.__init__.__kwdefaults__, name, least)
    scanner = {"files": [str(file)]}
    find = FileSplitterInput(scanner=scanner, block_size=SIZE)
    rehearsal = Rehearsal(chain(find=find, read=LineReader()))

    def blocks() -> int:
        """Run until all is read, and return the number of blocks so far."""
        rehearsal.run()
        rehearsal.run()  # the journal knows what the last run left
        return int(rehearsal.loop.run_state.journal.state_of("find")["next_block_id"])

    assert blocks() == 1
    assert len(list(Path(rehearsal._folder, FOLDER).iterdir())) == 1
    os.utime(file, (5, 5))
    assert blocks() == 1 + -(-len(TEXT) // SIZE)
