"""What a stream has found: recorded before Spark learns of it, and the same however often it is asked for."""

import json
import os
import time
from collections.abc import Sized
from contextlib import ExitStack

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles
from pyspark.sql.types import StructType

from dagkit.dataframes import found_elements
from dagkit.dataframes.found_stream import FoundStream
from dagkit.dataframes.source_options import batch_options, stream_options
from dagkit.errors import RunFailure
from dagkit_operators import FileSplitterInput
from tests.old_files import aged

LINES = StructType().add("value", "string")


@pytest.fixture
def folder(tmp_path):
    """A folder with five files of ten bytes."""
    home = tmp_path / "in"
    home.mkdir()
    for number in range(5):
        (path := home / f"{number}.txt").write_text(f"line {number:4}\n")
        aged(path)
    return home


@pytest.fixture
def finding(folder):
    """Makes streams over the folder, which are stopped at the end."""
    with ExitStack() as streams:

        def found(schema: StructType = LINES, **options: str) -> FoundStream:
            given = {"path": str(folder), "ledger": str(folder.parent / "ledger"), **options}
            given.setdefault("input.scanner.scan_interval_millis", "1")
            stream = FoundStream(stream_options(given), schema)
            streams.callback(stream.stop)
            return stream

        yield found


def upto(stream: FoundStream, start: int, limit: object = None) -> int:
    return stream.latestOffset({"elements": start}, limit or ReadAllAvailable())["elements"]


def rows(stream: FoundStream, start: int, end: int) -> list[str]:
    """The rows that tasks would read, from a copy of the stream as Spark makes one."""
    copied = FoundStream(stream.options, LINES)
    return [
        row
        for partition in stream.partitions({"elements": start}, {"elements": end})
        for batch in copied.read(partition)
        for row in batch.column("value").to_pylist()
    ]


def test_each_line_is_read_once_and_new_files_later(finding, folder):
    stream = finding()
    assert upto(stream, 0) == 5
    assert rows(stream, 0, 5) == [f"line {number:4}" for number in range(5)]
    stream.commit({"elements": 5})
    (path := folder / "more.txt").write_text("more\nand more\n")
    aged(path)
    end = 5
    while end == 5:  # the scan interval is a millisecond
        end = upto(stream, 5)
    assert rows(stream, 5, end) == ["more", "and more"]


@pytest.mark.parametrize("start", range(6))
def test_a_micro_batch_that_is_repeated_reads_the_same_elements(finding, folder, start):
    first = finding()
    assert upto(first, 0) == 5
    before = rows(first, start, 5)
    first.stop()
    for path in folder.iterdir():
        path.rename(path.with_name(f"{path.name}.moved"))
        path.with_name(f"{path.name}.moved").rename(path)
    again = finding()
    assert rows(again, start, 5) == before
    assert upto(again, 5) == 5


def test_elements_in_many_blocks_of_the_ledger_are_found_by_their_offset(finding, folder):
    stream = finding(**{"input.blocks_threshold": "1"})
    while upto(stream, 0) < 5:  # a look ends early on a busy machine
        pass
    stream.stop()
    later = finding(**{"input.blocks_threshold": "1"})
    for start in range(5):
        assert rows(later, start, start + 1) == [f"line {start:4}"]


@pytest.mark.parametrize(
    ("start", "limit", "end"),
    [
        *((start, ReadMaxFiles(2), end) for start, end in ((0, 2), (2, 4), (4, 5), (5, 5))),
        (0, ReadMaxBytes(25), 2),
        (2, ReadMaxBytes(1), 3),  # one element at least, or nothing would ever be read
    ],
)
def test_a_limit_of_files_or_bytes_ends_a_micro_batch(finding, start, limit, end):
    stream = finding()
    assert upto(stream, 0) == 5
    assert upto(stream, start, limit) == end


def test_a_file_of_several_blocks_counts_once(finding, folder):
    stream = finding(**{"input.block_size": "5"})
    assert upto(stream, 0, ReadMaxFiles(1)) == 2
    assert rows(stream, 0, 10) == [f"line {number:4}" for number in range(5)]


def test_each_element_without_a_source_counts_as_a_file(tmp_path):
    looks = [[["a", number]] for number in range(100)]
    cast = {"input": "tests.engine.work_cast.Names", "reader": "tests.engine.work_cast.Numbered"}
    options = stream_options({"ledger": str(tmp_path / "ledger"), **cast, "input.looks": json.dumps(looks)})
    first, again = FoundStream(options, LINES), FoundStream(options, LINES)
    with ExitStack() as streams:
        streams.callback(first.stop)
        streams.callback(again.stop)
        while upto(first, 0) < len(looks):
            pass
        assert upto(again, 0, ReadMaxFiles(10)) == 10


def test_what_is_found_after_a_query_of_what_is_available_has_begun_is_left(finding, folder):
    stream = finding()
    stream.prepareForTriggerAvailableNow()
    (folder / "later.txt").write_text("later\n")
    assert upto(stream, 0) == 5
    assert upto(stream, 5) == 5


def test_a_query_of_what_is_available_waits_for_a_scan_that_takes_long(finding, folder, monkeypatch):
    monkeypatch.setattr(found_elements, "_LONGEST_LOOK_SECONDS", 0.0)
    stream = finding()
    stream.prepareForTriggerAvailableNow()
    assert upto(stream, 0) == 5


@pytest.mark.slow
def test_a_query_of_what_is_available_waits_for_a_file_that_was_just_written(finding, folder):
    stream = finding(**{"input.scanner.scan_interval_millis": "5000"})
    then = time.time() - 1  # a file is read when it has been unchanged for two seconds
    os.utime(folder / "4.txt", (then, then))
    stream.prepareForTriggerAvailableNow()
    assert upto(stream, 0) == 5


class Noting(FileSplitterInput):
    def committed(self, window_id: int) -> None:
        COMMITTED.append(window_id)


COMMITTED: list[int] = []


def test_what_spark_has_not_read_is_not_committed(finding, folder):
    COMMITTED.clear()
    stream = finding(input=f"{__name__}.Noting")
    assert upto(stream, 0) == 5
    stream.commit({"elements": 3})
    assert COMMITTED == []
    (path := folder / "more.txt").write_text("more\n")
    aged(path)
    while upto(stream, 5) == 5:  # the scan interval is a millisecond
        pass
    stream.commit({"elements": 5})
    assert COMMITTED == [1]
    stream.commit({"elements": 6})
    assert COMMITTED == [1, 2]


def test_memory_does_not_grow_with_the_number_of_micro_batches(finding, folder):
    stream = finding()
    assert upto(stream, 0) == 5
    sizes = set()
    for _ in range(20):
        upto(stream, 5)
        stream.commit({"elements": 5})
        found, driver_input = vars(stream.found), vars(stream.found._input)
        sizes.add(sum(len(kept) for held in (found, driver_input) for kept in held.values() if isinstance(kept, Sized)))
    assert len(sizes) == 1


def test_options_become_properties_of_the_operators(finding, folder):
    (path := folder / "data.csv").write_text("a;b\n1;x\n2;y\n")
    aged(path)
    options = {"path": str(folder / "data.csv"), "reader": "CsvReader", "reader.reader_context.separator": ";"}
    stream = finding(StructType().add("b", "string").add("a", "long"), **options)
    (partition,) = stream.partitions({"elements": 0}, {"elements": upto(stream, 0)})
    (batch,) = stream.read(partition)
    assert batch.to_pylist() == [{"b": "x", "a": 1}, {"b": "y", "a": 2}]


@pytest.mark.parametrize(
    ("of", "options", "problem"),
    [
        (stream_options, {"path": "in"}, "the option ledger is missing"),
        (stream_options, {"ledger": "x", "maxfilespertrigger": "0"}, "maxfilespertrigger is '0'"),
        (stream_options, {"ledger": "x", "maxfilespertrigger": "1", "maxbytespertrigger": "1"}, "are both set"),
        (stream_options, {"ledger": "x", "maxfilespertriger": "1"}, "there is no option maxfilespertriger"),
        (batch_options, {}, "the option path is missing"),
        (batch_options, {"path": "app", "verify": "maybe"}, "the option verify is 'maybe'"),
        (batch_options, {"path": "app", "operater": "Writer"}, "there is no option operater"),
    ],
)
def test_wrong_options_of_a_stream_or_of_a_finished_application_are_refused(of, options, problem):
    with pytest.raises(RunFailure, match=problem):
        of(options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"input": "NoSuchFinder"}, "the option input: "),
        ({"input": "LineReader"}, "LineReader is no InputOperator"),
        ({"reader": "FileSplitterInput"}, "FileSplitterInput is no SplittableOperator"),
    ],
)
def test_classes_that_do_not_fit_are_refused(finding, options, problem):
    with pytest.raises(RunFailure, match=problem):
        upto(finding(**options), 0)
