"""However a file is cut, and however little is read at a time, every line comes exactly once."""

import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit_operators.lines import LineTooLong, chunks, delimiter_of


def lines(content: bytes, start: int, end: int | None, delimiter: bytes = b"\n", size: int = 8192) -> list[bytes]:
    """The lines of a stretch, delimiters included."""
    found = []
    for chunk in chunks(io.BytesIO(content), start, end, delimiter, size=size):
        data, ends = chunk.data.tobytes(), [0, *chunk.ends.tolist()]
        found += [data[a:b] for a, b in pairwise(ends)]
    return found


def whole(content: bytes, delimiter: bytes = b"\n") -> list[bytes]:
    """The lines of a file, found the plain way."""
    parts = content.split(delimiter)
    return [part + delimiter for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


FILES = {
    "LF": b"aa\nb\n\nccc\n",
    "CRLF": b"aa\r\nb\r\n\r\nccc\r\n",
    "mixed": b"aa\r\nb\n\r\nccc\rdd\n",
    "no final newline": b"aa\nb\nccc",
    "only newlines": b"\n\n\n",
    "one line": b"abc",
    "nothing": b"",
    "multi-byte characters": "ä\n€uro\n𝄞\n".encode(),
    "a byte order mark": b"\xef\xbb\xbfaa\nbb\n",
}


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8192])
@pytest.mark.parametrize("content", FILES.values(), ids=FILES.keys())
def test_any_cut_gives_the_same_lines(content: bytes, size: int) -> None:
    for cut in range(len(content) + 1):
        both = lines(content, 0, cut, size=size) + lines(content, cut, len(content), size=size)
        assert both == whole(content)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8192])
@pytest.mark.parametrize("delimiter", [b"|", b"\r\n", b"ab", b"abc", b"||#", b"12345"])
def test_any_cut_gives_the_same_records_of_a_delimiter(delimiter: bytes, size: int) -> None:
    content = delimiter.join([b"x", b"", b"y" + delimiter[:1], delimiter[-1:] + b"z", b"end"])
    for cut in range(len(content) + 1):
        both = lines(content, 0, cut, delimiter, size) + lines(content, cut, None, delimiter, size)
        assert both == whole(content, delimiter)


@given(
    content=st.binary(max_size=200).map(lambda data: bytes(b"a\n\r|"[byte % 4] for byte in data)),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    size=st.integers(1, 40),
)
def test_any_cuts_give_the_same_lines(content: bytes, cuts: list[int], size: int) -> None:
    edges = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    found = [line for start, end in pairwise(edges) for line in lines(content, start, end, size=size)]
    assert found == whole(content)


def test_a_line_is_of_the_stretch_in_which_it_starts() -> None:
    assert lines(b"aaa\nbbb\nccc\n", 4, 5) == [b"bbb\n"]
    assert lines(b"aaa\nbbb\nccc\n", 5, 8) == []


def test_the_places_of_lines_are_places_in_the_file() -> None:
    (chunk,) = chunks(io.BytesIO(b"aaa\nbbb\nccc\n"), 1, None)
    assert (chunk.base + chunk.starts).tolist() == [4, 8]


def test_a_chunk_can_be_cut_after_any_line() -> None:
    (chunk,) = chunks(io.BytesIO(b"a\nbb\nc\n"), 0, None)
    assert [chunk.up_to(count).data.tobytes() for count in range(4)] == [b"", b"a\n", b"a\nbb\n", b"a\nbb\nc\n"]


def test_a_line_longer_than_the_limit_is_named_by_its_place() -> None:
    long = chunks(io.BytesIO(b"a\n" + b"b" * 20), 0, None, size=4, longest=8)
    with pytest.raises(LineTooLong, match="the line at byte 2 is longer than 8 bytes"):
        list(long)


@pytest.mark.parametrize("delimiter", ["aa", "aba", "\n\n", "abcab"])
def test_a_delimiter_that_overlaps_itself_is_refused(delimiter: str) -> None:
    with pytest.raises(ValueError, match="overlaps itself"):
        delimiter_of(delimiter)


@pytest.mark.parametrize("delimiter", ["\n", "\r\n", "ab", "||#"])
def test_other_delimiters_are_taken(delimiter: str) -> None:
    assert delimiter_of(delimiter) == delimiter.encode()


@pytest.mark.parametrize("looked_back", [1, 3, 4096])
@pytest.mark.parametrize("delimiter", [b"\n", b"\r\n"])
@pytest.mark.parametrize("ended", [True, False])
def test_the_first_and_the_last_line_are_known_before_all_others(
    looked_back: int, delimiter: bytes, ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dagkit_operators.lines.LOOKED_BACK", looked_back)
    for texts in ([b"a"], [b"a", b"bb"], [b"", b"", b""], [b"a" * 30, b"", b"b" * 20], [b"x", b"b" * 40]):
        content = delimiter.join(texts) + (delimiter if ended else b"")
        for start in (0, len(texts[0]) + len(delimiter)):
            for chunk in chunks(io.BytesIO(content), start, None, delimiter):
                known = [chunk.places[0], chunk.places[-1], len(chunk), len(chunk.places)]
                every = (chunk.base + chunk.starts).tolist()
                assert known == [every[0], every[-1], len(every), len(every)]
                assert [chunk.places[index] for index in range(len(every))] == every
                assert [chunk.places[-index - 1] for index in range(len(every))] == every[::-1]


def test_nothing_is_read_beyond_a_stretch_that_ends_with_a_line() -> None:
    stream = io.BytesIO(b"aaa\nbbb\nccc\n")
    assert [chunk.data.tobytes() for chunk in chunks(stream, 0, 8, size=8)] == [b"aaa\nbbb\n"]
    assert stream.tell() == 8
