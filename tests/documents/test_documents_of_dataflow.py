"""The examples of the documents about range trackers and splittable functions run here, line by line."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest

from dagkit import InputPort, OutputPort, SplittableOperator
from dagkit.ranges import OffsetRange, OffsetRangeTracker, RestrictionTracker, WorkUnclaimed
from dagkit.testing import Alone, check_every_split_of


class MyReader:
    """Reads numbers of a list; a position is an index, and a record starts at each even one."""

    def __init__(self, source: list[int], start: int, end: int) -> None:
        self.current_source = source
        self.tracker = OffsetRangeTracker(start, end)
        self.index = start + start % 2
        self.returned: list[int] = []

    def start(self) -> bool:
        if self.index >= len(self.current_source) or not self.tracker.try_return_record_at(True, self.index):
            return False
        self.returned.append(self.current_source[self.index])
        return True

    def advance(self) -> bool:
        self.index += 1
        is_at_split_point = self.index % 2 == 0
        if self.index >= len(self.current_source):
            return False
        if not self.tracker.try_return_record_at(is_at_split_point, self.index):
            return False
        self.returned.append(self.current_source[self.index])
        return True

    def get_fraction_consumed(self) -> float:
        return self.tracker.fraction_consumed()


@pytest.mark.parametrize("split", range(20))
def test_my_reader_and_the_reader_of_the_residual_return_each_record_once(split):
    source = list(range(100, 120))
    primary = MyReader(source, 0, 20)
    goes_on = primary.start()
    for _ in range(5):
        goes_on = goes_on and primary.advance()
    assert 0.0 < primary.get_fraction_consumed() < 1.0
    was_split = primary.tracker.try_split_at_position(split)
    while goes_on and primary.advance():
        pass
    residual = MyReader(source, split, 20) if was_split else None
    goes_on = residual is not None and residual.start()
    while residual is not None and goes_on and residual.advance():
        pass
    assert primary.returned + (residual.returned if residual else []) == source


class CountFn(SplittableOperator[tuple[str, int]]):
    """The "Hello World" of splittable functions."""

    kind = "documents.count/1"
    pairs = InputPort[tuple[str, int]]()
    counted = OutputPort[tuple[str, int]]()

    def process(self, element, tracker):
        for i in range(*tracker.current_restriction()):
            if not tracker.try_claim(i):
                return
            yield element[0], i

    def initial_restriction(self, element):
        return (0, element[1])


def test_count_fn_makes_each_pair_once_however_it_is_split():
    count = Alone(CountFn())
    count.work(("x", 5))
    assert count.sent() == [("x", number) for number in range(5)]
    check_every_split_of(CountFn(), ("x", 7))


class AvroFile:
    """In the place of the reader in the document: the data blocks that start at or after an offset."""

    def __init__(self, path: str, start: int) -> None:
        with Path(path).open("rb") as file:
            self.blocks = [block for block in fastavro.block_reader(file) if block.offset >= start]


class ReadFn(SplittableOperator[str]):
    """Claims each Avro data block, and sends its records."""

    kind = "documents.read/1"
    filenames = InputPort(str)
    records = OutputPort[dict[str, Any]]()

    def process(self, element: str, tracker: RestrictionTracker[OffsetRange, int]) -> Iterator[dict[str, Any]]:
        start, _stop = tracker.current_restriction()
        for block in AvroFile(element, start).blocks:
            if not tracker.try_claim(block.offset):
                return
            yield from block
        tracker.try_claim(tracker.current_restriction().stop)

    def initial_restriction(self, element: str) -> OffsetRange:
        return OffsetRange(0, Path(element).stat().st_size)


def test_read_fn_reads_each_record_once_however_it_is_split(tmp_path):
    content = io.BytesIO()
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}
    rows = [{"n": number} for number in range(16)]
    fastavro.writer(content, schema, rows, sync_interval=8)
    path = tmp_path / "file.avro"
    path.write_bytes(content.getvalue())
    read = Alone(ReadFn())
    read.work(str(path))
    assert read.sent() == rows
    check_every_split_of(ReadFn(), str(path))


class EndsWithItsBlocks(CountFn):
    """Returns when there are no more records, as the reader in the document does."""

    kind = "documents.ends-with-its-blocks/1"

    def process(self, element, tracker):
        for number in range(0, element[1], 2):
            if not tracker.try_claim(number):
                return
            yield element[0], number


def test_the_failure_of_a_function_that_returns_before_the_end_of_its_range_says_to_claim_the_end():
    with pytest.raises(WorkUnclaimed, match=r"\[3, 4\) was never claimed") as raised:
        Alone(EndsWithItsBlocks()).work(("x", 4))
    assert "also the end, tracker.current_restriction().stop, once there are no more records" in raised.value.help
