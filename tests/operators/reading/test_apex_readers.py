"""The test cases of Malhar's block readers, under their names, and its defects, none of which is here.

The defects are those of Malhar 3.8: a last line without a newline is lost in blocks of 8 KiB and more (A), characters
of several bytes are counted as one (B), and a CR LF that two reads divide makes a record that is not there (C).
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs as pa_fs

from dagkit import Block, Until
from dagkit.engine.record.run_events import Measured, RunEvent
from dagkit.testing import Alone, FakeClock
from dagkit_operators import (
    FileSliceReader,
    FileSplitterInput,
    FSSliceReader,
    LineReader,
    LineReaderContext,
    ReadAheadLineReaderContext,
    RecordReader,
)
from tests.cases import cases
from tests.engine.cast import Desk, Hurried, chain, some_lines
from tests.engine.parts.test_listeners import Roomy
from tests.operators.reading.cast import blocks_of, read, values, written

LINES = [f"{1 + n % 28:02}/{1 + n % 12:02}/2014,{n:05},".ljust(122, "abcdefghij"[n % 10]) for n in range(1000)]
"""A thousand lines of 123 bytes, newline included, that begin with a date."""


class DatedLineReader(LineReader):
    """Malhar's FSLineReaderTest: a line is complete if it begins with a date."""

    kind = "test.dated-line-reader/1"
    reader_context: LineReaderContext = LineReaderContext()

    def convert_to_record(self, content: bytes) -> str | None:
        return content.decode() if re.match(rb"\d\d/\d\d/\d{4}", content) else None


class ReadAheadLineReader(LineReader):
    """Malhar's ReadAheadLineReaderTest: every record is a complete line."""

    kind = "test.read-ahead-line-reader/1"
    reader_context: ReadAheadLineReaderContext = ReadAheadLineReaderContext()

    def convert_to_record(self, content: bytes) -> str:
        return content.decode()


READERS = pytest.mark.parametrize("reader", [DatedLineReader(), ReadAheadLineReader()], ids=["line", "read ahead"])


@pytest.fixture
def data(tmp_path):
    return written(tmp_path, "".join(f"{line}\n" for line in LINES))


@READERS
def test_test(reader, data):
    """FSLineReaderTest.test: the whole file is one block."""
    (block,) = blocks_of(data)
    assert (block.end, read(reader, block)) == (123_000, LINES)


@READERS
def test_multiple_blocks(reader, data):
    """FSLineReaderTest.testMultipleBlocks: 123 blocks in their order."""
    blocks, alone = blocks_of(data, 1000), Alone(reader)
    assert len(blocks) == 123
    for block in blocks:
        alone.work(block)
    assert values(alone) == LINES
    # a block that begins in the middle of a line drops the end of that line
    dropped = sum(block.start % 123 != 0 for block in blocks)
    assert alone.metrics["records_dropped"] == (dropped if isinstance(reader, DatedLineReader) else 0)


@READERS
def test_non_consecutive_blocks(reader, data):
    """FSLineReaderTest.testNonConsecutiveBlocks: every tenth block, ten times."""
    blocks = blocks_of(data, 1000)
    assert sorted(read(reader, *(block for first in range(10) for block in blocks[first::10]))) == sorted(LINES)


def test_bytes_received(data):
    """FSSliceReaderTest.testBytesReceived: the slices of blocks of 1500 bytes are the file."""
    slices = read(FSSliceReader(), *blocks_of(data, 1500))
    assert b"".join(one.to_bytes() for one in slices) == data.read_bytes()
    assert len(slices) == 82


def test_block_size(data):
    """FSSliceReaderTest.testBlockSize: without a length, slices are as long as the filesystem's blocks."""

    class Small(FSSliceReader):
        kind = "test.small-blocks/1"

        def get_default_block_size(self, path: str) -> int:
            assert path == str(data)
            return 1000

    for reader, length in [(Small(), 1000), (Small(reader_context={"length": 500}), 500)]:
        assert {one.length for one in read(reader, *blocks_of(data))} == {length}


@pytest.mark.parametrize("reader", [FSSliceReader(), FileSliceReader(reader_context={"length": None})])
@pytest.mark.parametrize(
    ("path", "size"),
    [("/data/a", 64 << 20), ("hdfs://host/a", 128 << 20), ("hdfs://host/a?default_block_size=4096", 4096)],
)
def test_slices_are_as_long_as_the_blocks_that_a_splitter_makes_of_the_file(reader, path, size):
    assert reader.context_for(path).stride == FileSplitterInput(scanner={"files": [path]})._size_for(path) == size


def test_the_filesystem_may_be_given(data):
    """As `getFSInstance` of Malhar's AbstractFSBlockReader."""

    class Below(ReadAheadLineReader):
        kind = "test.below/1"

        def get_fs_instance(self) -> Any:
            return pa_fs.SubTreeFileSystem(str(data.parent), pa_fs.LocalFileSystem())

    whole = Block(0, data.name, 0, 123_000, facts={"length": 123_000})
    assert read(Below(), whole) == LINES


@pytest.fixture
def record_files(tmp_path):
    """The files of FSRecordReaderTest."""
    texts = ("1234\n567890\nabcde\nfgh\ni\njklmop", "qr\nstuvw\nxyz\n")
    return [written(tmp_path, text, f"file{number}.txt") for number, text in enumerate(texts)]


def records_of(reader: RecordReader, paths: list[Path]) -> list[bytes]:
    alone = Alone(reader)
    records = read(alone, *(block for path in paths for block in blocks_of(path)))
    assert alone.sent("records") == records
    return records


def test_delimited_records(record_files):
    """FSRecordReaderTest.testDelimitedRecords: a last record without a newline is one."""
    expected = [b"1234", b"567890", b"abcde", b"fgh", b"i", b"jklmop", b"qr", b"stuvw", b"xyz"]
    assert records_of(RecordReader(mode="DELIMITED_RECORD"), record_files) == expected


def test_fixed_width_records(record_files):
    """FSRecordReaderTest.testFixedWidthRecords: files are not joined, and short tails are kept."""
    expected = [b"1234\n567", b"890\nabcd", b"e\nfgh\ni\n", b"jklmop", b"qr\nstuvw", b"\nxyz\n"]
    assert records_of(RecordReader(mode="FIXED_WIDTH_RECORD", record_length=8), record_files) == expected


@cases(
    "context, size, records",
    ("read ahead, blocks of 5", ReadAheadLineReaderContext(), 5, ["aaaa", "bbbb", "cccc"]),
    ("line, blocks of 5", LineReaderContext(), 5, ["aaaa", "bbbb", "cccc"]),
    ("line, blocks of 7", LineReaderContext(), 7, ["aaaa", "bbbb", "bb", "cccc", ""]),
)
def test_golden_examples(context, size, records, tmp_path):
    path = written(tmp_path, "aaaa\nbbbb\ncccc\n")
    assert read(LineReader(reader_context=context), *blocks_of(path, size)) == records


CONTEXTS = pytest.mark.parametrize(
    "context", [LineReaderContext(), ReadAheadLineReaderContext()], ids=["line", "read ahead"]
)


@CONTEXTS
@pytest.mark.parametrize("length", [11_000, 45_000])
def test_bug_a_a_last_line_without_a_newline_is_a_record(context, length, tmp_path):
    lines = [f"{n:099}" for n in range(length // 100)]
    path = written(tmp_path, "\n".join(lines))
    for size in (1 << 20, 65536, 16384):
        assert read(LineReader(reader_context=context, chunk_size=8192), *blocks_of(path, size))[-1] == lines[-1]


@pytest.mark.parametrize(
    ("context", "size"),
    [(LineReaderContext(), 1 << 20), *((ReadAheadLineReaderContext(), size) for size in (1 << 20, 16384, 4096, 1000))],
    ids=["line", "read ahead", "read ahead, 16384", "read ahead, 4096", "read ahead, 1000"],
)
@pytest.mark.parametrize("end", ["\n", ""], ids=["with a last newline", "without"])
def test_bug_b_characters_of_several_bytes_make_no_further_records(context, size, end, tmp_path):
    lines = [f"row {n} é" for n in range(3000)]
    path = written(tmp_path, "\n".join(lines) + end)
    assert read(LineReader(reader_context=context, chunk_size=8192), *blocks_of(path, size)) == lines


@CONTEXTS
@pytest.mark.parametrize("place", [8191, 16383])
def test_bug_c_a_newline_that_two_reads_divide_ends_one_line(context, place, tmp_path):
    path = written(tmp_path, "a" * place + "\r\n" + "b\r\n")
    reader = LineReader(reader_context=context, keep_returns=False, chunk_size=place + 1)
    assert read(reader, *blocks_of(path)) == ["a" * place, "b"]


def runs(content: bytes) -> Iterator[str]:
    """Malhar's lines: what ends a line is a run of CR and LF, however long."""
    for found in re.finditer(rb"([^\r\n]*)[\r\n]*", content):
        if found.group():
            yield found.group(1).decode()


def test_runs_of_line_ends_collapse_as_in_malhar(tmp_path):
    chance = random.Random(17)  # noqa: S311 - nothing is to be kept secret
    for _ in range(200):
        content = bytes(chance.choice(b"ab\n\r") for _ in range(chance.randrange(1, 40)))
        context = ReadAheadLineReaderContext(collapse_line_ends=True, chunk_size=chance.randint(1, 20))
        blocks = blocks_of(written(tmp_path, content), chance.randint(1, 20))
        assert read(LineReader(reader_context=context), *blocks) == list(runs(content)), content


@pytest.mark.slow
def test_counters_transfer(tmp_path):
    """In Malhar, a reader that stays takes over the counters of those that are removed; here, each window counts."""
    find = FileSplitterInput(written(tmp_path, some_lines(300)), block_size=200)
    draw = chain(Find=find, Read=LineReader(policy="apex", max_readers=8, interval_millis=0))
    windows: list[Measured] = []

    def observe(happening: RunEvent) -> None:
        if isinstance(happening, Measured):
            windows.append(happening)
            counts = [len(each.operators["Read"]) for each in windows]
            is_read = not any(queue.blocks for queue in happening.queues)
            if 8 in counts and counts[-1] == 1 and is_read:
                loop.stop()

    desk = Desk(tmp_path, draw, backend=lambda b: Hurried(Roomy(b, 8)), clock=FakeClock(), until=Until.STOPPED)
    loop = desk.loop(observers=[observe])
    loop.run()
    assert {len(each.operators["Read"]) for each in windows} >= {8, 1}
    assert sum(each.metrics["Read"]["bytes_read"] for each in windows) == len(some_lines(300))
