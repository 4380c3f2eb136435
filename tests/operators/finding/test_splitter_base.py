"""Dividing the files that arrive on an input port."""

from dagkit.ranges import OffsetRange
from dagkit.testing import Alone
from dagkit_operators import FileInfo, FileSplitterBase

BLOCKS = "blocks_metadata_output"


def test_work_that_has_not_begun_is_not_cut(tmp_path):
    """The driver cuts waiting work that takes longer than a window; the second part would not know of the first."""
    (tmp_path / "a.txt").write_bytes(b"x" * 100)
    file, splitter = FileInfo(str(tmp_path / "a.txt")), FileSplitterBase(block_size=30)
    waiting = splitter.tracker(file, OffsetRange(0, 101))
    assert (waiting.try_split(0.5), waiting.try_split_at(50)) == (None, None)
    alone = Alone(splitter)
    alone.work(file)
    assert [(block.start, block.end) for block in alone.sent(BLOCKS)] == [(0, 30), (30, 60), (60, 90), (90, 100)]
