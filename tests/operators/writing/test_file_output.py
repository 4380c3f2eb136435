"""Files chosen by each item: the cases of Apex's file outputs, run by the engine, with and without crashes.

Apex's variants with temporary names have no counterpart here: no file is visible before it is committed. Its recovery
tests replay other items; here a repeated window has the items of the first attempt, so the content is that of a run
without a crash. Snappy, ciphers and chains of filters (testSnappyCompressionSimple, testSnappyStreamProvider,
testChainFilters) have no counterpart either: files are compressed by gzip or zstd.
"""

import gzip
import os
import zlib
from datetime import timedelta

import pyarrow as pa
import pytest

from dagkit import OperatorContext, Until
from dagkit.engine.files import staging
from dagkit.engine.program.points import Point
from dagkit.errors import RunFailure
from dagkit.testing import Alone, FakeClock
from dagkit.testing.crashes import CrashAfter
from dagkit_operators import FileOutput, Items, Map, ParquetPartWriter, PartWriter
from dagkit_operators.writing.rolled import OpenPart
from tests.engine.cast import Collect, Desk, Script, arrived, chain
from tests.operators.ways import after_windows, at_once, in_partitions

IN_PAIRS = {OperatorContext.APPLICATION_WINDOW_COUNT.qualified: 2}


class Single(FileOutput[int]):
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


def lines(*numbers):
    return b"".join(b"%d\n" % number for number in numbers)


def desk_of(home, kind, looks, *given, conf=(), **properties):
    output = kind(file_path=str(home / "out"), **properties)
    return Desk(home, chain(script=Script(looks=looks), output=output), *given, conf=dict(conf))


def run(desk, expected):
    desk.run()
    assert (desk.outputs(), desk.faults(), desk.leftovers()) == (expected, [], [])


ROLLS = {"max_length": 4}
ROLLED = {"single.txt.0": lines(0, 1, 2), "single.txt.1": lines(3, 4, 5), "single.txt.2": lines(6, 7, 8)}
EVEN = {"even.txt.0": lines(0, 2, 4), "even.txt.1": lines(6, 8, 6)}
ODD = {"odd.txt.0": lines(1, 3, 5), "odd.txt.1": lines(7, 9, 7)}
TEN = ((0, 1, 2, 3), (4, 5, 6), (7, 8, 9))
CASES = {
    "SingleFile": (Single, {}, ((0, 1), (2, 3)), {"single.txt": lines(0, 1, 2, 3)}),
    "MultiFile": (Multi, {}, TEN, {"even.txt": lines(0, 2, 4, 6, 8), "odd.txt": lines(1, 3, 5, 7, 9)}),
    "SingleRollingFile": (Single, ROLLS, ((0, 1, 2), (3, 4), (5, 6), (7, 8)), ROLLED),
    "MultiRollingFile": (Multi, ROLLS, ((0, 1, 2), (3, 4, 5, 6, 7), (8, 9, 6, 7)), EVEN | ODD),
}
Case = pytest.mark.parametrize(("kind", "properties", "looks", "expected"), CASES.values(), ids=CASES)
POINTS = [Point.STAGED, Point.APPENDED, Point.HALF_FINISHED]


def prepared(desk, expected, preparation, monkeypatch):
    """Let only one file be open, or make files of the expected names."""
    if preparation == "Cache1":
        monkeypatch.setattr(staging, "MOST_OPEN", 1)
    if preparation == "OverwriteInitial":
        desk.out.mkdir()
        for name in expected:
            (desk.out / name).write_bytes(b"of an earlier application")
            os.utime(desk.out / name, (1, 1))
    return desk


PREPARED = ["", "OverwriteInitial", "Cache1"]


@Case
@pytest.mark.parametrize("preparation", PREPARED)
def test_completed_write(kind, properties, looks, expected, *, preparation, tmp_path, monkeypatch):
    desk = desk_of(tmp_path, kind, looks, **properties)
    run(prepared(desk, expected, preparation, monkeypatch), expected)


FAILED = [(case, point, "") for case in CASES for point in POINTS]
FAILED += [("MultiRollingFile", point, preparation) for point in POINTS for preparation in PREPARED[1:]]


@pytest.mark.parametrize(("case", "point", "preparation"), FAILED)
def test_failed_write(case, point, preparation, tmp_path, monkeypatch):
    kind, properties, looks, expected = CASES[case]
    desk = prepared(desk_of(tmp_path, kind, looks, **properties), expected, preparation, monkeypatch)
    desk.crash(*(CrashAfter(point, window) for window in range(1, len(looks) + 1)))
    run(desk, expected)


@pytest.mark.parametrize("point", POINTS)
def test_single_file_multi_rolling_failure(point, tmp_path):
    """A window that fails has finished several parts."""
    desk = desk_of(tmp_path, Single, ((0, 1, 2), (3, 4), (0, 1, 2, 3, 4, 5, 6)), **ROLLS)
    desk.crash(CrashAfter(point, 3), CrashAfter(point, 3))
    parts = [lines(0, 1, 2), lines(3, 4, 0), lines(1, 2, 3), lines(4, 5, 6)]
    run(desk, {f"single.txt.{number}": part for number, part in enumerate(parts)})


def test_bug_8_4_files_of_others_stay_when_a_file_of_a_similar_name_is_begun(tmp_path):
    """Malhar deletes the file of the name, and all of its parts, when it first opens it."""
    desk = desk_of(tmp_path, Single, ((0, 1, 2, 3),), **ROLLS)
    desk.out.mkdir()
    others = dict.fromkeys(("single.txt", "single.txt.7", "single.txt.1.bak"), b"of another")
    for name, content in others.items():
        (desk.out / name).write_bytes(content)
    run(desk, {**others, "single.txt.0": lines(0, 1, 2), "single.txt.1": lines(3)})


def test_bug_8_3_what_was_written_is_complete_at_the_end_of_a_launch(tmp_path):
    """In Malhar a file without a limit keeps a temporary name, and streams that expired are not flushed."""
    desk = desk_of(tmp_path, Multi, ((0, 1), (2, 3), (4, 5)), Until.IDLE)
    desk.clock = FakeClock()
    run(desk, {"even.txt": lines(0, 2, 4), "odd.txt": lines(1, 3, 5)})


def finished(at_work):
    return at_work.files["files"].finished


def test_run_test_application():
    """GenericFileOutputOperatorTest.runTestApplication: a separator follows each item."""
    writer = PartWriter(file_path="out", record_separator="-", file_name="output.txt_{partition}.{number}")
    assert after_windows(writer, ["abcd"]).written() == {"output.txt_0.0": b"a-b-c-d-"}


def test_windows_without_data_write_nothing():
    at_work = after_windows(Single(file_path="out", max_length=4, rotation_windows=1), ((0, 1, 2), (), ()))
    assert at_work.written() == {"single.txt.0": lines(0, 1, 2)}
    assert after_windows(Single(file_path="out", rotation_windows=1, max_idle_windows=1), [[]] * 30).written() == {}


def test_items_without_a_file_are_counted_and_not_written():
    at_work = Alone(Multi(file_path="out"))
    with at_work.window():
        at_work.send(1, -1, 2, -2, -3)
    assert at_work.metrics["items_dropped"] == 3
    with at_work.window():
        at_work.send_batch([-4, 4])
    assert at_work.metrics["items_dropped"] == 1
    assert at_work.written() == {"odd.txt": lines(1), "even.txt": lines(2, 4)}


def test_recovery_of_open_files():
    windows = ((0, 1, 2, 3), (4, 5), (6, 7, 8, 9, 6, 7))
    assert after_windows(Multi(file_path="out", max_length=4), windows, restarts=True).written() == EVEN | ODD


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_length", -1), ("max_length", 0), ("max_count", 0), ("rotation_windows", -1), ("max_idle_windows", -1)],
)
def test_validate_negative_max_length(name, value):
    valid = Single(file_path="out", max_length=4, max_count=1, rotation_windows=0)
    assert (valid.faults, [fault.path for fault in valid.configured({name: value}).faults]) == ((), [name])


@pytest.mark.parametrize(("windows", "odd", "even"), [(30, 1, 0), (120, 4, 3), (180, 4, 5)])
def test_periodic_rotation(windows, odd, even):
    sent = [[1]] * 30 + [[1, 2]] * 90 + [[2]] * 60
    at_work = after_windows(Multi(file_path="out", rotation_windows=30), sent[:windows])
    parts = {f"odd.txt.{part}" for part in range(odd)} | {f"even.txt.{part}" for part in range(even)}
    assert finished(at_work) == parts == set(at_work.written())


def test_periodic_rotation_with_eviction():
    at_work = after_windows(Multi(file_path="out", rotation_windows=30), [[2], *[[]] * 29])
    assert finished(at_work) == {"even.txt.0"}
    at_work = after_windows(Multi(file_path="out", rotation_windows=30), [[2], *[[]] * 119])
    assert set(at_work.written()) == {"even.txt.0"}


def test_idle_windows_finalize():
    parts = (0, 1, 6, 7), (13, 14, 18, 19), (26,)
    with_data = sum(parts, ())
    windows = [[window] if window in with_data else [] for window in range(27)]
    at_work = after_windows(Single(file_path="out", max_idle_windows=5), windows)
    assert at_work.written() == {f"single.txt.{number}": lines(*part) for number, part in enumerate(parts)}
    assert finished(at_work) == {"single.txt.0", "single.txt.1"}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_part_is_idle_in_application_windows_in_which_nothing_is_written(restarts):
    writer = Single(file_path="out", max_idle_windows=1)
    windows = [[0], [], [1], [], [], [2], [], [], [3], []]
    at_work = after_windows(writer, windows, restarts=restarts, attributes=IN_PAIRS)
    assert at_work.written() == {"single.txt.0": lines(0, 1, 2), "single.txt.1": lines(3)}
    assert finished(at_work) == {"single.txt.0"}


def test_tuple_count_finalize():
    at_work = after_windows(Single(file_path="out", max_count=10), [range(7), range(7, 14), range(14, 27)])
    assert [content.count(b"\n") for content in at_work.written().values()] == [10, 10, 7]
    assert finished(at_work) == {"single.txt.0", "single.txt.1"}


@pytest.mark.parametrize("limits", [{}, {"max_length": 9}, {"max_count": 4}, {"max_length": 9, "max_count": 4}])
def test_many_at_once_are_written_as_one_by_one(limits):
    numbers = [number * 7 % 23 - 2 for number in range(60)]
    batches = Alone(Multi(file_path="out", **limits))
    with batches.window():
        at_once(batches, *numbers[:31])
        at_once(batches, *numbers[31:])
    one_by_one = after_windows(Multi(file_path="out", **limits), [numbers])
    assert batches.written() == one_by_one.written()
    assert batches.operator.parts == one_by_one.operator.parts


def test_bug_8_6_two_partitions_that_choose_one_name_write_a_file_each(tmp_path):
    """In Apex the second of them to finish is deleted."""
    desk = desk_of(tmp_path, Single, (tuple(range(8)),), conf=in_partitions(output=2), **ROLLS)
    desk.run()
    assert {name.split(".txt")[0] + name.split(".txt")[1][:2] for name in desk.outputs()} == {"single_0", "single_1"}
    assert sorted(b"".join(desk.outputs().values()).split()) == sorted(lines(*range(8)).split())


def test_the_file_name_of_a_partition_has_its_number():
    at_work = Alone(Single(file_path="out"), partition=1, partitions=2)
    at_work.send(7)
    assert at_work.written() == {"single.txt_1": lines(7)}


# ---- compression


def members_of_gzip(content):
    found = []
    while content:
        member = zlib.decompressobj(wbits=31)
        found.append(member.decompress(content))
        assert member.eof
        content = member.unused_data
    return found


def test_gzip_compression():
    """Ten windows of a thousand items, restored after each one: each window is a member of its own."""
    windows = [range(start, start + 1000) for start in range(0, 10_000, 1000)]
    at_work = after_windows(Single(file_path="out", compression="gzip"), windows, restarts=True)
    assert members_of_gzip(at_work.written()["single.txt.gz"]) == [lines(*window) for window in windows]


def zstd_content(content):
    return pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()


@pytest.mark.parametrize(
    ("compression", "ending", "back"), [("gzip", "gz", gzip.decompress), ("zstd", "zst", zstd_content)]
)
def test_parts_are_compressed_each_by_itself_and_rolled_by_the_length_before(compression, ending, back):
    at_work = after_windows(Single(file_path="out", compression=compression, max_length=4), [range(4), range(4, 9)])
    assert {name.removesuffix(f".{ending}"): back(content) for name, content in at_work.written().items()} == ROLLED


def test_a_long_part_has_members_of_a_mebibyte():
    text = "x" * 699_999
    writer = PartWriter(file_path="out", compression="gzip", file_name="{partition}.{number}")
    members = members_of_gzip(after_windows(writer, [[text, text, text]]).written()["0.0.gz"])
    assert [len(member) for member in members] == [1_400_000, 700_000]


@Case
def test_bug_8_5_a_crash_leaves_compressed_parts_whole(kind, properties, looks, expected, tmp_path):
    desk = desk_of(tmp_path, kind, looks, compression="gzip", **properties)
    desk.crash(CrashAfter(Point.STAGED, 2), CrashAfter(Point.APPENDED, 3))
    desk.run()
    contents = {name.removesuffix(".gz"): gzip.decompress(content) for name, content in desk.outputs().items()}
    assert contents == expected


# ---- time


def test_a_part_asks_for_a_window_at_the_time_at_which_it_is_finished():
    clock = FakeClock()
    writer = Multi(file_path="out", visible_millis=10_000, max_idle_windows=4, rotation_windows=60)
    at_work = Alone(writer, now=clock.now)
    began, wakes = clock.now(), at_work.files["files"].wakes
    with at_work.window():
        at_work.send(1, 2)
    assert wakes == dict.fromkeys(["odd.txt.0", "even.txt.0"], began + timedelta(seconds=2))
    clock.advance(seconds=1.9)
    with at_work.window():
        at_work.send(1)
    assert wakes["odd.txt.0"] == began + timedelta(seconds=3.9)
    clock.advance(millis=100)
    at_work = at_work.restarted()
    with at_work.window():
        pass
    assert finished(at_work) == {"even.txt.0"}
    for _ in range(8):
        clock.advance(seconds=1)
        with at_work.window():
            at_work.send(1)
    assert finished(at_work) == {"even.txt.0", "odd.txt.0"}
    assert at_work.operator.parts["odd.txt"] == OpenPart(number=1)


def test_a_window_that_does_not_run_counts_as_long_as_its_streaming_windows():
    clock = FakeClock()
    at_work = Alone(Single(file_path="out", rotation_windows=3), now=clock.now, attributes=IN_PAIRS)
    for _ in range(2):
        with at_work.window():
            at_work.send(1)
    assert at_work.files["files"].wakes == {"single.txt.0": clock.now() + timedelta(seconds=3)}


def test_a_launch_that_ends_by_itself_has_no_limit_of_time(tmp_path):
    desk = desk_of(tmp_path, Single, ((1,), (), (3,), (5,)), Until.IDLE, visible_millis=1)
    desk.clock = FakeClock()
    desk.run()
    assert list(desk.outputs()) == ["single.txt.0"]


def test_the_pieces_of_open_files_are_searched_once_for_each_commit(tmp_path, monkeypatch):
    desk = desk_of(tmp_path, Single, ((1,), (3,), (5,)), Until.STOPPED, visible_millis=10_000)
    desk.clock, searches = FakeClock(), []

    def searched(*given):
        searches.append(given)
        return staging.next_wake(*given)

    def probe(point, window_id):
        if window_id == 3 and point is Point.APPENDED:
            loop.stop()

    monkeypatch.setattr("dagkit.engine.parts.outputs.next_wake", searched)
    loop = desk.loop(probe=probe)
    loop.run()
    assert len(searches) == 4
    assert loop.parts.outputs.next_wake > desk.clock.now()


class ByName(FileOutput[str]):
    kind = "names.by-name/1"

    def file_name(self, item):
        return item

    def bytes_for(self, item):
        return item[:3].encode()


def names(home, items, *, rejected=True, **properties):
    def draw(dag, conf):
        output = dag.add_operator("output", ByName(file_path=str(home / "out"), **properties))
        dag.add_operator("items", Items[str](items=items)) >> output
        if rejected:
            text = dag.add_operator("text", Map(lambda rejected: rejected.text))
            dag.add_stream("rejected", output.rejected, text.input)
            text >> dag.add_operator("collect", Collect())

    return draw


@pytest.mark.parametrize(
    ("items", "written", "reasons"),
    [
        (["a", "a/b", "b"], ["a", "b"], ["the name of a file, and of a folder"]),
        (["a/b", "a", "b"], ["a/b", "b"], ["the name of a file, and of a folder"]),
        (["a", "b\0c", "/abs", "../up", "a//b"], ["a"], ["contains a NUL", *["is no name for a file"] * 3]),
        (["n" * 256, "n" * 255, "f/" + "n" * 256], ["n" * 255], ["a part of more than 255 bytes"] * 2),
        (["a", "", "b"], ["a", "b"], []),
    ],
)
def test_an_item_whose_name_no_file_can_have_is_rejected(tmp_path, items, written, reasons):
    output = Alone(ByName(file_path=str(tmp_path)))
    with output.window():
        output.send(*items)
    rejected = output.sent("rejected")
    assert [item.item for item in rejected] == [item for item in items if item and item not in written]
    assert all(reason in item.reason for reason, item in zip(reasons, rejected, strict=True))


def test_names_that_are_refused_leave_the_application_able_to_run(tmp_path):
    long = "x" * 254
    desk = Desk(tmp_path, names(tmp_path, ["a", "a/b", "a", long, "b/c", "b"]))
    assert arrived(desk.run()) == ["a/b", "b"]
    assert desk.outputs() == {"a": b"aa", long: b"xxx", "b/c": b"b/c"}
    desk.run()


@pytest.mark.parametrize(("there", "name"), [("a/b", "a"), ("a", "a/b")])
def test_a_file_that_can_never_be_put_in_place_is_not_committed(tmp_path, there, name):
    """The driver knows what partitions and other applications write, which no partition knows."""
    other = tmp_path / "out" / there
    other.parent.mkdir(parents=True)
    other.write_text("of another application")
    desk = Desk(tmp_path, names(tmp_path, [name], rejected=False))
    with pytest.raises(RunFailure, match="nothing of the window was committed"):
        desk.run()
    other.unlink()
    if other.parent != tmp_path / "out":
        other.parent.rmdir()
    desk.run()
    assert desk.outputs() == {name: name.encode()}


def test_a_value_that_is_too_long_for_a_folder_is_named():
    rows = [{"city": "x" * 300, "n": 1}]
    writer = Alone(ParquetPartWriter(file_path="out", partition_by=["city"]))
    problem = r"the value 'x{80}'… of city is too long for the name of a folder"
    with pytest.raises(ValueError, match=problem), writer.window():
        writer.send(pa.Table.from_pylist(rows))
