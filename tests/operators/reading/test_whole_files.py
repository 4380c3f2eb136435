"""A small file that is read at once gives the records that it gives when its lines are claimed."""

import gzip
import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Block
from dagkit.testing import Alone
from dagkit_operators import LineReader
from dagkit_operators.reading.block_reader import MOST_WHOLE
from tests.operators.reading.cast import block_of, blocks_of, written

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no returns": {"keep_returns": False},
    "another delimiter": {"delimiter": "ab"},
    "no bytes that are no text": {"undecodable": "reject"},
    "no mark": {"skip_byte_order_mark": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@given(content=st.text("ab\r\n\ufeffé").map(str.encode) | st.binary())
def test_the_records_are_those_of_a_claimed_file(options, content, tmp_path_factory):
    """With their positions, what is rejected and counted, and the blocks that follow them."""
    block = block_of(tmp_path_factory.mktemp("whole"), b"." + content)
    reader = Alone(LineReader(**options))
    made = []
    for read in (reader.operator.process_whole, lambda b: reader.operator.process(b, reader.operator.tracker_of(b))):
        before = reader.operator.bytes_read
        rows = [row for batch in read(block) for row in zip(batch.items(), batch.places() or (), strict=True)]
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


@pytest.mark.parametrize(
    "changes",
    [{"start": 2}, {"end": 2, "last": False}, {"facts": CONTENT}, {"facts": None}],
    ids=["its end", "its beginning", "content of a compressed file", "of unknown length"],
)
def test_a_part_of_a_file_is_not_read_at_once(changes, path):
    assert not is_read_at_once(replace(*blocks_of(path), **changes), LineReader())


@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_a_compressed_file_is_not_read_at_once(name, tmp_path):
    assert not is_read_at_once(block_of(tmp_path, gzip.compress(b"a\nb\n"), name), LineReader())


def test_a_large_file_is_not_read_at_once(tmp_path):
    for content, is_small in [(b"a\n" * (MOST_WHOLE // 2), True), (b"a\n" * (MOST_WHOLE // 2) + b"b", False)]:
        assert is_read_at_once(block_of(tmp_path, content), LineReader()) == is_small


class OpensItself(LineReader):
    """Reads what its author opens."""

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
