"""Chunks of lines: where they start, what they know before it is asked for, and what is refused."""

import io

import pytest

from dagkit import Lines
from dagkit_operators import value
from dagkit_operators.contexts.line_columns import ReadLines
from dagkit_operators.contexts.lines import chunks, delimiter_of
from tests.operators.reading_text import lines


def test_a_line_is_of_the_stretch_in_which_it_starts():
    assert lines(b"aaa\nbbb\nccc\n", (4, 5)) == [b"bbb\n"]
    assert lines(b"aaa\nbbb\nccc\n", (5, 8)) == []


def test_the_places_of_lines_are_places_in_the_file_and_a_chunk_can_be_cut_after_any_line():
    (chunk,) = chunks(io.BytesIO(b"aaa\na\nbb\nc\n"), 1, None)
    assert (chunk.base + chunk.starts).tolist() == [4, 6, 9]
    assert [chunk.up_to(count).data.tobytes() for count in range(4)] == [b"", b"a\n", b"a\nbb\n", b"a\nbb\nc\n"]


@pytest.mark.parametrize("delimiter", [b"\n", b"\r\n"])
@pytest.mark.parametrize("escape", [b"", b"|"])
def test_places_beyond_32_bits_are_as_good(delimiter, escape, monkeypatch):
    content = delimiter.join([b"a", b"", b"bb" + escape, b"ccc", b"d" * 20, b"e"])
    short = [(chunk.base, chunk.offsets.tolist()) for chunk in chunks(io.BytesIO(content), 0, None, delimiter)]
    monkeypatch.setattr("dagkit_operators.native.bytewise.MOST_SHORT", 3)
    (chunk,) = chunks(io.BytesIO(content), 0, None, delimiter)
    assert [(chunk.base, chunk.offsets.tolist())] == short
    assert chunk.offsets.itemsize == 8
    first, others = chunk.parted(2)
    assert first.data.tobytes() + others.data.tobytes() == chunk.data.tobytes()
    column = ReadLines(chunk)
    assert list(column.values()) == content.decode().split(delimiter.decode())
    assert list(Lines(column.ended.slice(1, 2), delimiter).values()) == list(column.values())[1:3]
    assert (~value.starts_with("c")).kept(column).values() == [text for text in column.values() if text[:1] != "c"]


@pytest.mark.parametrize("delimiter", ["\n", "\r\n", "cabdab", "||#", "€"])
def test_delimiters_are_taken_as_text_too(delimiter):
    assert delimiter_of(delimiter) == delimiter.encode()


@pytest.mark.parametrize("first_search", [1, 3, 4096])
@pytest.mark.parametrize("delimiter", [b"\n", b"\r\n"])
@pytest.mark.parametrize("ended", [True, False])
def test_the_first_and_the_last_line_are_known_before_all_others(first_search, delimiter, ended, monkeypatch):
    monkeypatch.setattr("dagkit_operators.contexts.lines.FIRST_SEARCH", first_search)
    for texts in ([b"a"], [b"a", b"bb"], [b"", b"", b""], [b"a" * 30, b"", b"b" * 20], [b"x", b"b" * 40]):
        content = delimiter.join(texts) + (delimiter if ended else b"")
        for start in (0, len(texts[0]) + len(delimiter)):
            for chunk in chunks(io.BytesIO(content), start, None, delimiter):
                known = [chunk[0], chunk[-1], len(chunk)]
                every = (chunk.base + chunk.starts).tolist()
                assert known == [every[0], every[-1], len(every)]
                assert [chunk[index] for index in range(len(every))] == every
                assert [chunk[-index - 1] for index in range(len(every))] == every[::-1]


class Watched(io.BytesIO):
    """A stream that notes how many bytes it is asked for."""

    asked = 0

    def readinto(self, buffer, /):
        self.asked = max(self.asked, len(buffer))
        return super().readinto(buffer)


def test_little_is_read_beyond_a_stretch():
    stream = Watched(b"aaa\nbbb\nccc\n")
    assert [chunk.data.tobytes() for chunk in chunks(stream, 0, 8, size=8)] == [b"aaa\nbbb\n"]
    assert stream.tell() == 8, "it ends with a line"
    (chunk,) = chunks(small := Watched(b"one\ntwo\n"), 0, 8)
    assert (bytes(chunk.data), small.asked) == (b"one\ntwo\n", 10), "the buffer is small"
    stream = io.BytesIO(b"one\n" + b"x" * 100 + b"\nend")
    assert [bytes(chunk.data) for chunk in chunks(stream, 0, 5)] == [b"one\n", b"x" * 100 + b"\n"]
