"""Texts on which readers of lines have failed before, or are proven by others: each one, in blocks of many widths."""

import codecs
import io
from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from dagkit import Block
from dagkit.ranges import OffsetRange
from dagkit.testing import Alone, check_every_split_of
from dagkit_operators import LineReader, LineReaderContext, TailFiles
from dagkit_operators.filesystem.access import BadFile
from tests.operators.reading.cast import SIZES, block_of, blocks_of, read, records, written


class Case(NamedTuple):
    """A text, how it is read, and what comes of it."""

    text: bytes
    values: list[bytes]
    properties: Mapping[str, Any] = MappingProxyType({})
    widths: tuple[int, ...] = ()

    def ways(self) -> Iterator[tuple[int, int]]:
        """How much is read at a time, and how wide blocks are; of long texts more."""
        long = len(self.text) > 500
        widths = self.widths or ((33, 8192) if long else (4, 5, 6, 7, 33))
        yield from product((1000, 8192) if long else SIZES, widths)


def numbered(count: int, line: bytes = b"line") -> list[bytes]:
    return [line + str(number).encode() for number in range(count)]


def ended(lines: list[bytes], *ends: bytes) -> bytes:
    """The lines, ended by these in turns."""
    return b"".join(line + ends[number % len(ends)] for number, line in enumerate(lines))


def header(lines: int) -> dict[str, Any]:
    return {"skip_header_lines": lines}


BARE: dict[str, Any] = {"keep_returns": False}
ESCAPED: dict[str, Any] = {"escape": "\\"}
WIDE, NARROW, NEAR_8192 = (8192, 100_000), (1, 2, 3, 4, 5), (8190, 8191, 8192, 8193)
DELIMITERS = ("*|", "*", "*=-", "\r\n", "@#", "abc", "@$*")
RETURNS = numbered(3, b"\rline")
TEN, HUNDRED, MANY = numbered(10), numbered(100), numbered(8192)

CASES = {
    "a hundred lines": Case(ended(HUNDRED, b"\n"), HUNDRED),
    "8192 lines": Case(ended(MANY, b"\n"), MANY, {}, WIDE),
    "CRLF": Case(ended(HUNDRED, b"\r\n"), HUNDRED, BARE),
    "LF and CRLF by turns": Case(ended(HUNDRED, b"\n", b"\r\n"), HUNDRED, BARE),
    "CRLF, and returns are kept": Case(ended(HUNDRED, b"\r\n"), [line + b"\r" for line in HUNDRED]),
    "a lone return ends no line": Case(b"a\rb\r\nc", [b"a\rb", b"c"], BARE),
    "a return that nothing follows stays": Case(b"a\r\nb\r", [b"a", b"b\r"], BARE),
    "of two returns one goes": Case(b"a\r\r\n\r\r\n", [b"a\r", b"\r"], BARE),
    "the last line is not ended": Case(ended(HUNDRED, b"\n")[:-1], HUNDRED),
    "the only line is not ended": Case(b"line0", [b"line0"]),
    "nothing at all": Case(b"", []),
    "empty lines": Case(b"\n" * 100, [b""] * 100),
    "empty lines that end in CRLF": Case(b"\r\n" * 100, [b""] * 100, BARE),
    "a byte order mark stays": Case(b"\xef\xbb\xbfa\nb\n", [b"\xef\xbb\xbfa", b"b"]),
    "bytes that are no UTF-8 stay": Case(b"\xff\n\xe2\x82\na\xa4", [b"\xff", b"\xe2\x82", b"a\xa4"]),
    "a header of one line": Case(ended(HUNDRED, b"\n"), HUNDRED[1:], header(1)),
    "a header of two lines": Case(ended(HUNDRED, b"\n"), HUNDRED[2:], header(2)),
    "a header is all there is": Case(ended(numbered(4), b"\n"), [], header(4)),
    "a header longer than the file": Case(ended(numbered(3), b"\n"), [], header(4)),
    "a header without an end": Case(b"line0", [], header(1)),
    "a header before an empty line": Case(b"line0\n\n", [b""], header(1)),
    **{f"the delimiter is {text}": Case(ended(TEN, text.encode()), TEN, {"delimiter": text}) for text in DELIMITERS},
    "another delimiter than the text's": Case(ended(TEN, b"@$"), [ended(TEN, b"@$")], {"delimiter": "@$*"}),
    "lines that begin with a return": Case(ended(RETURNS, b"\r\n"), RETURNS, {"delimiter": "\r\n"}),
    "a cut within the length of a delimiter": Case(b"abcxabcyyabc", [b"", b"x", b"yy"], {"delimiter": "abc"}, NARROW),
    "a first record of two bytes before four": Case(b"xx||#;y||#;", [b"xx", b"y"], {"delimiter": "||#;"}, NARROW),
    "a delimiter that begins twice": Case(b"ABABCD", [b"AB", b"D"], {"delimiter": "ABC"}, NARROW),
    "a delimiter that begins at the end of a buffer, and is none": Case(
        b"x" * 8190 + b"ABCxDE" + b"ABCDEy", [b"x" * 8190 + b"ABCxDE", b"y"], {"delimiter": "ABCDE"}, NEAR_8192
    ),
    "a return that is the last byte of a buffer, and a cut behind its newline": Case(
        b"a" * 8191 + b"\r\nb\r\n", [b"a" * 8191, b"b"], BARE, NEAR_8192
    ),
    "an escaped newline": Case(ended(numbered(10, b"li\\\nne"), b"\n"), numbered(10, b"li\\\nne"), ESCAPED),
    "an escaped return, and an escaped newline": Case(
        ended(numbered(8192, b"li\\\r\\\nne"), b"\n"), numbered(8192, b"li\\\r\\\nne"), {**BARE, **ESCAPED}, WIDE
    ),
    "an escaped return before a newline": Case(
        ended(numbered(100, b"a\\\r\nb"), b"\n"),
        [half for number in range(100) for half in (b"a\\\r", b"b%d" % number)],
        {**BARE, **ESCAPED},
    ),
    "an escaped delimiter of two bytes": Case(
        ended(numbered(10, b"li\\*|ne"), b"*|"), numbered(10, b"li\\*|ne"), {"delimiter": "*|", **ESCAPED}
    ),
    "five escapes": Case(b"a" + b"\\" * 5 + b"\nb\nc", [b"a" + b"\\" * 5 + b"\nb", b"c"], ESCAPED, (1, 2, 5, 6, 7)),
    "six escapes": Case(b"a" + b"\\" * 6 + b"\nb\nc", [b"a" + b"\\" * 6, b"b", b"c"], ESCAPED, (1, 2, 5, 6, 7)),
    "a file of escapes": Case(b"\\" * 99, [b"\\" * 99], ESCAPED),
    "an escape at the very end": Case(b"a\nb\\", [b"a", b"b\\"], ESCAPED),
    "an escaped newline at the very end": Case(b"a\nb\\\n", [b"a", b"b\\\n"], ESCAPED),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_lines(case):
    for size, width in case.ways():
        reader = LineReader(chunk_size=size, **case.properties)
        edges = [*range(0, len(case.text), width), len(case.text)]
        assert records(reader, case.text, edges) == case.values, (size, width)


def test_many_files_of_many_lengths(tmp_path):
    """Each loses its own header, and one that is no longer than a header gives nothing."""
    lengths = (500, 300, 1200, 800, 800, 400, 2, 1)
    paths = [written(tmp_path, ended(numbered(length), b"\n"), str(n)) for n, length in enumerate(lengths)]
    found = read(LineReader(skip_header_lines=2), *(block for path in paths for block in blocks_of(path, 1000)))
    assert [line.encode() for line in found] == [line for length in lengths for line in numbered(length)[2:]]


def test_lines_keep_their_ends_for_who_writes_them_again_and_without_returns_stay_columnar():
    for text in (ended(TEN, b"\n"), ended(TEN, b"\r\n"), b"a\nbb\nc"):
        (column,) = columns(LineReader(), text)
        assert bytes(column.content) == (text if text.endswith(b"\n") else text + b"\n")
    (column,) = columns(LineReader(keep_returns=False), b"a\r\nb\nc\r\nd")
    assert bytes(column.content) == b"a\nb\nc\nd\n"
    assert column.base is None, "they stand elsewhere than in their file"


def columns(reader: LineReader, text: bytes) -> Iterator[Any]:
    block = Block(0, "", 0, len(text))
    tracker = reader.tracker(block, OffsetRange(0, len(text)))
    for batch in reader.reader_context.batches(io.BytesIO(text), block, tracker):
        yield batch.column("value")


def test_progress_is_reported_record_by_record(tmp_path):
    (block,) = blocks_of(written(tmp_path, ended(TEN, b"\n")))
    reader = LineReader(chunk_size=6)
    tracker = reader.tracker(block, OffsetRange(0, 60))
    told = [tracker.current_progress().fraction_completed for _ in reader.process(block, tracker)]
    assert told == [number / 10 for number in range(10)]
    assert tracker.current_progress().fraction_completed == 1.0


WITHIN = "cannot be read from the middle of a file"


@pytest.mark.parametrize(
    ("reader", "properties", "words"),
    [
        (LineReader, {"delimiter": ""}, "at least one byte"),
        (LineReader, {"delimiter": "||"}, "overlaps itself"),
        (LineReader, {"delimiter": "***"}, "overlaps itself"),
        (LineReader, {"escape": "ab"}, "it has one"),
        (LineReader, {"escape": "€"}, "it has one"),
        (LineReader, {"escape": "\\", "delimiter": "\\n"}, "holds the escape"),
        (LineReader, {"keep_returns": False, "delimiter": "|"}, "leave the delimiter away"),
        (LineReader, {"skip_header_lines": -1}, "greater than or equal to 0"),
        (LineReader, {"encoding": "utf-99"}, "'utf-99' cannot be used: unknown encoding"),
        (LineReader, {"encoding": "base64"}, "cannot be used"),
        (LineReader, {"encoding": "utf-7"}, f"utf-7 {WITHIN}"),
        (LineReader, {"encoding": "iso2022_jp"}, f"iso2022_jp {WITHIN}"),
        (LineReader, {"encoding": "shift_jis", "delimiter": "|"}, "may be part of a character of shift_jis"),
        (LineReader, {"encoding": "latin-1", "delimiter": "€"}, "cannot be used"),
        (LineReader, {"encoding": "latin-1", "escape": "\\"}, "only lines in UTF-8 have escapes"),
        (LineReader, {"encoding": "utf-16", "collapse_line_ends": True}, "has several bytes"),
        (TailFiles, {"encoding": "utf-16"}, "may end within a character"),
        (TailFiles, {"on_bad_file": "quarantine"}, "the rest of a file that grows has no end; connect lost"),
        (TailFiles, {"collapse_line_ends": True}, "is True, and a run of line ends may still grow; leave it away"),
        (
            TailFiles,
            {"by_file": {"*.log": {"encoding": "utf-16"}}},
            "is 'utf-16', and a file that grows",
        ),
    ],
)
def test_what_would_be_read_in_two_ways_or_cannot_be_read_in_blocks_is_a_fault(reader, properties, words):
    assert any(words in fault.message for fault in reader(**properties).faults)


# ---- text in any encoding

LINES = ["aé", "", "ߧ", "b"]
"""Characters of one, two and three bytes in UTF-8."""
MISLEADING = ["ਊĊ", "", "\u0a00\u000d", "਍"]
"""In UTF-16, the bytes of these characters look like a newline at odd positions."""
BROKEN = b"ok\nm\xe9t\xe9o\nalso ok\n"


@pytest.mark.gate(9)
@pytest.mark.parametrize(
    ("encoding", "lines"),
    [
        ("latin-1", ["aé", "", "ÿ", "b"]),
        ("cp1252", ["a€", "", "b"]),
        ("koi8-r", ["да", "", "нет"]),
        ("cp037", ["ab", "", "c"]),
        ("gbk", ["中", "文", "", "a", "bc"]),
        ("shift_jis", ["表", "示", "", "a", "bc"]),
        ("utf-16-le", LINES),
        ("utf-16-be", MISLEADING),
        ("utf-16-le", MISLEADING),
        ("utf-16", MISLEADING),
        ("utf-32", LINES),
        ("utf-8-sig", LINES),
    ],
)
def test_every_split_gives_the_lines_of_the_file(encoding, lines, tmp_path):
    for text in ("\n".join(lines), "\n".join(lines) + "\n"):
        block = block_of(tmp_path, text.encode(encoding))
        for chunk_size in (5, 4096):
            assert read(LineReader(encoding=encoding, chunk_size=chunk_size), block) == lines
        assert check_every_split_of(LineReader(encoding=encoding, chunk_size=4), block).records == len(lines)


def test_a_byte_that_looks_like_the_delimiter_ends_no_line(tmp_path):
    """In Mac Arabic, there is a vertical bar for each direction of writing."""
    assert b"|\xfc".decode("mac_arabic") == "||"
    block = block_of(tmp_path, b"a|b\xfcc\xfc")
    assert read(LineReader(encoding="mac_arabic", delimiter="|"), block) == ["a|b", "c"]


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE, b""])
def test_the_mark_says_the_order_of_bytes_which_is_else_little_endian(mark, tmp_path):
    order = "be" if mark == codecs.BOM_UTF16_BE else "le"
    block = block_of(tmp_path, mark + "a\nb\n".encode(f"utf-16-{order}"))
    assert read(LineReader(encoding="utf-16"), block) == ["a", "b"]


@pytest.mark.parametrize(
    ("properties", "content", "values", "start", "reason"),
    [
        ({"encoding": "utf-16-le"}, b"a\0\n\0b", ["a"], 4, "utf-16-le: byte 0 of it, 0x62: truncated data"),
        ({"undecodable": "reject"}, BROKEN, ["ok", "also ok"], 3, "utf-8: byte 1 of it, 0xe9: invalid continuation"),
    ],
    ids=["since its bytes cannot be kept", "on request"],
)
def test_a_line_that_is_no_text_is_rejected(*, properties, content, values, start, reason, tmp_path):
    reader, block = Alone(LineReader(**properties)), block_of(tmp_path, content)
    assert read(reader, block) == values
    (rejected,) = reader.sent("rejected")
    assert (rejected.path, rejected.start) == (block.path, start)
    assert rejected.reason.startswith(f"it is not {reason}")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("skips", [True, False])
def test_a_byte_order_mark_is_skipped_on_request(encoding, skips, tmp_path):
    block = block_of(tmp_path, "\ufeffa\n\ufeffb\n".encode(encoding))
    lines = read(LineReader(encoding=encoding, skip_byte_order_mark=skips, chunk_size=2), block)
    assert lines == ["a" if skips else "\ufeffa", "\ufeffb"]


@pytest.mark.parametrize(
    ("properties", "lines"),
    [
        ({"keep_returns": False}, ["é", "b"]),
        ({"collapse_line_ends": True}, ["é", "b"]),
        ({"skip_header_lines": 1}, ["b"]),
        ({"reader_context": LineReaderContext()}, ["é\r", "b"]),
    ],
)
def test_encodings_go_with_the_other_properties_of_lines(properties, lines, tmp_path):
    block = block_of(tmp_path, b"\xe9\r\nb\n")
    assert read(LineReader(encoding="latin-1", **properties), block) == lines


def test_undecodable_bytes_are_kept_by_default_and_fail_the_run_on_request(tmp_path):
    block = block_of(tmp_path, BROKEN)
    values = read(LineReader(), block)
    assert [value.encode("utf-8", "surrogateescape") for value in values] == BROKEN.splitlines()
    with pytest.raises(BadFile, match="file: the line at byte 3 is not utf-8: byte 1 of it, 0xe9"):
        read(LineReader(undecodable="fail"), block)
