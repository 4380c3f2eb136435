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
import sys
from pathlib import Path
from typing import NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from click.testing import CliRunner

from dagkit.cli import main
from tests.processes import run_program

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
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
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
LINES = [str(number) for number in range(COUNT)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
pytestmark = pytest.mark.slow
SLOW = [pytest.mark.slow, pytest.mark.spark, pytest.mark.trial]
ENGINES = pytest.mark.parametrize("engine", [["--reference"], pytest.param(["--cores", "2"], marks=SLOW)])


def parquet(name: str = "n") -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({name: LINES}), sink, row_group_size=500, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def avro(name: str = "n") -> bytes:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": "string"}]}
    fastavro.writer(sink, schema, [{name: line} for line in LINES], codec="deflate", sync_interval=1000)
    return sink.getvalue()


def zstd(content: bytes) -> bytes:
    """As the program of the same name: with a checksum."""
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


class Good(NamedTuple):
    """A file, and how it is read."""

    name: str
    content: bytes
    reader: str
    code: str
    place: str
    """How the report names the place in the file."""


OF_CONTENT = r"near byte [1-9][0-9]* of the file and byte [0-9]+ of its content"
GOOD = [
    Good("a.gz", gzip.compress(TEXT), "LineReader()", "compression-broken", OF_CONTENT),
    Good("a.bz2", bz2.compress(TEXT), "LineReader()", "compression-broken", OF_CONTENT),
    Good("a.xz", lzma.compress(TEXT), "LineReader()", "compression-broken", OF_CONTENT),
    Good("a.zst", zstd(TEXT), "LineReader()", "compression-broken", OF_CONTENT),
    Good("a.avro", avro(), "AvroReader()", "avro-broken", "byte [1-9][0-9]*"),
    Good("a.parquet", parquet(), "ParquetReader()", "parquet-broken", "byte [1-9][0-9]*|no Parquet file"),
]


def write_application(reader: str, writer: str = 'PartWriter(file_path="out")') -> None:
    Path("app.py").write_text(APPLICATION.replace("READER", reader).replace("WRITER", writer))


def launch(reader: str, *engine: str) -> str:
    """Launch the application, and return its report; empty if it succeeds."""
    write_application(reader)
    answer = CliRunner().invoke(main, ["launch", "app.py", "--once", "--no-sync", *engine])
    assert (answer.exit_code == 0) == (re.search(r"\[[a-z-]+\]$", answer.stderr, re.MULTILINE) is None), answer.stderr
    return "" if answer.exit_code == 0 else answer.stderr


def written() -> list[str]:
    if not Path("out").exists():
        return []
    return sorted(
        (line for file in Path("out").glob("*") for line in file.read_text(errors="surrogateescape").splitlines()),
        key=lambda line: (len(line), line),
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    return tmp_path / "in"


def damaged(content: bytes) -> dict[str, bytes]:
    middle = len(content) // 2
    wrong = bytes(byte ^ 0x5A for byte in content[middle : middle + 8])
    return {
        "truncated": content[:middle],
        "without its end": content[:-3],
        "corrupt": content[:middle] + wrong + content[middle + 8 :],
    }


DAMAGED = [
    pytest.param(kind, good, ["--reference"], id=f"{kind} {good.name}")
    for good in GOOD
    for kind in ("truncated", "without its end", "corrupt")
]
ON_SPARK = [
    pytest.param("corrupt", good, ["--cores", "2"], id=f"corrupt {good.name} on Spark", marks=SLOW)
    for good in GOOD
    if good.name in ("a.gz", "a.parquet")  # on Spark, only the way of the report to the driver differs
]


@pytest.mark.gate(15)
@pytest.mark.parametrize(("kind", "good", "engine"), DAMAGED + ON_SPARK)
def test_a_damaged_file_ends_the_launch_with_its_place(kind, good, engine, folder):
    path = folder / good.name
    path.write_bytes(damaged(good.content)[kind])
    os.utime(path, (1, 1))
    report = launch(good.reader, *engine)
    assert f"[{good.code}]" in report, report
    assert str(path) in report
    assert re.search(good.place, report), report
    assert written() == []
    if kind == "corrupt":
        path.write_bytes(good.content)
        os.utime(path, (1, 1))
        assert launch(good.reader, *engine) == ""
        assert written() == LINES


BEHIND_A_SPLITTER = 'splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))'
FINDS = 'splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}, block_size=999ASKED))'
MATCHES = """splitter = dag.add_operator("Match", MatchFiles(ASKED))
    dag.add_operator("Patterns", Items(items=["in"])) >> splitter"""
DIVIDES = f"""{MATCHES}
    splitter = splitter >> dag.add_operator("Splitter", FileSplitterBase(block_size=999))"""
CONTEXTS = {"a.avro": "reader_context=AvroReaderContext()", "a.parquet": "reader_context=ParquetContext()"}


FINDERS = {"FileSplitterInput": FINDS, "MatchFiles": MATCHES, "FileSplitterBase": DIVIDES}
CUT_OFF = [
    pytest.param(finder, asked, good, ["--reference"], id=f"{good.name} {name}{' with receipts' * bool(asked)}")
    for name, finder in FINDERS.items()
    for asked in ("", 'receipts="receipts"')
    for good in GOOD
]
CUT_OFF_ON_SPARK = [  # on Spark, only the way of the facts for receipts to the driver differs
    pytest.param(finder, 'receipts="receipts"', good, ["--cores", "2"], id=f"{good.name} on Spark", marks=SLOW)
    for finder, good in [(FINDS, GOOD[5]), (DIVIDES, GOOD[0])]
]


@pytest.mark.gate(6)
@pytest.mark.parametrize(("finder", "asked", "good", "engine"), CUT_OFF + CUT_OFF_ON_SPARK)
def test_a_file_that_was_found_while_it_was_cut_off_is_read_once_when_the_rest_is_there(  # noqa: PLR0917 - a case
    finder, asked, good, engine, folder, monkeypatch
):
    found = finder.replace("ASKED", f", {asked}" if asked and finder == FINDS else asked)
    monkeypatch.setitem(globals(), "APPLICATION", APPLICATION.replace(BEHIND_A_SPLITTER, found))
    reader = good.reader if finder != MATCHES else f"ReadFiles({CONTEXTS.get(good.name, '')})"
    path = folder / good.name
    path.write_bytes(good.content[: len(good.content) // 2])
    os.utime(path, (1, 1))
    assert f"[{good.code}]" in launch(reader, *engine)
    assert written() == []
    path.write_bytes(good.content)
    os.utime(path, (2, 2))
    assert launch(reader, *engine) == ""
    assert launch(reader, *engine) == ""
    assert written() == LINES
    receipts = [json.loads(receipt.read_text()) for receipt in Path("receipts").glob("*")]
    assert [(one["bytes"], one["modified_millis"], one["sha256"], one["rows"]) for one in receipts] == [
        (len(good.content), 2000, hashlib.sha256(good.content).hexdigest(), {"Reader": COUNT})
    ] * bool(asked)


@ENGINES
@pytest.mark.parametrize(
    ("reader", "flag", "problem"),
    [
        ("Gone()", "vanish", "is gone, and its block 0 is still to be read"),
        ("Cut()", "shrink", f"ends at byte 5, and had {len(TEXT)} bytes when it was split"),
    ],
)
def test_a_file_that_vanished_or_shrank_is_read_when_it_is_back(reader, flag, problem, engine, folder):
    path = folder / "a.txt"
    path.write_bytes(TEXT)
    os.utime(path, (1, 1))
    Path(flag).touch()
    report = launch(reader, *engine)
    assert f"{path} {problem}" in report
    assert "[file-changed]" in report
    assert written() == []
    Path(flag).unlink()
    path.write_bytes(TEXT)
    os.utime(path, (1, 1))
    assert launch(reader, *engine) == ""
    assert written() == LINES


@pytest.mark.parametrize(
    ("name", "content", "reader", "code", "problem"),
    [
        (
            "a.parquet",
            parquet("m"),
            'ParquetReader(reader_context={"columns": ("n",)})',
            "columns-mismatched",
            "the file has no column 'n'",
        ),
        (
            "a.avro",
            avro("m"),
            'AvroReader(reader_context={"columns": ("n",)})',
            "columns-mismatched",
            "has no column 'n'",
        ),
        (
            "a.csv",
            b"m\n1\n",
            'CsvReader(reader_context={"columns": ("n",)})',
            "columns-mismatched",
            "has no column 'n'",
        ),
        (
            "a.csv",
            b"n\n1\nx\n",
            'CsvReader(reader_context={"types": {"n": "int64"}})',
            "line-rejected",
            "the line at byte 4 is rejected",
        ),
        (
            "a.json",
            b'{"n": 1}\n{"n": "x"}\n',
            'JsonLinesReader(reader_context={"types": {"n": "int64"}})',
            "line-rejected",
            "byte 9",
        ),
        (
            "a.txt",
            b"one\n\xff\n",
            'LineReader(undecodable="fail")',
            "text-undecodable",
            "the line at byte 4 is not utf-8",
        ),
        ("a\nb.txt", b"one\n\xff\n", 'LineReader(undecodable="fail")', "text-undecodable", r"in/a\nb.txt: the line at"),
        (b"a\xfe.txt", b"one\n\xff\n", 'LineReader(undecodable="fail")', "text-undecodable", r"in/a\udcfe.txt: the "),
        ("a.txt", b"one\n" + 9 * b"x", "LineReader(longest_line=8, chunk_size=2)", "line-too-long", "byte 4"),
    ],
)
def test_content_that_does_not_fit_is_named(  # noqa: PLR0917 - a case
    name, content, reader, code, problem, folder
):
    (folder / os.fsdecode(name)).write_bytes(content)
    report = launch(reader, "--reference")
    assert f"[{code}]" in report, report
    assert problem in report, report
    assert written() == []


def test_names_with_newlines_and_of_other_bytes_are_read(folder):
    (folder / "a\nb.txt").write_bytes(b"1\n")
    (folder / os.fsdecode(b"\xff.txt")).write_bytes(b"2\n")
    assert launch("LineReader()", "--reference") == ""
    assert written() == ["1", "2"]
    assert launch("LineReader()", "--reference") == ""
    assert written() == ["1", "2"]


def test_a_circle_of_folders_ends(folder):
    (folder / "a.txt").write_bytes(b"1\n")
    (folder / "below").mkdir()
    (folder / "below" / "up").symlink_to(folder)
    (folder / "self").symlink_to(folder / "self")
    assert launch("LineReader()", "--reference") == ""
    assert written() == ["1"]


@pytest.mark.parametrize("kind", ["a FIFO", "a character device", "a socket"])
def test_what_is_no_regular_file_is_named_and_others_are_read_then(kind, folder):
    special = folder.with_name("special")
    (folder / "a.txt").write_bytes(b"1\n")
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "a socket":
            server.bind("special")
        elif kind == "a FIFO":
            os.mkfifo(special)
        else:
            special.symlink_to("/dev/zero")
        report = launch("LineReader()", "--reference", "-D", "dt.operator.Splitter.prop.scanner.files=in,special")
        assert f"{special}: it is {kind}, and only regular files are read" in report
        assert "[input-unreadable]" in report
        assert written() == []
        special.unlink()
    special.write_bytes(b"2\n")
    assert launch("LineReader()", "--reference", "-D", "dt.operator.Splitter.prop.scanner.files=in,special") == ""
    assert written() == ["1", "2"]


def test_a_pattern_that_backtracks_takes_no_longer(folder):
    """Python's matcher would take years, and no signal could interrupt it."""
    for name in ("a" * 100 + "!", "a" * 100):
        (folder / name).write_bytes(f"{name[-1]}\n".encode())
    pattern = "dt.operator.Splitter.prop.scanner.filePatternRegularExp=.*/(a+)+"
    assert launch("LineReader()", "--reference", "-D", pattern) == ""
    assert written() == ["a"]
    assert "[property-invalid]" in launch("LineReader()", "--reference", "-D", f"{pattern}(?!b)")


FULL = """
import resource, signal, sys
from dagkit.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
main(["launch", "app.py", "--once", "--no-sync", "--reference"])
"""


@pytest.mark.gate(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("writer", "file"),
    [
        ('PartWriter(file_path="out")', "out/part-00000-00000"),
        ('PartWriter(file_path="out", compression="gzip")', "out/part-00000-00000.gz"),
        ('RecordWriter(file_path="out")', "out/0"),
        ('Texts(file_path="out")', "out/lines"),
        ('Texts(file_path="out", compression="zstd")', r"out/lines\.zst"),
        ('ParquetPartWriter(file_path="out", record_type=Row)', r"out/part-00000-00000\.parquet"),
        ('ParquetPartWriter(file_path="out", record_type=Row, row_group_rows=9)', r"out/part-00000-00000\.parquet"),
    ],
)
def test_a_full_disk_is_named_with_file_and_byte_and_nothing_is_lost(writer, file, folder):
    """A limit of the length of files stands for a full disk."""
    text = "".join(f"{number:x}{number * 7919 % 10007:x}\n" for number in range(20_000))
    (folder / "a.txt").write_text(text)
    write_application("LineReader()", writer)
    ended = run_program([sys.executable, "-c", FULL], check=False, seconds=120)
    assert ended.returncode == 7, ended.stderr
    assert re.search(
        rf"{file} cannot be staged in the application's folder at byte [0-9]+: File too large; nothing of the window",
        ended.stderr,
    )
    assert "[staging-failed]" in ended.stderr
    assert written() == []
    answer = CliRunner().invoke(main, ["launch", "app.py", "--once", "--no-sync", "--reference"])
    assert answer.exit_code == 0, answer.stderr
    (made,) = Path("out").iterdir()
    assert text_in(made) == text


def text_in(file: Path) -> str:
    """The lines of an output file."""
    if file.suffix == ".parquet":
        return "".join(f"{line}\n" for line in pq.read_table(file)["text"].to_pylist())
    with pa.input_stream(file) as stream:  # decompressed by its ending
        return bytes(stream.read()).decode()
