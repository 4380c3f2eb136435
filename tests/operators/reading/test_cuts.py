"""However a file is cut, and however little is read at a time, each line comes once: all small files are tried."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dagkit_operators import LineReader
from dagkit_operators.contexts.lines import delimiter_of
from tests.examples import examples
from tests.operators.reading.cast import SIZES, plainly, records


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


def survives_any_cut(parts: Iterable[bytes], most: int, properties: dict[str, Any]) -> None:
    """Every file of up to so many parts gives its lines, wherever it is cut."""
    readers = [LineReader(chunk_size=size, **properties) for size in SIZES]
    for content in joined(parts, most):
        lines = lines_of(readers[0], content)
        for reader, cut in product(readers, range(len(content) + 1)):
            assert records(reader, content, (0, cut, len(content))) == lines, (content, reader.chunk_size, cut)


def lines_of(reader: LineReader, content: bytes) -> list[bytes]:
    lines = plainly(content, reader.delimiter.encode(), reader.escape.encode(), returns=reader.keep_returns)
    return lines[reader.skip_header_lines :]


BY_TURNS, ESCAPED = {"keep_returns": False}, {"escape": "\\"}
KINDS: dict[str, tuple[Sequence[bytes], dict[str, Any]]] = {
    "LF": (letters(b"a\n"), {}),
    "LF, CRLF and lone CR": (letters(b"a\r\n"), {}),
    "LF and CRLF by turns": (letters(b"a\r\n"), BY_TURNS),
    "CRLF": (letters(b"a\r\n"), {"delimiter": "\r\n"}),
    "escaped LF": (letters(b"a\\\n"), ESCAPED),
    "escaped CRLF": (letters(b"\\\r\n"), {"delimiter": "\r\n", **ESCAPED}),
    "escaped LF and CRLF by turns": (letters(b"\\\r\n"), BY_TURNS | ESCAPED),
    "escaped delimiters": (letters(b"a\\|"), {"delimiter": "|", **ESCAPED}),
    "three bytes": (begun(b"abc"), {"delimiter": "abc"}),
    "four bytes": (begun(b"||#;"), {"delimiter": "||#;"}),
    "five bytes": (begun(b"12345"), {"delimiter": "12345"}),
    "five bytes that are nearly a repetition": (begun(b"aabab"), {"delimiter": "aabab"}),
    "escaped delimiters of three bytes": ([*begun(b"abc"), b"\\"], {"delimiter": "abc", **ESCAPED}),
    "characters of several bytes": (["ä".encode(), "€".encode(), "𝄞".encode(), b"\n"], {}),
    "a byte order mark": ([b"\xef\xbb\xbf", b"a", b"\n"], {}),
    "a delimiter that is a character": (["€".encode(), "₭".encode(), b"\xe2", b"\x82"], {"delimiter": "€"}),
    "a header": (letters(b"a\n"), {"skip_header_lines": 1}),
    "a header of two lines, with escapes": (letters(b"\\\n"), {"skip_header_lines": 2, **ESCAPED}),
}
kinds = pytest.mark.parametrize(("parts", "properties"), KINDS.values(), ids=KINDS.keys())


@kinds
def test_every_small_file_survives_any_cut(parts, properties):
    survives_any_cut(parts, 3 if len(parts) < 4 else 2, properties)


@pytest.mark.trial
@pytest.mark.slow
@kinds
def test_every_file_of_some_bytes_survives_any_cut(parts, properties):
    survives_any_cut(parts, 5 if len(parts) < 4 else 4 if len(parts) < 5 else 3, properties)


def overlaps_itself(delimiter: bytes) -> bool:
    return any(delimiter.startswith(delimiter[-length:]) for length in range(1, len(delimiter)))


WORDS = [bytes(word) for length in range(1, 6) for word in product(b"ab", repeat=length)]


@pytest.mark.parametrize("delimiter", WORDS)
def test_just_the_delimiters_that_overlap_themselves_are_refused(delimiter):
    if overlaps_itself(delimiter):
        with pytest.raises(ValueError, match="overlaps itself"):
            delimiter_of(delimiter.decode())
    else:
        assert delimiter_of(delimiter.decode()) == delimiter


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize("length", range(1, 6))
def test_every_delimiter_of_up_to_five_bytes_survives_any_cut_of_any_file(length):
    for word in WORDS:
        if len(word) == length and not overlaps_itself(word):
            survives_any_cut(letters(b"ab"), 6, {"delimiter": word.decode()})


def text_with(delimiter: bytes) -> st.SearchStrategy[tuple[bytes, bytes]]:
    parts = st.sampled_from([*begun(delimiter), b"\\", b"\r", b"xyz" * 9, "€".encode()])
    return st.tuples(st.lists(parts, max_size=200).map(b"".join), st.just(delimiter))


@given(
    st.sampled_from([b"\n", b"\r\n", b"ab", b"abc", b"||#;", b"aabab"]).flatmap(text_with),
    st.lists(st.integers(0, 2000), max_size=8),
    st.integers(1, 100),
    st.booleans(),
)
@settings(max_examples=examples(750, in_gate=15))
@example((b"a" * 8191 + b"\r\nb\r\n", b"\n"), [8193], 8192, False)
def test_larger_files_survive_any_cuts(text, cuts, size, escaped):
    content, delimiter = text
    reader = LineReader(delimiter=delimiter.decode(), escape="\\" if escaped else "", chunk_size=size)
    edges = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    assert records(reader, content, edges) == lines_of(reader, content)
