"""`dagkit trace`: from a line of an output file to the record of its input."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.operators.compression.test_compressed import COMPRESS

pytestmark = pytest.mark.slow

HEAD = """
from dagkit import Dag, Operator, OutputPort, InputPort, State
from dagkit_operators import (
    FileSplitterInput, Filter, FlatMap, LineReader, Map, PartWriter, Record, RecordWriter
)


class Numbered(Operator):
    input = InputPort(Record)
    output = OutputPort(str)
    count = State(0)

    def process(self, item: Record) -> None:
        self.count += 1
        self.output.emit(f"{self.count} {item.value}")


def populate_dag(dag: Dag, conf) -> None:
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}, block_size=BLOCK))
    reader = dag.add_operator("Reader", LineReader(min_readers=READERS, max_readers=READERS))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
"""
LINES = "".join(f"{number} {'apple' if number % 3 else 'pear'}\n" for number in range(60))


@pytest.fixture
def traced(dagkit, write: Callable[[str, str], Path]):
    """Run an application with these operators after its reader, and return a function that traces a line."""

    def run(chain: str, *, block: int = 10_000, readers: int = 1, launch: tuple[str, ...] = ()):
        head = HEAD.replace("BLOCK", str(block)).replace("READERS", str(readers))
        write("app.py", head + "".join(f"    {line}\n" for line in chain.splitlines()))
        answer = dagkit("launch", "app.py", "--once", "--reference", "--no-sync", *launch)
        assert answer.code == 0, answer.err
        return lambda place, *options: dagkit("trace", "app.py", place, *options)

    return run


def sources(answer) -> list[tuple[str, int, int, str]]:
    assert answer.document["reason"] == ""
    return [(Path(s["source"]).name, s["start"], s["end"], s["text"]) for s in answer.document["sources"]]


def position(line: str, text: str = LINES) -> tuple[int, int]:
    start = text.index(f"\n{line}\n") + 1 if not text.startswith(f"{line}\n") else 0
    return start, start + len(line) + 1


PEARS = """\
keep = dag.add_operator("Keep", Filter(lambda text: text.endswith("pear")))
writer = dag.add_operator("Writer", RecordWriter(file_path="out"))
dag.add_stream("lines", reader.messages, keep.input)
dag.add_stream("kept", keep.output, writer.input)
"""
PARTS = """\
number = dag.add_operator("Upper", Map(lambda text: text.upper()))
writer = dag.add_operator("Writer", PartWriter(file_path="out", SETTINGS))
dag.add_stream("lines", reader.messages, number.input)
dag.add_stream("upper", number.output, writer.input)
"""


def test_a_line_that_a_filter_kept_comes_from_one_record(traced, write) -> None:
    write("in/a.txt", LINES)
    answer = traced(PEARS, block=100)
    for file in sorted(Path("out").iterdir()):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            assert sources(answer(f"{file}:{number}", "--json")) == [("a.txt", *position(line), line)]


def test_people_read_the_file_and_the_bytes(traced, write) -> None:
    write("in/a.txt", "one pear\ntwo apples\nthree pear\n")
    assert traced(PEARS)("out/0:2").out == (
        "out/0:2: three pear\nwritten by Writer in window 1\nin/a.txt:byte 20-31: three pear\n"
    )


def content_of(file: Path) -> bytes:
    content = file.read_bytes()
    if file.suffix == ".gz":
        return gzip.decompress(content)
    if file.suffix == ".zst":
        return pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    return content


@pytest.mark.parametrize("settings", ["", "max_count=7", "compression='gzip'", "max_count=9, compression='zstd'"])
def test_a_mapped_line_in_a_rolled_part_of_several_readers(traced, write, settings: str) -> None:
    write("in/a.txt", LINES)
    write("in/b.txt", LINES.replace("apple", "plum"))
    answer = traced(PARTS.replace("SETTINGS", settings), block=150, readers=2)
    found = 0
    for file in sorted(Path("out").iterdir()):
        for number, text in enumerate(content_of(file).decode().splitlines()[:3], 1):
            got = sources(answer(f"{file}:{number}", "--json"))
            assert {one[3].upper() for one in got} == {text}
            for name, start, end, line in got:
                content = Path("in", name).read_text()
                assert (start, end) == position(line, content)
            found += len(got) == 1
    assert found


def test_equal_lines_are_distinguished_by_the_lines_around_them(traced, write) -> None:
    write("in/a.txt", "x\nsame\ny\n")
    write("in/b.txt", "p\nsame\nq\n")
    answer = traced(PARTS.replace("SETTINGS", ""))
    (file,) = Path("out").iterdir()
    assert file.read_text() == "X\nSAME\nY\nP\nSAME\nQ\n"
    assert sources(answer(f"{file}:2", "--json")) == [("a.txt", 2, 7, "same")]
    assert sources(answer(f"{file}:5", "--json")) == [("b.txt", 2, 7, "same")]


def test_equal_files_are_all_named(traced, write) -> None:
    write("in/a.txt", "same\n")
    write("in/b.txt", "same\n")
    answer = traced(PARTS.replace("SETTINGS", ""))
    (file,) = Path("out").iterdir()
    assert answer(f"{file}:2").out.splitlines()[1:] == [
        "written by Writer in window 1, from one of these records",
        "in/a.txt:byte 0-5: same",
        "in/b.txt:byte 0-5: same",
    ]


def test_each_line_of_a_flat_map_comes_from_the_same_record(traced, write) -> None:
    write("in/a.txt", "a b\n\nc d e\n")
    answer = traced("""\
words = dag.add_operator("Words", FlatMap(lambda text: text.split()))
writer = dag.add_operator("Writer", PartWriter(file_path="out"))
dag.add_stream("lines", reader.messages, words.input)
dag.add_stream("words", words.output, writer.input)
""")
    (file,) = Path("out").iterdir()
    assert file.read_text() == "a\nb\nc\nd\ne\n"
    assert [sources(answer(f"{file}:{number}", "--json"))[0][1:] for number in (1, 2, 3, 5)] == [
        (0, 4, "a b"),
        (0, 4, "a b"),
        (5, 11, "c d e"),
        (5, 11, "c d e"),
    ]


@pytest.mark.parametrize(("ending", "compress"), COMPRESS.items(), ids=COMPRESS.keys())
def test_positions_in_a_compressed_file_are_those_of_its_content(traced, folder, ending: str, compress) -> None:
    (folder / "in").mkdir()
    (folder / f"in/a.txt{ending}").write_bytes(compress(LINES.encode()))
    answer = traced(PEARS)("out/0:3", "--json")
    assert sources(answer) == [(f"a.txt{ending}", *position("6 pear"), "6 pear")]
    assert answer.document["sources"][0]["decompressed"] is True


@pytest.mark.parametrize(("name", "compress"), [("a.bin", bytes), ("a.bin.gz", gzip.compress)])
def test_records_of_a_fixed_length_end_where_they_do(dagkit, write, folder, name: str, compress) -> None:
    write(
        "app.py",
        """
from dagkit_operators import FileSplitterInput, FixedLengthReader, Map, PartWriter


def populate_dag(dag, conf) -> None:
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}, block_size=8))
    reader = dag.add_operator("Reader", FixedLengthReader(length=4))
    text = dag.add_operator("Text", Map(lambda content: content.decode()))
    splitter >> reader >> text >> dag.add_operator("Writer", PartWriter(file_path="out"))
""",
    )
    (folder / "in").mkdir()
    (folder / "in" / name).write_bytes(compress(b"onetwothreefour!last"))
    assert dagkit("launch", "app.py", "--once", "--reference", "--no-sync").code == 0
    (file,) = Path("out").iterdir()
    for number, line in enumerate(file.read_text().splitlines()):
        answer = dagkit("trace", "app.py", f"{file}:{number + 1}", "--json")
        assert sources(answer) == [(name, 4 * number, 4 * number + 4, line)]


@pytest.mark.parametrize(("name", "compress"), [("a.bin", bytes), ("a.bin.gz", gzip.compress)])
def test_the_last_record_of_an_authors_context_ends_where_it_does(dagkit, write, folder, name: str, compress) -> None:
    write(
        "app.py",
        """
from typing import Any

from dagkit import OutputPort
from dagkit_operators import BlockReader, Entity, FileSplitterInput, Map, PartWriter, Record, RecordByRecordContext


class Sized(RecordByRecordContext[bytes]):
    def next(self) -> Entity[bytes] | None:
        digit = self.read(1)
        return Entity(self.read(int(digit), self.offset + 1), 1 + int(digit)) if digit.isdigit() else None


class SizedReader(BlockReader[bytes]):
    messages = OutputPort[Record[bytes]](main=True)
    reader_context: Any = Sized()


def populate_dag(dag, conf) -> None:
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
    text = dag.add_operator("Text", Map(lambda content: content.decode()))
    writer = dag.add_operator("Writer", PartWriter(file_path="out"))
    splitter >> dag.add_operator("Reader", SizedReader()) >> text >> writer
""",
    )
    (folder / "in").mkdir()
    (folder / "in" / name).write_bytes(compress(b"3one5three; the rest is padding"))
    assert dagkit("launch", "app.py", "--once", "--reference", "--no-sync").code == 0
    (file,) = Path("out").iterdir()
    answers = [dagkit("trace", "app.py", f"{file}:{line}", "--json") for line in (1, 2)]
    assert [sources(answer) for answer in answers] == [[(name, 0, 4, "3one")], [(name, 4, 10, "5three")]]


def test_a_line_of_a_later_window_is_found_in_the_file_of_that_window(traced, dagkit, write) -> None:
    write("in/a.txt", LINES)
    answer = traced(PARTS.replace("SETTINGS", ""))
    write("in/b.txt", "last one\n")
    assert dagkit("launch", "app.py", "--once", "--reference", "--no-sync").code == 0
    (file,) = (file for file in Path("out").iterdir() if file.read_text() == "LAST ONE\n")
    assert sources(answer(f"{file}:1", "--json")) == [("b.txt", 0, 9, "last one")]


def test_state_between_reader_and_writer_leaves_the_blocks_of_the_window(traced, write) -> None:
    write("in/a.txt", "x\ny\n")
    answer = traced("""\
count = dag.add_operator("Count", Numbered())
writer = dag.add_operator("Writer", PartWriter(file_path="out"))
dag.add_stream("lines", reader.messages, count.input)
dag.add_stream("counted", count.output, writer.input)
""")
    (file,) = Path("out").iterdir()
    out = answer(f"{file}:2").out
    assert "no single record: Count keeps state" in out
    assert "in/a.txt:byte 0-4" in out


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
CHAINS = {
    "patterns to a splitter": "patterns, MatchFiles(), FileSplitterBase(block_size=100), LineReader()",
    "few blocks for each window": (
        "patterns, MatchFiles(), FileSplitterBase(block_size=100, blocks_threshold=2), LineReader()"
    ),
    "an input operator to a splitter": "Sent(), FileSplitterBase(block_size=100), LineReader()",
    "a map to a splitter": "names, Map[str, FileInfo](FileInfo), FileSplitterBase(block_size=100), LineReader()",
    "patterns to a reader of files": "patterns, MatchFiles(), ReadFiles(part_size=100)",
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_files_that_an_operator_in_the_middle_found_are_traced(dagkit, write, chain: str) -> None:
    write("in/a.txt", LINES)
    write("in/b.txt", "one\ntwo\n" * 20)
    write("app.py", INSIDE.replace("CHAIN", chain))
    assert dagkit("launch", "app.py", "--once", "--reference", "--no-sync").code == 0
    traced = 0
    for file in Path("out").rglob("*"):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if line in ("31 apple", "59 apple"):
                answer = dagkit("trace", "app.py", f"{file}:{number}", "--json")
                start, end = position(line)
                (source,) = sources(answer)
                assert source[0].startswith("a.txt@")
                assert source[1:] == (start, end, line)
                traced += 1
    assert traced == 2


def test_blocks_of_a_splitter_in_the_middle_end_where_they_did(dagkit, write) -> None:
    write("in/a.txt", "0123456789")
    chain = "patterns, MatchFiles(), FileSplitterBase(block_size=6), FixedLengthReader(length=4)"
    write("app.py", INSIDE.replace("CHAIN", chain))
    assert dagkit("launch", "app.py", "--once", "--reference", "--no-sync").code == 0
    assert Path("out/0").read_text() == "0123\n45\n"
    (source,) = dagkit("trace", "app.py", "out/0:2", "--json").document["sources"]
    assert (source["start"], source["end"], source["text"]) == (4, 6, "45")


def test_a_line_is_traced_although_another_file_of_its_window_is_gone(traced, write) -> None:
    write("in/a.txt", "one\n")
    write("in/b.txt", "two\n")
    answer = traced(PARTS.replace("SETTINGS", ""))
    Path("in/a.txt").unlink()
    (file,) = Path("out").iterdir()
    places = {line: f"{file}:{number}" for number, line in enumerate(file.read_text().splitlines(), 1)}
    assert sources(answer(places["TWO"], "--json")) == [("b.txt", 0, 4, "two")]
    assert "in/a.txt is gone" in " ".join(answer(places["ONE"]).out.split())


def test_an_input_that_changed_is_reported(traced, write) -> None:
    write("in/a.txt", "one pear\ntwo pear\n")
    answer = traced(PEARS)
    write("app.py", Path("app.py").read_text().replace('"pear"', '"apple"'))
    assert "did not give this line" in answer("out/0:1").out


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("out/0", "does not have the form OUTPUT:LINE"),
        ("out/0:0", "with a line from 1 on"),
        ("out/0:9", "has 1 lines, and no line 9"),
        ("in/a.txt:1", "the ledger names no file"),
    ],
)
def test_a_line_that_was_never_written_is_a_mistake_in_the_command(traced, write, place: str, problem: str) -> None:
    write("in/a.txt", "one pear\n")
    answer = traced(PEARS)(place)
    assert answer.code == 2
    assert problem in " ".join(answer.err.split())


def test_a_file_that_was_changed_is_not_traced(traced, write) -> None:
    write("in/a.txt", "one pear\n")
    answer = traced(PEARS)
    with Path("out/0").open("a") as file:
        file.write("two pear\n")
    assert "was changed after" in " ".join(answer("out/0:1").err.split())
