"""Parts hold every item once, are rolled where they are full, and go on where they were."""

import gzip
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Batch, Dag, Lines, OperatorContext
from dagkit.testing import Alone
from dagkit_operators import FinishedPart, Items, Map, PartWriter, Record
from dagkit_operators.writing.rolled import OpenPart
from tests.engine.cast import Collect, Desk, Script, arrived


def writer(**properties: Any) -> Alone[PartWriter]:
    return Alone(PartWriter(file_path="output", file_name="{partition}.{number}", **properties))


def test_a_part_is_finished_when_it_is_longer_than_it_may_be():
    """The vector of Apex: at most 4 bytes, items of 2, so three of them in each part."""
    at_work = writer(max_length=4)
    at_work.send(*map(str, range(6)))
    assert at_work.written() == {"0.0": b"0\n1\n2\n", "0.1": b"3\n4\n5\n"}
    assert at_work.files["files"].finished == {"0.0", "0.1"}


def test_rotate_sends_each_finished_part():
    """FSRecordCompactionOperatorTest.testRotate."""
    at_work = writer(max_length=4, compression="gzip")
    for items in (["0", "1"], ["2", "3"]):
        with at_work.window():
            at_work.send(*items)
    assert at_work.sent("finished_parts") == [FinishedPart("0.0.gz", 6, 3)]
    with at_work.window(last=True):
        pass
    assert at_work.sent("finished_parts") == [FinishedPart("0.1.gz", 2, 1)]
    assert at_work.files["files"].finished == {"0.0.gz", "0.1.gz"}


def test_finished_parts_reach_the_next_operator_in_the_same_window(tmp_path):
    def draw(dag: Dag, conf: object) -> None:
        items = dag.add_operator("items", Items(items=("a", "b", "c")))
        out = str(tmp_path / "out")
        write = dag.add_operator("write", PartWriter(file_path=out, file_name="{partition}.{number}", max_count=2))
        names = dag.add_operator("names", Map(lambda part: part.name))
        dag.add_stream("items", items.output, write.input)
        dag.add_stream("parts", write.finished_parts, names.input)
        dag.add_stream("names", names.output, dag.add_operator("collect", Collect()).input)

    desk = Desk(tmp_path, draw)
    assert arrived(desk.run()) == ["0.0", "0.1"]
    assert desk.outputs() == {"0.0": b"a\nb\n", "0.1": b"c\n"}


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_no_item_is_lost_between_the_streaming_windows_of_an_application_window(tmp_path, compression):
    def draw(dag: Dag, conf: object) -> None:
        numbers = dag.add_operator("numbers", Script(looks=((1, 2), (3,), (4,)), pause_millis=0, ends=True))
        parts = PartWriter(file_path=str(tmp_path / "out"), format=str, compression=compression)
        write = dag.add_operator("write", parts)
        dag.set_operator_attribute(write, OperatorContext.APPLICATION_WINDOW_COUNT, 2)
        numbers >> write

    desk = Desk(tmp_path, draw)
    desk.run()
    (content,) = desk.outputs().values()
    assert (gzip.decompress(content) if compression == "gzip" else content) == b"1\n2\n3\n4\n"


def test_a_part_is_finished_when_it_is_so_many_windows_old():
    at_work = writer(rotation_windows=2)
    for items in (["a"], [], ["b"], [], [], ["c"]):
        with at_work.window():
            at_work.send(*items)
        at_work = at_work.restarted()
    assert at_work.written() == {"0.0": b"a\n", "0.1": b"b\n", "0.2": b"c\n"}
    assert at_work.operator.parts == {"": OpenPart(number=2, length=2, count=1, windows=1, begun=6)}


def test_a_part_that_was_full_before_leaves_its_age_to_no_other():
    at_work = writer(rotation_windows=2, max_length=1)
    for items in (["a"], ["", "b", ""]):
        with at_work.window():
            at_work.send(*items)
    assert at_work.written() == {"0.0": b"a\n", "0.1": b"\nb\n", "0.2": b"\n"}
    assert at_work.operator.parts == {"": OpenPart(number=2, length=1, count=1, windows=1, begun=2)}


def test_a_name_may_hold_the_window_in_which_its_part_was_begun():
    at_work = Alone(PartWriter(file_path="output", file_name="{window:03}/{partition}-{number}", max_length=4))
    for items in (["a"], [], ["b"], ["c", "d"], []):
        with at_work.window():
            at_work.send(*items)
        at_work = at_work.restarted()
    with at_work.window(last=True):
        at_work.send("e", "f", "g", "h")
    assert at_work.written() == {"001/0-0": b"a\nb\nc\n", "004/0-1": b"d\ne\nf\n", "006/0-2": b"g\nh\n"}
    assert at_work.files["files"].finished == {"001/0-0", "004/0-1", "006/0-2"}


def test_without_a_limit_there_is_one_part_that_is_not_finished():
    at_work = writer()
    at_work.send(*map(str, range(6)))
    assert at_work.written() == {"0.0": b"0\n1\n2\n3\n4\n5\n"}
    assert at_work.files["files"].finished == set()


@given(
    texts=st.lists(st.text("ab", max_size=6), max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=3),
    limit=st.integers(1, 15),
    restart=st.integers(0, 3),
)
def test_many_at_once_are_written_as_one_by_one(texts, cuts, limit, restart):
    one_by_one, at_once, of_lines = (writer(max_length=limit) for _ in range(3))
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


def test_each_partition_has_parts_of_its_own():
    written = {}
    for partition in range(2):
        at_work = Alone(PartWriter(file_path="output"), partition=partition, partitions=2)
        at_work.send("a")
        written |= at_work.written()
    assert written == {"part-00000-00000": b"a\n", "part-00001-00000": b"a\n"}


def test_anything_is_written_in_the_form_that_it_is_given():
    at_work = writer(format=lambda pair: f"{pair[0]}={pair[1]}", record_separator=";")
    at_work.send(("a", 1))
    at_work.send_batch([("b", 2), ("c", 3)])
    assert at_work.written() == {"0.0": b"a=1;b=2;c=3;"}


def test_of_records_the_value_is_written():
    at_work = writer()
    at_work.send(Record(1, "a"))
    at_work.send_batch([Record(1, "b"), Record(2, b"c")])
    assert at_work.written() == {"0.0": b"a\nb\nc\n"}


def test_what_has_no_form_is_refused():
    with pytest.raises(TypeError, match=r"\('a', 1\) is neither text nor bytes; set format"):
        writer().send(("a", 1))


@pytest.mark.parametrize(
    "name",
    [
        "part-{number}",
        "part-{partition}",
        "{x}",
        "/{partition}-{number}",
        "{",
        "../{number}",
        "{window}-{partition}",
        "{partition}{number}",
        "{window}{partition}-{number}",
    ],
)
def test_names_that_do_not_distinguish_parts_are_faults(name):
    (fault,) = PartWriter(file_path="output", file_name=name).faults
    assert fault.path == "file_name"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
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
def test_a_name_that_is_not_of_numbers_with_a_bounded_width_is_a_fault(name, problem):
    (fault,) = PartWriter(file_path="output", file_name=name).faults
    assert (fault.path, problem in fault.message) == ("file_name", True), fault.message


@pytest.mark.parametrize(
    "name", ["{partition:032}-{number:x}", "{{{partition}}}-{number:02d}", "{partition:8}/{number}"]
)
def test_a_name_may_have_widths_and_braces(name):
    assert PartWriter(file_path="output", file_name=name).faults == ()


def test_braces_that_are_written_twice_name_no_window():
    at_work = Alone(PartWriter(file_path="output", file_name="{{window}}-{partition}-{number}"))
    at_work.send("a")
    assert at_work.written() == {"{window}-0-0": b"a\n"}
    assert at_work.operator.parts == {"": OpenPart(length=2, count=1, begun=1)}


def test_a_part_is_finished_when_nothing_more_comes_and_more_goes_into_another():
    at_work = writer()
    for text in ("a", "b"):
        with at_work.window():
            at_work.send(text)
        with at_work.window(last=True):
            pass
        at_work = at_work.restarted()
    with at_work.window(last=True):
        pass
    assert at_work.written() == {"0.0": b"a\n", "0.1": b"b\n"}
    assert at_work.files["files"].finished == {"0.0", "0.1"}
