"""Bad input ends a launch with a code, the file and the byte; when the input is repaired, nothing is lost."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import socket
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from click.testing import CliRunner

from dagkit.cli import main
from tests.applications import ON_SPARK
from tests.operators.ways import files_of_at_most, lines_in

APPLICATION = """
import os
from dataclasses import dataclass
from pathlib import Path

from dagkit import Dag
from dagkit_operators import *


class Gone(LineReader):
    def setup_stream(self, block):
        if Path(block.path).parent.with_name("vanish").exists():
            Path(block.path).unlink()
        return super().setup_stream(block)


class Cut(LineReader):
    def setup_stream(self, block):
        if Path(block.path).parent.with_name("shrink").exists():
            os.truncate(block.path, 5)
        return super().setup_stream(block)


class Texts(FileOutput[Record[str]]):
    kind = "test.texts/1"

    def file_name(self, item: Record[str]) -> str:
        return "lines"

    def bytes_for(self, item: Record[str]) -> bytes:
        return item.value.encode() + b"\\n"


@dataclass(frozen=True)
class Row:
    text: str


def as_row(item) -> Row:
    return Row(item)


def as_text(item) -> str:
    return item if isinstance(item, str) else str(item["n"])


def populate_dag(dag: Dag, conf) -> None:
    splitter = FINDER
    reader = dag.add_operator("Reader", READER)
    writer = dag.add_operator("Writer", WRITER)
    splitter >> reader
    if isinstance(writer, RecordWriter):
        reader >> writer
    else:
        values = Map(as_row if isinstance(writer, ParquetPartWriter) else as_text)
        reader >> dag.add_operator("Values", values) >> writer
"""
COUNT = 3000
LINES = sorted(str(number) for number in range(COUNT))
TEXT = "".join(f"{line}\n" for line in LINES).encode()
pytestmark = pytest.mark.slow
REFERENCE, SPARK = ("--reference",), ("--cores", "2")


def parquet():
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": LINES}), sink, row_group_size=500, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def avro():
    sink = io.BytesIO()
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "string"}]}
    fastavro.writer(sink, schema, [{"n": line} for line in LINES], codec="deflate", sync_interval=1000)
    return sink.getvalue()


ZSTD = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)  # as the program of the same name
OF_CONTENT = r"near byte [1-9][0-9]* of the file and byte [0-9]+ of its content"
GOOD = {
    "a.gz": (gzip.compress(TEXT), "LineReader()", "compression-broken", OF_CONTENT),
    "a.bz2": (bz2.compress(TEXT), "LineReader()", "compression-broken", OF_CONTENT),
    "a.xz": (lzma.compress(TEXT), "LineReader()", "compression-broken", OF_CONTENT),
    "a.zst": (ZSTD, "LineReader()", "compression-broken", OF_CONTENT),
    "a.avro": (avro(), "AvroReader()", "avro-broken", "byte [1-9][0-9]*"),
    "a.parquet": (parquet(), "ParquetReader()", "parquet-broken", "byte [1-9][0-9]*|no Parquet file"),
}
"""Files: their content, how they are read, and with which code and place damage is reported."""


def run(*options):
    return CliRunner().invoke(main, ["launch", "app.py", "--once", "--no-sync", *options])


FIND = 'dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))'


def write_application(reader, writer='PartWriter(file_path="out")', **replaced):
    text = APPLICATION
    for name, value in {"FINDER": FIND, "READER": reader, "WRITER": writer, **replaced}.items():
        text = text.replace(name, value)
    Path("app.py").write_text(text)


def launch(reader, *engine, **replaced):
    """Launch the application, and return its report; empty if it succeeds."""
    write_application(reader, **replaced)
    answer = run(*(engine or REFERENCE))
    assert (answer.exit_code == 0) == (re.search(r"\[[a-z-]+\]$", answer.stderr, re.MULTILINE) is None), answer.stderr
    return "" if answer.exit_code == 0 else answer.stderr


def write(path, content, seconds=1):
    """Write an old file, so that no launch waits for it."""
    path.write_bytes(content)
    os.utime(path, (seconds, seconds))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    return tmp_path / "in"


def damaged(content, kind):
    middle = len(content) // 2
    wrong = bytes(byte ^ 0x5A for byte in content[middle : middle + 8])
    return content[:middle] + (wrong + content[middle + 8 :] if kind == "corrupt" else b"")


DAMAGED = [
    *(("corrupt", name, REFERENCE) for name in GOOD),
    *(("truncated", name, REFERENCE) for name in ("a.gz", "a.avro", "a.parquet")),
    # on Spark, only the way of the report to the driver differs
    *(pytest.param("corrupt", name, SPARK, marks=ON_SPARK) for name in ("a.gz", "a.parquet")),
]


@pytest.mark.parametrize(("kind", "name", "engine"), DAMAGED)
def test_a_damaged_file_ends_the_launch_with_its_place(kind, name, engine, folder):
    path, (content, reader, code, place) = folder / name, GOOD[name]
    write(path, damaged(content, kind))
    report = launch(reader, *engine)
    assert f"[{code}]" in report, report
    assert str(path) in report
    assert re.search(place, report), report
    assert lines_in("out") == []
    if kind == "corrupt":
        write(path, content)
        assert launch(reader, *engine) == ""
        assert lines_in("out") == LINES


FINDS = 'dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}, block_size=999, RECEIPTS))'
MATCHES = 'dag.add_operator("Patterns", Items(items=["in"])) >> dag.add_operator("Match", MatchFiles(RECEIPTS))'
DIVIDES = f'{MATCHES} >> dag.add_operator("Splitter", FileSplitterBase(block_size=999))'
FINDERS = {"FileSplitterInput": FINDS, "MatchFiles": MATCHES, "FileSplitterBase": DIVIDES}
CONTEXTS = {"a.avro": "reader_context=AvroReaderContext()", "a.parquet": "reader_context=ParquetContext()"}
CUT_OFF = [
    *((finder, asked, name, REFERENCE) for finder in FINDERS for asked in ("", 'receipts="receipts"') for name in GOOD),
    # on Spark, only the way of the facts for receipts to the driver differs
    pytest.param("FileSplitterInput", 'receipts="receipts"', "a.parquet", SPARK, marks=ON_SPARK),
    pytest.param("FileSplitterBase", 'receipts="receipts"', "a.gz", SPARK, marks=ON_SPARK),
]


@pytest.mark.gate(6)
@pytest.mark.parametrize(("finder", "asked", "name", "engine"), CUT_OFF)
def test_a_file_that_was_found_while_it_was_cut_off_is_read_once_when_the_rest_is_there(
    finder, asked, name, engine, *, folder
):
    content, reader, code, _ = GOOD[name]
    reader = reader if finder != "MatchFiles" else f"ReadFiles({CONTEXTS.get(name, '')})"
    replaced = {"FINDER": FINDERS[finder].replace("RECEIPTS", asked)}
    write(folder / name, content[: len(content) // 2])
    assert f"[{code}]" in launch(reader, *engine, **replaced)
    assert lines_in("out") == []
    write(folder / name, content, 2)
    assert launch(reader, *engine, **replaced) == ""
    assert launch(reader, *engine, **replaced) == ""
    assert lines_in("out") == LINES
    receipts = [json.loads(receipt.read_text()) for receipt in Path("receipts").glob("*")]
    assert [(one["bytes"], one["modified_millis"], one["sha256"], one["rows"]) for one in receipts] == [
        (len(content), 2000, hashlib.sha256(content).hexdigest(), {"Reader": COUNT})
    ] * bool(asked)


@pytest.mark.parametrize("engine", [REFERENCE, pytest.param(SPARK, marks=ON_SPARK)])
@pytest.mark.parametrize(
    ("reader", "flag", "problem"),
    [
        ("Gone()", "vanish", "is gone, and its block 0 is still to be read"),
        ("Cut()", "shrink", f"ends at byte 5, and had {len(TEXT)} bytes when it was split"),
    ],
)
def test_a_file_that_vanished_or_shrank_is_read_when_it_is_back(reader, flag, problem, engine, folder):
    path = folder / "a.txt"
    write(path, TEXT)
    Path(flag).touch()
    report = launch(reader, *engine)
    assert f"{path} {problem}" in report
    assert "[file-changed]" in report
    assert lines_in("out") == []
    Path(flag).unlink()
    write(path, TEXT)
    assert launch(reader, *engine) == ""
    assert lines_in("out") == LINES


TYPED, STRICT = 'CsvReader(reader_context={"types": {"n": "int64"}})', 'LineReader(undecodable="fail")'

LATIN = b"one\n\xff\n"


@pytest.mark.parametrize(
    ("name", "content", "reader", "code", "problem"),
    [
        ("a.csv", b"m\n1\n", 'CsvReader(reader_context={"columns": ("n",)})', "columns-mismatched", "no column 'n'"),
        ("a.csv", b"n\n1\nx\n", TYPED, "line-rejected", "the line at byte 4 is rejected"),
        ("a\nb.txt", LATIN, STRICT, "text-undecodable", r"in/a\nb.txt: the line at"),
        (b"a\xfe.txt", LATIN, STRICT, "text-undecodable", r"in/a\udcfe.txt: the "),
        ("a.txt", b"one\n" + 9 * b"x", "LineReader(longest_line=8, chunk_size=2)", "line-too-long", "byte 4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_content_that_does_not_fit_is_named(name, content, reader, code, problem, *, folder):
    write(folder / os.fsdecode(name), content)
    report = launch(reader)
    assert f"[{code}]" in report, report
    assert problem in report, report
    assert lines_in("out") == []


@pytest.mark.parametrize("kind", ["a FIFO", "a character device", "a socket"])
def test_what_is_no_regular_file_is_named_and_others_are_read_then(kind, folder):
    special = folder.with_name("special")
    both = (*REFERENCE, "-D", "dt.operator.Splitter.prop.scanner.files=in,special")
    write(folder / "a.txt", b"1\n")
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "a socket":
            server.bind("special")
        elif kind == "a FIFO":
            os.mkfifo(special)
        else:
            special.symlink_to("/dev/zero")
        report = launch("LineReader()", *both)
        assert f"{special}: it is {kind}, and only regular files are read" in report
        assert "[input-unreadable]" in report
        assert lines_in("out") == []
        special.unlink()
    write(special, b"2\n")
    assert launch("LineReader()", *both) == ""
    assert lines_in("out") == ["1", "2"]


def test_a_pattern_that_backtracks_takes_no_longer(folder):
    """Python's matcher would take years, and no signal could interrupt it."""
    for name in ("a" * 100 + "!", "a" * 100):
        write(folder / name, f"{name[-1]}\n".encode())
    pattern = "dt.operator.Splitter.prop.scanner.filePatternRegularExp=.*/(a+)+"
    assert launch("LineReader()", *REFERENCE, "-D", pattern) == ""
    assert lines_in("out") == ["a"]
    assert "[property-invalid]" in launch("LineReader()", *REFERENCE, "-D", f"{pattern}(?!b)")


@pytest.mark.gate(1)
@pytest.mark.parametrize(
    ("writer", "options", "file"),
    [
        ("PartWriter", "", "part-00000-00000"),
        ("PartWriter", 'compression="gzip"', r"part-00000-00000\.gz"),
        ("RecordWriter", "", "0"),
        ("Texts", "", "lines"),
        ("Texts", 'compression="zstd"', r"lines\.zst"),
        ("ParquetPartWriter", "record_type=Row", r"part-00000-00000\.parquet"),
        ("ParquetPartWriter", "record_type=Row, row_group_rows=9", r"part-00000-00000\.parquet"),
    ],
)
def test_a_full_disk_is_named_with_file_and_byte_and_nothing_is_lost(writer, options, file, folder):
    """A limit of the length of files stands for a full disk."""
    text = "".join(f"{number:x}{number * 7919 % 10007:x}\n" for number in range(20_000))
    write(folder / "a.txt", text.encode())
    write_application("LineReader()", f'{writer}(file_path="out", {options})')
    with files_of_at_most(40_000):
        ended = run(*REFERENCE)
    assert ended.exit_code == 7, ended.stderr
    problem = "cannot be staged in the application's folder at byte [0-9]+: File too large; nothing of the window"
    assert re.search(f"out/{file} {problem}", ended.stderr)
    assert "[staging-failed]" in ended.stderr
    assert lines_in("out") == []
    answer = run(*REFERENCE)
    assert answer.exit_code == 0, answer.stderr
    (made,) = Path("out").iterdir()
    assert text_in(made) == text


def text_in(file):
    if file.suffix == ".parquet":
        return "".join(f"{line}\n" for line in pq.read_table(file)["text"].to_pylist())
    with pa.input_stream(file) as stream:  # decompressed by its ending
        return bytes(stream.read()).decode()
