"""Chunks of lines: where they start, what they know before it is asked for, and what is refused."""

import io
from typing import Any

import pytest

from dagkit import Lines
from dagkit_operators import value
from dagkit_operators.contexts.line_columns import ReadLines
from dagkit_operators.contexts.lines import LineTooLong, chunks, delimiter_of
from tests.operators.reading_text import lines


def test_a_line_is_of_the_stretch_in_which_it_starts():
    assert lines(b"aaa\nbbb\nccc\n", (4, 5)) == [b"bbb\n"]
    assert lines(b"aaa\nbbb\nccc\n", (5, 8)) == []


def test_the_places_of_lines_are_places_in_the_file():
    (chunk,) = chunks(io.BytesIO(b"aaa\nbbb\nccc\n"), 1, None)
    assert (chunk.base + chunk.starts).tolist() == [4, 8]


def test_a_chunk_can_be_cut_after_any_line():
    (chunk,) = chunks(io.BytesIO(b"a\nbb\nc\n"), 0, None)
    assert [chunk.up_to(count).data.tobytes() for count in range(4)] == [b"", b"a\n", b"a\nbb\n", b"a\nbb\nc\n"]


@pytest.mark.parametrize("delimiter", [b"\n", b"\r\n"])
@pytest.mark.parametrize("escape", [b"", b"|"])
def test_places_beyond_32_bits_are_as_good(delimiter, escape, monkeypatch):
    content = delimiter.join([b"a", b"", b"bb" + escape, b"ccc", b"d" * 20, b"e"])
    short = [(chunk.base, chunk.offsets.tolist()) for chunk in chunks(io.BytesIO(content), 0, None, delimiter)]
    monkeypatch.setattr("dagkit_operators.native.bytewise.MOST_SHORT", 3)
    read = list(chunks(io.BytesIO(content), 0, None, delimiter))
    assert [(chunk.base, chunk.offsets.tolist()) for chunk in read] == short
    assert {chunk.offsets.itemsize for chunk in read} == {8}
    (chunk,) = read
    first, others = chunk.parted(2)
    assert first.data.tobytes() + others.data.tobytes() == chunk.data.tobytes()
    column = ReadLines(chunk)
    assert list(column.values()) == content.decode().split(delimiter.decode())
    assert list(Lines(column.ended.slice(1, 2), delimiter).values()) == list(column.values())[1:3]
    assert (~value.starts_with("c")).kept(column).values() == [text for text in column.values() if text[:1] != "c"]


def test_a_line_longer_than_the_limit_is_named_by_its_place():
    long = chunks(io.BytesIO(b"a\n" + b"b" * 20), 0, None, size=4, longest=8)
    with pytest.raises(LineTooLong, match="the line at byte 2 is longer than 8 bytes"):
        list(long)


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


def test_nothing_is_read_beyond_a_stretch_that_ends_with_a_line():
    stream = io.BytesIO(b"aaa\nbbb\nccc\n")
    assert [chunk.data.tobytes() for chunk in chunks(stream, 0, 8, size=8)] == [b"aaa\nbbb\n"]
    assert stream.tell() == 8


class Watched(io.BytesIO):
    """A stream that notes how many bytes it is asked for."""

    asked = 0

    def readinto(self, buffer: Any, /) -> int:
        self.asked = max(self.asked, len(buffer))
        return super().readinto(buffer)


def test_lines_of_a_small_file_are_read_into_a_small_buffer():
    stream = Watched(b"one\ntwo\n")
    (chunk,) = chunks(stream, 0, 8)
    assert (bytes(chunk.data), stream.asked) == (b"one\ntwo\n", 10)


def test_a_line_that_exceeds_its_block_is_read_to_its_end():
    stream = io.BytesIO(b"one\n" + b"x" * 100 + b"\nend")
    assert [bytes(chunk.data) for chunk in chunks(stream, 0, 5)] == [b"one\n", b"x" * 100 + b"\n"]
