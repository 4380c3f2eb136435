"""Each record of a file comes exactly once, however the file is cut into blocks, and wherever a block is split."""

import copy
import io
import logging
import os
import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from dagkit import Backlog, BatchedOperatorStats, Block, Capacity, Partition, PartitioningContext, Response
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, OffsetRestrictionTracker
from dagkit.testing import Alone
from dagkit_operators import FileChanged, FixedLengthReader, LineReader, Record
from dagkit_operators.contexts.line_contexts import ReadAheadLineReaderContext
from dagkit_operators.contexts.lines import LineTooLong

FILES = {
    "LF": b"aa\nb\n\nccc\n",
    "CRLF": b"aa\r\nb\r\n\r\nccc\r\n",
    "no final newline": b"aa\nb\nccc",
    "only newlines": b"\n\n\n",
    "one line": b"abc",
    "multi-byte characters": "ä\n€uro\n𝄞\n".encode(),
    "no UTF-8": b"\xff\n\xc3\n\xe2\x82\na\xa4",
}


def whole(content: bytes, delimiter: bytes = b"\n") -> list[str]:
    """The lines of a file, found the plain way."""
    lines = content.split(delimiter)
    return [line.decode("utf-8", "surrogateescape") for line in (lines if lines[-1] else lines[:-1])]


def blocks_of(path: Path, size: int) -> Iterator[Block]:
    length = path.stat().st_size
    for block_id, start in enumerate(range(0, length, size)):
        end = min(start + size, length)
        yield Block(block_id, str(path), start, end, end == length, "", {"length": length})


def values(reader: "Alone[LineReader] | Alone[FixedLengthReader]") -> list[str]:
    return [record.value for record in reader.sent()]


def file(folder: Path, content: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("chunk_size", [1, 3, 4096])
@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_any_block_size_gives_the_lines_of_the_file(content, chunk_size, tmp_path):
    path = file(tmp_path, content)
    for size in range(1, len(content) + 2):
        reader = Alone(LineReader(chunk_size=chunk_size))
        for block in blocks_of(path, size):
            assert reader.work(block) is None
        assert values(reader) == whole(content), size


@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_a_split_anywhere_after_any_chunk_loses_and_doubles_nothing(content, tmp_path):
    (block,) = blocks_of(file(tmp_path, content), len(content))
    granted = 0
    for chunk_size in (1, 3, 8):
        for after in range(len(whole(content)) + 1):
            for position in range(1, len(content)):
                reader = Alone(LineReader(chunk_size=chunk_size))
                residual = reader.work(block, split_after=after, split_at=position)
                if residual is not None:
                    granted += 1
                    assert (residual.start, residual.end, residual.block_id) == (position, block.end, block.block_id)
                    reader.work(residual)
                assert values(reader) == whole(content), (chunk_size, after, position)
    assert granted


@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_a_block_that_is_split_after_every_chunk_is_read_once(content, tmp_path):
    """As at a deadline: what is claimed stays, and the rest goes to another reader."""
    (block,) = blocks_of(file(tmp_path, content), len(content))
    reader, left, stretches = Alone(LineReader(chunk_size=2)), block, 0
    while left is not None:
        left = reader.work(left, split_after=1)
        stretches += 1
    assert values(reader) == whole(content)
    assert stretches >= min(2, len(whole(content)) - 1)


def test_nothing_more_is_read_of_what_was_split_off():
    stream = io.BytesIO(b"a\n" * 100)
    tracker = OffsetRestrictionTracker(OffsetRange(0, 200))
    batches = ReadAheadLineReaderContext(chunk_size=10).batches(stream, Block(0, "", 0, 200), tracker)
    assert len(next(batches)) == 5
    assert tracker.try_split(0.0) == (OffsetRange(0, 9), OffsetRange(9, 200))
    assert list(batches) == []
    assert stream.tell() == 20
    tracker.check_done()


def test_random_files_in_random_blocks_in_any_order(tmp_path):
    chance = random.Random(7)  # noqa: S311 - nothing is to be kept secret
    for _ in range(60):
        content = bytes(chance.choice(b"ab\n\r\xc3\xa4") for _ in range(chance.randrange(80)))
        path = file(tmp_path, content)
        blocks = list(blocks_of(path, chance.randint(1, 20)))
        chance.shuffle(blocks)
        reader = Alone(LineReader(chunk_size=chance.randint(1, 30)))
        for block in blocks:
            reader.work(block)
        records = sorted(reader.sent(), key=lambda record: record.block_id)
        assert [record.value for record in records] == whole(content)


def test_a_record_bears_the_block_in_which_it_starts(tmp_path):
    reader = Alone(LineReader())
    for block in blocks_of(file(tmp_path, b"aaaa\nbbbb\ncccc\n"), 7):
        reader.work(block)
    assert reader.sent() == [Record(0, "aaaa"), Record(0, "bbbb"), Record(1, "cccc")]


@pytest.mark.parametrize("delimiter", ["|", "\r\n", "||#", "€"])
def test_lines_may_end_in_any_text(delimiter, tmp_path):
    content = delimiter.join(["x", "", "y\n", "z"]).encode()
    for size in range(1, len(content) + 1):
        reader = Alone(LineReader(delimiter=delimiter, chunk_size=4))
        for block in blocks_of(file(tmp_path, content), size):
            reader.work(block)
        assert values(reader) == ["x", "", "y\n", "z"], size


def test_a_delimiter_that_overlaps_itself_is_a_fault():
    (fault,) = LineReader(delimiter="\n\n").faults
    assert "overlaps itself" in fault.message


def test_lines_are_handed_on_over_the_bytes_that_were_read_delimiters_included(tmp_path):
    (block,) = blocks_of(file(tmp_path, b"a\nbb\nc"), 6)
    reader = LineReader()
    tracker = reader.tracker(block, reader.initial_restriction(block))
    (batch,) = reader.process(block, tracker)
    assert bytes(batch.column("value").content) == b"a\nbb\nc\n"


def test_lines_know_where_they_stand_in_their_file(tmp_path):
    """So that the report of a failure names the case."""
    (block,) = blocks_of(file(tmp_path, b"a\nbb\nccc\nd"), 11)
    reader = LineReader(chunk_size=5)
    columns = (batch.column("value") for batch in reader.process(block, reader.tracker(block, OffsetRange(0, 11))))
    assert [(column.base, len(column.content)) for column in columns] == [(0, 5), (5, 4), (9, 2)]


def test_a_line_that_is_too_long_is_named_by_file_and_place(tmp_path):
    path = file(tmp_path, b"a\n" + b"b" * 100)
    reader = Alone(LineReader(chunk_size=4, longest_line=50))
    with pytest.raises(LineTooLong, match=rf"{path}: the line at byte 2 is longer than 50 bytes"):
        reader.work(next(blocks_of(path, 200)))


def test_each_range_of_a_block_follows_its_records(tmp_path):
    (block,) = blocks_of(file(tmp_path, b"a\nb\nc\n"), 6)
    reader = Alone(LineReader(chunk_size=2))
    left = reader.work(block, split_after=1)
    assert reader.sent("blocks_metadata_output") == [block.part(block.start, left.start)]
    assert reader.work(left) is None
    assert reader.sent("blocks_metadata_output") == [left]


def test_a_reader_reports_how_many_bytes_it_read(tmp_path):
    (block,) = blocks_of(file(tmp_path, b"a\nb\nc\n"), 6)
    reader = Alone(LineReader(chunk_size=2))
    left = reader.work(block, split_after=1)
    assert isinstance(left, Block)
    assert reader.metrics == {"bytes_read": left.start, "records_dropped": 0}
    reader.work(left)
    assert reader.metrics == {"bytes_read": 6, "records_dropped": 0}
    with reader.window():
        assert reader.metrics == {"bytes_read": 0, "records_dropped": 0}


def test_what_was_appended_after_the_split_is_not_read(tmp_path):
    """A window that runs again must give what it gave before; the splitter finds what the file has become."""
    path = file(tmp_path, b"a\nb\nhal")
    blocks = list(blocks_of(path, 4))
    path.write_bytes(b"a\nb\nhalf a line\nmore\n")
    reader = Alone(LineReader())
    for block in blocks:
        reader.work(block)
    assert values(reader) == ["a", "b", "hal"]


def test_a_file_that_became_shorter_is_named(tmp_path):
    path = file(tmp_path, b"a\nb\nccccccc\n")
    (_, second) = blocks_of(path, 6)
    path.write_bytes(b"a\n")
    with pytest.raises(FileChanged, match=rf"{path} ends at byte \d+, and had 12 bytes when it was split; the rest"):
        Alone(LineReader()).work(second)


def test_a_block_that_was_described_without_its_length_must_still_be_there(tmp_path):
    path = file(tmp_path, b"a\n")
    with pytest.raises(FileChanged, match="and had 9 bytes"):
        Alone(LineReader()).work(Block(0, str(path), 0, 9))


def test_a_file_that_is_gone_is_named(tmp_path):
    path = file(tmp_path, b"a\n")
    (block,) = blocks_of(path, 6)
    path.unlink()
    with pytest.raises(FileChanged, match=f"{path} is gone, and its block 0 is still to be read"):
        Alone(LineReader()).work(block)


def test_a_file_that_was_rewritten_is_warned_of_and_read_as_it_is(tmp_path, caplog):
    path = file(tmp_path, b"a\nb\n")
    block = Block(0, str(path), 0, 4, True, "", {"length": 4, "modified_millis": path.stat().st_mtime_ns // 10**6})
    path.write_bytes(b"c\nd\n")
    os.utime(path, ns=(10**18, 10**18))
    reader = Alone(LineReader())
    with caplog.at_level(logging.WARNING):
        reader.work(block)
    assert values(reader) == ["c", "d"]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path} was changed after it was split; its block 0 is read as it is now"
    ]


def test_a_block_without_an_end_is_read_to_where_the_file_ends_now(tmp_path):
    path = file(tmp_path, b"a\nb\n")
    reader = Alone(LineReader())
    reader.work(Block(0, str(path), 2, OFFSET_INFINITY))
    assert values(reader) == ["b"]


def test_files_behind_urls_are_read_too(tmp_path):
    path = file(tmp_path, b"a\nb\nccc\n")
    fsspec.filesystem("memory").pipe_file("/reading/file", b"a\nb\nccc\n")
    for url in (path.as_uri(), "memory://reading/file"):
        reader = Alone(LineReader())
        for block_id, start in enumerate((0, 3)):
            reader.work(Block(block_id, url, start, start + 3))
        assert reader.sent() == [Record(0, "a"), Record(0, "b"), Record(1, "ccc")]


def test_records_of_one_length_never_go_beyond_their_block(tmp_path):
    """The vector of Apex: "0123456789" in records of 4 and blocks of 6."""
    reader = Alone(FixedLengthReader(length=4))
    for block in blocks_of(file(tmp_path, b"0123456789"), 6):
        reader.work(block)
    assert values(reader) == [b"0123", b"45", b"6789"]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda tracker: pickle.loads(pickle.dumps(tracker))])  # noqa: S301 - made here
def test_a_copy_of_a_tracker_of_records_goes_on_from_there_on_its_own(copied):
    tracker = FixedLengthReader(length=4).tracker(Block(0, "", 0, 40), OffsetRange(0, 40))
    assert tracker.try_claim(0)
    twin = copied(tracker)
    assert twin.try_split(0.0) == (OffsetRange(0, 4), OffsetRange(4, 40))
    assert tracker.current_restriction() == OffsetRange(0, 40)
    assert tracker.claim_many(range(4, 40, 4)) == 9
    assert not twin.try_claim(4)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 11])
def test_records_of_one_length_survive_any_split(length, tmp_path):
    content = bytes(range(10))
    (block,) = blocks_of(file(tmp_path, content), 10)
    expected = [content[place : place + length] for place in range(0, 10, length)]
    for chunk_size in (1, 5, 100):
        for after in range(11):
            for position in range(1, 10):
                reader = Alone(FixedLengthReader(length=length, chunk_size=chunk_size))
                residual = reader.work(block, split_after=after, split_at=position)
                if residual is not None:
                    reader.work(residual)
                assert values(reader) == expected, (chunk_size, after, position)


def _stats(partitions: int, blocks: int) -> BatchedOperatorStats:
    return BatchedOperatorStats(
        operator_id=partitions - 1,
        current_window_id=1,
        partition=partitions - 1,
        partitions=partitions,
        backlog=Backlog(blocks=blocks, positions=blocks << 20, pieces=blocks),
        capacity=Capacity(cores=4, most_cores=4),
    )


@pytest.mark.parametrize(
    ("reader", "count"),
    [
        pytest.param(LineReader(), 4, id="as many as there are cores"),
        pytest.param(LineReader(policy="apex"), 8, id="as many as Malhar would"),
        pytest.param(LineReader(policy="apex", max_readers=6), 6, id="no more than max_readers"),
        pytest.param(LineReader(max_readers=3), 3, id="no more than max_readers by drain"),
    ],
)
def test_a_reader_follows_its_backlog(reader, count):
    response = reader.process_stats(_stats(1, 10))
    assert (response.repartition_required, response.partitions) == (True, count)
    ran = Partition(reader, stats=_stats(1, 10))
    partitions = reader.define_partitions([ran], PartitioningContext(wanted=count))
    assert [partition.operator for partition in partitions] == [reader] * count
    fewer = reader.define_partitions(partitions, PartitioningContext(wanted=2))
    assert len(fewer) == 2
    assert fewer[0] == ran


def test_partitioning():
    """AbstractBlockReaderTest.testPartitioning. In Malhar each partition owns a key; here all share one queue."""
    reader = LineReader(policy="apex")
    response = reader.process_stats(_stats(1, 10))
    partitions = reader.define_partitions([Partition(reader)], PartitioningContext(wanted=response.partitions or 0))
    assert len(partitions) == 8
    assert [partition.operator for partition in partitions] == [reader] * 8
    assert [dict(partition.keys) for partition in partitions] == [{}] * 8


def test_a_reader_that_collects_no_statistics_stays_as_it_is():
    reader = LineReader(collect_stats=False, min_readers=3)
    assert reader.process_stats(_stats(1, 1000)) == Response()
    assert len(reader.define_partitions([Partition(reader)], PartitioningContext())) == 3


@pytest.mark.parametrize(("compat", "count"), [(False, 3), (True, 1)], ids=["min_readers", "as Malhar: one"])
def test_how_many_readers_there_are_at_first(compat, count):
    reader = LineReader(policy="apex", apex_compat=compat, min_readers=3)
    assert len(reader.define_partitions([Partition(reader)], PartitioningContext())) == count


def test_bounds_that_cross_are_reported():
    (fault,) = LineReader(min_readers=3, max_readers=2).faults
    assert fault.message == "min_readers 3 is greater than max_readers 2"
