"""Slices are written to their places in any order, and a file gets its name when all of it is there."""

import tempfile
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Block, Config
from dagkit.compiler import compile_application
from dagkit.engine.files.pieces import Syncing
from dagkit.engine.files.regions import Regions
from dagkit.engine.files.staging import Staging, StagingPlace
from dagkit.errors import ApplicationFaults
from dagkit.testing import Alone
from dagkit_operators import (
    FileMerger,
    FileSlice,
    FileSliceReader,
    FileSplitterInput,
    FSSliceWriter,
    Items,
    MergedFile,
    Record,
)
from dagkit_operators.filesystem.snapshot import FileChanged
from dagkit_operators.payloads import FileMetadata, key_of_copy
from dagkit_operators.writing.slice_writer import CHUNK, Stretch, crc32_of_both, joined_with
from tests.engine.cast import Desk, chain
from tests.old_files import old_file
from tests.operators.ways import files_of_at_most, placed, refused

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - another filesystem than that of the tests
KEY = key_of_copy("/in/a", 6, 7)
FILE = FileMetadata("/in/a", 6, 7, relative_path="in/a")


@given(first=st.binary(max_size=40), second=st.binary(max_size=40))
def test_checksums_of_two_texts_give_that_of_both(first, second):
    assert crc32_of_both(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(first + second)


@given(content=st.binary(min_size=1, max_size=30), data=st.data())
def test_stretches_in_any_order_are_joined_to_the_whole(content, data):
    cuts = sorted({0, len(content), *data.draw(st.lists(st.integers(0, len(content)), max_size=5))})
    parts = [Stretch("f", start, end, zlib.crc32(content[start:end])) for start, end in pairwise(cuts)]
    joined = ()
    for part in data.draw(st.permutations(parts)):
        joined = joined_with(joined, part)
    assert joined == (Stretch("f", 0, len(content), zlib.crc32(content)),)


def test_an_application_window_of_several_streaming_windows_is_refused():
    draw = chain(slices=Items[Record[FileSlice]](items=()), write=FSSliceWriter(file_path="out"))
    with pytest.raises(ApplicationFaults, match="write cannot be saved inside an application window"):
        compile_application(draw, Config.of({"dt.operator.write.attr.APPLICATION_WINDOW_COUNT": 2}))


@pytest.mark.parametrize("checksums", [True, False])
def test_a_writer_reports_what_it_wrote_and_joins_what_touches(checksums):
    at_work = Alone(FSSliceWriter(file_path="out", checksums=checksums))
    with at_work.window():
        at_work.send(Record(1, FileSlice(KEY, 4, b"ef")), Record(0, FileSlice(KEY, 0, b"a")))
        at_work.send_batch([Record(0, FileSlice(KEY, 1, b"bc"))])
    assert at_work.files["files"].together == {KEY: bytearray(b"abc\0ef")}
    first, second = (zlib.crc32(text) if checksums else None for text in (b"ef", b"abc"))
    assert at_work.sent("written") == [Stretch(KEY, 4, 6, first), Stretch(KEY, 0, 3, second)]


@pytest.mark.parametrize("checksums", [True, False])
def test_a_slice_that_names_its_bytes_is_copied_from_its_file(checksums, tmp_path):
    content = bytes(range(256)) * (CHUNK // 200)  # more than the writer copies at a time
    (tmp_path / "a").write_bytes(content)
    at_work = Alone(FSSliceWriter(file_path="out", checksums=checksums))
    with at_work.window():
        at_work.send(Record(0, FileSlice(KEY, 2, path=str(tmp_path / "a"), length=4)))
        at_work.send(Record(0, FileSlice(KEY, 6, path=str(tmp_path / "a"), length=len(content) - 6)))
    assert at_work.files["files"].together == {KEY: bytearray(b"\0\0" + content[2:])}
    checksum = zlib.crc32(content[2:]) if checksums else None
    assert at_work.sent("written") == [Stretch(KEY, 2, len(content), checksum)]
    with pytest.raises(FileChanged, match=f"a ends at byte {len(content)}, and was longer when it was split"):
        at_work.send(Record(0, FileSlice(KEY, 2, path=str(tmp_path / "a"), length=len(content) - 1)))


@pytest.mark.parametrize("by_place", [True, False])
def test_a_reader_names_bytes_or_carries_them(by_place, tmp_path):
    path = str(tmp_path / "a")
    Path(path).write_bytes(b"0123456789")
    reader = Alone(FileSliceReader(by_place=by_place, reader_context={"length": 3}, chunk_size=6))
    block = Block(4, path, 0, 8, False, "", {"length": 10, "modified_millis": 7})
    rest = reader.work(block, split_after=1)
    reader.work(rest)
    key = key_of_copy(path, 10, 7)
    named = [FileSlice(key, 0, path=path, length=6), FileSlice(key, 6, path=path, length=2)]
    carried = [FileSlice(key, 0, b"012"), FileSlice(key, 3, b"345"), FileSlice(key, 6, b"67")]
    assert [record.value for record in reader.sent()] == (named if by_place else carried)


@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="there is no second filesystem")
def test_bytes_of_another_filesystem_are_copied(tmp_path):
    content = bytes(range(256)) * 1000
    with tempfile.NamedTemporaryFile(dir=SHARED_MEMORY) as source:
        source.write(content)
        source.flush()
        regions = Regions(str(tmp_path), Syncing(), durable=False)
        assert regions.copy_at("k", 1000, source.name, 10**6) == len(content) - 1000
        regions.close()
    (whole,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert whole.read_bytes() == bytes(1000) + content[1000:]


def merger(**properties):
    return Alone(FileMerger(file_path="out", **properties))


@pytest.mark.parametrize("early", [True, False], ids=["metadata first", "metadata last"])
def test_a_file_gets_its_name_when_all_of_it_is_written(early):
    at_work = merger()
    at_work.files["files"].write_at(KEY, 0, b"abcdef")
    with at_work.window():
        if early:
            at_work.send(FILE, to="metadata")
        at_work.send(Stretch(KEY, 2, 6, zlib.crc32(b"cdef")), to="written")
    assert at_work.written() == {}
    at_work = at_work.restarted()
    with at_work.window():
        at_work.send(Stretch(KEY, 0, 2, zlib.crc32(b"ab")), to="written")
        if not early:
            at_work.send(FILE, to="metadata")
    assert at_work.written() == {"in/a": b"abcdef"}
    assert at_work.sent() == [MergedFile("/in/a", "in/a", 6, zlib.crc32(b"abcdef"))]
    assert at_work.operator.expected == at_work.operator.stretches == {}


def test_an_empty_file_is_complete_at_once():
    at_work = merger()
    with at_work.window():
        at_work.send(FileMetadata("/in/e", 0, 7, relative_path="in/e"), to="metadata")
    assert at_work.written() == {"in/e": b""}
    assert at_work.files["files"].finished == {"in/e"}
    assert [str(file) for file in at_work.sent()] == ["00000000  in/e"]


def copying(home):
    def draw(dag, conf):
        splitter = FileSplitterInput(scanner={"files": [str(home / "in")]}, block_size=1 << 16)
        operators = {
            "splitter": splitter,
            "reader": FileSliceReader(reader_context={"length": 10_000}),
            "writer": FSSliceWriter(file_path=str(home / "out")),
        }
        copies, merger = placed(dag, **operators), dag.add_operator("merger", FileMerger(file_path=str(home / "out")))
        copies["splitter"].files_metadata_output >> merger.metadata
        copies["writer"].written >> merger.written

    return draw


def desk_with(home, files, **given):
    for name, content in files.items():
        old_file(home / name, content)
    return Desk(home, copying(home), **given)


def test_block_writing(tmp_path):
    """PartFileWriterTest.testBlockWriting: each block is written to its place, also of files of other lengths."""
    files = {f"in/{length}": bytes(number % 251 for number in range(length)) for length in (0, 1, 65_536, 200_000)}
    desk = desk_with(tmp_path, files)
    desk.run()
    assert desk.outputs() == files


def test_a_disk_that_is_full_is_reported_with_file_and_byte_and_nothing_is_lost(tmp_path):
    """A limit of the length of files stands for a full disk: the write that passes it is short, the next one fails."""
    files = {"in/a": bytes(range(256)) * 1000}
    desk = desk_with(tmp_path, files)
    problem = "cannot be staged in the application's folder at byte 100000: File too large; nothing of the"
    with files_of_at_most(100_000), refused("staging-failed", f"in/a@256000.*{problem}"):
        desk.run()
    assert desk.outputs() == {}
    desk.run()
    assert (desk.outputs(), desk.faults(), desk.leftovers()) == (files, [], [])


def together(desk):
    """The folders of the files that slots write together."""
    return {path.name for path in Path(desk.place, "staging").glob("together-*")}


def test_a_launch_removes_slices_that_no_file_will_be_made_of_and_keeps_those_of_incomplete_files(tmp_path):
    files = {"in/a": bytes(range(256)) * 1000}
    desk = desk_with(tmp_path, files, conf={"dt.operator.splitter.prop.blocksThreshold": 1})
    desk.run(windows=2)
    incomplete = together(desk)
    assert len(incomplete) == 1
    overtaken = Regions(desk.place, Syncing(), durable=False)
    overtaken.write_at(KEY, 0, b"abcdef")
    overtaken.close()
    assert len(together(desk)) == 2
    desk.run(windows=1)
    assert together(desk) == incomplete
    desk.run()
    assert (desk.outputs(), together(desk), desk.faults(), desk.leftovers()) == (files, set(), [], [])


def test_an_operator_that_adopts_files_declares_which(tmp_path):
    staging = Staging(StagingPlace(str(tmp_path), 1, "a", durable=False), 0)
    files = staging.files("merger", str(tmp_path / "out"))
    with pytest.raises(ValueError, match=r"merger adopts a file.* pass incomplete to its OutputFiles"):
        files.adopt("a", KEY, 6)


def test_an_earlier_state_of_a_file_does_not_replace_a_later_one():
    at_work = merger(overwrite_on_conflict=True)
    later_key, files = key_of_copy("/in/a", 2, 8), at_work.files["files"]
    with at_work.window():
        at_work.send(FILE, FileMetadata("/in/a", 2, 8, relative_path="in/a"), to="metadata")
        files.write_at(later_key, 0, b"xy")
        at_work.send(Stretch(later_key, 0, 2), to="written")
    assert files.contents() == {"in/a": b"xy"}
    with at_work.window():
        files.write_at(KEY, 0, b"abcdef")
        at_work.send(Stretch(KEY, 0, 6), to="written")
    assert files.contents() == {"in/a": b"xy"}
    assert (at_work.operator.expected, at_work.operator.stretches) == ({}, {})


def test_of_two_states_in_one_window_the_later_one_gets_the_name():
    at_work = merger(overwrite_on_conflict=True)
    files = at_work.files["files"]
    with at_work.window():
        files.write_at(KEY, 0, b"abcdef")
        at_work.send(FILE, to="metadata")
        at_work.send(Stretch(KEY, 0, 6), to="written")
        at_work.send(FileMetadata("/in/a", 0, 8, relative_path="in/a"), to="metadata")
    assert key_of_copy("/in/a", 0, 8) not in files.together
    assert files.contents() == {"in/a": b""}


def test_two_files_of_one_name_are_refused():
    at_work = merger()
    at_work.send(FileMetadata("/in/a", 0, 8, relative_path="in/a"), to="metadata")
    with pytest.raises(ValueError, match="/in/a and /other/a are both copied to in/a"):
        at_work.send(FileMetadata("/other/a", 0, 8, relative_path="in/a"), to="metadata")
