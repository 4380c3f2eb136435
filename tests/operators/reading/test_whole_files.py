"""A small file that is read at once gives the records that it gives when its lines are claimed."""

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Batch, Block
from dagkit.testing import Alone
from dagkit_operators import LineReader, Record
from dagkit_operators.filesystem.access import Seekable
from dagkit_operators.reading.block_reader import MOST_WHOLE

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no returns": {"keep_returns": False},
    "another delimiter": {"delimiter": "ab"},
    "no bytes that are no text": {"undecodable": "reject"},
    "no mark": {"skip_byte_order_mark": True},
}


def block_of(path: Path) -> Block:
    """A file as the splitter describes it if it has one block."""
    status = path.stat()
    facts = {"length": status.st_size, "modified_millis": status.st_mtime_ns // 1_000_000}
    return Block(7, str(path), 0, status.st_size, True, "", facts)


def rows(batches: Iterator[Batch[Any]]) -> list[tuple[Record[str], int]]:
    """Each record with its position."""
    return [row for batch in batches for row in zip(batch.items(), batch.places() or (), strict=True)]


def both(reader: Alone[LineReader], block: Block) -> tuple[Any, Any]:
    """What a reader makes of a file at once, and by claims; with what it rejects and counts."""
    made: list[Any] = []
    for read in (reader.operator.process_whole, lambda b: reader.operator.process(b, reader.operator.tracker_of(b))):
        before = reader.operator.bytes_read
        batches = read(block)
        assert batches is not None
        made.append((rows(batches), reader.sent("rejected"), reader.operator.bytes_read - before))
        made[-1] = *made[-1], reader.sent("blocks_metadata_output")
    return made[0], made[1]


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@given(content=st.text("ab\r\n\ufeffé").map(str.encode) | st.binary())
def test_the_records_are_those_of_a_claimed_file(options, content, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "file"
    path.write_bytes(b"." + content)
    whole, claimed = both(Alone(LineReader(**options)), block_of(path))
    assert whole == claimed


def _grown(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more\n")


def _shorter(path: Path) -> None:
    path.write_bytes(b"a\n")


def _touched(path: Path) -> None:
    os.utime(path, (1, 1))


def _replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("change", [_grown, _shorter, _touched, Path.unlink, _replaced_by_a_pipe])
def test_a_file_that_differs_from_what_was_found_is_not_read_at_once(change, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\nb\n")
    block = block_of(path)
    change(path)
    assert Alone(LineReader()).operator.process_whole(block) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"start": 2},
        {"end": 2, "last": False},
        {"facts": {"length": 4, "modified_millis": 0, "compression": "gzip", "file_length": 4}},
        {"facts": None},
    ],
    ids=["its end", "its beginning", "content of a compressed file", "of unknown length"],
)
def test_a_part_of_a_file_is_not_read_at_once(changes, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\nb\n")
    assert Alone(LineReader()).operator.process_whole(replace(block_of(path), **changes)) is None


@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_a_compressed_file_is_not_read_at_once(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a\nb\n"))
    assert Alone(LineReader()).operator.process_whole(block_of(path)) is None


def test_a_large_file_is_not_read_at_once(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\n" * (MOST_WHOLE // 2))
    reader = Alone(LineReader()).operator
    assert reader.process_whole(block_of(path)) is not None
    path.write_bytes(b"a\n" * (MOST_WHOLE // 2) + b"b")
    assert reader.process_whole(block_of(path)) is None


@pytest.mark.parametrize(
    "options",
    [
        {"skip_header_lines": 1},
        {"escape": "\\"},
        {"collapse_line_ends": True},
        {"encoding": "utf-16"},
        {"longest_line": 3},
    ],
    ids=lambda options: next(iter(options)),
)
def test_lines_that_are_found_in_another_way_are_claimed(options, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\nb\n")
    assert Alone(LineReader(**options)).operator.process_whole(block_of(path)) is None


class OpensItself(LineReader):
    """Reads what its author opens."""

    @contextmanager
    def setup_stream(self, block: Block) -> Iterator[Seekable]:
        with super().setup_stream(block) as stream:
            yield stream


def test_a_reader_that_opens_files_itself_claims_their_lines(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a\nb\n")
    assert Alone(OpensItself()).operator.process_whole(block_of(path)) is None
