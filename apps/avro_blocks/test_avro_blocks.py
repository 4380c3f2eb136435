"""Each record of Avro files is written once, by every backend alike, however small the blocks."""

from pathlib import Path

import fastavro
import pytest
from click.testing import CliRunner

from dagkit.cli import main
from tests.applications import launched, on_each_backend, stages, written
from tests.old_files import aged

HERE = str(Path(__file__).parent)
FIELDS = [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"]}]
SCHEMA = {"type": "record", "name": "Person", "fields": FIELDS}


@pytest.fixture
def names(tmp_path, monkeypatch):
    """The names in three files, each of another codec."""
    monkeypatch.chdir(tmp_path)
    Path("input").mkdir()
    for codec in ("null", "deflate", "snappy"):
        people = [{"name": f"{codec} {number}", "age": number or None} for number in range(300)]
        with (path := Path(f"input/{codec}.avro")).open("wb") as file:
            fastavro.writer(file, SCHEMA, people, codec=codec, sync_interval=200)
        aged(path)
    return sorted(f"{codec} {number}" for codec in ("null", "deflate", "snappy") for number in range(300))


@on_each_backend
@pytest.mark.parametrize("block_size", [137, 1 << 20], ids=["many blocks", "whole files"])
def test_every_record_is_written_once(backend, block_size, names):
    launched(HERE, backend, Splitter__blockSize=block_size, Reader__minReaders=2)
    assert sorted(written()) == names


@pytest.mark.usefixtures("names")
def test_what_is_broken_stops_the_launch_with_its_file_and_place():
    path = Path("input/null.avro").absolute()
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        _, second, third, *_ = (block.offset for block in fastavro.block_reader(file))
    content[third - 1] ^= 1
    path.write_bytes(content)
    aged(path)
    answer = CliRunner().invoke(main, ["launch", HERE, "--once", "--reference"])
    problem = f"{path}: the data block at byte {second} cannot be read: expected sync marker not found"
    assert (answer.exit_code != 0, problem in " ".join(answer.output.split())) == (True, True)


def test_reading_and_writing_are_one_stage():
    assert stages(HERE) == [("Splitter",), ("Reader", "Values", "Writer")]
