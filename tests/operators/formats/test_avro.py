"""Records of Avro files come exactly once, however the file is cut; errors name the place of broken data."""

import io
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import fastavro
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from dagkit import Block, Dag
from dagkit.engine.failures import OperatorFailed
from dagkit.testing import Alone, check_every_split_of
from dagkit_operators import (
    AvroBroken,
    AvroReader,
    AvroReaderContext,
    ColumnsMismatched,
    FileChanged,
    FileSplitterInput,
    value,
)
from dagkit_operators.formats.avro import MARKER
from tests.engine.cast import Collect, Desk, arrived
from tests.examples import examples

SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [{"name": "number", "type": "long"}, {"name": "text", "type": "string"}],
}
CODECS = ["null", "deflate", "bzip2", "xz", "snappy", "zstandard", "lz4"]


def some(count: int) -> list[dict[str, Any]]:
    return [{"number": number, "text": "ä" * (number % 7)} for number in range(count)]


def avro(records: Sequence[Any], codec: str = "null", schema: Any = SCHEMA, *, block: int = 30) -> bytes:
    """A file of blocks of some bytes each."""
    file = io.BytesIO()
    fastavro.writer(file, schema, records, codec=codec, sync_interval=block)
    return file.getvalue()


def starts(content: bytes) -> list[int]:
    """Where the data blocks of a file start."""
    return [block.offset for block in fastavro.block_reader(io.BytesIO(content))]


def read(content: bytes, *stretches: tuple[int, int], folder: Path, chunk_size: int = 64) -> list[Any]:
    """The values of stretches of a file, one after the other."""
    path = folder / "file.avro"
    path.write_bytes(content)
    reader = Alone(AvroReader(chunk_size=chunk_size), connected=["messages"])
    for number, (start, end) in enumerate(stretches or [(0, len(content))]):
        reader.work(Block(number, str(path), start, end, facts={"length": len(content)}))
    return [record.value for record in reader.sent()]


@pytest.mark.parametrize("codec", CODECS)
def test_whatever_the_codec_the_records_are_those_of_the_file(codec, tmp_path):
    assert read(avro(some(50), codec), folder=tmp_path) == some(50)


@pytest.mark.gate(1)
@pytest.mark.parametrize("buffer", [5, 4096])
@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.slow
def test_no_split_loses_or_doubles_a_record(codec, buffer, tmp_path):
    content = avro(some(7), codec, block=1)
    path = tmp_path / "file.avro"
    path.write_bytes(content)
    first = starts(content)[0]
    proven = check_every_split_of(
        AvroReader(chunk_size=buffer),
        Block(0, str(path), 0, len(content), facts={"length": len(content)}),
        positions=range(first - MARKER, len(content)),
    )
    assert proven.records == 7
    assert proven.granted > 500


@pytest.mark.parametrize("codec", ["null", "zstandard"])
def test_a_cut_anywhere_gives_the_same_records(codec, tmp_path):
    content = avro(some(20), codec)
    assert len(starts(content)) > 3
    for cut in range(1, len(content)):
        assert read(content, (0, cut), (cut, len(content)), folder=tmp_path) == some(20), cut


@settings(max_examples=examples(60))
@given(
    count=st.integers(0, 60),
    codec=st.sampled_from(["null", "deflate", "snappy"]),
    block=st.integers(1, 100),
    cuts=st.lists(st.integers(0, 4000), max_size=6),
    chunk_size=st.integers(1, 100),
)
def test_any_cuts_of_any_file_give_the_same_records(*, count, codec, block, cuts, chunk_size, tmp_path_factory):
    content = avro(some(count), codec, block=block)
    bounds = sorted({0, *(cut % len(content) for cut in cuts), len(content)})
    stretches = list(pairwise(bounds))
    folder = tmp_path_factory.mktemp("avro")
    assert read(content, *stretches, folder=folder, chunk_size=chunk_size) == some(count)


def test_a_record_bears_the_block_in_which_its_data_block_starts(tmp_path):
    content = avro(some(20))
    path = tmp_path / "file.avro"
    path.write_bytes(content)
    reader, second = Alone(AvroReader()), starts(content)[1]
    reader.work(Block(4, str(path), 0, second))
    reader.work(Block(5, str(path), second, len(content)))
    first = next(iter(fastavro.block_reader(io.BytesIO(content)))).num_records
    assert [record.block_id for record in reader.sent()] == [4] * first + [5] * (20 - first)


def test_values_need_not_be_records(tmp_path):
    assert read(avro([1, None, 3], schema=["null", "long"]), folder=tmp_path) == [1, None, 3]


def test_a_file_without_records_is_read_to_its_end(tmp_path):
    assert read(avro([]), folder=tmp_path) == []


def broken(content: bytes, folder: Path) -> AvroBroken:
    with pytest.raises(AvroBroken) as raised:
        read(content, folder=folder)
    assert str(folder / "file.avro") in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)  # noqa: S301 - our own
    return raised.value


@pytest.mark.parametrize("codec", CODECS)
def test_a_marker_that_is_not_there_is_reported_with_its_block(codec, tmp_path):
    content = bytearray(avro(some(20), codec))
    _, second, third, *_ = starts(bytes(content))
    content[third - 1] ^= 1
    fault = broken(bytes(content), tmp_path)
    assert fault.place == second
    assert fault.problem.endswith(f"the data block at byte {second} cannot be read: expected sync marker not found")


def test_a_reader_that_begins_behind_what_is_broken_does_not_pass_over_it_unsaid(tmp_path):
    """The block whose marker is broken belongs to one stretch, and that one fails."""
    content = bytearray(avro(some(20)))
    _, second, third, *_ = starts(bytes(content))
    content[third - 1] ^= 1
    for cut in range(1, len(content)):
        stretches = [(0, cut), (cut, len(content))]
        with pytest.raises(AvroBroken, match=f"byte {second} "):
            read(bytes(content), *stretches, folder=tmp_path)


@pytest.mark.parametrize("codec", CODECS)
def test_no_byte_of_a_block_can_change_the_count_of_records_unsaid(codec, tmp_path):
    content = avro(some(20), codec)
    place = starts(content)[1]
    count = content[place]
    changed = content[:place] + bytes([count - 2]) + content[place + 1 :]
    assert broken(changed, tmp_path).place == place


@pytest.mark.parametrize("missing", [1, MARKER, MARKER + 1, 30])
def test_a_file_that_ends_in_a_block_is_reported(missing, tmp_path):
    content = avro(some(20))
    fault = broken(content[:-missing], tmp_path)
    assert fault.place == max(start for start in starts(content) if start < len(content) - missing)


def test_a_file_that_ends_in_the_first_number_of_a_block_is_reported(tmp_path):
    content = avro(some(20))
    place = starts(content)[2]
    fault = broken(content[:place] + b"\x80", tmp_path)
    assert (fault.place, fault.reason) == (place, "it ends too soon")


@pytest.mark.parametrize("content", [b"one\ntwo\n", b"Obj\x01", b"Obj\x01\x04\x16avro.schema"])
def test_what_is_no_avro_file_is_reported(content, tmp_path):
    assert "this is no Avro container file" in str(broken(content, tmp_path))


def test_a_file_that_was_cut_meanwhile_is_reported_as_such(tmp_path):
    content = avro(some(20))
    path = tmp_path / "file.avro"
    path.write_bytes(content[:-5])
    with pytest.raises(FileChanged, match="had"):
        Alone(AvroReader()).work(Block(0, str(path), 0, len(content), facts={"length": len(content)}))


@dataclass
class Reading:
    number: int
    text: str | None


def test_records_are_typed_and_selected_while_they_are_read(tmp_path):
    path = tmp_path / "file.avro"
    path.write_bytes(avro(some(20)))
    block = Block(0, str(path), 0, path.stat().st_size)
    for context, wanted in (
        (AvroReaderContext(record_type=Reading), [Reading(**one) for one in some(20)]),
        (AvroReaderContext(columns=("number",)), [{"number": number} for number in range(20)]),
        (
            AvroReaderContext(columns=("text",), where=value.field("number") > 17),
            [{"text": "ä" * 4}, {"text": "ä" * 5}],
        ),
        (AvroReaderContext(where=pc.field("number") > 18), some(20)[19:]),
    ):
        reader = Alone(AvroReader(reader_context=context))
        reader.work(block)
        assert [record.value for record in reader.sent()] == wanted


def test_a_column_may_name_a_type_that_a_column_left_out_defines(tmp_path):
    kind = {"type": "enum", "name": "Kind", "symbols": ["a", "b"]}
    fields = [{"name": "first", "type": kind}, {"name": "second", "type": "Kind"}]
    path = tmp_path / "file.avro"
    path.write_bytes(avro([{"first": "a", "second": "b"}], schema={"type": "record", "name": "R", "fields": fields}))
    reader = Alone(AvroReader(reader_context=AvroReaderContext(columns=("second",))))
    reader.work(Block(0, str(path), 0, path.stat().st_size))
    assert [record.value for record in reader.sent()] == [{"second": "b"}]


def test_a_record_that_its_type_refuses_is_rejected(tmp_path):
    @dataclass
    class Odd:
        number: Annotated[int, Field(lt=2)]

    content = avro(some(3), block=1000)
    path = tmp_path / "file.avro"
    path.write_bytes(content)
    reader = Alone(AvroReader(reader_context=AvroReaderContext(record_type=Odd)))
    reader.work(Block(0, str(path), 0, len(content)))
    (rejected,) = reader.sent("rejected")
    assert (rejected.start, rejected.text) == (starts(content)[0], "{'number': 2}")
    assert rejected.reason == "number: Input should be less than 2"


@pytest.mark.parametrize("context", [AvroReaderContext(), AvroReaderContext(record_type=Reading)])
def test_a_record_that_cannot_be_converted_is_rejected_with_the_place_of_its_data_block(context, tmp_path):
    class Numbers(AvroReader):
        kind = "test.avro-numbers/1"

        def convert_to_record(self, content: Any) -> int:
            number: int = content.number if isinstance(content, Reading) else content["number"]
            if number % 3 == 2:
                raise ValueError("odd")
            return number

    content = avro(some(9))
    path = tmp_path / "file.avro"
    path.write_bytes(content)
    reader = Alone(Numbers(reader_context=context))
    reader.work(Block(0, str(path), 0, len(content)))
    parts: list[Any] = list(fastavro.block_reader(io.BytesIO(content)))
    places = [part.offset for part in parts for one in part if one["number"] % 3 == 2]
    assert len(set(places)) > 1
    assert [one.start for one in reader.sent("rejected")] == places
    assert [record.value for record in reader.sent()] == [0, 1, 3, 4, 6, 7]


@pytest.mark.parametrize("schema", [None, ["null", "long"]])
def test_a_file_without_the_wanted_columns_is_an_error(schema, tmp_path):
    path = tmp_path / "file.avro"
    path.write_bytes(avro(some(3)) if schema is None else avro([1], schema=schema))
    reader = Alone(AvroReader(reader_context=AvroReaderContext(columns=("numbr",))))
    with pytest.raises(ColumnsMismatched, match=r"avro: (the file has no column 'numbr'|its values are no records)"):
        reader.work(Block(0, str(path), 0, path.stat().st_size))


# ---- with the output `rejected` connected


def rejecting(*stretches: tuple[int, int], path: Path) -> tuple[list[Any], list[tuple[int | None, str]]]:
    """The values of the stretches of a file, and what was rejected."""
    reader = Alone(AvroReader())
    for number, (start, end) in enumerate(stretches):
        reader.work(Block(number, str(path), start, end, facts={"length": stretches[-1][1]}))
    return [record.value for record in reader.sent()], [(bad.start, bad.reason) for bad in reader.sent("rejected")]


@pytest.mark.parametrize("codec", CODECS)
def test_a_broken_data_block_is_rejected_and_the_others_are_read(codec, tmp_path):
    content = bytearray(avro(some(20), codec))
    second, third, fourth = starts(bytes(content))[1:4]
    content[third - 1] ^= 1
    (path := tmp_path / "file.avro").write_bytes(content)
    data = [list(block) for block in fastavro.block_reader(io.BytesIO(avro(some(20), codec)))]
    for cut in (0, second, second + 1, third, third + 1, fourth):
        values, rejected = rejecting((0, cut), (cut, len(content)), path=path)
        assert rejected == [(second, "expected sync marker not found")]
        assert values == [value for number, block in enumerate(data) if number not in {1, 2} for value in block]


def test_a_file_that_ends_in_a_data_block_is_read_up_to_it(tmp_path):
    content = avro(some(20))[:-5]
    (path := tmp_path / "file.avro").write_bytes(content)
    values, ((start, _),) = rejecting((0, len(content)), path=path)
    assert start == starts(avro(some(20)))[-1]
    last = list(fastavro.block_reader(io.BytesIO(avro(some(20)))))[-1]
    assert values == some(20)[: -last.num_records]


def test_a_file_that_is_no_avro_is_rejected_as_a_whole(tmp_path):
    (path := tmp_path / "file.avro").write_bytes(b"one\ntwo\n")
    values, ((start, _),) = rejecting((0, 8), path=path)
    assert (values, start) == ([], 0)


class Keep(Collect):
    """Keeps the numbers of records."""

    kind = "cast.keep-avro/1"

    def process(self, item: Any) -> None:
        self.arrived.append(item.value["number"])


@pytest.mark.parametrize("damage", [lambda content: content[:-1] + b"?", lambda content: content[:-5], lambda _: b"x"])
def test_a_block_that_waits_is_left_after_its_file_was_replaced_by_a_longer_one(damage, tmp_path):
    """The block sees only the beginning of the copy, which is found as a new file."""
    path = tmp_path / "file.avro"

    def draw(dag: Dag, conf: object) -> None:
        find = dag.add_operator("find", FileSplitterInput(scanner={"files": [str(path)]}))
        find >> dag.add_operator("read", AvroReader()) >> dag.add_operator("collect", Keep())

    path.write_bytes(damage(avro(some(3))))
    with pytest.raises(OperatorFailed, match="connect the output `rejected`") as raised:
        Desk(tmp_path, draw).run()
    assert raised.value.code == "avro-broken"
    path.write_bytes(avro(some(9)))
    desk = Desk(tmp_path, draw)
    assert arrived(desk.run()) == list(range(9))
    assert desk.faults() == []
