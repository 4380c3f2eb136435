"""Each record of a file comes exactly once, however the file is cut into blocks, and wherever a block is split."""

import copy
import gzip
import io
import os
import pickle
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dagkit import Backlog, BatchedOperatorStats, Block, Capacity, Partition, PartitioningContext, Response
from dagkit.ranges import OFFSET_INFINITY, OffsetRange, OffsetRestrictionTracker
from dagkit.testing import Alone
from dagkit_operators import BlockReader, FileChanged, FixedLengthReader, LineReader, ReadFiles, Record
from dagkit_operators.contexts.line_contexts import ReadAheadLineReaderContext
from dagkit_operators.contexts.lines import LineTooLong
from dagkit_operators.reading.block_reader import MOST_WHOLE
from tests.operators.reading.cast import block_of, blocks_of, found, plainly, read, values, written

FILES = {
    "LF": b"aa\nb\n\nccc\n",
    "CRLF": b"aa\r\nb\r\n\r\nccc\r\n",
    "no final newline": b"aa\nb\nccc",
    "only newlines": b"\n\n\n",
    "one line": b"abc",
    "multi-byte characters": "ä\n€uro\n𝄞\n".encode(),
    "no UTF-8": b"\xff\n\xc3\n\xe2\x82\na\xa4",
}


def survives_any_split(operator: BlockReader[Any], path: Path, records: list[Any]) -> None:
    (block,) = blocks_of(path)
    for after in range(len(records) + 1):
        for position in range(1, block.end):
            reader = Alone(operator)
            rest = reader.work(block, split_after=after, split_at=position)
            if rest is not None:
                assert (rest.end, rest.block_id) == (block.end, block.block_id)
                reader.work(rest)
            assert values(reader) == records, (after, position)


@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_any_blocks_and_any_splits_of_one_give_the_lines_of_the_file(content, tmp_path):
    path = written(tmp_path, content)
    lines = [line.decode("utf-8", "surrogateescape") for line in plainly(content)]
    for chunk_size in (1, 3, 4096):
        for size in range(1, len(content) + 2):
            assert read(LineReader(chunk_size=chunk_size), *blocks_of(path, size)) == lines, (chunk_size, size)
        survives_any_split(LineReader(chunk_size=chunk_size), path, lines)


ACCOUNTS = ["bytes_read", "records_dropped", "records_rejected"]


def test_a_block_that_is_split_after_every_chunk_is_read_once_and_each_range_follows_its_records(tmp_path):
    """As at a deadline: what is claimed stays, and the rest goes to another reader."""
    left = block_of(tmp_path, b"aa\nb\n\nccc\n")
    reader, parts = Alone(LineReader(chunk_size=2)), []
    while left is not None:
        block, left = left, reader.work(left, split_after=1)
        parts.append(block if left is None else block.part(block.start, left.start))
        assert [reader.metrics[name] for name in ACCOUNTS] == [parts[-1].end, 0, 0]
    assert len(parts) >= 3
    assert reader.sent("blocks_metadata_output") == parts
    assert values(reader) == ["aa", "b", "", "ccc"]
    with reader.window():
        assert [reader.metrics[name] for name in ACCOUNTS] == [0, 0, 0]


def test_nothing_more_is_read_of_what_was_split_off():
    stream = io.BytesIO(b"a\n" * 100)
    tracker = OffsetRestrictionTracker(OffsetRange(0, 200))
    batches = ReadAheadLineReaderContext(chunk_size=10).batches(stream, Block(0, "", 0, 200), tracker)
    assert len(next(batches)) == 5
    assert tracker.try_split(0.0) == (OffsetRange(0, 9), OffsetRange(9, 200))
    assert list(batches) == []
    assert stream.tell() == 20
    tracker.check_done()


def test_a_record_bears_the_block_in_which_it_starts(tmp_path):
    reader = Alone(LineReader())
    for block in blocks_of(written(tmp_path, b"aaaa\nbbbb\ncccc\n"), 7):
        reader.work(block)
    assert reader.sent() == [Record(0, "aaaa"), Record(0, "bbbb"), Record(1, "cccc")]


def test_lines_know_where_they_stand_in_their_file(tmp_path):
    """So that the report of a failure names the case."""
    block = block_of(tmp_path, b"a\nbb\nccc\nd")
    reader = LineReader(chunk_size=5)
    columns = (batch.column("value") for batch in reader.process(block, reader.tracker(block, OffsetRange(0, 11))))
    assert [(column.base, len(column.content)) for column in columns] == [(0, 5), (5, 4), (9, 2)]


@pytest.mark.parametrize("properties", [{"chunk_size": 4}, {}, {"collapse_line_ends": True}], ids=str)
def test_a_line_that_is_too_long_is_named_by_file_and_place(properties, tmp_path):
    path = written(tmp_path, b"a\n" + b"b" * 100 + b"\nc\n")
    with pytest.raises(LineTooLong, match=rf"{path}: the line at byte 2 is longer than 50 bytes"):
        read(LineReader(longest_line=50, **properties), *blocks_of(path))


@pytest.mark.parametrize("kind", ["blocks", "files"])
def test_what_was_appended_after_it_was_found_is_not_read(kind, tmp_path):
    """A window that runs again must give what it gave before; the splitter finds what the file has become."""
    path = written(tmp_path, b"a\nb\nhal")
    elements = blocks_of(path, 4) if kind == "blocks" else [found(path)]
    path.write_bytes(b"a\nb\nhalf a line\nmore\n")
    reader = Alone(LineReader() if kind == "blocks" else ReadFiles())
    for element in elements:
        reader.work(element)
    assert [getattr(line, "value", line) for line in reader.sent()] == ["a", "b", "hal"]


def test_a_file_that_became_shorter_or_is_gone_is_named(tmp_path):
    path = written(tmp_path, b"a\nb\nccccccc\n")
    (_, second), file = blocks_of(path, 6), found(path)
    os.truncate(path, 2)
    with pytest.raises(FileChanged, match=rf"{path} ends at byte \d+, and had 12 bytes when it was split; the rest"):
        read(LineReader(), second)
    with pytest.raises(FileChanged, match="and had 9 bytes"):
        read(LineReader(), Block(0, str(path), 0, 9))
    with pytest.raises(FileChanged, match="ends at byte 2"):
        Alone(ReadFiles()).work(file)
    path.unlink()
    with pytest.raises(FileChanged, match=f"{path} is gone, and its block 12 is still to be read"):
        read(LineReader(), replace(second, block_id=12))
    with pytest.raises(FileChanged, match="is gone"):
        Alone(ReadFiles()).work(file)


def test_a_file_that_was_rewritten_is_warned_of_and_read_as_it_is(tmp_path, caplog):
    path = written(tmp_path, b"a\nb\n")
    blocks = blocks_of(path)
    path.write_bytes(b"c\nd\n")
    os.utime(path, ns=(10**18, 10**18))
    assert read(LineReader(), *blocks) == ["c", "d"]
    assert caplog.messages == [f"{path} was changed after it was split; its block 0 is read as it is now"]


def test_a_block_without_an_end_is_read_to_where_the_file_ends_now_and_files_behind_urls_too(tmp_path):
    assert read(LineReader(), Block(0, str(written(tmp_path, b"a\nb\n")), 2, OFFSET_INFINITY)) == ["b"]
    fsspec.filesystem("memory").pipe_file("/reading/file", b"a\nb\nccc\n")
    for url in (written(tmp_path, b"a\nb\nccc\n").as_uri(), "memory://reading/file"):
        assert read(LineReader(), *(Block(n, url, 3 * n, 3 * n + 3) for n in range(2))) == ["a", "b", "ccc"]


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
def test_records_of_one_length_never_go_beyond_their_block_and_survive_any_split(length, tmp_path):
    content = b"0123456789"
    path = written(tmp_path, content)
    for chunk_size in (1, 5, 100):
        reader = FixedLengthReader(length=length, chunk_size=chunk_size)
        for size in (6, 10):
            parts = [content[start : start + size] for start in range(0, 10, size)]
            records = [part[start : start + length] for part in parts for start in range(0, len(part), length)]
            assert read(reader, *blocks_of(path, size)) == records
        survives_any_split(reader, path, records)


def _stats(blocks: int) -> BatchedOperatorStats:
    return BatchedOperatorStats(
        operator_id=0,
        current_window_id=1,
        partition=0,
        partitions=1,
        backlog=Backlog(blocks=blocks, positions=blocks << 20, pieces=blocks),
        capacity=Capacity(cores=4, most_cores=4),
    )


@pytest.mark.parametrize(
    ("reader", "count"),
    [
        (LineReader(), 4),  # as many as there are cores
        (LineReader(policy="apex"), 8),  # as many as Malhar would
        *((LineReader(policy="apex", max_readers=6), 6), (LineReader(max_readers=3), 3)),
    ],
)
def test_a_reader_follows_its_backlog(reader, count):
    response = reader.process_stats(_stats(10))
    assert (response.repartition_required, response.partitions) == (True, count)
    ran = Partition(reader, stats=_stats(10))
    partitions = reader.define_partitions([ran], PartitioningContext(wanted=count))
    assert [partition.operator for partition in partitions] == [reader] * count
    first, _ = reader.define_partitions(partitions, PartitioningContext(wanted=2))
    assert first == ran


@pytest.mark.parametrize(
    ("properties", "count"),
    [({"policy": "apex"}, 3), ({"policy": "apex", "apex_compat": True}, 1), ({"collect_stats": False}, 3)],
    ids=["min_readers", "as Malhar: one", "without statistics"],
)
def test_how_many_readers_there_are_at_first(properties, count):
    reader = LineReader(min_readers=3, **properties)
    assert len(reader.define_partitions([Partition(reader)], PartitioningContext())) == count


def test_a_reader_that_collects_no_statistics_stays_as_it_is_and_bounds_that_cross_are_reported():
    assert LineReader(collect_stats=False, min_readers=3).process_stats(_stats(1000)) == Response()
    (fault,) = LineReader(min_readers=3, max_readers=2).faults
    assert fault.message == "min_readers 3 is greater than max_readers 2"


# ---- small files, which are read at once

OPTIONS: list[dict[str, Any]] = [
    *({}, {"keep_returns": False}, {"delimiter": "ab"}, {"undecodable": "reject"}, {"skip_byte_order_mark": True})
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@given(content=st.text("ab\r\n\ufeffé").map(str.encode) | st.binary())
@example(content=b"1ab2\r\n3ab")
def test_the_records_are_those_of_a_claimed_file(options, content, tmp_path_factory):
    """With their positions, what is rejected and counted, and the blocks that follow them."""
    block = block_of(tmp_path_factory.mktemp("whole"), b"." + content)
    reader = Alone(LineReader(**options))
    made = []
    for process in (reader.operator.process_whole, lambda b: reader.operator.process(b, reader.operator.tracker_of(b))):
        before = reader.operator.bytes_read
        rows = [row for batch in process(block) for row in zip(batch.items(), batch.places() or (), strict=True)]
        rejected, blocks = reader.sent("rejected"), reader.sent("blocks_metadata_output")
        made.append((rows, rejected, reader.operator.bytes_read - before, blocks))
    assert made[0] == made[1]


@pytest.fixture
def path(tmp_path):
    return written(tmp_path, b"a\nb\n")


def is_read_at_once(block: Block, reader: LineReader) -> bool:
    return Alone(reader).operator.process_whole(block) is not None


CHANGES = {
    "grown": lambda path: path.write_bytes(b"a\nb\nmore\n"),
    "shorter": lambda path: path.write_bytes(b"a\n"),
    "touched": lambda path: os.utime(path, (1, 1)),
    "gone": Path.unlink,
    "replaced by a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_file_that_differs_from_what_was_found_is_not_read_at_once(change, path):
    (block,) = blocks_of(path)
    change(path)
    assert not is_read_at_once(block, LineReader())


CONTENT = {"length": 4, "modified_millis": 0, "compression": "gzip", "file_length": 4}


def test_a_part_of_a_file_and_one_that_is_compressed_or_large_are_not_read_at_once(path, tmp_path):
    (block,) = blocks_of(path)
    for changes in ({"start": 2}, {"end": 2, "last": False}, {"facts": CONTENT}, {"facts": None}):
        assert not is_read_at_once(replace(block, **changes), LineReader()), changes
    for name in ("file", "file.gz"):
        assert not is_read_at_once(block_of(tmp_path, gzip.compress(b"a\nb\n"), name), LineReader())
    for content, is_small in [(b"a\n" * (MOST_WHOLE // 2), True), (b"a\n" * (MOST_WHOLE // 2) + b"b", False)]:
        assert is_read_at_once(block_of(tmp_path, content), LineReader()) == is_small


class OpensItself(LineReader):
    @contextmanager
    def setup_stream(self, block: Block) -> Any:
        with super().setup_stream(block) as stream:
            yield stream


@pytest.mark.parametrize(
    "reader",
    [
        LineReader(skip_header_lines=1),
        LineReader(escape="\\"),
        LineReader(collapse_line_ends=True),
        LineReader(encoding="utf-16"),
        LineReader(longest_line=3),
        OpensItself(),
    ],
)
def test_lines_that_are_found_or_opened_in_another_way_are_claimed(reader, path):
    assert not is_read_at_once(*blocks_of(path), reader)
