"""The algebra of payload types: what may flow where, what a type variable comes to stand for, how a type is spelled."""

import enum
import typing
from collections import Counter, OrderedDict, deque
from collections.abc import (
    Callable,
    Collection,
    Generator,
    ItemsView,
    Iterable,
    KeysView,
    Mapping,
    MutableSequence,
    Sequence,
)
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    Protocol,
    SupportsInt,
    TypedDict,
    TypeVar,
    Union,
)

import pytest
from pydantic import BaseModel, ConfigDict

from dagkit.schema import assignable, bind, identity, is_known, spelled, substitute

T = TypeVar("T")
K = TypeVar("K")


class Animal: ...


class Dog(Animal): ...


class Puppy(Dog): ...


class Cat(Animal): ...


Pet = TypeVar("Pet", bound=Animal)
Text = TypeVar("Text", str, bytes)
UserId = NewType("UserId", str)


class Box(Generic[T]):
    """A generic of our own."""


class DogBox(Box[Dog]): ...


class Lifted(Box[list[T]]): ...


class Pair(Generic[K, T]): ...


class Swapped(Pair[T, K]): ...


class Words(list[str]): ...


class Index(dict[str, Dog]): ...


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Named(Protocol):
    name: str


class Sized(Protocol):
    def __len__(self) -> int: ...


class Barks(Protocol):
    def bark(self) -> None: ...


@dataclass
class Record:
    name: str


@dataclass(frozen=True, slots=True)
class Slotted:
    name: str


class Model(BaseModel):
    name: str


class Row(NamedTuple):
    name: str


class Nameless:
    def __len__(self) -> int:
        return 0


class Terrier(Dog):
    def bark(self) -> None: ...


class Small(TypedDict):
    x: int


class Large(Small):
    y: str


class Other(TypedDict):
    y: str


class Envelope(BaseModel, Generic[T]):
    """A generic pydantic model: its subscripts are classes of their own."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    body: T


FITS: list[tuple[Any, Any]] = [
    # alike, wider, anything
    (int, int),
    (Dog, Animal),
    (Puppy, Animal),
    (Dog, object),
    (None, object),
    (Dog, Any),
    (Any, Dog),
    (None, None),
    (None, type(None)),
    # numbers
    (int, float),
    (int, complex),
    (float, complex),
    (bool, int),
    (bool, float),
    (Level, int),
    (Level, float),
    (bytearray, bytes),
    # unions
    (int, int | str),
    (int | str, str | int),
    (int, Union[int, str]),  # noqa: UP007 - the old spelling is the same type
    (bool | int, int),
    (int | str, int | str | None),
    (Dog | Cat, Animal),
    (Dog | None, Animal | None),
    (None, int | None),
    (int, Optional[int]),  # noqa: UP045
    (Dog, Optional[Animal]),  # noqa: UP045
    (list[Dog] | Dog, list[Animal] | Animal),
    # literals
    (Literal["a"], str),
    (Literal["a"], Literal["a", "b"]),
    (Literal["a", "b"], Literal["b", "a"]),
    (Literal[1], int),
    (Literal[1], float),
    (Literal["a", 1], str | int),
    (Literal["a"], Literal["a"] | None),
    (Literal["a", None], str | None),  # noqa: PYI061 - nothing as a literal
    (Literal[Colour.RED], Colour),
    # what does not change the values
    (Annotated[int, "metres"], int),
    (int, Annotated[int, "metres"]),
    (Annotated[Dog, 1], Annotated[Animal, 2]),
    (Annotated[int | None, 1], Optional[int]),  # noqa: UP045
    (list[Annotated[int, 1]], list[int]),
    (UserId, str),
    (str, UserId),
    (list[UserId], list[str]),
    # generics
    (list[int], list[int]),
    (list[int], typing.List[int]),  # noqa: UP006
    (list[Dog], list[Animal]),
    (list[Dog], Sequence[Animal]),
    (list[Dog], Iterable[Animal]),
    (list[Dog], Collection[Dog]),
    (set[int], AbstractSet[int]),
    (frozenset[int], AbstractSet[float]),
    (deque[int], MutableSequence[int]),
    (list[int], list),
    (list, list[int]),
    (list[Any], list[int]),
    (list[int], list[Any]),
    (dict[str, Dog], Mapping[str, Animal]),
    (OrderedDict[str, int], dict[str, int]),
    (Mapping[str, int], Mapping[str, int]),
    (Words, list[str]),
    (Words, Sequence[str]),
    (Index, Mapping[str, Animal]),
    (Box[Dog], Box[Animal]),
    (DogBox, Box[Animal]),
    (DogBox, Box),
    (Lifted[Dog], Box[list[Animal]]),
    (Swapped[int, str], Pair[int, str]),
    (type[Dog], type[Animal]),
    (type[Dog], type),
    (str, Sequence[str]),
    (str, Iterable[str]),
    (bytes, Sequence[int]),
    (Callable[[int], str], Callable[[int], str]),
    (list[list[Dog]], Sequence[Sequence[Animal]]),
    # tuples
    (tuple[int, str], tuple[int, str]),
    (tuple[Dog, Cat], tuple[Animal, Animal]),
    (tuple[int, int], tuple[int, ...]),
    (tuple[Dog, ...], tuple[Animal, ...]),
    (tuple[int, str], tuple),
    (tuple[int, ...], Sequence[int]),
    (tuple[int, bool], Sequence[int]),
    (tuple[()], tuple[int, ...]),
    # protocols
    (Record, Named),
    (Slotted, Named),
    (Model, Named),
    (Row, Named),
    (Terrier, Barks),
    (Nameless, Sized),
    (str, Sized),
    (int, SupportsInt),
    # typed dictionaries
    (Small, Small),
    (Large, Small),
    (Small, dict),
    # type variables that nothing has settled yet
    (T, int),
    (int, T),
    (T, K),
    (list[T], list[int]),
    (list[int], list[T]),
    (Dog, Pet),
    (Pet, Dog),
    (Pet, Animal),
    (str, Text),
    (Text, bytes),
    (int, T | None),
    # models of a generic model
    (Envelope[Dog], Envelope[Dog]),
    (Envelope[int], Envelope[float]),
    (Envelope[int], Envelope),
    (Envelope[int], BaseModel),
    (Envelope[int], Envelope[Any]),
]

MISFITS: list[tuple[Any, Any]] = [
    (Animal, Dog),
    (Cat, Dog),
    (object, Dog),
    (Dog, None),
    (None, Dog),
    (str, int),
    (float, int),
    (int, bool),
    (complex, float),
    (bytes, str),
    (bytes, bytearray),
    (int | str, int),
    (int | None, int),
    (Optional[Dog], Dog),  # noqa: UP045
    (Dog | Cat, Dog | None),
    (str, int | None),
    (str, Literal["a"]),
    (Literal["c"], Literal["a", "b"]),
    (Literal["a", "c"], Literal["a", "b"]),
    (Literal[1], Literal[True]),
    (Literal["a", 1], str),
    (Literal["a"], int | None),
    (Literal[Colour.RED], Level),
    (Annotated[str, "metres"], int),
    (UserId, int),
    (list[int], list[str]),
    (list[Animal], list[Dog]),
    (Sequence[int], list[int]),
    (Iterable[int], Sequence[int]),
    (list[int], set[int]),
    (list[int], Sequence[str]),
    (dict[str, int], Mapping[str, str]),
    (dict[int, str], Mapping[str, str]),
    (OrderedDict[str, int], dict[str, str]),
    (Words, list[int]),
    (Words, Sequence[int]),
    (Index, Mapping[str, Cat]),
    (Box[Cat], Box[Dog]),
    (DogBox, Box[Cat]),
    (Lifted[Dog], Box[list[Cat]]),
    (Swapped[int, str], Pair[str, int]),
    (Box[Dog], DogBox),
    (type[Animal], type[Dog]),
    (list[list[Cat]], Sequence[Sequence[Dog]]),
    (str, Sequence[int]),
    (bytes, Sequence[str]),
    (str, list[str]),
    (tuple[int, str], tuple[str, int]),
    (tuple[int], tuple[int, int]),
    (tuple[int, ...], tuple[int, int]),
    (tuple[int, str], tuple[int, ...]),
    (tuple[str, ...], tuple[int, ...]),
    (tuple[int, str], Sequence[int]),
    (tuple[str, ...], Sequence[int]),
    (tuple[int, ...], list[int]),
    (tuple[int], tuple[()]),
    (Nameless, Named),
    (Dog, Barks),
    (int, Sized),
    (Nameless, SupportsInt),
    (Small, Large),
    (Small, Other),
    (dict, Small),
    (int, Pet),
    (int, Text),
    (list[int], Pet),
    (str, list[T]),
    (Envelope[str], Envelope[int]),
    (Envelope[int], Model),
]


def _wire(value: object) -> str:
    return identity(value).replace("typing.", "").rsplit(".", 1)[-1] if not isinstance(value, tuple) else repr(value)


def test_every_item_of_the_source_can_be_read():
    assert [(source, sink) for source, sink in FITS if not assignable(source, sink)] == []


def test_some_item_of_the_source_cannot_be_read():
    assert [(source, sink) for source, sink in MISFITS if assignable(source, sink)] == []


@pytest.mark.parametrize(
    ("pattern", "actual", "bound"),
    [
        (T, int, {T: int}),
        (T, Dog | None, {T: Dog | None}),
        (T, list[int], {T: list[int]}),
        (T, K, {}),
        (T, list[K], {}),
        (int, str, {}),
        (list[T], list[int], {T: int}),
        (Sequence[T], list[int], {T: int}),
        (Sequence[T], Words, {T: str}),
        (Sequence[T], str, {T: str}),
        (Sequence[T], tuple[int, ...], {T: int}),
        (Sequence[T], tuple[int, str], {T: int | str}),
        (Mapping[K, T], dict[str, int], {K: str, T: int}),
        (Mapping[K, T], Index, {K: str, T: Dog}),
        (Box[T], DogBox, {T: Dog}),
        (Box[T], Lifted[Dog], {T: list[Dog]}),
        (Pair[K, T], Swapped[int, str], {K: int, T: str}),
        (list[T], Literal["a"], {}),
        (list[T], Pair[int, str], {}),
        (list[T], Box[int], {}),
        (tuple[K, T], tuple[int, str], {K: int, T: str}),
        (tuple[T, ...], tuple[int, ...], {T: int}),
        (tuple[T, ...], tuple[int, str], {T: int | str}),
        (T | None, int | None, {T: int}),
        (T | None, int, {T: int}),
        (T | None, None, {}),
        (T | int, str | int, {T: str}),
        (list[T] | T, int, {T: int}),
        (Annotated[T, 1], Annotated[int, 2], {T: int}),
        (Pet, Dog, {Pet: Dog}),
        (Pet, int, {}),
        (Text, str, {Text: str}),
        (Text, int, {}),
        (Envelope[T], Envelope[int], {T: int}),
    ],
    ids=lambda v: _wire(v) if not isinstance(v, dict) else "",
)
def test_a_pattern_learns_what_its_variables_stand_for(pattern, actual, bound):
    learnt: dict[Any, Any] = {}
    bind(pattern, actual, learnt)
    assert learnt == bound


def test_what_a_variable_stands_for_already_stays():
    learnt: dict[Any, Any] = {T: Dog}
    bind(T, Cat, learnt)
    assert learnt == {T: Dog}


@pytest.mark.parametrize(
    ("pattern", "filled"),
    [
        (T, int),
        (list[T], list[int]),
        (T | None, int | None),
        (dict[K, T], dict[str, int]),
        (Box[list[T]], Box[list[int]]),
        (tuple[T, ...], tuple[int, ...]),
        (Callable[[T], K], Callable[[int], str]),
        (Annotated[T, 1], Annotated[int, 1]),
        (Dog, Dog),
        (list[Dog], list[Dog]),
        (Pet, Pet),
        (Pair[T, Pet], Pair[int, Pet]),
        (Any, Any),
        (None, None),
        (Envelope[T], Envelope[int]),
    ],
    ids=_wire,
)
def test_bound_variables_are_filled_in_and_free_ones_stay(pattern, filled):
    assert substitute(pattern, {T: int, K: str}) == filled


@pytest.mark.parametrize("payload", [Any, object, T, list[T], Annotated[T, 1], T | None], ids=_wire)
def test_a_type_with_free_variables_is_not_known(payload):
    assert not is_known(payload)


@pytest.mark.parametrize("payload", [int, list[int], Dog, Box[Dog], None, int | None], ids=_wire)
def test_a_type_without_free_variables_is_known(payload):
    assert is_known(payload)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (int, "int"),
        (None, "None"),
        (type(None), "None"),
        (Any, "Any"),
        (Dog, "Dog"),
        (T, "T"),
        (int | None, "int | None"),
        (Optional[Dog], "Dog | None"),  # noqa: UP045
        (Union[int, str], "int | str"),  # noqa: UP007
        (list[Dog], "list[Dog]"),
        (typing.List[Dog], "list[Dog]"),  # noqa: UP006
        (dict[str, list[Dog]], "dict[str, list[Dog]]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Box[Dog], "Box[Dog]"),
        (Literal["a", 1], "Literal['a', 1]"),
        (Annotated[int, "metres"], "int"),
        (UserId, "UserId"),
        (Callable[[int, str], Dog], "Callable[[int, str], Dog]"),
        (type[Dog], "type[Dog]"),
        (Sequence[Dog | None], "Sequence[Dog | None]"),
        (Envelope[int], "Envelope[int]"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_type_is_spelled_as_its_author_writes_it(payload, text):
    assert spelled(payload) == text


@pytest.mark.parametrize(
    ("payload", "text"),
    [(int, "int"), (Dog, f"{__name__}.Dog"), (Any, "Any"), (None, "None")],
    ids=["a builtin stays bare", "a class bears its module", "anything", "nothing"],
)
def test_two_classes_of_one_name_are_distinguished(payload, text):
    assert identity(payload) == text


class Row2(NamedTuple):
    number: int
    text: str


@dataclass
class LikeSmall:
    x: int


class Partial(TypedDict, total=False):
    x: int


@pytest.mark.parametrize(
    ("source", "sink", "fits"),
    [
        (Generator[str, None, None], Iterable[int], False),
        (Generator[str, None, None], Iterable[str], True),
        (KeysView[str], Iterable[int], False),
        (KeysView[str], Iterable[str], True),
        (typing.Counter[str], Iterable[int], False),
        (Counter[str], Iterable[str], True),
        (Counter[str], Mapping[int, int], False),
        (Counter[str], Mapping[str, str], False),
        (Counter[str], Mapping[str, int], True),
        (ItemsView[str, int], Iterable[str], False),
        (ItemsView[str, int], Iterable[tuple[str, int]], True),
        (Row2, tuple[str, str], False),
        (Row2, tuple[int, str], True),
        (Row2, Iterable[str], False),
        (Row2, Iterable[int | str], True),
        (LikeSmall, Small, False),
        (Partial, Small, False),
        (Small, Partial, True),
        ("int", str, True),
        (str, typing.ForwardRef("int"), True),
        (list["int"], list[str], True),
        (Callable[[int], str], Callable[..., str], True),
        (Callable[[int], str], Callable[..., int], False),
        (bool, Literal[True, False], True),
        (bool, Literal[True], False),
        (Colour, Literal[Colour.RED, Colour.BLUE], True),
        (typing.Never, int, True),
        (int | Any, str, True),
        (typing.LiteralString, str, True),
    ],
    ids=str,
)
def test_what_fits_whatever_stands_between_the_brackets(source, sink, fits):
    assert assignable(source, sink) is fits
