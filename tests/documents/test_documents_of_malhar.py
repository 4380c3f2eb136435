"""The Java examples of Malhar's documents about the block reader and the file splitter run here, line by line."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dagkit.cli import main
from dagkit.plan import read_plan
from dagkit.testing import Alone, FakeClock
from dagkit_operators import Block, FileSplitterBase
from tests.documents.block_reader import HookedReader
from tests.documents.file_splitter import Splitter
from tests.old_files import aged

HERE = Path(__file__).parent
ENGINES = pytest.mark.parametrize(
    "engine", [["--reference"], pytest.param(["--cores", "2"], marks=[pytest.mark.spark, pytest.mark.trial])]
)
EXAMPLE = [str(HERE / "block_reader.py"), "--app", "ExampleApplication", "-c", str(HERE / "block_reader.xml")]
LINES = ["one", ".hidden", "", "two two", "...", "a.b", "fünf", *[f"line {number}" for number in range(40)]]


def launch(*arguments: str) -> None:
    answer = CliRunner().invoke(main, ["launch", *arguments, "--once", "--no-sync"])
    assert answer.exit_code == 0, answer.output


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("input").mkdir()
    for name in ("a", "b"):
        Path("input", name).write_text("".join(f"{line}\n" for line in LINES))
        aged(Path("input", name))
    return [tmp_path / "input" / name for name in ("a", "b")]


@ENGINES
def test_the_example_application_writes_the_valid_records_of_each_block(engine, files):
    launch(*EXAMPLE, *engine)
    names = {file: re.findall("^[0-9a-f]+", file.name) for file in Path("output").iterdir()}
    content = {int(block_id, 16): file.read_bytes() for file, (block_id,) in names.items()}
    length = sum(path.stat().st_size for path in files)
    valid = "".join(line for line in LINES if not line.startswith(".")).encode()
    # as in Malhar, nothing lies between the records
    assert b"".join(content[number] for number in sorted(content)) == valid * 2
    assert len(content) > length // 40 - 2


def test_its_configuration_mirrors_the_reader():
    answer = CliRunner().invoke(main, ["plan", *EXAMPLE, "--json"])
    stages = [("File-splitter",), ("Block-reader", "Filter", "Record-writer")]
    assert [stage.operators for stage in read_plan(answer.stdout).stages] == stages


def test_a_reader_makes_its_filesystem_and_opens_the_streams(files):
    reader = Alone(HookedReader())
    reader.work(Block(0, str(files[0]), 0, files[0].stat().st_size))
    assert [record.value for record in reader.sent()] == LINES
    assert reader.operator._opened_paths == [str(files[0])]


def test_process_sends_as_many_blocks_as_the_threshold_says_and_one_by_default(files):
    paths = tuple(map(str, files))
    total = 2 * -(-files[0].stat().st_size // 70)
    for most, windows in ((None, [1] * total), (3, [3] * (total // 3) + [total % 3]), (100, [total])):
        splitter = Alone(Splitter(files=paths, block_size=70, blocks_threshold=most), now=FakeClock().now)
        counts = []
        for _ in windows:
            splitter.look()
            counts.append(len(splitter.sent()))
        assert counts == windows


@ENGINES
@pytest.mark.parametrize(
    ("splitter", "options"), [("Base", []), ("Input", ["-D", "dt.operator.Input.prop.scanner.files=input"])]
)
def test_the_application_with_a_splitter_reads_what_messages_name_or_what_it_finds(engine, splitter, options, files):
    Path("messages").write_text("".join(f"{path}\n" for path in files))
    aged(Path("messages"))
    launch(str(HERE / "file_splitter.py"), "--app", f"ApplicationWith{splitter}Splitter", *options, *engine)
    assert sorted(written()) == [path.read_bytes() for path in files]


def written() -> list[bytes]:
    return [bytes.fromhex(line) for file in Path("output").iterdir() for line in file.read_text().splitlines()]


def test_the_filesystem_is_inferred_from_a_file(files):
    """`FileSystem.newInstance(new Path(file).toUri(), …)`: that of paths which have no scheme."""
    splitter = FileSplitterBase(file="memory://bucket/any")
    assert splitter._place_of("/data/a") == "memory://bucket/data/a"
