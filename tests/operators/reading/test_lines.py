"""Chunks of lines: where they start, what they know before it is asked for, and what is refused."""

import io
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from dagkit import Lines
from dagkit_operators import CsvContext, CsvReader, JsonLinesReader, LineReader, value
from dagkit_operators.contexts.chunk import CLAIM_SECONDS, FIRST_CLAIM, GROWTH, QUICK_SECONDS, Chunk, in_portions
from dagkit_operators.contexts.line_columns import ReadLines
from dagkit_operators.contexts.lines import chunks
from dagkit_operators.contexts.scanned_lines import run_chunks, wide_chunks
from dagkit_operators.filesystem.access import BadFile
from tests.operators.reading.cast import block_of, read


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


@pytest.mark.parametrize(
    ("reading", "encoding"),
    [(run_chunks, "utf-8"), (partial(wide_chunks, delimiter=b"\n\0", unit=2), "utf-16-le")],
    ids=["runs of line ends", "wider units"],
)
def test_lines_that_are_found_otherwise_are_read_no_further(reading, encoding):
    lines = [text.encode(encoding) for text in ("aa\n", "bb\n", "cc\n")]
    stream, size = io.BytesIO(b"".join(lines)), len(lines[0]) + 2
    assert [bytes(chunk.data) for chunk in reading(stream, 0, len(lines[0]), size=size, longest=99)] == lines[:1]
    assert stream.tell() == size


# ---- how many lines are claimed at once: as many as are soon done

LINES = 100_000


def chunk_of(count: int, base: int = 0) -> Chunk:
    return Chunk(np.frombuffer(b"line\n" * count, np.uint8), base, b"\n")


def portions_of(seconds: list[float]) -> list[int]:
    """How many lines are claimed, claim by claim, where each line takes as long as is said of it."""
    done, now, sizes = 0, [0.0], []
    for part in in_portions([chunk_of(len(seconds), base=7)], lambda: now[0]):
        assert part.base == 7 + 5 * done
        assert part.data.tobytes() == b"line\n" * len(part)
        sizes.append(len(part))
        now[0] += sum(seconds[done : done + len(part)])
        done += len(part)
    assert done == len(seconds)
    return sizes


@pytest.mark.parametrize("seconds", [QUICK_SECONDS / 2, 0.0], ids=["quick lines", "a clock that stands still"])
def test_quick_lines_are_claimed_as_they_were_read(seconds):
    assert portions_of([seconds] * LINES) == [FIRST_CLAIM, GROWTH * FIRST_CLAIM, LINES - 9 * FIRST_CLAIM]


def test_the_slower_lines_are_the_fewer_are_claimed_at_a_time():
    sizes = portions_of([CLAIM_SECONDS / 10] * 1000)
    assert sizes[0] == FIRST_CLAIM
    assert set(sizes[1:-1]) <= {9, 10}
    assert portions_of([1.0] * 200) == [FIRST_CLAIM, *[1] * (200 - FIRST_CLAIM)]
    assert len(portions_of([1.0] + [QUICK_SECONDS / 2] * LINES)) <= 5


def test_lines_that_get_a_hundred_times_slower_keep_one_claim_from_its_end_for_half_a_second():
    cheap, dear = 1e-4, 1e-2
    sizes = portions_of([cheap] * 5000 + [dear] * 200)
    assert max(sizes) * dear <= 1.01 * 100 * CLAIM_SECONDS


def test_lines_that_get_quicker_are_claimed_more_and_more_at_a_time():
    sizes = portions_of([0.1] * 100 + [QUICK_SECONDS * 2] * LINES)
    after_first = sizes[1:]
    assert all(after <= GROWTH * before for before, after in pairwise(after_first))
    assert max(sizes) == pytest.approx(CLAIM_SECONDS / QUICK_SECONDS / 2, abs=1)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_file_of_wider_units_is_not_read_as_utf_8(encoding, tmp_path):
    """Its lines would have NULs between their characters."""
    for end in ("\n", "\n" * 50_000):
        block = block_of(tmp_path, f"one{end}".encode(encoding))
        for reader in (LineReader(), LineReader(undecodable="reject"), JsonLinesReader()):
            with pytest.raises(BadFile, match=f"it begins with the byte order mark of {encoding}"):
                read(reader, block)
        assert read(LineReader(encoding=encoding), block)[0] == "one"


WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
WIDE_TEXTS = ["a\nb\n", "id,n\r\n1,é\r\n", '{"town": "Zürich… „nah“"}\n' * 500]
NUL_LINES = {
    "fields that end with NULs": b"1\0002\0003\0004\n" * 5,
    "fields that end with NULs, lines of another length": b"1\0002\0003\0\n" * 5,
    "lines that begin with NULs": b"\0a\n\0b\n\0c\n\0d\n",
    "short numbers": b"\x01\0\x02\0\x03\0\x04\0\x05\0\n",
    "nothing but NULs": b"\0" * 2000,
    "numbers of 32 bits": bytes(100) + b"\x05\0\0\0\x41\0\0\0\n",
    "text with some NULs": b"abc\0defg\0\n" * 5,
    "two of them": b"a\0b\0",
}


@pytest.mark.parametrize("text", WIDE_TEXTS, ids=["lines", "CSV", "JSON lines"])
@pytest.mark.parametrize("encoding", WIDE)
def test_a_file_that_seems_to_be_of_wider_units_without_a_mark_is_not_read_as_utf_8(encoding, text, tmp_path):
    block = block_of(tmp_path, text.encode(encoding))
    later = replace(block, start=block.end - 3, previous_block_id=0)
    readers = [LineReader(), LineReader(undecodable="reject"), LineReader(skip_header_lines=1), JsonLinesReader()]
    readers += [CsvReader(), CsvReader(reader_context=CsvContext(quoted_newlines=False))]
    for reader, part in [*((reader, block) for reader in readers), *((reader, later) for reader in readers)]:
        with pytest.raises(BadFile, match=f"it seems to be text in {encoding} without") as raised:
            read(reader, part)
        assert (raised.value.code, raised.value.help) == (
            "text-undecodable",
            f'set encoding="{encoding}", or "latin-1" if each byte is a character',
        )
    assert read(LineReader(encoding=encoding), block) == text.split("\n")[:-1]


@pytest.mark.parametrize("content", NUL_LINES.values(), ids=NUL_LINES)
def test_lines_that_contain_nuls_are_read_as_they_are(content, tmp_path):
    block = block_of(tmp_path, content)
    assert read(LineReader(), block) == content.removesuffix(b"\n").decode().split("\n")
    latin = LineReader(encoding="latin-1")
    assert read(latin, block_of(tmp_path, "a\nb\n".encode("utf-16-le"))) == ["a\0", "\0b\0", "\0"]
    assert read(LineReader(delimiter="\0"), block_of(tmp_path, b"a\0b\0c\0d\0")) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "utf16", "U32", "UTF 8 SIG"])
@pytest.mark.parametrize("chunk_size", [1, 1 << 20])
def test_a_file_of_nothing_but_a_byte_order_mark_has_no_line(chunk_size, encoding, tmp_path):
    reader = LineReader(encoding=encoding, chunk_size=chunk_size)
    assert read(reader, block_of(tmp_path, "".encode(encoding))) == []
    assert read(reader, block_of(tmp_path, "\n".encode(encoding))) == [""]
