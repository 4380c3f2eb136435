"""Parts hold every item once, are rolled where they are full, and continue; a block has a file of its own."""

import gzip
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Batch, Lines, Listed
from dagkit.testing import Alone
from dagkit_operators import FinishedPart, Items, Map, PartWriter, Record, RecordWriter
from dagkit_operators.writing.rolled import OpenPart
from tests.engine.cast import Collect, Desk, Script, arrived, chain
from tests.operators.ways import BOTH_WAYS, after_windows, lines, of_block


def parts(file_name="{partition}.{number}", **properties):
    return PartWriter(file_path="output", file_name=file_name, **properties)


def finished(at_work):
    return at_work.files["files"].finished


def test_rotate_sends_each_finished_part():
    """FSRecordCompactionOperatorTest.testRotate."""
    at_work = after_windows(parts(max_length=4, compression="gzip"), (["0", "1"], ["2", "3"]))
    assert at_work.sent("finished_parts") == [FinishedPart("0.0.gz", 6, 3)]
    with at_work.window(last=True):
        pass
    assert at_work.sent("finished_parts") == [FinishedPart("0.1.gz", 2, 1)]
    assert finished(at_work) == {"0.0.gz", "0.1.gz"}


@BOTH_WAYS
@pytest.mark.parametrize("lowered", [{"max_count": 3}, {"max_length": 4}], ids=str)
def test_a_part_beyond_a_limit_that_was_lowered_is_finished_and_no_item_is_lost(send, lowered):
    before = Alone(parts(max_count=10, max_length=100))
    send(before, *"abcde")
    after = Alone(parts(**lowered), state=before.state)
    send(after, *"fghij")
    assert after.sent("finished_parts")[0] == FinishedPart("0.0", 10, 5)
    assert b"".join(content for name, content in sorted(after.written().items())) == b"f\ng\nh\ni\nj\n"


def test_finished_parts_reach_the_next_operator_in_the_same_window(tmp_path):
    write = PartWriter(file_path=tmp_path / "out", file_name="{partition}.{number}", max_count=2)
    names = Map(lambda part: part.name)
    desk = Desk(tmp_path, chain(items=Items(items=tuple("abc")), write=write, names=names, collect=Collect()))
    assert arrived(desk.run()) == ["0.0", "0.1"]
    assert desk.outputs() == {"0.0": b"a\nb\n", "0.1": b"c\n"}


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_no_item_is_lost_between_the_streaming_windows_of_an_application_window(tmp_path, compression):
    numbers = Script(looks=((1, 2), (3,), (4,)), pause_millis=0, ends=True)
    write = PartWriter(file_path=tmp_path / "out", format=str, compression=compression)
    conf = {"dt.operator.write.attr.APPLICATION_WINDOW_COUNT": 2}
    desk = Desk(tmp_path, chain(numbers=numbers, write=write), conf=conf)
    desk.run()
    (content,) = desk.outputs().values()
    assert (gzip.decompress(content) if compression == "gzip" else content) == b"1\n2\n3\n4\n"


def test_a_part_is_finished_when_it_is_so_many_windows_old_and_one_that_was_full_leaves_its_age_to_no_other():
    at_work = after_windows(parts(rotation_windows=2), (["a"], [], ["b"], [], [], ["c"]), restarts=True)
    assert at_work.written() == {"0.0": b"a\n", "0.1": b"b\n", "0.2": b"c\n"}
    assert at_work.operator.parts == {"": OpenPart(number=2, length=2, count=1, windows=1, begun=6)}
    at_work = after_windows(parts(rotation_windows=2, max_length=1), (["a"], ["", "b", ""]))
    assert at_work.written() == {"0.0": b"a\n", "0.1": b"\nb\n", "0.2": b"\n"}
    assert at_work.operator.parts == {"": OpenPart(number=2, length=1, count=1, windows=1, begun=2)}


def test_a_name_may_hold_the_window_in_which_its_part_was_begun():
    writer = parts("{window:03}/{partition}-{number}", max_length=4)
    at_work = after_windows(writer, (["a"], [], ["b"], ["c", "d"], []), restarts=True)
    with at_work.window(last=True):
        at_work.send("e", "f", "g", "h")
    assert at_work.written() == {"001/0-0": b"a\nb\nc\n", "004/0-1": b"d\ne\nf\n", "006/0-2": b"g\nh\n"}
    assert finished(at_work) == set(at_work.written())


@given(
    texts=st.lists(st.text("ab", max_size=6), max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=3),
    limit=st.integers(1, 15),
    restart=st.integers(0, 3),
)
def test_many_at_once_are_written_as_one_by_one(texts, cuts, limit, restart):
    one_by_one, at_once, of_lines = (Alone(parts(max_length=limit)) for _ in range(3))
    one_by_one.send(*texts)
    edges = sorted({0, len(texts), *(cut for cut in cuts if cut < len(texts))})
    for number, (start, end) in enumerate(pairwise(edges)):
        if number == restart:
            at_once, of_lines = at_once.restarted(), of_lines.restarted()
        at_once.send_batch(texts[start:end])
        ended = pa.array([f"{text}\n".encode() for text in texts], pa.binary()).slice(start, end - start)
        of_lines.send_batch(Batch({"item": Lines(ended)}))
    assert one_by_one.written() == at_once.written() == of_lines.written()
    assert one_by_one.state == at_once.state == of_lines.state or not texts
    assert b"".join(one_by_one.written().values()).decode() == "".join(f"{text}\n" for text in texts)


@pytest.mark.parametrize(
    ("properties", "items", "written"),
    [
        ({"format": "{0[0]}={0[1]}".format, "record_separator": ";"}, [("a", 1), ("b", 2)], b"a=1;b=2;"),
        ({}, [Record(1, "a"), Record(2, b"b")], b"a\nb\n"),
    ],
    ids=["anything is written in the form that is given", "of records, the value is written"],
)
def test_one_item_and_many_are_written_alike(properties, items, written):
    at_work = Alone(parts(**properties))
    at_work.send(*items)
    at_work.send_batch(items)
    assert at_work.written() == {"0.0": written * 2}


def test_what_has_no_form_is_refused():
    with pytest.raises(TypeError, match=r"\('a', 1\) is neither text nor bytes; set format"):
        Alone(parts()).send(("a", 1))


NOT_DISTINCT = ["part-{number}", "part-{partition}", "../{number}", "{window}-{partition}"]
TOGETHER = ["{partition}{number}", "{window}{partition}-{number}"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        *((name, "") for name in (*NOT_DISTINCT, *TOGETHER, "/{partition}-{number}", "{x}", "{")),
        ("{partition.x}-{number}", "{partition.x} is not a value of a file name"),
        ("{partition.__class__}-{number}", "is not a value of a file name"),
        ("{partition[0]}-{number}", "{partition[0]} is not a value of a file name"),
        ("{}-{number}", "{} is not a value of a file name; known are {partition}, {number}, {window}"),
        ("{partition:99999999999}-{number}", "write {partition}, or a width up to 32, as {partition:05}"),
        ("{partition:33}-{number}", "a width up to 32"),
        ("{partition:{number}}-{number}", "{partition:{number}} is not a form of a number here"),
        ("{partition!r}-{number}", "{partition!r} is not a form of a number here"),
        ("{partition:.5f}-{number}", "{partition:.5f} is not a form of a number here"),
        ("{partition}-{number", "is not a template"),
    ],
)
def test_a_name_that_does_not_distinguish_parts_or_is_not_of_bounded_numbers_is_a_fault(name, problem):
    (fault,) = parts(name).faults
    assert (fault.path, problem in fault.message) == ("file_name", True), fault.message


def test_a_name_may_have_widths_and_braces_and_braces_that_are_written_twice_name_no_window():
    for name in ("{partition:032}-{number:x}", "{{{partition}}}-{number:02d}", "{partition:8}/{number}"):
        assert parts(name).faults == ()
    at_work = Alone(parts("{{window}}-{partition}-{number}"))
    at_work.send("a")
    assert at_work.written() == {"{window}-0-0": b"a\n"}
    assert at_work.operator.parts == {"": OpenPart(length=2, count=1, begun=1)}


def test_a_part_is_finished_when_nothing_more_comes_and_more_goes_into_another():
    at_work = Alone(parts())
    for text in ("a", "b"):
        with at_work.window():
            at_work.send(text)
        with at_work.window(last=True):
            pass
        at_work = at_work.restarted()
    with at_work.window(last=True):
        pass
    assert at_work.written() == {"0.0": b"a\n", "0.1": b"b\n"}
    assert finished(at_work) == {"0.0", "0.1"}


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
