"""`dagkit trace`: from a line of an output file to the record of its input."""

import gzip
import io
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import fastavro
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagkit.engine.record import written_file
from dagkit.engine.record.written_file import WrittenFile
from dagkit.runs import retrace
from tests.engine.files.cast import part
from tests.old_files import aged
from tests.operators.compression.test_compressed import COMPRESS

pytestmark = pytest.mark.slow

APP = """
from typing import Any
from dagkit import InputPort, Listed, Operator, OutputPort, State
from dagkit_operators import *
from dagkit_operators.contexts.reader_context import records_of

class Numbered(Operator):
    input = InputPort(Record)
    output = OutputPort(str)
    count = State(0)

    def process(self, item: Record) -> None:
        self.count += 1
        self.output.emit(f"{self.count} {item.value}")

class Sized(RecordByRecordContext[bytes]):
    def next(self) -> Entity[bytes] | None:
        digit = self.read(1)
        return Entity(self.read(int(digit), self.offset + 1), 1 + int(digit)) if digit.isdigit() else None

class SizedReader(BlockReader[bytes]):
    messages = OutputPort[Record[bytes]](main=True)
    reader_context: Any = Sized()

class Pairs(ReaderContext[bytes]):
    splits = "never"

    def batches(self, stream, block, tracker):
        content = memoryview(bytearray(10))
        starts = range(0, stream.readinto(content), 2)
        if tracker.try_claim(block.start):
            yield records_of(block, Listed([bytes(content[at : at + 2]) for at in starts], lambda: starts))
            tracker.try_claim(block.end)

class PairReader(BlockReader[bytes]):
    messages = OutputPort[Record[bytes]](main=True)
    reader_context: Any = Pairs()

def as_lines(value) -> list[str]:
    rows = value.to_pylist() if hasattr(value, "to_pylist") else [value]
    return [repr(row).replace(chr(10), "/") for row in rows]

def populate_dag(dag, conf) -> None:
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}, block_size=BLOCK))
    reader = dag.add_operator("Reader", READER)
    splitter >> reader
"""
LINES = "".join(f"{number} {'apple' if number % 3 else 'pear'}\n" for number in range(60))
LINE_READER = "LineReader(min_readers=1, max_readers=1)"


@pytest.fixture
def traced(dagkit, write, launch):
    """Run an application with these operators after its reader, and return a function that traces a line."""

    def run(chain, *, block=10_000, reader=LINE_READER):
        head = APP.replace("BLOCK", str(block), 1).replace("READER", reader)
        write("app.py", head + "".join(f"    {line}\n" for line in chain.splitlines()))
        launch()
        return lambda place, *options: dagkit("trace", "app.py", place, *options)

    return run


@pytest.fixture
def write_bytes(write):
    """Write a file of bytes in the folder."""

    def write_bytes(name, content):
        path = write(name, "")
        path.write_bytes(content)
        aged(path)

    return write_bytes


@pytest.fixture
def sources_of(dagkit):
    """Return a function that traces a line to its sources."""
    return lambda place: sources(dagkit("trace", "app.py", str(place), "--json"))


def output():
    """The only output file."""
    (file,) = Path("out").iterdir()
    return file


def sources(answer):
    assert answer.document["reason"] == ""
    return [(Path(s["source"]).name, s["start"], s["end"], s["text"]) for s in answer.document["sources"]]


def position(line, text=LINES):
    start = text.index(f"\n{line}\n") + 1 if not text.startswith(f"{line}\n") else 0
    return start, start + len(line) + 1


PEARS = """\
keep = dag.add_operator("Keep", Filter(lambda text: text.endswith("pear")))
reader.messages >> keep >> dag.add_operator("Writer", RecordWriter(file_path="out"))
"""
PARTS = """\
upper = dag.add_operator("Upper", Map(lambda text: text.upper()))
reader.messages >> upper >> dag.add_operator("Writer", PartWriter(file_path="out", SETTINGS))
"""
UPPER = PARTS.replace("SETTINGS", "")


def test_a_line_that_a_filter_kept_comes_from_one_record(traced, write, sources_of):
    write("in/a.txt", LINES)
    traced(PEARS, block=100)
    for file in sorted(Path("out").iterdir()):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            assert sources_of(f"{file}:{number}") == [("a.txt", *position(line), line)]


def test_people_read_the_file_and_the_bytes(traced, write):
    write("in/a.txt", "one pear\ntwo apples\nthree pear\n")
    assert traced(PEARS)("out/0:2").out == (
        "out/0:2: three pear\nwritten by Writer in window 1\nin/a.txt:byte 20-31: three pear\n"
    )


def content_of(file):
    content = file.read_bytes()
    if file.suffix == ".zst":
        return pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    return gzip.decompress(content) if file.suffix == ".gz" else content


@pytest.mark.gate(1)
@pytest.mark.parametrize("settings", ["", "max_count=7", "compression='gzip'", "max_count=9, compression='zstd'"])
def test_a_mapped_line_in_a_rolled_part_of_several_readers(traced, write, sources_of, settings):
    write("in/a.txt", LINES)
    write("in/b.txt", LINES.replace("apple", "plum"))
    traced(PARTS.replace("SETTINGS", settings), block=150, reader=LINE_READER.replace("1", "2"))
    found = 0
    for file in sorted(Path("out").iterdir()):
        for number, text in enumerate(content_of(file).decode().splitlines()[:3], 1):
            got = sources_of(f"{file}:{number}")
            assert {one[3].upper() for one in got} == {text}
            for name, start, end, line in got:
                assert (start, end) == position(line, Path("in", name).read_text())
            found += len(got) == 1
    assert found


def test_equal_lines_are_distinguished_by_the_lines_around_them(traced, write, sources_of):
    write("in/a.txt", "x\nsame\ny\n")
    write("in/b.txt", "p\nsame\nq\n")
    traced(UPPER)
    assert output().read_text() == "X\nSAME\nY\nP\nSAME\nQ\n"
    assert sources_of(f"{output()}:2") == [("a.txt", 2, 7, "same")]
    assert sources_of(f"{output()}:5") == [("b.txt", 2, 7, "same")]


def test_equal_files_are_all_named(traced, write):
    write("in/a.txt", "same\n")
    write("in/b.txt", "same\n")
    answer = traced(UPPER)
    assert answer(f"{output()}:2").out.splitlines()[1:] == [
        "written by Writer in window 1, from one of these records",
        "in/a.txt:byte 0-5: same",
        "in/b.txt:byte 0-5: same",
    ]


def test_each_line_of_a_flat_map_comes_from_the_same_record(traced, write, sources_of):
    write("in/a.txt", "a b\n\nc d e\n")
    traced(UPPER.replace("Map(lambda text: text.upper())", "FlatMap(lambda text: text.split())"))
    assert output().read_text() == "a\nb\nc\nd\ne\n"
    first, second = (0, 4, "a b"), (5, 11, "c d e")
    assert [sources_of(f"{output()}:{line}")[0][1:] for line in (1, 2, 3, 5)] == [first, first, second, second]


@pytest.mark.gate(1)
@pytest.mark.parametrize(("ending", "compress"), COMPRESS.items(), ids=COMPRESS.keys())
def test_positions_in_a_compressed_file_are_those_of_its_content(traced, write_bytes, ending, compress):
    write_bytes(f"in/a.txt{ending}", compress(LINES.encode()))
    answer = traced(PEARS)("out/0:3", "--json")
    assert sources(answer) == [(f"a.txt{ending}", *position("6 pear"), "6 pear")]
    assert answer.document["sources"][0]["decompressed"] is True


ENDS = UPPER.replace("Map(lambda text: text.upper())", "FlatMap(as_lines)")
REJECTS = """\
refused = dag.add_operator("Refused", Map(lambda one: one.text))
reader.rejected >> refused >> dag.add_operator("Refuse", PartWriter(file_path="refused"))
"""


@pytest.fixture
def traced_ranges(write_bytes, traced, sources_of):
    """Read a file with a reader, write a line for each record, and trace these lines to ranges of the file."""

    def run(reader, content, block, *, name="a", rejects=False):
        write_bytes(f"in/{name}", content)
        traced(ENDS + REJECTS * rejects, reader=reader, block=block)
        counts = {file: file.read_bytes().count(b"\n") for file in sorted(Path("out").iterdir())}
        places = [f"{file}:{number + 1}" for file, count in counts.items() for number in range(count)]
        return [source[1:3] for place in places for source in sources_of(place)]

    return run


def ranges(content, records):
    """Where records lie in a file."""
    found = [(0, 0)]
    for record in records:
        start = content.index(record, found[-1][1])
        found.append((start, start + len(record)))
    return found[1:]


class Case(NamedTuple):
    """A reader and the records of a file."""

    reader: str
    records: Sequence[str]
    encoding: str = "utf-8"
    header: str = ""
    footer: str = ""
    block: int | None = None
    """The bytes of a block of a file of several blocks; None: as many as the shortest record has."""

    def bytes(self):
        """The records, and the content of the file."""
        records = [record.encode(self.encoding) for record in self.records]
        return records, self.header.encode(self.encoding) + b"".join(records) + self.footer.encode()


def csv(settings):
    return f"CsvReader(reader_context=CsvContext({settings}))"


BY_BLOCK = "LineReader(reader_context=LineReaderContext(delimiter=';'))"
TYPED = "JsonLinesReader(reader_context=JsonLinesContext(types={'n': 'int64'}))"
SEMICOLON = "RecordReader(reader_context=ReadAheadLineReaderContext(delimiter=';'))"
CASES = {
    "lines": Case("LineReader()", ["one\n", "\n", "two\n"]),
    "a last line without its end": Case("LineReader()", ["one\n", "two"]),
    "a delimiter": Case("LineReader(delimiter=';')", ["a;", "b\nc;"]),
    "a delimiter of two bytes": Case("LineReader(delimiter='<>')", ["a<>", "b\n<c<>", "d\n<"]),
    "escapes": Case("LineReader(escape=chr(92))", ["a\n", "b\\\nc\n"]),
    "LF and CRLF": Case("LineReader(keep_returns=False)", ["a\r\n", "b\n", "c\r\n"]),
    "runs of line ends": Case("LineReader(collapse_line_ends=True)", ["a\n\n\r\n", "b\r", "c\n\n\n"]),
    "UTF-16": Case("LineReader(encoding='utf-16-le')", ["one\n", "\u010abc\n", "two\n"], "utf-16-le"),
    "a last line of UTF-16": Case("LineReader(encoding='utf-16-le')", ["one\n", "\u010abc\n"], "utf-16-le"),
    "UTF-16 with its mark": Case("LineReader(encoding='utf-16')", ["\ufeffone\n", "two\u0a0a\n"], "utf-16-be"),
    "UTF-32": Case("LineReader(encoding='utf-32-be')", ["one\n", "tw\u010ao\n"], "utf-32-be"),
    "header lines": Case("LineReader(skip_header_lines=2)", ["one\n", "two\n"], header="a\nb\n"),
    "lines that begin with a block": Case(BY_BLOCK, ["a\nb;", "c\nd;"], block=4),
    "CSV": Case("CsvReader()", ["1,one\r\n", "2,two\r\n"], header="n,t\n"),
    "CSV of UTF-16": Case(csv("encoding='utf-16-le'"), ["1,\u010a\n", "2,two\n"], "utf-16-le", "n,t\n"),
    "quoted newlines": Case(csv("quoted_newlines=True"), ['1,"o\nne"\n', "2,two\n", '3,"t\nr"\n'], header="n,t\n"),
    "JSON lines": Case("JsonLinesReader()", ['{"n": 1}\n', '{"n": 2}']),
    "JSON lines with types": Case(TYPED, ['{"n": 1}\n', '{"n": 2}\n']),
    "a fixed width": Case(
        "RecordReader(mode='fixed_width_record', record_length=4)", ["o\nne", "t\nwo", "xyz"], block=4
    ),
    "delimited records": Case(SEMICOLON, ["a;", "b\nc;"]),
}


@pytest.mark.gate(11)
@pytest.mark.parametrize("is_divided", [False, True], ids=["one block", "several blocks"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_record_ends_where_its_reader_ended_it(traced_ranges, case, is_divided):
    records, content = case.bytes()
    block = case.block or min(map(len, records)) if is_divided else 1000
    assert traced_ranges(case.reader, content, block) == ranges(content, records)


CONTEXTS = {
    "a fixed length": Case("FixedLengthReader(length=4)", ["one.", "two.", "th"], block=8),
    "a context of the author": Case("SizedReader()", ["3one", "5three"], footer="; padding"),
    "a context that never splits": Case("PairReader()", ["aa", "bb", "cc"]),
}
COMPRESSED = {name: CASES[name] for name in ("a delimiter", "escapes", "quoted newlines", "JSON lines")} | CONTEXTS


@pytest.mark.parametrize("case", COMPRESSED.values(), ids=COMPRESSED)
def test_a_record_in_a_compressed_file_and_of_any_context_ends_where_its_reader_ended_it(traced_ranges, case):
    records, content = case.bytes()
    assert traced_ranges(case.reader, gzip.compress(content), 1000, name="a.gz") == ranges(content, records)


@pytest.mark.parametrize("case", CONTEXTS.values(), ids=CONTEXTS)
def test_a_record_of_a_context_ends_where_it_does(traced_ranges, case):
    records, content = case.bytes()
    assert traced_ranges(case.reader, content, case.block or 1000) == ranges(content, records)


@pytest.mark.parametrize("block", [9, 1000])
def test_what_a_reader_skips_or_rejects_is_no_part_of_the_record_before_it(traced_ranges, block):
    content = b'{"n": 1}\nno JSON\n{"n": 2}\n\n\n'
    assert traced_ranges("JsonLinesReader()", content, block, rejects=True) == [(0, 9), (17, 26)]


@pytest.mark.parametrize(
    ("reader", "encoding"),
    [
        ("LineReader(encoding='utf-16')", "utf-16-be"),
        ("LineReader(by_file={'*.txt': {'encoding': 'latin-1'}})", "latin-1"),
        (csv("header=False, columns=('n', 't'), encoding='utf-32-le'"), "utf-32-le"),
    ],
)
def test_a_record_is_shown_in_the_encoding_of_its_file(traced, write_bytes, sources_of, reader, encoding):
    mark = "" if encoding == "latin-1" else "\ufeff"
    write_bytes("in/a.txt", f"{mark}1,ä\n2,ö\n".encode(encoding))
    traced(ENDS, reader=reader, block=1000)
    assert [source[3] for line in (1, 2) for source in sources_of(f"{output()}:{line}")] == ["1,ä", "2,ö"]


def test_of_a_long_record_the_beginning_is_shown(traced, write, sources_of):
    write("in/a.txt", "one\n" + "x" * 70_000 + "\n")
    traced(UPPER)
    assert sources_of(f"{output()}:2") == [("a.txt", 4, 70_005, "x" * 65_536)]


@pytest.mark.parametrize("block", [40, 10_000])
def test_a_batch_of_rows_ends_with_its_last_row(traced_ranges, block):
    rows = [b"%d\n" % number for number in range(100, 118)]
    content = b"n\n" + b"".join(rows)
    reader = "CsvReader(reader_context=CsvContext(types={'n': 'int64'}, sends='batches'))"
    found = traced_ranges(reader, content, block)
    assert len(found) == len(rows)
    for (start, end), (first, last) in zip(ranges(content, rows), found, strict=True):
        assert first <= start < end <= last <= len(content)
        assert content[last - 1 : last] == b"\n"
        assert last - len(rows[0]) < (first // block + 1) * block, "the last row of the batch starts in its block"


AVRO = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "string"}]}


@pytest.mark.parametrize("block", [8, 10_000])
def test_a_record_of_avro_comes_from_its_data_block(traced_ranges, dagkit, block):
    file = io.BytesIO()
    fastavro.writer(file, AVRO, [{"n": text} for text in ("apple", "bread", "grape")], sync_interval=12)
    content = file.getvalue()
    marker = content[-16:]
    _, *blocks = content.removesuffix(marker).split(marker)
    assert [len(one) for one in blocks] == [14, 8], "each string takes six bytes, after two numbers"
    first, second = ranges(content, [one + marker for one in blocks])
    assert traced_ranges("AvroReader()", content, block) == [first, first, second]
    shown = dagkit("trace", "app.py", "out/part-00000-00000:1").out
    assert re.search(r"in/a:byte \d+-\d+\n$", shown), "several records have no text in common"


@pytest.mark.parametrize("block", [20, 10_000])
@pytest.mark.parametrize(("name", "compress"), [("a.parquet", bytes), ("a.parquet.gz", gzip.compress)])
def test_a_row_of_parquet_comes_from_its_row_group(traced_ranges, name, compress, block):
    file = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": ["apple", "bread", "grape"], "m": [1, 2, 3]}), file, row_group_size=2)
    content = file.getvalue().to_pybytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    found = traced_ranges("ParquetReader()", compress(content), block, name=name)
    middle = found[0][1]
    assert 4 < middle < footer
    assert found == [(4, middle), (4, middle), (middle, footer)]


def test_a_line_of_a_later_window_is_found_in_the_file_of_that_window(traced, write, launch, sources_of):
    write("in/a.txt", LINES)
    traced(UPPER)
    write("in/b.txt", "last one\n")
    launch()
    (file,) = (file for file in Path("out").iterdir() if file.read_text() == "LAST ONE\n")
    assert sources_of(f"{file}:1") == [("b.txt", 0, 9, "last one")]


def test_state_between_reader_and_writer_leaves_the_blocks_of_the_window(traced, write, launch):
    write("in/a.txt", "x\ny\n")
    answer = traced(UPPER.replace('"Upper", Map(lambda text: text.upper())', '"Count", Numbered()'))
    shown = answer(f"{output()}:2").out
    assert "no single record: Count keeps state" in shown
    assert "in/a.txt:byte 0-4" in shown
    assert "earlier windows" not in shown, "there are none before the first"
    write("in/b.txt", "z\n")
    launch()
    (later,) = (file for file in Path("out").iterdir() if file.read_text() == "3 z\n")
    earlier = "and records of earlier windows, through the state of Count"
    assert answer(f"{later}:1").out.splitlines()[3:] == ["in/b.txt:byte 0-2", earlier]


INSIDE = """
from dagkit import Dag, InputOperator, OutputPort, State
from dagkit_operators import (
    FileInfo, FileSplitterBase, FixedLengthReader, Items, LineReader, Map, MatchFiles, PartWriter, ReadFiles,
    RecordWriter
)

class Sent(InputOperator):
    infos = OutputPort(FileInfo)
    done = State(False)

    def emit_tuples(self) -> None:
        if not self.done:
            self.done = True
            self.infos.emit(FileInfo("in/a.txt"))
            self.infos.emit(FileInfo("in/b.txt"))

def populate_dag(dag: Dag, conf) -> None:
    patterns, names = Items[str](items=("in/*.txt",)), Items[str](items=("in/a.txt", "in/b.txt"))
    writer = RecordWriter(file_path="out") if "Splitter" in "CHAIN" else PartWriter(file_path="out")
    last = dag
    for operator in (CHAIN):
        this = dag.add_operator(type(operator).__name__, operator)
        last = this if last is dag else last >> this
    last >> dag.add_operator("Writer", writer)
"""
FIND, SPLIT, READ = "patterns, MatchFiles()", "FileSplitterBase(block_size=100)", "LineReader()"
CHAINS = {
    "patterns to a splitter": f"{FIND}, {SPLIT}, {READ}",
    "few blocks for each window": f"{FIND}, FileSplitterBase(block_size=100, blocks_threshold=2), {READ}",
    "an input operator to a splitter": f"Sent(), {SPLIT}, {READ}",
    "a map to a splitter": f"names, Map[str, FileInfo](FileInfo), {SPLIT}, {READ}",
    "patterns to a reader of files": f"{FIND}, ReadFiles(part_size=100)",
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_files_that_an_operator_in_the_middle_found_are_traced(write, launch, sources_of, chain):
    write("in/a.txt", LINES)
    write("in/b.txt", "one\ntwo\n" * 20)
    write("app.py", INSIDE.replace("CHAIN", chain))
    launch()
    places = {
        line: f"{file}:{number}"
        for file in Path("out").rglob("*")
        for number, line in enumerate(file.read_text().splitlines(), 1)
    }
    for line in ("31 apple", "59 apple"):
        ((name, *found),) = sources_of(places[line])
        assert (name[:6], found) == ("a.txt@", [*position(line), line])


def test_blocks_of_a_splitter_in_the_middle_end_where_they_did(write, launch, sources_of):
    write("in/a.txt", "0123456789")
    chain = f"{FIND}, FileSplitterBase(block_size=6), FixedLengthReader(length=4)"
    write("app.py", INSIDE.replace("CHAIN", chain))
    launch()
    assert Path("out/0").read_text() == "0123\n45\n"
    assert [source[1:] for source in sources_of("out/0:2")] == [(4, 6, "45")]


def test_a_line_is_traced_although_another_file_of_its_window_is_gone(traced, write, sources_of):
    write("in/a.txt", "one\n")
    write("in/b.txt", "two\n")
    answer = traced(UPPER)
    Path("in/a.txt").unlink()
    places = {line: f"{output()}:{number}" for number, line in enumerate(output().read_text().splitlines(), 1)}
    assert sources_of(places["TWO"]) == [("b.txt", 0, 4, "two")]
    assert "in/a.txt is gone" in " ".join(answer(places["ONE"]).out.split())


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("out/0", "does not have the form OUTPUT:LINE"),
        ("out/0:0", "with a line from 1 on"),
        ("out/0:9", "has 1 lines, and no line 9"),
        ("in/a.txt:1", "the ledger names no file"),
    ],
)
def test_a_line_that_was_never_written_is_a_mistake_in_the_command(traced, write, place, problem):
    write("in/a.txt", "one pear\n")
    answer = traced(PEARS)(place)
    assert (answer.code, problem in " ".join(answer.err.split())) == (2, True)


@pytest.mark.parametrize("place", ["out", "memory://traced"])
def test_a_file_that_another_program_took_is_a_mistake_in_the_command(traced, write, place):
    write("in/a.txt", "one pear\n")
    trace = traced(PEARS.replace('"out"', f'"{place}"'))
    filesystem, path = fsspec.core.url_to_fs(place)
    filesystem.rm(path, recursive=True)
    answer = trace(f"{place}/0:1")
    assert (answer.code, "it is not complete yet, or was moved away" in " ".join(answer.err.split())) == (2, True)


def test_no_piece_after_that_of_the_line_is_read(tmp_path, monkeypatch):
    class Counted(io.FileIO):
        def read(self, size=-1):
            content = super().read(size)
            read.append(len(content))
            return content

    (tmp_path / "0").write_bytes(b"one\ntwo\nthree\n")
    parts = tuple(part(str(tmp_path / "0"), f"{number}", length=length) for number, length in enumerate((4, 4, 6)))
    read: list[int] = []
    for module in (retrace, written_file):
        monkeypatch.setattr(module, "opened", Counted, raising=False)
    found = retrace._located(SimpleNamespace(operators={}), WrittenFile(parts, {}, {}), parts[0].file, 2)
    assert (found[:3], sum(read)) == ((parts[1], b"two\n", 0), 8)


def test_an_application_or_a_file_that_changed_is_reported(traced, write):
    write("in/a.txt", "one pear\ntwo pear\n")
    answer = traced(PEARS)
    app = Path("app.py").read_text()
    write("app.py", app.replace('"pear"', '"apple"'))
    assert "did not give this line" in answer("out/0:1").out
    write("app.py", app)
    write("out/0", "one pear\ntwo pear\nthree pear\n")
    assert "was changed after" in " ".join(answer("out/0:1").err.split())


ROWS = """\
from dataclasses import dataclass

@dataclass(frozen=True, slots=True)
class Row:
    number: int
    fruit: str

def row(line):
    number, fruit = line.split()
    return Row(int(number), fruit)
"""


@pytest.mark.parametrize("columns", [(), ("fruit",)], ids=["one folder", "a folder for each value"])
def test_a_row_of_a_file_of_parquet_comes_from_one_record(traced, write, sources_of, columns, monkeypatch):
    monkeypatch.setattr("dagkit.runs.retrace._TOGETHER", 7)
    write("in/a.txt", LINES)
    write("rows.py", ROWS)
    traced(
        f"""from rows import Row, row
to_row = dag.add_operator("ToRow", Map(row))
writer = dag.add_operator("Writer", ParquetPartWriter(file_path="out", record_type=Row, partition_by={columns!r}))
reader >> to_row >> writer""",
        block=100,
    )
    files = sorted(str(path) for path in Path("out").rglob("*.parquet"))
    assert len(files) == (2 if columns else 1)
    for file in files:
        numbers = pq.read_table(file, partitioning=None).column("number").to_pylist()
        for line in (1, len(numbers)):
            number = numbers[line - 1]
            text = f"{number} {'apple' if number % 3 else 'pear'}"
            assert sources_of(f"{file}:{line}") == [("a.txt", *position(text), text)]


def test_a_line_of_a_file_that_is_named_by_its_data_comes_from_one_record(traced, write, sources_of):
    write("in/a.txt", LINES)
    write(
        "named.py",
        """from dagkit_operators import FileOutput, Record

class Named(FileOutput[Record[str]]):
    def file_name(self, item):
        return item.value.split()[1]

    def bytes_for(self, item):
        return f"{item.value}\\n".encode()
""",
    )
    traced('from named import Named\nreader.messages >> dag.add_operator("Writer", Named(file_path="out"))', block=100)
    assert sources_of("out/pear:1") == [("a.txt", *position("0 pear"), "0 pear")]
    assert sources_of("out/apple:40") == [("a.txt", *position("59 apple"), "59 apple")]
