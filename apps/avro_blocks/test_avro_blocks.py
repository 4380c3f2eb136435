"""Each record of Avro files is written once, by every backend alike, however small the blocks."""

from pathlib import Path

import fastavro
import pytest
from click.testing import CliRunner

from dagkit.cli import main
from dagkit.plan import read_plan

HERE = str(Path(__file__).parent)
SCHEMA = {
    "type": "record",
    "name": "Person",
    "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"]}],
}


@pytest.fixture
def names(tmp_path, monkeypatch):
    """The names in three files, each of another codec."""
    monkeypatch.chdir(tmp_path)
    Path("input").mkdir()
    for codec in ("null", "deflate", "snappy"):
        people = [{"name": f"{codec} {number}", "age": number or None} for number in range(300)]
        with Path(f"input/{codec}.avro").open("wb") as file:
            fastavro.writer(file, SCHEMA, people, codec=codec, sync_interval=200)
    return sorted(f"{codec} {number}" for codec in ("null", "deflate", "snappy") for number in range(300))


@pytest.mark.parametrize(
    "options",
    [["--reference"], pytest.param(["--cores", "2"], marks=[pytest.mark.slow, pytest.mark.spark, pytest.mark.trial])],
)
@pytest.mark.parametrize("block_size", [137, 1 << 20], ids=["many blocks", "whole files"])
def test_every_record_is_written_once(options, block_size, names):
    settings = {"Splitter.prop.blockSize": block_size, "Reader.prop.minReaders": 2}
    definitions = [word for key, value in settings.items() for word in ("-D", f"dt.operator.{key}={value}")]
    answer = CliRunner().invoke(main, ["launch", HERE, "--once", "--json", *definitions, *options])
    assert answer.exit_code == 0, answer.output
    assert sorted(line for path in Path("output").iterdir() for line in path.read_text().splitlines()) == names


@pytest.mark.usefixtures("names")
def test_what_is_broken_stops_the_launch_with_its_file_and_place():
    path = Path("input/null.avro").absolute()
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        _, second, third, *_ = (block.offset for block in fastavro.block_reader(file))
    content[third - 1] ^= 1
    path.write_bytes(content)
    answer = CliRunner().invoke(main, ["launch", HERE, "--once", "--reference"])
    assert answer.exit_code != 0
    message = " ".join(answer.output.split())
    assert f"{path}: the data block at byte {second} cannot be read: expected sync marker not found" in message


def test_reading_and_writing_are_one_stage():
    plan = read_plan(CliRunner().invoke(main, ["plan", HERE, "--json"]).stdout)
    assert [stage.operators for stage in plan.stages] == [("Splitter",), ("Reader", "Values", "Writer")]
