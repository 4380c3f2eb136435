"""Configuration reaches reader contexts, in an application as it runs."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from dagkit import Block, Config, Dag, OutputPort
from dagkit.errors import ApplicationFaults
from dagkit.testing import Rehearsal
from dagkit_operators import (
    BlockReader,
    FileSplitterInput,
    FixedBytesReaderContext,
    Items,
    LineReader,
    MatchFiles,
    PartWriter,
    ReadFiles,
    Record,
    RecordReader,
    RecordWriter,
)
from dagkit_operators.filesystem.access import Seekable
from tests.operators.reading.cast import written


class BytesReader(BlockReader[bytes]):
    """Reads three bytes at a time."""

    kind = "test.bytes/1"
    messages = OutputPort[Record[bytes]](main=True)
    reader_context: FixedBytesReaderContext = FixedBytesReaderContext(length=3)

    def convert_to_record(self, content: bytes) -> Any:
        return content.decode()


def run(reader: BlockReader[Any], properties: dict[str, str], folder: Path, **splitter: Any) -> Rehearsal:
    """Run an application of a splitter, a reader and a writer with one file for each block."""

    def populate_dag(dag: Dag, conf: Config) -> None:
        find = dag.add_operator("Find", FileSplitterInput(scanner={"files": [str(folder / "in")]}, **splitter))
        read = dag.add_operator("Read", reader)
        write = dag.add_operator("Write", RecordWriter(file_path=str(folder / "out")))
        find >> read >> write

    rehearsal = Rehearsal(populate_dag, properties)
    rehearsal.run()
    return rehearsal


def output(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted((folder / "out").iterdir())]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    written(tmp_path / "in", "abcdefgh;ijk")
    return tmp_path


@pytest.mark.parametrize(
    ("properties", "records"),
    [
        ({}, "abc\ndef\ngh;\nijk\n"),
        ({"dt.operator.Read.prop.readerContext.length": "8"}, "abcdefgh\n;ijk\n"),
        ({"dt.operator.Read.prop.reader_context.length": "8"}, "abcdefgh\n;ijk\n"),
        ({"dt.operator.Read.prop.readerContext": "FixedBytesReaderContext::length=5"}, "abcde\nfgh;i\njk\n"),
    ],
    ids=["as the author set it", "camel case", "snake case", "as a whole"],
)
def test_a_property_of_a_context_is_set_by_configuration(properties, records, folder):
    run(BytesReader(), properties, folder)
    assert output(folder) == [records]


def test_a_property_of_lines_is_reached_by_both_names(folder):
    run(LineReader(), {"dt.operator.Read.prop.readerContext.delimiter": ";"}, folder)
    assert output(folder) == ["abcdefgh\nijk\n"]
    with pytest.raises(ApplicationFaults, match=r"longest_line is 9, and reader_context\.longest_line is 8"):
        run(LineReader(longest_line=9), {"dt.operator.Read.prop.readerContext.longestLine": "8"}, folder)


def test_another_context_is_chosen_by_its_class(folder):
    run(LineReader(), {"dt.operator.Read.prop.readerContext": "LineReaderContext"}, folder, block_size=6)
    assert output(folder) == ["abcdefgh;ijk\n", "gh;ijk\n"]


class Texts(BlockReader[str]):
    kind = "test.texts/1"
    messages = OutputPort[Record[str]](main=True)


@pytest.mark.parametrize(
    ("reader", "properties", "fault"),
    [
        (BytesReader(), {"readerContext.lenth": "8"}, "FixedBytesReaderContext of Read has no property 'lenth'"),
        (RecordReader(), {"mode": "FIXED_WIDTH_RECORD"}, "record_length is not set"),
        (
            Texts(reader_context=FixedBytesReaderContext(length=3)),
            {},
            "FixedBytesReaderContext reads bytes, and Texts sends str",
        ),
    ],
)
def test_a_property_that_the_context_lacks_or_needs_or_records_of_another_type_do_not_compile(
    reader, properties, fault, folder
):
    with pytest.raises(ApplicationFaults, match=fault):
        run(reader, {f"dt.operator.Read.prop.{name}": value for name, value in properties.items()}, folder)


def test_files_that_were_found_are_read_with_any_context(folder):
    def populate_dag(dag: Dag, conf: Config) -> None:
        places = dag.add_operator("Places", Items[str](items=(str(folder / "in"),)))
        read = ReadFiles[str](reader_context=FixedBytesReaderContext(length=5), parse=bytes.decode)
        found = places >> dag.add_operator("Match", MatchFiles()) >> dag.add_operator("Read", read)
        found >> dag.add_operator("Write", PartWriter(file_path=str(folder / "out"), format=str))

    Rehearsal(populate_dag, {"dt.operator.Read.prop.readerContext.length": "8"}).run()
    assert output(folder) == ["abcdefgh\n;ijk\n"]


def test_an_application_opens_a_file_of_ten_blocks_once(folder):
    opened: list[int] = []

    class Notes(LineReader):
        kind = "test.notes/1"

        def setup_stream(self, block: Block) -> AbstractContextManager[Seekable]:
            opened.append(block.block_id)
            return super().setup_stream(block)

    written(folder / "in", "line\n" * 10)
    run(Notes(), {}, folder, block_size=5)
    assert opened == [0]
    assert output(folder) == ["line\n"] * 10
