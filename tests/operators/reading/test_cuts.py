"""However a file is cut, and however little is read at a time, each line comes once: all small files are tried."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dagkit_operators import LineReader
from dagkit_operators.contexts.lines import delimiter_of
from tests.examples import examples
from tests.operators.reading_text import SIZES, lines, plainly, records


def joined(parts: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Every file of up to so many parts."""
    parts = list(parts)
    for count in range(most + 1):
        yield from {b"".join(chosen): None for chosen in product(parts, repeat=count)}


def letters(text: bytes) -> list[bytes]:
    return [text[place : place + 1] for place in range(len(text))]


def begun(delimiter: bytes) -> list[bytes]:
    """A delimiter, whatever it begins with, what it ends with, and a byte that is none of it."""
    beginnings = [delimiter[:length] for length in range(1, len(delimiter))]
    return [delimiter, *beginnings, delimiter[-1:], b"."]


def survives_any_cut(contents: Iterable[bytes], *form: bytes) -> None:
    for content in contents:
        every = [line.whole for line in plainly(content, *form)]
        for size in SIZES:
            for cut in range(len(content) + 1):
                both = [*lines(content, (0, cut), *form, size), *lines(content, (cut, None), *form, size)]
                assert both == every, (content, size, cut)


KINDS: dict[str, tuple[Sequence[bytes], bytes, bytes]] = {
    "LF, CRLF and lone CR": (letters(b"a\r\n"), b"\n", b""),
    "CRLF": (letters(b"a\r\n"), b"\r\n", b""),
    "escaped LF": (letters(b"a\\\n"), b"\n", b"\\"),
    "escaped CRLF": (letters(b"\\\r\n"), b"\r\n", b"\\"),
    "three bytes": (begun(b"abc"), b"abc", b""),
    "four bytes": (begun(b"||#;"), b"||#;", b""),
    "five bytes": (begun(b"12345"), b"12345", b""),
    "five bytes that are nearly a repetition": (begun(b"aabab"), b"aabab", b""),
    "escaped delimiters of three bytes": ([*begun(b"abc"), b"\\"], b"abc", b"\\"),
    "characters of several bytes": (["ä".encode(), "€".encode(), "𝄞".encode(), b"\n"], b"\n", b""),
    "a byte order mark": ([b"\xef\xbb\xbf", b"a", b"\n"], b"\n", b""),
    "a delimiter that is a character": (["€".encode(), "₭".encode(), b"\xe2", b"\x82"], "€".encode(), b""),
}
kinds = pytest.mark.parametrize(("parts", "delimiter", "escape"), KINDS.values(), ids=KINDS.keys())


@kinds
def test_every_file_of_few_bytes_survives_any_cut(parts, delimiter, escape):
    survives_any_cut(joined(parts, 3 if len(parts) < 4 else 2), delimiter, escape)


@pytest.mark.trial
@pytest.mark.slow
@kinds
def test_every_file_of_some_bytes_survives_any_cut(parts, delimiter, escape):
    survives_any_cut(joined(parts, 5 if len(parts) < 4 else 4 if len(parts) < 5 else 3), delimiter, escape)


def overlaps_itself(delimiter: bytes) -> bool:
    return any(delimiter.startswith(delimiter[-length:]) for length in range(1, len(delimiter)))


WORDS = [bytes(word) for length in range(1, 6) for word in product(b"ab", repeat=length)]


@pytest.mark.parametrize("delimiter", WORDS)
def test_just_the_delimiters_that_overlap_themselves_are_refused(delimiter):
    if overlaps_itself(delimiter):
        with pytest.raises(ValueError, match="overlaps itself"):
            delimiter_of(delimiter)
    else:
        assert delimiter_of(delimiter) == delimiter


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("length", range(1, 6))
def test_every_delimiter_of_up_to_five_bytes_survives_any_cut_of_any_file(length):
    for word in WORDS:
        if len(word) == length and not overlaps_itself(word):
            survives_any_cut(joined(letters(b"ab"), 6), word, b"")


READERS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "LF": (b"a\n", {}),
    "LF and CRLF by turns": (b"a\r\n", {"keep_returns": False}),
    "escaped LF and CRLF by turns": (b"\\\r\n", {"keep_returns": False, "escape": "\\"}),
    "escaped delimiters": (b"a\\|", {"delimiter": "|", "escape": "\\"}),
    "a header": (b"a\n", {"skip_header_lines": 1}),
    "a header of two lines, with escapes": (b"\\\n", {"skip_header_lines": 2, "escape": "\\"}),
}
readers = pytest.mark.parametrize(("alphabet", "properties"), READERS.values(), ids=READERS.keys())


def reads_the_same_after_any_cut(alphabet: bytes, most: int, properties: dict[str, Any]) -> None:
    reader = LineReader(**properties)
    made = {size: LineReader(chunk_size=size, **properties) for size in SIZES}
    for content in joined(letters(alphabet), most):
        told = plainly(content, reader.delimiter.encode(), reader.escape.encode(), returns=reader.keep_returns)
        every = [line.value for line in told][reader.skip_header_lines :]
        for size, reading in made.items():
            for cut in range(len(content) + 1):
                assert records(reading, content, (0, cut, len(content))) == every, (content, size, cut)


@readers
def test_every_small_file_gives_the_same_records_after_any_cut(alphabet, properties):
    reads_the_same_after_any_cut(alphabet, 3, properties)


@pytest.mark.trial
@pytest.mark.slow
@readers
def test_every_file_gives_the_same_records_after_any_cut(alphabet, properties):
    reads_the_same_after_any_cut(alphabet, 5, properties)


DELIMITERS = [b"\n", b"\r\n", b"ab", b"abc", b"||#;", b"aabab"]


def text_with(delimiter: bytes) -> st.SearchStrategy[tuple[bytes, bytes]]:
    parts = st.sampled_from([*begun(delimiter), b"\\", b"\r", b"xyz" * 9, "€".encode()])
    return st.tuples(st.lists(parts, max_size=200).map(b"".join), st.just(delimiter))


texts = st.sampled_from(DELIMITERS).flatmap(text_with)


def survives_any_cuts(text: tuple[bytes, bytes], cuts: Sequence[int], size: int, *, escaped: bool) -> None:
    content, delimiter = text
    escape = b"\\" if escaped else b""
    met = pairwise(sorted({0, len(content), *(cut for cut in cuts if cut < len(content))}))
    found = [line for one in met for line in lines(content, one, delimiter, escape, size)]
    assert found == [line.whole for line in plainly(content, delimiter, escape)]


cut_lists = st.lists(st.integers(0, 2000), max_size=8)


@given(texts, cut_lists, st.integers(1, 100), st.booleans())
@settings(max_examples=examples(60))
@example((b"a" * 8191 + b"\r\nb\r\n", b"\n"), [8193], 8192, False)
def test_larger_files_survive_any_cuts(text, cuts, size, escaped):
    survives_any_cuts(text, cuts, size, escaped=escaped)


@pytest.mark.trial
@pytest.mark.slow
@given(texts, cut_lists, st.sampled_from([*SIZES, 4, 7, 31, 64]), st.booleans())
@settings(max_examples=examples(1500))
def test_many_larger_files_survive_any_cuts(text, cuts, size, escaped):
    survives_any_cuts(text, cuts, size, escaped=escaped)
