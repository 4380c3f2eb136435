"""Whatever is written as frames is read as it was: equal values of equal types; batches are routed as items are."""

import dataclasses
import math
import struct
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagkit import Batch
from dagkit.api.partitioning import PartitionKeys, assign_keys
from dagkit.api.streams import StreamCodec
from dagkit.backends.spark.shipping.frames import LARGEST_BYTES, Frames, Writing
from dagkit.backends.spark.shipping.shipping import Known
from dagkit.engine.program.program import Keying, Target
from dagkit.plan.model import Routing
from dagkit.schema.columns import Arrowed, Column, Constant, Lines, Listed
from dagkit.schema.routing import column_codes, routing_code

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    x: Any
    y: Any


@dataclass
class Named:
    name: str
    at: Point


@dataclass
class Doubled:
    value: int

    def __post_init__(self) -> None:
        self.value *= 2


@dataclass
class Tagged(dict):
    tag: str


@dataclass
class Word:
    text: str


class Loud(Word):
    """What calling it with its fields would change, and its own way of being made hides that."""

    def __init__(self, text: str) -> None:
        super().__init__(text.upper() + "!")


@dataclass(init=False)
class Quiet:
    text: str

    def __init__(self, text: str) -> None:
        self.text = text + "."


@dataclass
class Counted:
    text: str

    def __setattr__(self, name: str, value: str) -> None:
        super().__setattr__(name, value + "1")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Boxed(Generic[T]):
    held: T


@dataclass(slots=True)
class Bare:
    text: str


class Marked(Bare):
    """More than its fields, and no dictionary that shows it."""

    __slots__ = ("mark",)
    mark: str


class Doubling:
    def __get__(self, one: Any, of: Any = None) -> Any:
        return 0 if one is None else one.__dict__["number"]

    def __set__(self, one: Any, value: int) -> None:
        one.__dict__["number"] = 2 * value


@dataclass
class Twofold:
    number: Any = Doubling()


class Colour(Enum):
    RED = 1


class Reversed(StreamCodec[str]):
    def to_bytes(self, item: str) -> bytes:
        return item[::-1].encode()

    def from_bytes(self, data: bytes) -> str:
        return data.decode()[::-1]

    def get_partition(self, item: str) -> int:
        return len(item)


def target(codec: StreamCodec[Any] | None = None, **routed: Any) -> Target:
    return Target(0, ("to", "input"), Routing.KEYED, routed.pop("slots", 1), 1, Keying(codec, **routed))


def frames(codec: StreamCodec[Any] | None = None) -> Frames:
    return Frames(Known([Point, Named]), {0: target(codec)})


def carried(batch: Batch[Any], codec: StreamCodec[Any] | None = None) -> list[Any]:
    """The items as they come out on the other side, several frames in one row."""
    return [item for arrived in read_again(frames(codec), batch) for item in arrived.batch.items()]


def read_again(both: Frames, batch: Batch[Any], element: Any = None) -> Any:
    row = b"".join(bytes(piece) for frame in both.of(batch, 0, element) for piece in frame.pieces(0))
    return both.read(pa.py_buffer(row))


def same(left: Any, right: Any) -> bool:
    """Equal, and of equal types all the way down; what is no number equals what is no number."""
    if type(left) is not type(right):
        return False
    if dataclasses.is_dataclass(left) and not isinstance(left, type):
        return all(same(getattr(left, f.name), getattr(right, f.name)) for f in dataclasses.fields(left))
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right) or (math.isnan(left) and math.isnan(right))
    return bool(left == right)


simple = st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | st.text(st.characters())
texts = st.text(st.characters(codec=None))
values = st.one_of(simple, texts, st.tuples(simple, simple), st.sampled_from(Colour))
points = st.builds(Point, values, values)
alike = st.sampled_from(
    [st.integers(-(2**63), 2**63 - 1), st.integers(), st.booleans(), st.floats(), texts, st.binary()]
)
columns = alike.flatmap(lambda kind: st.lists(st.one_of(kind, kind, kind, st.none())))
named = st.builds(Named, st.text(), st.builds(Point, st.integers(0, 9), st.text()))
items = st.one_of(columns, st.lists(values), st.lists(points), st.lists(named), st.lists(st.one_of(points, named)))


@given(items)
def test_items_come_back_as_they_were(listed):
    assert same(carried(Batch.of(listed)), list(listed))


@given(st.lists(st.tuples(columns, columns)).map(lambda pairs: [p for a, b in pairs for p in zip(a, b, strict=False)]))
def test_columns_come_back_as_they_were(pairs):
    batch = Batch({"x": Listed([x for x, _ in pairs]), "y": Listed([y for _, y in pairs])}, Point)
    assert same(carried(batch), [Point(x, y) for x, y in pairs])


@pytest.mark.parametrize("value", [None, True, 1, 1.0, -0.0, 2**70, "\udc80", b"x", Colour.RED, (1, "a")])
def test_a_constant_keeps_its_type(value):
    both = frames()
    for constant in (value, 1, True, 1.0):  # equal ones must not be taken for each other
        ((_, read, _),) = read_again(both, Batch({"x": Listed(["a", "b"]), "y": Constant(constant, 2)}, Point))
        assert same(list(read.items()), [Point("a", constant), Point("b", constant)])


def lines(text: bytes) -> Lines:
    return Lines(pa.array(text.splitlines(keepends=True), pa.binary()))


def test_lines_travel_with_their_delimiters():
    both = frames()
    batch = Batch({"x": Constant(7, 3), "y": lines(b"one\n\xff\n\n").sliced(0, 3)}, Point)
    (frame,) = both.of(batch, 0)
    ((_, read, _),) = read_again(both, batch)
    assert frame.writing is Writing.ARROW
    assert isinstance(read.columns["x"], Constant)
    assert isinstance(read.columns["y"], Lines)
    assert bytes(read.columns["y"].content) == b"one\n\xff\n\n"
    assert list(read.items()) == [Point(7, "one"), Point(7, "\udcff"), Point(7, "")]


@pytest.mark.parametrize("count", [3, LARGEST_BYTES // 4])
def test_lines_as_they_were_read_travel_with_their_place(count):
    both = frames()
    column = Lines(pa.array([b"abcdefg\n"] * count), base=100)
    batch = Batch({"x": Constant(7, count, "in/a"), "y": column}, Point)
    sent = [frame for whole in (batch, batch.where(pa.array([True] * count))) for frame in both.of(whole, 0)]
    places = []
    for frame in sent:
        ((_, read, _),) = both.read(pa.py_buffer(b"".join(map(bytes, frame.pieces(0)))))
        constant = read.columns["x"]
        assert isinstance(constant, Constant)
        assert constant.path == "in/a"
        places.append(read.columns["y"].starts())
    known = list(range(100, 100 + 8 * count, 8)) if count == 3 else None
    assert places == [known, *[None] * (len(sent) - 1)]


def with_more(made: Any, **more: Any) -> Any:
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_what_is_more_than_its_fields_is_pickled():
    made = (
        [Doubled(2)],
        [with_more(Named("a", Point(1, 2)), more=3)],
        [Tagged("t")],
        [with_more(Marked("hi"), mark="m")],
    )
    made[2][0]["key"] = 1
    doubled, loose, tagged, marked = (carried(Batch.of(one))[0] for one in made)
    assert (doubled.value, loose.more, dict(tagged)) == (4, 3, {"key": 1})
    assert (type(marked), marked.text, marked.mark) == (Marked, "hi", "m")


@pytest.mark.parametrize("made", [Loud("hi"), Quiet("hi"), Counted("hi"), Twofold(3)], ids=repr)
def test_what_calling_it_with_its_fields_would_change_is_pickled(made):
    assert same(carried(Batch.of([made])), [made])


@pytest.mark.parametrize("made", [Word("hi"), Point(1, 2), Named("a", Point(1, 2)), Boxed(7)], ids=repr)
def test_what_is_its_fields_and_nothing_else_is_written_as_columns(made):
    (frame,) = frames().of(Batch.of([made, made]), 0)
    assert frame.writing is Writing.ARROW
    assert same(carried(Batch.of([made])), [made])


def test_a_codec_writes_the_items_itself():
    (frame,) = frames(Reversed()).of(Batch.of(["abc", "ü"]), 0)
    assert frame.writing is Writing.CODED
    assert b"cba" in bytes(frame.content)
    assert carried(Batch.of(["abc", "ü"]), Reversed()) == ["abc", "ü"]


@pytest.mark.parametrize("make", [str, lambda text: (text, 1)], ids=["as Arrow", "as a pickle"])
def test_large_batches_are_split(make):
    listed = [make(f"{number:0>10000}") for number in range(1500)]
    written = list(frames().of(Batch.of(listed), 0))
    assert len(written) > 2
    assert max(memoryview(frame.content).nbytes for frame in written) <= LARGEST_BYTES + 1000
    assert carried(Batch.of(listed)) == listed


keys = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1)), st.lists(st.integers()), st.lists(texts), st.lists(st.binary())
)


def forms(listed: list[Any]) -> list[Column]:
    """The same values in every form that a column can have."""
    made: list[Column] = [Listed(listed)]
    try:
        made += [Arrowed(pa.array(listed)), Arrowed(pa.array([None, *listed]).slice(1)), Arrowed(pa.array(listed * 2))]
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
        return made
    if listed and all(type(one) is str and "\n" not in one for one in listed):
        made.append(Lines(pa.array([one.encode() + b"\n" for one in listed], pa.binary())))
    return [*made, *(Constant(one, 3) for one in listed[:1])]


@given(keys)
def test_a_column_is_routed_as_its_values_are(listed):
    for column in forms(listed):
        assert column_codes(column).tolist() == [routing_code(value) & 0xFFFFFFFF for value in column.values()]


def test_lines_that_are_no_text_are_routed_as_the_texts_that_they_become():
    column = lines(b"a\n\xff\xfe\n")
    assert column_codes(column).tolist() == [routing_code(value) for value in column.values()]


@pytest.mark.parametrize(
    ("routing", "slots"),
    [
        (Routing.STRAIGHT, [[1], [1], [1], [1]]),
        (Routing.GATHERED, [[0], [0], [0], [0]]),
        (Routing.DISTRIBUTED, [[0], [1], [2], [0]]),
        (Routing.BROADCAST, [[0, 1, 2]] * 4),
    ],
)
def test_a_sender_shares_a_batch_out_by_its_routing(routing, slots):
    """It is the second of three, and has sent five items before."""
    routed, batch = dataclasses.replace(target(slots=3), routing=routing), Batch.of([0, 1, 2, 3])
    shares = {slot: list(share.items()) for slot, share in routed.shares(batch, 1, 5)}
    assert shares == {slot: owned for slot in range(3) if (owned := [n for n in range(4) if slot in slots[n]])}


WIDE = [PartitionKeys(0xFFFFFF, frozenset({1, 5, 7})), PartitionKeys(0xFFFFFF, frozenset({2}))]
SHARED = [PartitionKeys(3, frozenset({0, 1})), PartitionKeys(3, frozenset({1, 2, 3}))]


@pytest.mark.parametrize("keys", [assign_keys(1), assign_keys(2), assign_keys(5), WIDE, SHARED])
@pytest.mark.parametrize("constant", [False, True])
def test_a_batch_is_shared_out_as_its_items_are(keys, constant):
    numbers = [5] * 40 if constant else list(range(-20, 20))
    column = Constant(5, 40) if constant else Arrowed(pa.array(numbers))
    routed = target(field="x", key=lambda point: point.x, slots=len(keys))
    routed = dataclasses.replace(routed, keys=tuple(keys))
    batch = Batch({"x": column, "y": Listed(list(map(str, numbers)))}, Point)
    shares = {slot: list(share.items()) for slot, share in routed.shares(batch, 0, 0)}
    expected = {slot: [item for item in batch.items() if slot in routed.owners(item)] for slot in range(len(keys))}
    assert shares == {slot: owned for slot, owned in expected.items() if owned}


def origins(
    batch: Batch[Any], codec: StreamCodec[Any] | None = None, *, placed: bool = True, element: Any = "in/a"
) -> list[Any]:
    """The element and the positions that come out on the other side, and how many frames say where they were read."""
    both = Frames(Known([Point, Named]), {0: dataclasses.replace(target(codec), placed=placed)})
    sent = list(both.of(batch, 0, element))
    read = [(each.element, list(each.batch.places() or ())) for each in read_again(both, batch, element)]
    return [sum(bool(frame.origin) for frame in sent), *read]


AT = [5, 9, 70]


@pytest.mark.parametrize(
    ("batch", "codec"),
    [
        (Batch.of_column(Listed(["a", "b", "c"], lambda: AT)), None),
        (Batch.of_column(Listed([object, None, 1], lambda: AT)), None),
        (Batch.of_column(Listed(["a", "b", "c"], lambda: AT)), Reversed()),
        (Batch({"x": Constant(7, 3), "y": Listed(["a", "b", "c"], lambda: AT)}, Point), None),
        (Batch.of_column(Lines(pa.array([b"a\n"] * 3, pa.binary()), starts=lambda: AT)), None),
        (Batch.of_column(Lines(pa.array([b"abc\n", b"x" * 60 + b"\n", b"\n"], pa.binary()), base=5)), None),
    ],
    ids=["arrow", "pickled", "by a codec", "fields", "lines that were filtered", "lines as they were read"],
)
def test_the_origin_travels_if_the_target_takes_it_along(batch, codec):
    assert origins(batch, codec) == [1, ("in/a", AT)]
    is_free = isinstance(batch.columns.get("item"), Lines) and batch.columns["item"].base is not None
    assert origins(batch, codec, placed=False) == [0, (None, AT if is_free else [])]


def test_the_origin_of_a_part_of_a_file_travels_once():
    batch: Batch[Any] = Batch.of_column(Listed(["a", "b"], part_start=400))
    assert origins(batch) == [1, ("in/a", [400, 400])]


@pytest.mark.parametrize("element", [0, "", ()])
def test_an_element_that_is_zero_or_empty_is_an_origin(element):
    assert origins(Batch.of([1]), element=element) == [1, (element, [])]


@pytest.mark.parametrize("made", ["{:0999}".format, lambda number: (f"{number:0999}",)], ids=["arrow", "pickled"])
def test_each_frame_of_a_large_batch_has_its_origins(made):
    count = LARGEST_BYTES // 400
    batch: Batch[Any] = Batch.of_column(Listed(list(map(made, range(count))), lambda: range(count)))
    frames, *read = origins(batch)
    assert frames == len(read) > 1
    assert [place for _, places in read for place in places] == list(range(count))
