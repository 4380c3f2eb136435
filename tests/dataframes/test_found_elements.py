"""What a stream has found: recorded before Spark learns of it, and the same however often it is asked for."""

from collections.abc import Sized
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles
from pyspark.sql.types import StructType

from dagkit.dataframes import found_elements
from dagkit.dataframes.found_stream import FoundStream
from dagkit.dataframes.source_options import OptionsInvalid, batch_options, stream_options
from dagkit_operators import FileSplitterInput

LINES = StructType().add("value", "string")


@pytest.fixture
def folder(tmp_path):
    """A folder with five files of ten bytes."""
    home = tmp_path / "in"
    home.mkdir()
    for number in range(5):
        (home / f"{number}.txt").write_text(f"line {number:4}\n")
    return home


def finding(folder: Path, **options: str) -> FoundStream:
    given = {"path": str(folder), "ledger": str(folder.parent / "ledger"), **options}
    given.setdefault("input.scanner.scan_interval_millis", "1")
    return FoundStream(stream_options(given), LINES)


def upto(stream: FoundStream, start: int, limit: object = None) -> int:
    return stream.latestOffset({"elements": start}, limit or ReadAllAvailable())["elements"]  # type: ignore[arg-type]


def rows(stream: FoundStream, start: int, end: int) -> list[str]:
    """The rows that tasks would read, from a copy of the stream as Spark makes one."""
    copied = FoundStream(stream.options, LINES)
    return [
        row
        for partition in stream.partitions({"elements": start}, {"elements": end})
        for batch in copied.read(partition)
        for row in batch.column("value").to_pylist()
    ]


def test_each_line_is_read_once_and_new_files_later(folder):
    stream = finding(folder)
    assert upto(stream, 0) == 5
    assert rows(stream, 0, 5) == [f"line {number:4}" for number in range(5)]
    stream.commit({"elements": 5})
    (folder / "more.txt").write_text("more\nand more\n")
    end = 5
    while end == 5:  # the scan interval is a millisecond
        end = upto(stream, 5)
    assert rows(stream, 5, end) == ["more", "and more"]
    stream.stop()


@pytest.mark.parametrize("start", range(6))
def test_a_micro_batch_that_is_repeated_reads_the_same_elements(folder, start):
    first = finding(folder)
    assert upto(first, 0) == 5
    before = rows(first, start, 5)
    first.stop()
    for path in folder.iterdir():
        path.rename(path.with_name(f"{path.name}.moved"))
        path.with_name(f"{path.name}.moved").rename(path)
    again = finding(folder)
    assert rows(again, start, 5) == before
    assert upto(again, 5) == 5
    again.stop()


def test_elements_in_many_blocks_of_the_ledger_are_found_by_their_offset(folder):
    stream = finding(folder, **{"input.blocks_threshold": "1"})
    assert upto(stream, 0) == 5
    stream.stop()
    later = finding(folder, **{"input.blocks_threshold": "1"})
    for start in range(5):
        assert rows(later, start, start + 1) == [f"line {start:4}"]
    later.stop()


def test_a_limit_of_files_or_bytes_ends_a_micro_batch(folder):
    stream = finding(folder)
    assert upto(stream, 0, ReadMaxFiles(2)) == 2
    assert upto(stream, 2, ReadMaxFiles(2)) == 4
    assert upto(stream, 4, ReadMaxFiles(2)) == 5
    assert upto(stream, 0, ReadMaxBytes(25)) == 2
    assert upto(stream, 2, ReadMaxBytes(1)) == 3  # one element at least, or nothing would ever be read
    assert upto(stream, 5, ReadMaxFiles(2)) == 5
    stream.stop()


def test_a_file_of_several_blocks_counts_once(folder):
    stream = finding(folder, **{"input.block_size": "5"})
    assert upto(stream, 0, ReadMaxFiles(1)) == 2
    assert rows(stream, 0, 10) == [f"line {number:4}" for number in range(5)]
    stream.stop()


def test_what_is_found_after_a_query_of_what_is_available_has_begun_is_left(folder):
    stream = finding(folder)
    stream.prepareForTriggerAvailableNow()
    (folder / "later.txt").write_text("later\n")
    assert upto(stream, 0) == 5
    assert upto(stream, 5) == 5
    stream.stop()


def test_a_query_of_what_is_available_waits_for_a_scan_that_takes_long(folder, monkeypatch):
    monkeypatch.setattr(found_elements, "_LONGEST_LOOK_SECONDS", 0.0)
    stream = finding(folder)
    stream.prepareForTriggerAvailableNow()
    assert upto(stream, 0) == 5
    stream.stop()


class Noting(FileSplitterInput):
    """Notes the commits of its windows."""

    kind = "dataframes.noting/1"

    def committed(self, window_id: int) -> None:
        COMMITTED.append(window_id)


COMMITTED: list[int] = []


def test_what_spark_has_not_read_is_not_committed(folder):
    COMMITTED.clear()
    stream = finding(folder, input=f"{__name__}.Noting")
    assert upto(stream, 0) == 5
    stream.commit({"elements": 3})
    assert COMMITTED == []
    (folder / "more.txt").write_text("more\n")
    while upto(stream, 5) == 5:  # the scan interval is a millisecond
        pass
    stream.commit({"elements": 5})
    assert COMMITTED == [1]
    stream.commit({"elements": 6})
    assert COMMITTED == [1, 2]
    stream.stop()


def test_memory_does_not_grow_with_the_number_of_micro_batches(folder):
    stream = finding(folder)
    assert upto(stream, 0) == 5
    sizes = set()
    for _ in range(20):
        upto(stream, 5)
        stream.commit({"elements": 5})
        found, driver_input = vars(stream.found), vars(stream.found._input)
        sizes.add(sum(len(kept) for held in (found, driver_input) for kept in held.values() if isinstance(kept, Sized)))
    assert len(sizes) == 1
    stream.stop()


def test_options_become_properties_of_the_operators(folder):
    (folder / "data.csv").write_text("a;b\n1;x\n2;y\n")
    options = {
        "path": str(folder / "data.csv"),
        "ledger": str(folder.parent / "ledger"),
        "reader": "CsvReader",
        "reader.reader_context.separator": ";",
    }
    schema = StructType().add("b", "string").add("a", "long")
    stream = FoundStream(stream_options(options), schema)
    (partition,) = stream.partitions({"elements": 0}, {"elements": upto(stream, 0)})
    (batch,) = stream.read(partition)
    assert batch.to_pylist() == [{"b": "x", "a": 1}, {"b": "y", "a": 2}]
    stream.stop()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"path": "in"}, "the option ledger is missing"),
        ({"ledger": "x", "maxFilesPerTrigger": "0"}, "maxfilespertrigger is '0'"),
        ({"ledger": "x", "maxFilesPerTrigger": "1", "maxBytesPerTrigger": "1"}, "are both set"),
        ({"ledger": "x", "maxFilesPerTriger": "1"}, "there is no option maxfilespertriger"),
    ],
)
def test_wrong_options_of_a_stream_are_refused(options, problem):
    with pytest.raises(OptionsInvalid) as refused:
        stream_options({name.lower(): value for name, value in options.items()})
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "the option path is missing"),
        ({"path": "app", "verify": "maybe"}, "the option verify is 'maybe'"),
        ({"path": "app", "operater": "Writer"}, "there is no option operater"),
    ],
)
def test_wrong_options_of_a_finished_application_are_refused(options, problem):
    with pytest.raises(OptionsInvalid) as refused:
        batch_options(options)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"input": "NoSuchFinder"}, "the option input: "),
        ({"input": "LineReader"}, "LineReader is no InputOperator"),
        ({"reader": "FileSplitterInput"}, "FileSplitterInput is no SplittableOperator"),
    ],
)
def test_classes_that_do_not_fit_are_refused(folder, options, problem):
    with pytest.raises(OptionsInvalid) as refused:
        upto(finding(folder, **options), 0)
    assert problem in str(refused.value)
