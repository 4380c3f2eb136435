"""Files chosen by each item: the cases of Apex's file outputs, run by the engine, with and without crashes.

Apex's variants with temporary names have no counterpart here: no file is visible before it is committed. Its recovery
tests replay other items; here a repeated window has the items of the first attempt, so the content is that of a run
without a crash. Snappy, ciphers and chains of filters (testSnappyCompressionSimple, testSnappyStreamProvider,
testChainFilters) have no counterpart either: files are compressed by gzip or zstd.
"""

import gzip
import os
import zlib
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dagkit import Dag, OperatorContext, StatelessPartitioner
from dagkit.api.running import Until
from dagkit.engine.files import staging
from dagkit.engine.points import Point
from dagkit.testing import Alone, FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import FileOutput, PartWriter
from dagkit_operators.writing.rolled import OpenPart
from tests.engine.cast import Desk, Draw, Script

Looks = tuple[tuple[int, ...], ...]


class Single(FileOutput[int]):
    """Writes all numbers to one file."""

    kind = "cast.single/1"

    def file_name(self, item: int) -> str | None:
        return "single.txt"

    def bytes_for(self, item: int) -> bytes:
        return b"%d\n" % item


class Multi(Single):
    """Writes even and odd numbers to a file each, and no negative ones."""

    kind = "cast.multi/1"

    def file_name(self, item: int) -> str | None:
        return None if item < 0 else "odd.txt" if item % 2 else "even.txt"


def lines(*numbers: int) -> bytes:
    return b"".join(b"%d\n" % number for number in numbers)


def written(kind: type[Single], looks: Looks, home: Path, **properties: Any) -> Draw:
    def draw(dag: Dag, conf: object) -> None:
        output = dag.add_operator("output", kind(file_path=str(home / "out"), **properties))
        dag.add_operator("script", Script(looks=looks)) >> output

    return draw


MATRIX = [
    pytest.param(Single, {}, ((0, 1), (2, 3)), {"single.txt": lines(0, 1, 2, 3)}, id="SingleFile"),
    pytest.param(
        Multi,
        {},
        ((0, 1, 2, 3), (4, 5, 6), (7, 8, 9)),
        {"even.txt": lines(0, 2, 4, 6, 8), "odd.txt": lines(1, 3, 5, 7, 9)},
        id="MultiFile",
    ),
    pytest.param(
        Single,
        {"max_length": 4},
        ((0, 1, 2), (3, 4), (5, 6), (7, 8)),
        {"single.txt.0": lines(0, 1, 2), "single.txt.1": lines(3, 4, 5), "single.txt.2": lines(6, 7, 8)},
        id="SingleRollingFile",
    ),
    pytest.param(
        Multi,
        {"max_length": 4},
        ((0, 1, 2), (3, 4, 5, 6, 7), (8, 9, 6, 7)),
        {
            "even.txt.0": lines(0, 2, 4),
            "even.txt.1": lines(6, 8, 6),
            "odd.txt.0": lines(1, 3, 5),
            "odd.txt.1": lines(7, 9, 7),
        },
        id="MultiRollingFile",
    ),
]
Case = pytest.mark.parametrize(("kind", "properties", "looks", "expected"), MATRIX)


Variant = pytest.mark.parametrize("variant", ["", "OverwriteInitial", "Cache1"])


def desk_of(variant: str, draw: Any, expected: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk where only one file may be open, or where files of these names exist."""
    desk = Desk(folder, draw)
    if variant == "Cache1":
        monkeypatch.setattr(staging, "MOST_OPEN", 1)
    if variant == "OverwriteInitial":
        desk.out.mkdir()
        for name in expected:
            (desk.out / name).write_bytes(b"of an earlier application")
            os.utime(desk.out / name, (1, 1))
    return desk


@Case
@Variant
def test_completed_write(kind, properties, looks, expected, *, variant, tmp_path, monkeypatch):
    desk = desk_of(variant, written(kind, looks, tmp_path, **properties), expected, tmp_path, monkeypatch)
    desk.run()
    assert desk.outputs() == expected
    assert (desk.faults(), desk.leftovers()) == ([], [])


@Case
@Variant
@pytest.mark.parametrize("point", [Point.STAGED, Point.APPENDED, Point.HALF_FINISHED])
def test_failed_write(kind, properties, looks, expected, *, point, variant, tmp_path, monkeypatch):
    desk = desk_of(variant, written(kind, looks, tmp_path, **properties), expected, tmp_path, monkeypatch)
    desk.crash(*(CrashAfter(point, window) for window in range(1, len(looks) + 1)))
    desk.run()
    assert desk.outputs() == expected
    assert (desk.faults(), desk.leftovers()) == ([], [])


def test_single_rolling_file_failed_write_1(tmp_path):
    """The same window fails twice, after parts that go beyond the checkpoint were staged."""
    desk = Desk(tmp_path, written(Single, ((0, 1, 2), (3, 4), (5, 6, 7, 8)), tmp_path, max_length=4))
    desk.crash(CrashAfter(Point.STAGED, 3), CrashAfter(Point.STAGED, 3))
    desk.run()
    assert desk.outputs() == {f"single.txt.{part}": lines(*range(3 * part, 3 * part + 3)) for part in range(3)}
    assert (desk.faults(), desk.leftovers()) == ([], [])


@pytest.mark.parametrize("point", [Point.STAGED, Point.APPENDED, Point.HALF_FINISHED])
def test_single_file_multi_rolling_failure(point, tmp_path):
    """A window that fails has finished several parts."""
    desk = Desk(tmp_path, written(Single, ((0, 1, 2), (3, 4), (0, 1, 2, 3, 4, 5, 6)), tmp_path, max_length=4))
    desk.crash(CrashAfter(point, 3), CrashAfter(point, 3))
    desk.run()
    parts = [lines(0, 1, 2), lines(3, 4, 0), lines(1, 2, 3), lines(4, 5, 6)]
    assert desk.outputs() == {f"single.txt.{number}": part for number, part in enumerate(parts)}
    assert (desk.faults(), desk.leftovers()) == ([], [])


def test_bug_8_4_files_of_others_stay_when_a_file_of_a_similar_name_is_begun(tmp_path):
    """Malhar deletes the file of the name, and all of its parts, when it first opens it."""
    desk = Desk(tmp_path, written(Single, ((0, 1, 2, 3),), tmp_path, max_length=4))
    desk.out.mkdir()
    for name in ("single.txt", "single.txt.7", "single.txt.1.bak"):
        (desk.out / name).write_bytes(b"of another")
    desk.run()
    assert desk.outputs() == {
        "single.txt": b"of another",
        "single.txt.7": b"of another",
        "single.txt.1.bak": b"of another",
        "single.txt.0": lines(0, 1, 2),
        "single.txt.1": lines(3),
    }


def test_bug_8_3_what_was_written_is_complete_at_the_end_of_a_launch(tmp_path):
    """In Malhar a file without a limit keeps a temporary name, and streams that expired are not flushed."""
    desk = Desk(tmp_path, written(Multi, ((0, 1), (2, 3), (4, 5)), tmp_path), Until.IDLE, clock=FakeClock())
    desk.run()
    assert desk.outputs() == {"even.txt": lines(0, 2, 4), "odd.txt": lines(1, 3, 5)}


def test_run_test_application(tmp_path):
    """GenericFileOutputOperatorTest.runTestApplication: a separator follows each item."""
    at_work = Alone(PartWriter(file_path=tmp_path, record_separator="-", file_name="output.txt_{partition}.{number}"))
    with at_work.window():
        at_work.send("a", "b", "c", "d")
    assert at_work.written() == {"output.txt_0.0": b"a-b-c-d-"}


def test_single_rolling_file_empty_windows_write():
    at_work = Alone(Single(file_path="out", max_length=4, rotation_windows=1))
    for numbers in ((0, 1, 2), (), ()):
        with at_work.window():
            at_work.send(*numbers)
    assert at_work.written() == {"single.txt.0": lines(0, 1, 2)}


def test_items_without_a_file_are_counted():
    at_work = Alone(Multi(file_path="out"))
    with at_work.window():
        at_work.send(1, -1, 2, -2, -3)
    assert at_work.metrics["items_dropped"] == 3
    with at_work.window():
        at_work.send_batch([-4, 4])
    assert at_work.metrics["items_dropped"] == 1


def test_recovery_of_open_files():
    at_work = Alone(Multi(file_path="out", max_length=4))
    for numbers in ((0, 1, 2, 3), (4, 5), (6, 7, 8, 9, 6, 7)):
        with at_work.window():
            at_work.send(*numbers)
        at_work = at_work.restarted()
    assert at_work.written() == {
        "even.txt.0": lines(0, 2, 4),
        "even.txt.1": lines(6, 8, 6),
        "odd.txt.0": lines(1, 3, 5),
        "odd.txt.1": lines(7, 9, 7),
    }


def test_validate_nothing_wrong():
    assert Single(file_path="out", max_length=4, max_count=1, rotation_windows=0).faults == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_length", -1), ("max_length", 0), ("max_count", 0), ("rotation_windows", -1), ("max_idle_windows", -1)],
)
def test_validate_negative_max_length(name, value):
    (fault,) = Single(file_path="out", **{name: value}).faults
    assert fault.path == name


def rolled(writer: FileOutput[int], windows: Sequence[Sequence[int]]) -> Alone[FileOutput[int]]:
    at_work = Alone(writer)
    for numbers in windows:
        with at_work.window():
            at_work.send(*numbers)
    return at_work


@pytest.mark.parametrize(
    ("windows", "finished"),
    [
        (30, {"odd.txt.0"}),
        (120, {f"odd.txt.{part}" for part in range(4)} | {f"even.txt.{part}" for part in range(3)}),
        (180, {f"odd.txt.{part}" for part in range(4)} | {f"even.txt.{part}" for part in range(5)}),
    ],
)
def test_periodic_rotation(windows, finished):
    sent = [[1]] * 30 + [[1, 2]] * 90 + [[2]] * 60
    at_work = rolled(Multi(file_path="out", rotation_windows=30), sent[:windows])
    assert at_work.files["files"].finished == finished == set(at_work.written())


def test_periodic_rotation_with_eviction():
    at_work = rolled(Multi(file_path="out", rotation_windows=30), [[2], *[[]] * 29])
    assert at_work.files["files"].finished == {"even.txt.0"}
    at_work = rolled(Multi(file_path="out", rotation_windows=30), [[2], *[[]] * 119])
    assert set(at_work.written()) == {"even.txt.0"}


def test_idle_windows_finalize():
    with_data = {0, 1, 6, 7, 13, 14, 18, 19, 26}
    at_work = rolled(
        Single(file_path="out", max_idle_windows=5), [[window] if window in with_data else [] for window in range(27)]
    )
    assert at_work.written() == {
        "single.txt.0": lines(0, 1, 6, 7),
        "single.txt.1": lines(13, 14, 18, 19),
        "single.txt.2": lines(26),
    }
    assert at_work.files["files"].finished == {"single.txt.0", "single.txt.1"}


def test_tuple_count_finalize():
    at_work = rolled(Single(file_path="out", max_count=10), [range(7), range(7, 14), range(14, 27)])
    assert [content.count(b"\n") for content in at_work.written().values()] == [10, 10, 7]
    assert at_work.files["files"].finished == {"single.txt.0", "single.txt.1"}


def test_rotation_with_no_data():
    assert rolled(Single(file_path="out", rotation_windows=1, max_idle_windows=1), [[]] * 30).written() == {}


def test_an_item_without_a_name_is_not_written():
    assert rolled(Multi(file_path="out"), [[-1, 2]]).written() == {"even.txt": lines(2)}


def test_many_at_once_are_written_as_one_by_one():
    numbers = [number * 7 % 23 - 2 for number in range(60)]
    for properties in ({}, {"max_length": 9}, {"max_count": 4}, {"max_length": 9, "max_count": 4}):
        at_once = Alone(Multi(file_path="out", **properties))
        with at_once.window():
            at_once.send_batch(numbers[:31])
            at_once.send_batch(numbers[31:])
        one_by_one = rolled(Multi(file_path="out", **properties), [numbers])
        assert at_once.written() == one_by_one.written()
        assert at_once.operator.parts == one_by_one.operator.parts


def test_bug_8_6_two_partitions_that_choose_one_name_write_a_file_each(tmp_path):
    """In Apex the second of them to finish is deleted."""

    def draw(dag: Dag, conf: object) -> None:
        output = dag.add_operator("output", Single(file_path=str(tmp_path / "out"), max_length=4))
        dag.set_operator_attribute(output, OperatorContext.PARTITIONER, StatelessPartitioner(2))
        dag.add_operator("script", Script(looks=(tuple(range(8)),))) >> output

    desk = Desk(tmp_path, draw)
    desk.run()
    assert {name.split(".txt")[0] + name.split(".txt")[1][:2] for name in desk.outputs()} == {"single_0", "single_1"}
    assert sorted(b"".join(desk.outputs().values()).split()) == sorted(lines(*range(8)).split())


def test_the_file_name_of_a_partition_has_its_number():
    at_work = Alone(Single(file_path="out"), partition=1, partitions=2)
    at_work.send(7)
    assert at_work.written() == {"single.txt_1": lines(7)}


# ---- compression


def members_of_gzip(content: bytes) -> list[bytes]:
    found = []
    while content:
        member = zlib.decompressobj(wbits=31)
        found.append(member.decompress(content))
        assert member.eof
        content = member.unused_data
    return found


def zstd_content(content: bytes) -> bytes:
    return pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()  # type: ignore[no-any-return]


def test_gzip_compression():
    """Ten windows of a thousand items, restored after every second one: each window is a member of its own."""
    at_work = Alone(Single(file_path="out", compression="gzip"))
    for window in range(10):
        with at_work.window():
            at_work.send(*range(window * 1000, window * 1000 + 1000))
        if window % 2:
            at_work = at_work.restarted()
    members = members_of_gzip(at_work.written()["single.txt.gz"])
    assert members == [lines(*range(window * 1000, window * 1000 + 1000)) for window in range(10)]


@pytest.mark.parametrize(
    ("compression", "ending", "back"), [("gzip", ".gz", gzip.decompress), ("zstd", ".zst", zstd_content)]
)
def test_parts_are_compressed_each_by_itself_and_rolled_by_the_length_before(compression, ending, back):
    at_work = rolled(Single(file_path="out", compression=compression, max_length=4), [range(4), range(4, 8)])
    assert {name: back(content) for name, content in at_work.written().items()} == {
        f"single.txt.0{ending}": lines(0, 1, 2),
        f"single.txt.1{ending}": lines(3, 4, 5),
        f"single.txt.2{ending}": lines(6, 7),
    }


def test_a_long_part_has_members_of_a_mebibyte():
    at_work = Alone(PartWriter(file_path="out", compression="gzip", file_name="{partition}.{number}"))
    text = "x" * 699_999
    with at_work.window():
        at_work.send(text, text, text)
    members = members_of_gzip(at_work.written()["0.0.gz"])
    assert [len(member) for member in members] == [1_400_000, 700_000]


@Case
def test_bug_8_5_a_crash_leaves_compressed_parts_whole(kind, properties, looks, expected, tmp_path):
    desk = Desk(tmp_path, written(kind, looks, tmp_path, compression="gzip", **properties))
    desk.crash(CrashAfter(Point.STAGED, 2), CrashAfter(Point.APPENDED, 3))
    desk.run()
    assert {name: gzip.decompress(content) for name, content in desk.outputs().items()} == {
        f"{name}.gz": content for name, content in expected.items()
    }


# ---- time


def test_a_part_asks_for_a_window_at_the_time_at_which_it_is_finished():
    clock = FakeClock()
    at_work = Alone(
        Multi(file_path="out", visible_millis=10_000, max_idle_windows=4, rotation_windows=60), now=clock.now
    )
    began = clock.now()
    with at_work.window():
        at_work.send(1, 2)
    assert at_work.files["files"].wakes == dict.fromkeys(["odd.txt.0", "even.txt.0"], began + timedelta(seconds=2))
    clock.advance(seconds=1.9)
    with at_work.window():
        at_work.send(1)
    assert at_work.files["files"].wakes["odd.txt.0"] == began + timedelta(seconds=3.9)
    clock.advance(millis=100)
    at_work = at_work.restarted()
    with at_work.window():
        pass
    assert at_work.files["files"].finished == {"even.txt.0"}
    for _ in range(8):
        clock.advance(seconds=1)
        with at_work.window():
            at_work.send(1)
    assert at_work.files["files"].finished == {"even.txt.0", "odd.txt.0"}
    assert at_work.operator.parts["odd.txt"] == OpenPart(number=1)


def test_a_launch_that_ends_by_itself_has_no_limit_of_time(tmp_path):
    looks: Looks = ((1,), (), (3,), (5,))
    desk = Desk(tmp_path, written(Single, looks, tmp_path, visible_millis=1), Until.IDLE, clock=FakeClock())
    desk.run()
    assert list(desk.outputs()) == ["single.txt.0"]
