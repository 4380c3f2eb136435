"""The text that contestants read is the same for all, and what they leave of it is counted rightly."""

import pytest

from bench.ingesting import by_hand
from bench.ingesting.by_hand import grep, hand_loop, kernel
from bench.ingesting.text import NOTHING, Count, counted, left_in, write_text

SIZE = 1 << 20


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_text(tmp_path_factory.mktemp("text") / "text", SIZE)


def test_equal_sizes_are_equal_texts(text, tmp_path):
    assert write_text(tmp_path / "again", SIZE).path.read_bytes() == text.path.read_bytes()


def test_its_counts_are_those_of_a_plain_look(text):
    lines = text.path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(b".")]
    assert text.all == Count(len(lines), SIZE) == Count(len(lines), text.path.stat().st_size)
    assert text.kept == Count(len(kept), sum(map(len, kept)))
    assert 90 < text.all.bytes / text.all.lines < 105
    assert 0.09 < 1 - text.kept.lines / text.all.lines < 0.11, "one line in ten is to be dropped"
    assert all(any(letter in line for line in kept) for letter in (b",", b'"', b"'", b";", b"."))


@pytest.mark.parametrize("size", [1, 71, 72, 1000])
def test_a_small_text_is_whole_lines_too(tmp_path, size):
    path = write_text(tmp_path / "small", size).path
    assert path.stat().st_size == size
    assert path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    ("content", "everything", "dropped"),
    [
        (b"", NOTHING, NOTHING),
        (b"a\n.b\n", Count(2, 5), Count(1, 3)),
        (b".a\nb.\n.\nlast", Count(4, 12), Count(2, 5)),
        (b"\n\n.", Count(3, 3), Count(1, 1)),
    ],
)
def test_counted(tmp_path, content, everything, dropped):
    (tmp_path / "file").write_bytes(content)
    assert counted(tmp_path / "file") == (everything, dropped)


def test_marks_and_checksums_are_no_output(tmp_path):
    for name in ("part-0", "_SUCCESS", ".part-0.crc", "deeper/part-1", "_temporary/part-2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n", encoding="ascii")
    assert left_in(tmp_path) == (Count(2, 4), NOTHING)


@pytest.mark.parametrize("ingest", [kernel, grep, hand_loop])
def test_who_needs_no_engine_keeps_the_right_lines(ingest, text, tmp_path, monkeypatch):
    monkeypatch.setattr(by_hand, "BLOCK_SIZE", 100_003)
    ingest(text.path, tmp_path)
    assert left_in(tmp_path) == (text.kept, NOTHING)


def test_the_loop_by_hand_writes_a_file_for_each_block(text, tmp_path, monkeypatch):
    monkeypatch.setattr(by_hand, "BLOCK_SIZE", SIZE // 4)
    hand_loop(text.path, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3"]
