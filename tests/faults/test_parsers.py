"""Any bytes give each parser a value, or an error that it declares: no other exception, no hang, little memory.

Whole commands on damaged folders are in `test_damaged_folders.py`, and on broken applications in
`tests/cli/application/test_broken_applications.py`.
"""

import bz2
import gzip
import io
import json
import lzma
import resource
import socket
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Block, Dag, Operator
from dagkit.backends.spark.session.master import Master
from dagkit.compiler import compile_application
from dagkit.conf.declared.declared_json import read_json as read_located_json
from dagkit.conf.grammar.property_keys import parse_key, parse_path
from dagkit.conf.sources.hadoop import read_hadoop
from dagkit.conf.sources.property_files import read_properties, read_toml
from dagkit.conf.sources.user_files import ParseError
from dagkit.conf.values.object_making import Unfit, parse_json, parse_objects
from dagkit.engine.parts.requests import (
    ANSWERED,
    ASKED,
    AnswerUnreadable,
    Reply,
    Request,
    RequestInbox,
    StopRun,
    reply_to,
)
from dagkit.engine.program.address import Address
from dagkit.engine.record.snapshot import RunSnapshot, bytes_of, document_in
from dagkit.engine.record.status_file import this_process
from dagkit.engine.run.launch_record import LaunchRecord
from dagkit.engine.work.handover import Hello, Idle, line_of, message_in
from dagkit.errors import RUN_CODES, RunFailure
from dagkit.ground.patterns import groups_of, is_whole
from dagkit.ground.urls import absolute, as_text, is_url
from dagkit.ledger import LEDGER_CODES, LedgerError
from dagkit.ledger.exchange.manifests import Manifest, read_blocks
from dagkit.ledger.format.block import unseal
from dagkit.ledger.format.hashing import canonical, hash_of, read_json
from dagkit.ledger.format.segment import SEGMENT_SIZE, pack, unpack
from dagkit.ledger.stores import LocalStore
from dagkit.plan.parse import read_plan, write_plan
from dagkit.runs.inventory.spark_checkpoint import files_read
from dagkit.runs.warm.place import receive
from dagkit.testing import Alone
from dagkit_operators import (
    AvroReader,
    CsvContext,
    CsvReader,
    FileSplitterInput,
    JsonLinesReader,
    LineReader,
    ParquetReader,
    RecordWriter,
)
from dagkit_operators.compression.gzip_index import GzipIndex, Point
from dagkit_operators.filesystem.access import looked_up
from dagkit_operators.finding.control_files import (
    Trailer,
    TrailerMissing,
    contradiction,
    stated_checksum,
    stated_totals,
)
from tests.inventory.checkpoints import Checkpoint
from tests.ledger.desk import APPLICATION
from tests.ledger.format.test_block import a_line
from tests.patience import ended_within, within

MOST_BYTES = 1 << 30
"""How much more memory a parser may use. What is larger was written into the few bytes of an input."""
WITHIN_SECONDS = within(30)
WORDS = (
    *(b"null", b"[]", b"{}", b'""', b"-1", b"1e999", b"Infinity", b"9" * 5000, b"\xff\xfe", b"\0", b"..", b"\n"),
    *(b"[" * 3000, b'{"a":' * 3000, b"\\ud800", b"\xe2\x80\xa8", b"true", b'"', b"\\u12", b"<!--", b"&a;", b"\x7f" * 8),
)
"""What is put into a sample."""


@dataclass(frozen=True)
class Parser:
    """A parser with samples of what it reads, and the errors that it declares."""

    parse: Callable[[bytes, Path], object]
    samples: tuple[bytes, ...]
    refuses: tuple[type[Exception], ...] = ()
    """Besides errors of dagkit, which have codes."""


def text(parse: Callable[[str], object], *samples: str, refuses: type[Exception] | None = None) -> Parser:
    """A parser of text. Text from files and command lines may hold half characters, which stand for other bytes."""
    return Parser(
        lambda data, _: parse(data.decode("utf-8", "surrogateescape")),
        tuple(sample.encode() for sample in samples),
        () if refuses is None else (refuses,),
    )


def of_bytes(parse: Callable[[bytes], object], *samples: bytes, refuses: type[Exception] | None = None) -> Parser:
    return Parser(lambda data, _: parse(data), samples, () if refuses is None else (refuses,))


def read_by(reader: Callable[[], Operator], *samples: bytes, name: str = "file") -> Parser:
    """A reader of blocks: it reads a file in two parts, of which the second begins anywhere; a compressed one whole."""

    def parse(data: bytes, folder: Path) -> None:
        (path := folder / name).write_bytes(data)
        cuts = [0, len(data) // 3, len(data)] if name == "file" else [0, len(data)]
        for number, (start, end) in enumerate(pairwise(cuts)):
            alone = Alone(reader(), connected=["messages", "rejected"])
            alone.work(Block(number, str(path), start, end, facts={"length": len(data)}))

    return Parser(parse, samples)


def controlled(name: str, states: Callable[[Any, Any], Any]) -> Callable[[bytes, Path], None]:
    """A file beside a file with its checksum or totals."""

    def parse(data: bytes, folder: Path) -> None:
        (folder / "file").write_bytes(b"a\nb\n")
        (folder / name).write_bytes(data)
        control, found = looked_up(str(folder / name)), looked_up(str(folder / "file"))
        if (stated := states(control, found)) is not None:
            contradiction(found, control, stated)

    return parse


def trailer(data: bytes, folder: Path) -> None:
    (folder / "file").write_bytes(data)
    found = looked_up(str(folder / "file"))
    Trailer(pattern="END,(?P<rows>.*),(?P<sum>.*)", sum_column=2).contradiction(found)


def requests(data: bytes, folder: Path) -> None:
    """Requests to a driver, and its answers."""
    store = LocalStore(folder / "requests")
    store.create(f"{ASKED}/20260101T000000000000-00000000.json", data)
    RequestInbox(store, lambda: NOW).read_requests(1)
    store.create(f"{ANSWERED}/{REQUEST.id}.json", data)
    with suppress(AnswerUnreadable):  # or the request would be the only value
        reply_to(store, REQUEST)


def warm_message(data: bytes) -> None:
    """A message on the socket of a warm driver. The sender closes it at once."""
    sender, receiver = socket.socketpair()
    with receiver:
        with sender:
            sender.sendall(len(data).to_bytes(4, "big") + data)
        receive(receiver)


def in_manifest(suffix: str) -> Callable[[bytes, Path], list[Any]]:
    def parse(data: bytes, folder: Path) -> list[Any]:
        (path := folder / f"blocks.{suffix}").write_bytes(data)
        return list(read_blocks(path, "words"))

    return parse


def checkpoint_of_spark(name: str) -> Callable[[bytes, Path], object]:
    """A checkpoint of Structured Streaming, one of whose files has this content."""

    def parse(data: bytes, folder: Path) -> object:
        checkpoint = Checkpoint(folder / "checkpoint")
        (folder / "file").touch()
        checkpoint.read([folder / "file"])
        (checkpoint.folder / name).write_bytes(data)
        return files_read(str(checkpoint.folder), None, in_flight_is_read=False)

    return parse


def with_checksum(data: bytes) -> object:
    """An index whose checksum is right, as a user writes it who may write into its folder."""
    return GzipIndex.from_bytes(data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "little"))


def resealed(data: bytes) -> object:
    """A block whose hash is right, as a user writes it who may write into the ledger."""
    with suppress(ValueError):
        document = read_json(data)
        if isinstance(document, dict):
            body = canonical({part: document.get(part) for part in ("block", "carry", "format")})
            data = canonical({**document, "hash": hash_of(body.encode())}).encode() + b"\n"
    return unseal(data, APPLICATION, 3)


def drawn(dag: Dag) -> None:
    splitter = dag.add_operator("Splitter", FileSplitterInput(scanner={"files": ["in"]}))
    splitter >> dag.add_operator("Reader", LineReader()) >> dag.add_operator("Writer", RecordWriter(file_path="out"))


NOW = datetime(2026, 1, 1, tzinfo=UTC)
REQUEST = Request(id="20260101T000000000000-00000001", at=NOW, asks=StopRun(launch="a"))
LINE = a_line()
COMPILED = compile_application(lambda dag, _: drawn(dag))
PLAN = write_plan(COMPILED.plan)
LAUNCHED = bytes_of(LaunchRecord.of(COMPILED, COMPILED.plan, "0.1.0", NOW))
RAN = {
    "application": "LineFilter",
    "application_path": "state",
    "version": "0.1.0",
    "master": "local[2]",
    "until": "once",
}
STATUS = bytes_of(RunSnapshot(**RAN, driver=this_process(), since=NOW, at=NOW))
MANIFEST = canonical(Manifest(content=unseal(LINE, APPLICATION, 3).block).as_json()).encode() + b"\n"
ANSWER = Reply(id=REQUEST.id, done=True, window=3).model_dump_json().encode()
MESSAGES = tuple(map(line_of, (Hello("token", "window", Address.of("Reader", "blocks"), 1), Idle())))
SPARK_FILE = b'{"path":"file:///in/a%20b","timestamp":1,"batchId":0}'
URLS = ("s3://user:password@bucket/a%20b/?region=x#y", "file:///a/../b", "/a/b", "hdfs://host:1/a")
SEGMENT = pack(0, [b"{}\n"] * SEGMENT_SIZE)
XML = b"<configuration><property><name>dt.attr.A</name><value>a &amp; b</value></property></configuration>"
TOML = b"[dt.operator.It.prop]\na = [1, 2.5, {b = 'c'}]\nd = 2026-01-01T00:00:00Z\n"
KEYS = (
    "dt.operator.Block-reader.prop.maxReaders",
    "dt.application.A.operator.*.port.in.attr.QUEUE_CAPACITY",
    "dt.attr.A",
)
ROWS = [{"number": number, "text": "ä" * number} for number in range(9)]
CSV = 'number,text\r\n1,"a\n""b"\n2,ä\n'.encode()
JSON = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
OFFSETS = b'v1\n{"batchWatermarkMs":0}\n{"logOffset":0}'


def avro(codec: str) -> bytes:
    fields = [{"name": "number", "type": "long"}, {"name": "text", "type": ["null", "string"]}]
    fastavro.writer(file := io.BytesIO(), {"type": "record", "name": "Row", "fields": fields}, ROWS, codec, 30)
    return file.getvalue()


def parquet() -> bytes:
    pq.write_table(pa.Table.from_pylist(ROWS), sink := pa.BufferOutputStream(), row_group_size=4)
    return bytes(sink.getvalue())


def gzip_index() -> bytes:
    points = (Point(80, 0, 0), Point(9999, 70_000, 5, b"window" * 100))
    return GzipIndex(points, 99_999, 7).to_bytes()


@dataclass(frozen=True)
class Row:
    number: int
    text: str


PARSERS = {
    "a property file: XML": of_bytes(read_hadoop, XML, refuses=ParseError),
    "a property file: properties": of_bytes(
        read_properties, b"dt.attr.A=b\\\n c\n#\\u00e4\nd:\\u00e4", refuses=ParseError
    ),
    "a property file: TOML": of_bytes(read_toml, TOML, refuses=ParseError),
    "a declared application: JSON": of_bytes(read_located_json, PLAN.encode(), refuses=ParseError),
    "a key of a property": text(parse_key, *KEYS),
    "a path of a key": text(parse_path, *(key.removeprefix("dt.") for key in KEYS)),
    "a recipe of an object": text(parse_objects, "a.b:C:1:x=y\\:z, D::e=f", refuses=Unfit),
    "a value in JSON": text(parse_json, '{"@class": "a.B", "c": [1, 2.5, null]}', refuses=Unfit),
    "a pattern": text(lambda pattern: (is_whole(pattern, "a"), groups_of(pattern, "a")), r"(?P<a>\w+)[^x]{2,3}|\d*$"),
    "the URL of a master": text(Master.of, "spark://a:1,b:2", "local[2,3]", "sc://[::1]:1/;token=a", "k8s://https://a"),
    "a URL": text(lambda place: (is_url(place), absolute(place), as_text(place)), *URLS),
    "a plan": text(read_plan, PLAN),
    "a block": of_bytes(lambda data: unseal(data, APPLICATION, 3), LINE),
    "a block with a right hash": of_bytes(resealed, LINE),
    "a segment": of_bytes(lambda data: list(unpack(data, "words", 0)), SEGMENT),
    "manifests: JSON": Parser(in_manifest("jsonl"), (MANIFEST,)),
    "manifests: YAML": Parser(in_manifest("yaml"), (MANIFEST, yaml.safe_dump(json.loads(MANIFEST)).encode())),
    "the record of a launch": of_bytes(lambda data: document_in(data, LaunchRecord), LAUNCHED, refuses=ValueError),
    "the status of a run": of_bytes(lambda data: document_in(data, RunSnapshot), STATUS, refuses=ValueError),
    "requests and answers": Parser(requests, (REQUEST.model_dump_json().encode(), ANSWER)),
    "a message of the board": of_bytes(message_in, *MESSAGES, refuses=ValueError),
    "a message of a warm driver": Parser(
        lambda data, _: warm_message(data), (b'{"ask": "launch", "words": []}',), (EOFError,)
    ),
    "a gzip index": of_bytes(GzipIndex.from_bytes, gzip_index(), refuses=ValueError),
    "a gzip index with a right checksum": of_bytes(with_checksum, gzip_index(), refuses=ValueError),
    "a checksum file": Parser(controlled("file.md5", stated_checksum), (b"60b725f10c9c85c70d97880dfe8191b3 *file\n",)),
    "totals beside a file": Parser(
        controlled("file.ctl", lambda control, _: stated_totals(control)),
        (b"rows=2\nbytes: 4\n", b"rows=" + b"9" * 5000),
    ),
    "totals at the end of a file": Parser(trailer, (b"a,1.5\nb,2\nEND,2,3.5\n",), (TrailerMissing,)),
    "a checkpoint of Spark: its log": Parser(checkpoint_of_spark("sources/0/0"), (b"v1\n" + SPARK_FILE,)),
    "a checkpoint of Spark: its offsets": Parser(checkpoint_of_spark("offsets/0"), (OFFSETS,)),
    "a checkpoint of Spark: its metadata": Parser(checkpoint_of_spark("metadata"), (b'{"id":"a"}',)),
    "lines": read_by(LineReader, b"a\nb\r\n\nc"),
    "lines of UTF-16": read_by(lambda: LineReader(encoding="utf-16"), "a\nbä\n".encode("utf-16")),
    "lines of gzip": read_by(LineReader, gzip.compress(b"a\nb\n" * 9), name="file.gz"),
    "lines of bzip2": read_by(LineReader, bz2.compress(b"a\nb\n" * 9), name="file.bz2"),
    "lines of xz": read_by(LineReader, lzma.compress(b"a\nb\n" * 9), name="file.xz"),
    "lines of zstandard": read_by(LineReader, pa.compress(b"a\nb\n" * 9, "zstd", asbytes=True), name="file.zst"),
    "CSV": read_by(CsvReader, CSV),
    "CSV with quoted newlines": read_by(lambda: CsvReader(reader_context=CsvContext(quoted_newlines=True)), CSV),
    "CSV of a type": read_by(lambda: CsvReader(reader_context=CsvContext(record_type=Row)), CSV),
    "JSON lines": read_by(JsonLinesReader, JSON),
    "Avro": read_by(AvroReader, avro("null"), avro("deflate"), avro("zstandard")),
    "Parquet": read_by(ParquetReader, parquet()),
}


@st.composite
def damaged(draw: st.DrawFn, samples: tuple[bytes, ...]) -> bytes:
    """A sample in which something else stands at some places."""
    content = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        length = draw(st.sampled_from([0, 1, 2, 9, len(content)]))
        put = draw(st.sampled_from(WORDS) | st.binary(max_size=9) | st.just(content[:200]))
        content = content[:start] + put + content[start + length :]
    return content


@contextmanager
def bounded() -> Iterator[None]:
    """Raise MemoryError for much memory, and TimeoutError for a hang."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, limits[1]))
    try:
        with ended_within(WITHIN_SECONDS):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def check(parser: Parser, data: bytes) -> None:
    """Parse, and refuse other errors than those of dagkit with a code, and those that the parser declares."""
    failure = None
    with tempfile.TemporaryDirectory() as folder, bounded():
        try:
            parser.parse(data, Path(folder))
        except parser.refuses:
            return
        except (RunFailure, LedgerError) as error:
            failure = error
    if failure is not None:
        assert failure.code in (*RUN_CODES, *LEDGER_CODES)
        assert failure.code != "operator-failed", failure


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)
@given(st.data())
def test_any_bytes_are_a_value_or_an_error_that_is_declared(parser, data):
    check(parser, data.draw(damaged(parser.samples) | st.binary(max_size=200) | st.sampled_from(parser.samples)))


@pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)
def test_the_samples_are_values(parser, tmp_path):
    for number, sample in enumerate(parser.samples):
        (folder := tmp_path / str(number)).mkdir()
        parser.parse(sample, folder)
