"""Text in any encoding is read in blocks, and each line comes once, however a block is cut."""

import codecs

import pytest

from dagkit.testing import Alone, check_every_split_of
from dagkit_operators import LineReader, LineReaderContext
from dagkit_operators.contexts.encodings import TextUndecodable
from tests.operators.reading.cast import block_of, read

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


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE, b""])
def test_the_mark_says_the_order_of_bytes_which_is_else_little_endian(mark, tmp_path):
    order = "be" if mark == codecs.BOM_UTF16_BE else "le"
    block = block_of(tmp_path, mark + "a\nb\n".encode(f"utf-16-{order}"))
    assert read(LineReader(encoding="utf-16"), block) == ["a", "b"]


@pytest.mark.parametrize(
    ("properties", "content", "values", "start", "reason"),
    [
        ({"encoding": "utf-16-le"}, b"a\0\n\0b", ["a"], 4, "utf-16-le: byte 0 of it, 0x62: truncated data"),
        (
            {"undecodable": "reject"},
            BROKEN,
            ["ok", "also ok"],
            3,
            "utf-8: byte 1 of it, 0xe9: invalid continuation byte",
        ),
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
    with pytest.raises(TextUndecodable, match="file: the line at byte 3 is not utf-8: byte 1 of it, 0xe9"):
        read(LineReader(undecodable="fail"), block)
