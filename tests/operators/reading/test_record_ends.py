"""Where records end, as readers report it to `dagkit trace`: see also tests/cli/inspecting/test_trace.py."""

import gzip
import io
from pathlib import Path

import fastavro

from dagkit import Block
from dagkit.testing import Alone
from dagkit_operators import AvroReader, CsvContext, CsvReader, FileInfo, FileSplitterBase, LineReader
from tests.operators.reading.cast import written
from tests.operators.reading.test_tail import Log


def block_of(path: Path) -> Block:
    """A file as one block."""
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
