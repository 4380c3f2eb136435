"""Records of Avro files come exactly once, however the file is cut; errors name the place of broken data."""

import io
import pickle
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

from dagkit import Block
from dagkit.engine.program.failures import OperatorFailed
from dagkit.testing import Alone, check_every_split_of
from dagkit_operators import AvroBroken, AvroReader, AvroReaderContext, FileChanged, FileSplitterInput, value
from dagkit_operators.filesystem.access import BadFile
from dagkit_operators.formats.avro import MARKER
from tests.engine.cast import Collect, Desk, arrived, chain
from tests.examples import examples
from tests.old_files import old_file

SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [{"name": "number", "type": "long"}, {"name": "text", "type": "string"}],
}
CODECS = ["null", "deflate", "bzip2", "xz", "snappy", "zstandard", "lz4"]


def some(count):
    return [{"number": number, "text": "ä" * (number % 7)} for number in range(count)]


def avro(records, codec="null", schema=SCHEMA, *, block=30):
    """A file of blocks of some bytes each."""
    file = io.BytesIO()
    fastavro.writer(file, schema, records, codec=codec, sync_interval=block)
    return file.getvalue()


def blocks(content):
    return list(fastavro.block_reader(io.BytesIO(content)))


def starts(content):
    """Where the data blocks of a file start."""
    return [block.offset for block in blocks(content)]


def block_of(content, folder, start=0, end=None, number=0):
    path = folder / "file.avro"
    path.write_bytes(content)
    return Block(number, str(path), start, len(content) if end is None else end, facts={"length": len(content)})


def reading(content, folder, *cuts, reader=None, connected=None, **context):
    """A reader that has read the stretches of a file between cuts, one after the other."""
    alone = Alone(reader or AvroReader(reader_context=AvroReaderContext(**context)), connected=connected)
    for number, (start, end) in enumerate(pairwise([0, *cuts, len(content)])):
        alone.work(block_of(content, folder, start, end, number))
    return alone


def values(alone):
    return [record.value for record in alone.sent()]


def read(content, folder, *cuts, chunk_size=64):
    """The values of a file; what is rejected has no receiver."""
    return values(reading(content, folder, *cuts, reader=AvroReader(chunk_size=chunk_size), connected=["messages"]))


@pytest.mark.parametrize("codec", CODECS)
def test_whatever_the_codec_the_records_are_those_of_the_file(codec, tmp_path):
    assert read(avro(some(50), codec), tmp_path) == some(50)


@pytest.mark.gate(1)
@pytest.mark.parametrize("buffer", [5, 4096])
@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.slow
def test_no_split_loses_or_doubles_a_record(codec, buffer, tmp_path):
    content = avro(some(7), codec, block=1)
    positions = range(starts(content)[0] - MARKER, len(content))
    proven = check_every_split_of(AvroReader(chunk_size=buffer), block_of(content, tmp_path), positions=positions)
    assert proven.records == 7
    assert proven.granted > 500


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
    cuts = sorted({cut % len(content) for cut in cuts} - {0})
    assert read(content, tmp_path_factory.mktemp("avro"), *cuts, chunk_size=chunk_size) == some(count)


def test_a_record_bears_the_block_in_which_its_data_block_starts(tmp_path):
    content = avro(some(20))
    first, second, *_ = blocks(content)
    records = reading(content, tmp_path, second.offset).sent()
    assert [record.block_id for record in records] == [0] * first.num_records + [1] * (20 - first.num_records)


def test_values_need_not_be_records(tmp_path):
    assert read(avro([1, None, 3], schema=["null", "long"]), tmp_path) == [1, None, 3]


def broken(content, folder):
    with pytest.raises(AvroBroken) as raised:
        read(content, folder)
    assert str(folder / "file.avro") in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)  # noqa: S301 - our own
    return raised.value


def with_a_broken_marker(codec="null"):
    """A file whose second block has no marker, and where its blocks start."""
    content = avro(some(20), codec)
    places = starts(content)
    end = places[2] - 1
    return content[:end] + bytes([content[end] ^ 1]) + content[end + 1 :], places


@pytest.mark.parametrize("codec", CODECS)
def test_a_marker_that_is_not_there_is_reported_with_its_block(codec, tmp_path):
    content, (_, second, *_) = with_a_broken_marker(codec)
    fault = broken(content, tmp_path)
    assert fault.place == second
    assert fault.problem.endswith(f"the data block at byte {second} cannot be read: expected sync marker not found")
    assert not AvroReaderContext().is_cut_off(io.BytesIO(content), block_of(content, tmp_path))


def test_a_reader_that_begins_behind_what_is_broken_does_not_pass_over_it_unsaid(tmp_path):
    """The block whose marker is broken belongs to one stretch, and that one fails."""
    content, (_, second, *_) = with_a_broken_marker()
    for cut in range(1, len(content), 3):
        with pytest.raises(AvroBroken, match=f"byte {second} "):
            read(content, tmp_path, cut)


@pytest.mark.parametrize("codec", CODECS)
def test_no_byte_of_a_block_can_change_the_count_of_records_unsaid(codec, tmp_path):
    content = avro(some(20), codec)
    place = starts(content)[1]
    changed = content[:place] + bytes([content[place] - 2]) + content[place + 1 :]
    assert broken(changed, tmp_path).place == place


@pytest.mark.parametrize("missing", [1, MARKER, MARKER + 1, 30])
def test_a_file_that_ends_in_a_block_or_in_the_first_number_of_one_is_reported(missing, tmp_path):
    content = avro(some(20))
    fault = broken(content[:-missing], tmp_path)
    assert fault.place == max(start for start in starts(content) if start < len(content) - missing)
    content = avro(some(20))
    place = starts(content)[2]
    fault = broken(content[:place] + b"\x80", tmp_path)
    assert (fault.place, fault.reason) == (place, "it ends too soon")


NO_AVRO = [b"one\ntwo\n", b"Obj\x01", b"Obj\x01\x04\x16avro.schema", b"Obj\x02" + avro(some(20))[4:]]


@pytest.mark.parametrize("content", NO_AVRO)
def test_what_is_no_avro_file_is_reported(content, tmp_path):
    assert "this is no Avro container file" in str(broken(content, tmp_path))


def test_a_file_that_was_cut_meanwhile_is_reported_as_such(tmp_path):
    block = block_of(avro(some(20)), tmp_path)
    Path(block.path).write_bytes(avro(some(20))[:-5])
    with pytest.raises(FileChanged, match="had"):
        Alone(AvroReader()).work(block)


@dataclass
class Reading:
    number: int
    text: str | None


@pytest.mark.parametrize(
    ("context", "wanted"),
    [
        ({"record_type": Reading}, [Reading(**one) for one in some(20)]),
        ({"columns": ("number",)}, [{"number": number} for number in range(20)]),
        ({"columns": ("text",), "where": value.field("number") > 17}, [{"text": "ä" * 4}, {"text": "ä" * 5}]),
        ({"where": pc.field("number") > 18}, some(20)[19:]),
    ],
)
def test_records_are_typed_and_selected_while_they_are_read(context, wanted, tmp_path):
    assert values(reading(avro(some(20)), tmp_path, **context)) == wanted


def test_a_column_may_name_a_type_that_a_column_left_out_defines(tmp_path):
    kind = {"type": "enum", "name": "Kind", "symbols": ["a", "b"]}
    fields = [{"name": "first", "type": kind}, {"name": "second", "type": "Kind"}]
    content = avro([{"first": "a", "second": "b"}], schema={"type": "record", "name": "R", "fields": fields})
    assert values(reading(content, tmp_path, columns=("second",))) == [{"second": "b"}]


def test_a_record_that_its_type_refuses_is_rejected(tmp_path):
    @dataclass
    class Odd:
        number: Annotated[int, Field(lt=2)]

    content = avro(some(3), block=1000)
    (rejected,) = reading(content, tmp_path, record_type=Odd).sent("rejected")
    assert (rejected.start, rejected.text) == (starts(content)[0], "{'number': 2}")
    assert rejected.reason == "number: Input should be less than 2"


@pytest.mark.parametrize("context", [AvroReaderContext(), AvroReaderContext(record_type=Reading)])
def test_a_record_that_cannot_be_converted_is_rejected_with_the_place_of_its_data_block(context, tmp_path):
    class Numbers(AvroReader):
        kind = "test.avro-numbers/1"

        def convert_to_record(self, content: Any) -> int:
            number = content.number if isinstance(content, Reading) else content["number"]
            if number % 3 == 2:
                raise ValueError("odd")
            return number

    content = avro(some(9))
    reader = reading(content, tmp_path, reader=Numbers(reader_context=context))
    places = [block.offset for block in blocks(content) for one in block if one["number"] % 3 == 2]
    assert len(set(places)) > 1
    assert [one.start for one in reader.sent("rejected")] == places
    assert values(reader) == [0, 1, 3, 4, 6, 7]


@pytest.mark.parametrize("content", [avro(some(3)), avro([1], schema=["null", "long"])], ids=["records", "numbers"])
def test_a_file_without_the_wanted_columns_is_an_error(content, tmp_path):
    with pytest.raises(BadFile, match=r"avro: (the file has no column 'numbr'|its values are no records)"):
        reading(content, tmp_path, columns=("numbr",))


# ---- with the output `rejected` connected


def rejecting(content, folder, *cuts):
    reader = reading(content, folder, *cuts)
    return values(reader), [(bad.start, bad.reason) for bad in reader.sent("rejected")]


@pytest.mark.parametrize("codec", CODECS)
def test_a_broken_data_block_is_rejected_and_the_others_are_read(codec, tmp_path):
    content, (_, second, third, fourth, *_) = with_a_broken_marker(codec)
    first, _, _, *rest = blocks(avro(some(20), codec))
    expected = [value for block in (first, *rest) for value in block]
    for cut in (second, second + 1, third, third + 1, fourth):
        assert rejecting(content, tmp_path, cut) == (expected, [(second, "expected sync marker not found")])


def test_a_file_that_ends_in_a_data_block_is_read_up_to_it_and_one_that_is_no_avro_is_rejected_as_a_whole(tmp_path):
    content = avro(some(20))
    read, ((start, _),) = rejecting(content[:-5], tmp_path)
    last = blocks(content)[-1]
    assert (read, start) == (some(20)[: -last.num_records], last.offset)
    read, ((start, _),) = rejecting(b"one\ntwo\n", tmp_path)
    assert (read, start) == ([], 0)


class Keep(Collect):
    kind = "cast.keep-avro/1"

    def process(self, item: Any) -> None:
        self.arrived.append(item.value["number"])


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-1] + bytes([content[-1] ^ 1]), lambda content: content[:-5], lambda _: b"x"]
)
def test_a_block_that_waits_is_left_after_its_file_was_replaced_by_a_longer_one(damage, tmp_path):
    """The block sees only the beginning of the copy, which is found as a new file."""
    path = tmp_path / "file.avro"
    find = FileSplitterInput(scanner={"files": [str(path)]})
    desk = Desk(tmp_path, chain(find=find, read=AvroReader(), collect=Keep()))
    old_file(path, damage(avro(some(3))))
    with pytest.raises(OperatorFailed, match="connect the output `rejected`") as raised:
        desk.run()
    assert raised.value.code == "avro-broken"
    old_file(path, avro(some(9)))
    assert arrived(desk.run()) == list(range(9))
    assert desk.faults() == []
