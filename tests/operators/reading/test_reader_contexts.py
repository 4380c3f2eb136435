"""Reader contexts are properties, and an author's own reads each record once, however its block is cut."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dagkit import Batch, Block, OutputPort
from dagkit.errors import ApplicationFaults, RunFailure
from dagkit.testing import Alone, Rehearsal, check_every_split_of
from dagkit_operators import (
    BlockReader,
    CsvContext,
    CsvReader,
    FileSplitterInput,
    FixedBytesReaderContext,
    FixedLengthReader,
    FSSliceReader,
    LineReader,
    ReadFiles,
    Record,
    RecordReader,
    RecordWriter,
    Rejected,
    Slice,
)
from dagkit_operators.contexts.line_contexts import LineReaderContext, ReadAheadLineReaderContext
from dagkit_operators.contexts.reader_context import ReaderContext, Splits, Tracker
from dagkit_operators.contexts.record_by_record import Entity, RecordByRecordContext
from dagkit_operators.filesystem.access import Seekable
from tests.cases import cases
from tests.engine.cast import chain
from tests.operators.reading.cast import block_of, blocks_of, found, read, written


class Netstrings(RecordByRecordContext[bytes]):
    """Reads `5:hello,`. A block begins with a record: nothing marks the start of one."""

    def next(self) -> Entity[bytes] | None:
        digits = self.read(20).partition(b":")[0]
        if not digits.isdigit():
            return None
        start, length = self.offset + len(digits) + 1, int(digits)
        return Entity(self.read(length, start), len(digits) + 1 + length + 1)


class Marked(RecordByRecordContext[bytes]):
    """Reads `>text`: a record starts with its marker, so it is found from anywhere."""

    splits: ClassVar[Splits] = "anywhere"

    def initialize(self, stream: Seekable, block: Block, consecutive: bool) -> None:
        at = block.start
        while self.read(1, at) not in (b">", b""):
            at += 1
        self.start_at(at)

    def next(self) -> Entity[bytes] | None:
        rest = self.read(100)
        return Entity(text := rest[1:].partition(b">")[0], 1 + len(text)) if rest else None


class Reads(BlockReader[bytes]):
    """Reads blocks with any context."""

    kind = "test.reads/1"
    messages = OutputPort[Record[bytes]](main=True)
    reader_context: ReaderContext[Any] = Netstrings()


@pytest.mark.parametrize("most", [1, 2, 1024])
def test_a_context_of_ten_lines_survives_every_split(most, tmp_path, monkeypatch):
    monkeypatch.setattr("dagkit_operators.contexts.record_by_record.MOST_RECORDS", most)
    proven = check_every_split_of(Reads(), block_of(tmp_path, b"5:hello,0:,3:a,b,1:x,2:yz,"))
    assert (proven.records, proven.cuts) == (5, 0)
    assert proven.granted


def test_a_context_that_finds_its_records_survives_every_cut_of_blocks_and_of_files_that_were_found(tmp_path):
    content = b">a>bcd>>e"
    proven = check_every_split_of(Reads(reader_context=Marked()), block_of(tmp_path, content))
    assert (proven.records, proven.cuts) == (4, len(content) - 1)
    path = written(tmp_path, b"1:a,2:bc,3:def,")
    assert check_every_split_of(ReadFiles(reader_context=Netstrings(), part_size=2), found(path)).records == 3


def test_records_keep_their_positions(tmp_path):
    block = block_of(tmp_path, b"1:a,2:bc,")
    reader = Reads()
    batches = reader.process(block, reader.tracker(block, reader.initial_restriction(block)))
    assert [batch.column("value").starts() for batch in batches] == [[0], [4]]


class Endless(Netstrings):
    def next(self) -> Entity[bytes] | None:
        return Entity(b"", 0)


def test_a_record_that_uses_no_bytes_or_too_many_is_an_error_that_names_the_context(tmp_path):
    with pytest.raises(RunFailure, match=r"file, byte 0: Endless\.next returned an entity that used 0 bytes"):
        read(Reads(reader_context=Endless()), block_of(tmp_path, b"x"))
    with pytest.raises(RunFailure, match=r"byte 4: Netstrings\.next .* used 7 bytes, and only 5 are left"):
        read(Reads(), block_of(tmp_path, b"1:a,4:bc,"))


def test_a_block_in_which_no_record_can_be_found_is_refused(tmp_path):
    first, second = blocks_of(written(tmp_path, b"1:a,1:b,1:c,"), 8)
    assert read(Reads(), first) == [b"a", b"b"]
    with pytest.raises(RunFailure, match="byte 8: a block begins here, and Netstrings finds no records"):
        read(Reads(), second)


class Found(Marked):
    splits: ClassVar[Splits] = "between records"


@pytest.mark.parametrize("context", [Marked(), Found()])
def test_a_record_may_end_in_the_next_block_of_a_context_that_finds_its_first_record(context, tmp_path):
    blocks = blocks_of(written(tmp_path, b">a>bcd>e"), 4)
    assert read(Reads(reader_context=context), *blocks) == [b"a", b"bcd", b"e"]


class Notes(LineReader):
    """Notes the blocks for which it opens a file."""

    kind = "test.notes/1"
    opened: ClassVar[list[int]] = []

    def setup_stream(self, block: Block) -> AbstractContextManager[Seekable]:
        self.opened.append(block.block_id)
        return super().setup_stream(block)


@pytest.fixture
def opened():
    Notes.opened.clear()
    return Notes.opened


@pytest.mark.parametrize(
    ("order", "opens"),
    [([0, 1, 2, 3], [0]), ([0, 2], [0, 2]), ([1, 0], [1, 0]), ([0, 0], [0, 0])],
    ids=["in their order", "one is left out", "in reverse", "one is read again"],
)
def test_only_blocks_that_do_not_follow_each_other_are_opens_each(order, opens, opened, tmp_path):
    blocks = blocks_of(written(tmp_path, b"a\nb\nc\nd\n"), 2)
    assert read(Notes(), *(blocks[number] for number in order)) == ["abcd"[number] for number in order]
    assert opened == opens


def test_a_stream_is_closed_at_the_end_of_the_window(opened, tmp_path):
    reader = Alone(Notes())
    for block in blocks_of(written(tmp_path, b"a\nb\n"), 2):
        read(reader, block)
    assert opened == [0, 1]


def test_a_consecutive_block_is_said_to_be_one(tmp_path):
    met = []

    class Notes(Netstrings):
        def initialize(self, stream: Seekable, block: Block, consecutive: bool) -> None:
            met.append((block.block_id, consecutive))
            self.start_at(block.start)

    first, second, _ = blocks_of(written(tmp_path, b"1:a," * 3), 4)
    read(Reads(reader_context=Notes()), first, second, first)
    assert met == [(0, False), (1, True), (0, False)]


class Numbers(LineReader):
    """Makes numbers of lines, and leaves comments out."""

    kind = "test.numbers/1"

    def convert_to_record(self, content: bytes) -> Any:
        return None if content.startswith(b"#") else int(content)


def test_lines_are_converted_dropped_and_rejected(tmp_path):
    reader, block = Alone(Numbers()), block_of(tmp_path, b"1\n# 2\nx\n3")
    assert read(reader, block) == [1, 3]
    (rejected,) = reader.sent("rejected")
    assert (rejected.path, rejected.start, rejected.text) == (block.path, 6, "x")
    assert reader.metrics["records_dropped"] == 1
    with pytest.raises(RunFailure, match="the line at byte 6 is rejected: invalid literal"):
        read(Alone(Numbers(), connected=["messages"]), block)


class Digits(RecordReader):
    kind = "test.digits/1"

    def convert_to_record(self, content: bytes) -> bytes:
        return str(int(content)).encode()


@pytest.mark.parametrize("chunk_size", [1, 3, 100])
@cases(
    "properties, content, starts, records",
    ("delimited", {}, b"1\nx\n22\n\xff\n4", [2, 7], [b"1", b"22", b"4"]),
    ("fixed width", {"mode": "fixed_width_record", "record_length": 4}, b"0001xx\xffx  y 0300", [4, 8], [b"1", b"300"]),
)
def test_a_rejected_record_of_a_record_reader_has_its_position(
    *, properties, content, starts, records, chunk_size, tmp_path
):
    reader, block = Alone(Digits(chunk_size=chunk_size, **properties)), block_of(tmp_path, content)
    assert read(reader, block) == reader.sent("records") == records
    assert [(one.path, one.start) for one in reader.sent("rejected")] == [(block.path, start) for start in starts]


def test_a_rejected_slice_has_its_position(tmp_path):
    class Without(FSSliceReader):
        kind = "test.slices-without/1"

        def convert_to_record(self, content: bytes) -> Slice:
            if b"x" in content:
                raise ValueError("it has an x")
            return super().convert_to_record(content)

    reader, block = Alone(Without(reader_context={"length": 4})), block_of(tmp_path, b"abcdefgxxijklmno")
    assert [each.to_bytes() for each in read(reader, block)] == [b"abcd", b"lmno"]
    assert reader.sent("rejected") == [
        Rejected(block.path, 4, "efgx", "it has an x"),
        Rejected(block.path, 8, "xijk", "it has an x"),
    ]


def test_what_a_context_rejects_goes_the_same_way(tmp_path):
    class Strict(ReaderContext[str]):
        def batches(self, stream: Seekable, block: Block, tracker: Tracker) -> Iterator[Batch[Record[str]] | Rejected]:
            tracker.try_claim(block.end - 1)
            yield Rejected(block.path, block.start, "abc", "it is none")
            tracker.try_claim(block.end)

    block, operator = block_of(tmp_path, b"abc"), Reads(reader_context=Strict())
    reader = Alone(operator)
    reader.work(block)
    assert reader.sent("rejected") == [Rejected(block.path, 0, "abc", "it is none")]
    with pytest.raises(RunFailure, match="it is none"):
        Alone(operator, connected=["messages"]).work(block)


def test_a_property_of_lines_is_one_property_and_two_values_or_one_that_the_context_would_ignore_are_a_fault():
    here, there = LineReader(delimiter=";"), LineReader(reader_context=ReadAheadLineReaderContext(delimiter=";"))
    assert (here.delimiter, here.reader_context.delimiter) == (there.delimiter, there.reader_context.delimiter)
    assert here.delimiter == ";"
    again = here.configured({"delimiter": "|"})
    assert (again.delimiter, again.reader_context.delimiter) == ("|", "|")
    (fault,) = LineReader(delimiter=";", reader_context=ReadAheadLineReaderContext(delimiter="|")).faults
    both = "delimiter is ';', and reader_context.delimiter is '|'"
    assert fault.message == f"{both}: they are one property, so set delimiter alone"
    (fault,) = ReadFiles(delimiter=";", reader_context=FixedBytesReaderContext(length=3)).faults
    assert fault.message == "delimiter is set, and FixedBytesReaderContext has no such property; leave it away"


def test_a_reader_has_other_values_for_files_whose_path_ends_as_a_pattern_says(tmp_path):
    """Of several patterns that match, the first counts."""
    by_file = {
        "*.latin.csv": {"encoding": "latin-1"},
        "de/*.csv": {"separator": ";", "encoding": "utf-16"},
        "*.csv": {"quote": "'"},
    }
    contents = {
        "a.txt": "n,m\nä,-\n".encode(),
        "a.latin.csv": "n,m\nä,-\n".encode("latin-1"),
        "de/a.csv": "n;m\nä;-\n".encode("utf-16"),
        "a.csv": "n,m\nä,'-'\n".encode(),
    }
    reader = CsvReader(reader_context=CsvContext(types={"n": "string", "m": "string"}), by_file=by_file)
    (tmp_path / "de").mkdir()
    values = {}
    for name, content in contents.items():
        (values[name],) = read(reader, block_of(tmp_path, content, name))
    assert values == {name: {"n": "ä", "m": "-"} for name in contents}


def test_the_length_of_records_may_be_set_in_the_context_alone():
    (missing,) = FixedLengthReader().faults
    assert (missing.path, missing.missing) == ("length", True)
    seven = FixedLengthReader(reader_context=FixedBytesReaderContext(length=7))
    for reader in (
        FixedLengthReader(length=8),
        FixedLengthReader(reader_context=FixedBytesReaderContext(length=8)),
        FixedLengthReader().configured({"reader_context": {"length": 8}}),
        seven.configured({"reader_context": {"length": 8}}),
    ):
        assert (reader.faults, reader.length) == ((), 8)
        assert reader.reader_context == FixedBytesReaderContext(length=8)


@pytest.mark.parametrize("chunk_size", [2, 5, 8])
def test_lines_that_begin_with_their_block_survive_every_split(chunk_size, tmp_path):
    """Blocks may begin in the middle of a line; splits never do, so they add no partial line."""
    reader = LineReader(reader_context=LineReaderContext(), chunk_size=chunk_size)
    proven = check_every_split_of(reader, block_of(tmp_path, b"aa\n\nbbb\ncc"))
    assert proven.records == 4
    assert proven.granted


# ---- configuration, in an application as it runs


class BytesReader(BlockReader[bytes]):
    """Reads three bytes at a time."""

    kind = "test.bytes/1"
    messages = OutputPort[Record[bytes]](main=True)
    reader_context: FixedBytesReaderContext = FixedBytesReaderContext(length=3)

    def convert_to_record(self, content: bytes) -> Any:
        return content.decode()


class Texts(BlockReader[str]):
    kind = "test.texts/1"
    messages = OutputPort[Record[str]](main=True)


def run(folder: Path, reader: BlockReader[Any], content: str = "abcdefgh;ijk", **properties: str) -> list[str]:
    """The files that an application of a splitter, a reader and a writer writes, one for each block."""
    written(folder, content, "in")
    draw = chain(Find=FileSplitterInput(folder / "in"), Read=reader, Write=RecordWriter(folder / "out"))
    Rehearsal(draw, {f"dt.operator.{name}": text for name, text in properties.items()}).run()
    return [path.read_text() for path in sorted((folder / "out").iterdir())]


CONTEXT = "Read.prop.readerContext"


@pytest.mark.parametrize(
    ("reader", "properties", "outputs"),
    [
        (BytesReader(), {}, ["abc\ndef\ngh;\nijk\n"]),
        (BytesReader(), {f"{CONTEXT}.length": "8"}, ["abcdefgh\n;ijk\n"]),
        (BytesReader(), {"Read.prop.reader_context.length": "8"}, ["abcdefgh\n;ijk\n"]),
        (BytesReader(), {CONTEXT: "FixedBytesReaderContext::length=5"}, ["abcde\nfgh;i\njk\n"]),
        (LineReader(), {f"{CONTEXT}.delimiter": ";"}, ["abcdefgh\nijk\n"]),
        (LineReader(), {CONTEXT: "LineReaderContext", "Find.prop.blockSize": "6"}, ["abcdefgh;ijk\n", "gh;ijk\n"]),
        (LineReader(), {"Read.prop.byFile": '{"i*": {"delimiter": ";"}}'}, ["abcdefgh\nijk\n"]),
    ],
    ids=[
        "as the author set it",
        "camel case",
        "snake case",
        "as a whole",
        "as that of a reader",
        "by its class",
        "for some files",
    ],
)
def test_a_property_of_a_context_is_set_by_configuration(reader, properties, outputs, tmp_path):
    assert run(tmp_path, reader, **properties) == outputs


@pytest.mark.parametrize(
    ("reader", "properties", "fault"),
    [
        (LineReader(longest_line=9), {f"{CONTEXT}.longestLine": "8"}, r"is 9, and reader_context\.longest_line is 8"),
        (BytesReader(), {f"{CONTEXT}.lenth": "8"}, "FixedBytesReaderContext of Read has no property 'lenth'"),
        (RecordReader(), {"Read.prop.mode": "FIXED_WIDTH_RECORD"}, "record_length is not set"),
        (Texts(reader_context=FixedBytesReaderContext(length=3)), {}, "Context reads bytes, and Texts sends str"),
        (LineReader(by_file={"*.csv": {"encodin": "x"}}), {}, r"by_file\['\*.csv'\]: encodin: Extra inputs are not"),
        (LineReader(by_file={"*.csv": {"delimiter": ""}}), {}, r"by_file\['\*.csv'\]: delimiter: .* at least one byte"),
        (CsvReader(by_file={"*.csv": {"sends": "batches"}}), {}, r"by_file\['\*.csv'\] has sends, which decides what"),
    ],
    ids=[
        "set twice",
        "unknown",
        "missing",
        "records of another type",
        "unknown of some files",
        "invalid of some files",
        "decides what is sent",
    ],
)
def test_contexts_that_do_not_fit_do_not_compile(reader, properties, fault, tmp_path):
    with pytest.raises(ApplicationFaults, match=fault):
        run(tmp_path, reader, **properties)


def test_an_application_opens_a_file_of_ten_blocks_once(opened, tmp_path):
    assert run(tmp_path, Notes(), "line\n" * 10, **{"Find.prop.blockSize": "5"}) == ["line\n"] * 10
    assert opened == [0]
