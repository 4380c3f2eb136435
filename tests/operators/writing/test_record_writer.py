"""What is written is what was read, to the byte, in one file for each block."""

from pathlib import Path

import pytest

from dagkit import Batch, Listed
from dagkit.testing import Alone
from dagkit_operators import Record, RecordWriter
from tests.operators.ways import BOTH_WAYS, lines, of_block


def writer(**properties):
    return Alone(RecordWriter(file_path="output", **properties))


def test_a_file_for_each_block_is_named_in_hexadecimal():
    records = [Record(1, "a"), Record(31, "b"), Record(1, ""), Record(1, "ä\udcff"), Record(31, b"\xff")]
    one_by_one, batches, of_columns = writer(), writer(), writer()
    one_by_one.send(*records)
    batches.send_batch(records)
    values = [record.value for record in records]
    of_columns.send_batch(Batch({"block_id": Listed([1, 31, 1, 1, 31]), "value": Listed(values)}, Record))
    expected = {"1": b"a\n\n\xc3\xa4\xff\n", "1f": b"b\n\xff\n"}
    assert one_by_one.written() == batches.written() == of_columns.written() == expected
    assert {name: file.block for name, file in one_by_one.files["files"].opened.items()} == {"1": 1, "1f": 31}


def test_lines_are_written_as_they_stand_in_one_piece_and_none_without_lines():
    at_work = writer()
    at_work.send_batch([])
    at_work.send_batch(of_block(lines()))
    assert at_work.written() == {}
    at_work.send_batch(of_block(lines(b"a", b"", b"\xff")))
    assert at_work.written() == {"7": b"a\n\n\xff\n"}
    assert at_work.files["files"].opened["7"].writes == 1


@pytest.mark.parametrize("separator", ["", "\r\n", "€", "\n"])
def test_records_end_as_their_property_says(separator):
    at_work = writer(record_separator=separator)
    at_work.send(Record(7, "a"))
    at_work.send_batch(of_block(lines(b"b", b"c", delimiter=b"\r\n")))
    at_work.send_batch([Record(7, "d"), Record(7, "e")])
    at_work.send_batch([Record(7, b"f"), Record(7, b"g")])
    assert at_work.written() == {"7": "".join(f"{text}{separator}" for text in "abcdefg").encode()}


@BOTH_WAYS
def test_what_is_neither_text_nor_bytes_is_refused(send):
    with pytest.raises(TypeError, match=r"record 7 of block 1 is neither text nor bytes; .* Map"):
        send(writer(), Record(1, "a"), Record(1, 7))


@pytest.mark.parametrize("place", ["out", Path("out"), "s3://bucket/out", "", 7, None])
def test_the_directory_is_a_path_or_a_url(place):
    written = RecordWriter(file_path=place)
    assert [fault.path for fault in written.faults] == ["file_path"] * (place in ("", 7, None))
    assert written.faults or written.file_path == str(place)
