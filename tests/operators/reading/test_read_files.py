"""Files that others found are read line by line, each line once, and readers report where their records end."""

import gzip
import io
import pickle
from pathlib import Path

import fastavro
import pytest

from dagkit import Block, OutputPort
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone
from dagkit_operators import (
    AvroReader,
    CsvContext,
    CsvReader,
    FileInfo,
    FileSplitterBase,
    LineReader,
    LineRejected,
    ReadFiles,
    Rejected,
)
from dagkit_operators.writing.record_writer import as_bytes
from tests.operators.reading.cast import found, written
from tests.operators.reading.test_tail import Log


class ReadNumbers(ReadFiles[int]):
    messages = OutputPort(int, main=True)


@pytest.mark.parametrize(
    ("operator", "content", "records"),
    [
        (ReadFiles(), "one\n\ntwo ä\nthree", ["one", "", "two ä", "three"]),
        (ReadFiles(skip_header_lines=1, keep_returns=False), "number\r\n1\r\n2\n", ["1", "2"]),
        (ReadNumbers(parse=int), "1\n2\n", [1, 2]),
    ],
    ids=["lines as they are", "without header and returns", "records that are made of them"],
)
def test_the_lines_of_a_file_are_sent_as_one_batch(operator, content, records, tmp_path):
    alone = Alone(operator)
    alone.work(found(written(tmp_path, content)))
    assert alone.batches() == [records]


def test_a_large_file_is_allocated_in_parts(tmp_path):
    file, operator = found(written(tmp_path, "x" * 70)), ReadFiles(part_size=20)
    parts = operator.split(file, operator.initial_restriction(file))
    assert list(parts) == [OffsetRange(0, 20), OffsetRange(20, 40), OffsetRange(40, 60), OffsetRange(60, 70)]


def test_what_is_no_record_is_rejected_with_its_place_and_reason(tmp_path):
    alone, file = Alone(ReadNumbers(parse=int, chunk_size=4)), found(written(tmp_path, "1\n2\nx\n3\n\n"))
    alone.work(file)
    assert alone.sent() == [1, 2, 3]
    assert alone.sent("rejected") == [
        Rejected(file.path, 4, "x", "invalid literal for int() with base 10: 'x'"),
        Rejected(file.path, 8, "", "invalid literal for int() with base 10: ''"),
    ]


LINES = b"head\r\n1\r\n\rx\n22\r\ny\\\n\xff\r\n3\nz"
"""A header, and numbers at bytes 6, 12 and 22; none of the other lines is one."""


@pytest.mark.parametrize("ending", ["", ".gz"], ids=["plain", "compressed"])
@pytest.mark.parametrize("chunk_size", [5, 1 << 20], ids=["in several batches", "in one batch"])
@pytest.mark.parametrize("keep_returns", [True, False])
@pytest.mark.parametrize("escape", ["", "\\"])
def test_what_is_rejected_is_found_at_its_place(ending, chunk_size, keep_returns, escape, tmp_path):
    path = written(tmp_path, gzip.compress(LINES) if ending else LINES, f"file{ending}")
    alone = Alone(
        ReadNumbers(parse=int, chunk_size=chunk_size, keep_returns=keep_returns, escape=escape, skip_header_lines=1)
    )
    alone.work(found(path))
    assert alone.sent() == [1, 22, 3]
    rejected = alone.sent("rejected")
    assert [each.start for each in rejected] == ([9, 16, 24] if escape else [9, 16, 19, 24])
    assert all(LINES[each.start or 0 :].startswith(as_bytes(each.text)) for each in rejected)


@pytest.mark.parametrize("keep_returns", [True, False])
def test_a_line_that_stops_reading_is_named_by_its_place(keep_returns, tmp_path):
    """Without a receiver of rejected lines, one is an error; an error of another kind is no rejection."""
    file = found(written(tmp_path, "1\r\n2\r\nx\r\n"))
    with pytest.raises(LineRejected, match="the line at byte 6 is rejected: invalid literal") as rejected:
        Alone(ReadNumbers(parse=int, keep_returns=keep_returns), connected=["messages"]).work(file)
    assert "connect the output `rejected` to continue" in str(rejected.value)
    assert str(pickle.loads(pickle.dumps(rejected.value))) == str(rejected.value)  # noqa: S301 - our own
    with pytest.raises(ZeroDivisionError) as raised:
        Alone(ReadFiles(parse=lambda line: 1 // (line.strip() != "x"), keep_returns=keep_returns)).work(file)
    line = "x\r" if keep_returns else "x"
    (note,) = raised.value.__notes__
    rule = "only a ValueError rejects a record, any other exception fails the run"
    assert note == f"of the line at byte 6 of {tmp_path}/file: {line!r}; {rule}"


def block_of(path: Path) -> Block:
    splitter = Alone(FileSplitterBase())
    splitter.work(FileInfo(str(path)))
    (block,) = splitter.sent()
    return block


def test_a_batch_of_rows_ends_with_the_last_row_that_starts_in_its_range(tmp_path):
    block = block_of(written(tmp_path, "n\n12\n34\n56\n"))
    reader = CsvReader(reader_context=CsvContext(types={"n": "int64"}, sends="batches"))
    assert [reader.record_end(block, 2, stop) for stop in range(3, 12)] == [5, 5, 5, 8, 8, 8, 11, 11, 11]


def test_a_data_block_of_a_file_that_was_found_too_early_ends_where_it_does(tmp_path):
    content = io.BytesIO()
    fastavro.writer(content, "string", ["apple", "bread"], sync_interval=1)
    whole = content.getvalue()
    block = block_of(written(tmp_path, whole[:-20]))
    written(tmp_path, whole)
    start = whole.index(b"apple") - 3
    size = len(b"apple") + 3 + 16
    assert len(whole) == start + 2 * size, "the data blocks end the file"
    assert AvroReader().record_end(block, start, block.end) == start + size
    assert AvroReader().record_end(block, start + size, block.end) == len(whole)


def test_a_line_of_a_compressed_file_that_was_found_too_early_ends_where_it_does(tmp_path):
    whole = gzip.compress(b"one\ntwo")
    block = block_of(written(tmp_path, whole[:-3], "file.gz"))
    written(tmp_path, whole, "file.gz")
    assert [LineReader().record_end(block, start, block.end) for start in (0, 4)] == [4, 7]


def test_a_line_that_was_appended_ends_where_it_does_whatever_name_the_file_has_now(tmp_path):
    log = Log(tmp_path)
    log.write("second\nthird\n")
    reader = log.alone.operator
    log.rename()
    assert [reader.record_end(log.file, start, 20) for start in (0, 6, 13)] == [6, 13, 19]
    with reader.opened_content(log.file) as stream:
        stream.seek(6)
        line = memoryview(bytearray(6))
        assert (stream.readinto(line), bytes(line)) == (6, b"second")
