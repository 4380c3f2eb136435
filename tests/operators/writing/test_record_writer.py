"""What is written is what was read, to the byte, in one file for each block."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dagkit import Batch, Constant, Lines, Listed
from dagkit.testing import Alone
from dagkit_operators import Record, RecordWriter

RECORDS = [Record(1, "a"), Record(31, "b"), Record(1, ""), Record(1, "ä\udcff")]
WRITTEN = {"1": b"a\n\n\xc3\xa4\xff\n", "1f": b"b\n"}


def lines(block_id: int, *texts: bytes, delimiter: bytes = b"\n") -> Batch[Record[str]]:
    ended = pa.array([text + delimiter for text in texts], pa.binary())
    return Batch({"block_id": Constant(block_id, len(texts)), "value": Lines(ended, delimiter)}, Record)


def writer(**properties: Any) -> Alone[RecordWriter]:
    return Alone(RecordWriter(file_path="output", **properties))


def test_a_file_for_each_block_is_named_in_hexadecimal():
    one_by_one, at_once, of_columns = writer(), writer(), writer()
    one_by_one.send(*RECORDS)
    at_once.send_batch(RECORDS)
    of_columns.send_batch(
        Batch({"block_id": Listed([1, 31, 1, 1]), "value": Listed([record.value for record in RECORDS])}, Record)
    )
    assert one_by_one.written() == at_once.written() == of_columns.written() == WRITTEN
    assert {name: file.block for name, file in one_by_one.files["files"].opened.items()} == {"1": 1, "1f": 31}


def test_lines_are_written_as_they_stand_in_one_piece():
    at_work = writer()
    at_work.send_batch(lines(1, b"a", b"", b"\xff"))
    assert at_work.written() == {"1": b"a\n\n\xff\n"}
    assert at_work.files["files"].opened["1"].writes == 1


@pytest.mark.parametrize("separator", ["", "\r\n", "€", "\n"])
def test_records_end_as_their_property_says(separator):
    one_by_one, of_lines, of_others = (writer(record_separator=separator) for _ in range(3))
    one_by_one.send(Record(1, "a"), Record(1, "b"))
    of_lines.send_batch(lines(1, b"a", b"b", delimiter=b"\r\n"))
    of_others.send_batch([Record(1, "a"), Record(1, "b")])
    expected = {"1": f"a{separator}b{separator}".encode()}
    assert one_by_one.written() == of_lines.written() == of_others.written() == expected


def test_records_may_be_bytes():
    one_by_one, at_once = writer(), writer()
    one_by_one.send(Record(1, b"\xff"), Record(1, b""))
    at_once.send_batch([Record(1, b"\xff"), Record(1, b"")])
    assert one_by_one.written() == at_once.written() == {"1": b"\xff\n\n"}


def test_a_block_without_records_has_no_file():
    at_work = writer()
    at_work.send_batch(lines(1))
    at_work.send_batch([])
    assert at_work.written() == {}


def test_what_is_neither_text_nor_bytes_is_refused():
    with pytest.raises(TypeError, match=r"record 7 of block 1 is neither text nor bytes; .* Map"):
        writer().send(Record(1, 7))
    with pytest.raises(TypeError, match=r"record 7 of block 1 is neither text nor bytes; .* Map"):
        writer().send_batch([Record(1, "a"), Record(1, 7)])


@pytest.mark.parametrize("place", ["out", Path("out"), "s3://bucket/out"])
def test_the_directory_is_a_path_or_a_url(place):
    assert RecordWriter(file_path=place).file_path == str(place)


@pytest.mark.parametrize("place", ["", 7, None])
def test_what_is_no_directory_is_a_fault(place):
    (fault,) = RecordWriter(file_path=place).faults
    assert fault.path == "file_path"
