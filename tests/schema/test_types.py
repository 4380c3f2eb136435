"""The algebra of payload types: what may flow where, what a type variable comes to stand for, how a type is spelled."""

# ruff: noqa: PYI061, UP006, UP007, UP045 - the old spellings are the same types

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
    ClassVar,
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

from dagkit import Batch, Block
from dagkit.schema import assignable, bind, fields_of_authors, identity, is_known, spelled, substitute

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


class Row2(NamedTuple):
    number: int
    text: str


@dataclass
class LikeSmall:
    x: int


class Partial(TypedDict, total=False):
    x: int


class Envelope(BaseModel, Generic[T]):
    """A generic pydantic model: its subscripts are classes of their own."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    body: T


FITS: list[tuple[Any, ...]] = [
    # each source, and what can read it: alike, wider, anything
    (Dog, Animal, object, Any, Dog | Cat, Optional[Animal], Pet),
    (Puppy, Animal),
    (Any, Dog),
    (None, object, None, type(None), int | None),
    (typing.Never, int),
    # numbers
    (int, int, float, complex, int | str, Union[int, str], Optional[int], Annotated[int, "metres"], T, T | None),
    (float, complex),
    (bool, int, float, Literal[True, False]),
    (Level, int, float),
    (bytearray, bytes),
    # unions
    (int | str, str | int, int | str | None),
    (bool | int, int),
    (Dog | Cat, Animal),
    (Dog | None, Animal | None),
    (list[Dog] | Dog, list[Animal] | Animal),
    (int | Any, str),
    # literals
    (Literal["a"], str, Literal["a", "b"], Literal["a"] | None),
    (Literal["a", "b"], Literal["b", "a"]),
    (Literal[1], int, float),
    (Literal["a", 1], str | int),
    (Literal["a", None], str | None),
    (Literal[Colour.RED], Colour),
    (Colour, Literal[Colour.RED, Colour.BLUE]),
    (typing.LiteralString, str),
    # what does not change the values
    (Annotated[int, "metres"], int),
    (Annotated[Dog, 1], Annotated[Animal, 2]),
    (Annotated[int | None, 1], Optional[int]),
    (list[Annotated[int, 1]], list[int]),
    (UserId, str),
    (str, UserId, Sequence[str], Iterable[str], Sized, Text, typing.ForwardRef("int")),
    ("int", str),
    (list["int"], list[str]),
    (list[UserId], list[str]),
    # generics
    (list[int], list[int], typing.List[int], list, list[Any], list[T]),
    (list[Dog], list[Animal], Sequence[Animal], Iterable[Animal], Collection[Dog]),
    (list[list[Dog]], Sequence[Sequence[Animal]]),
    (set[int], AbstractSet[int]),
    (frozenset[int], AbstractSet[float]),
    (deque[int], MutableSequence[int]),
    (list, list[int]),
    (list[Any], list[int]),
    (dict[str, Dog], Mapping[str, Animal]),
    (OrderedDict[str, int], dict[str, int]),
    (Mapping[str, int], Mapping[str, int]),
    (Words, list[str], Sequence[str]),
    (Index, Mapping[str, Animal]),
    (Box[Dog], Box[Animal]),
    (DogBox, Box[Animal], Box),
    (Lifted[Dog], Box[list[Animal]]),
    (Swapped[int, str], Pair[int, str]),
    (type[Dog], type[Animal], type),
    (bytes, Sequence[int]),
    (Callable[[int], str], Callable[[int], str], Callable[..., str]),
    (Generator[str, None, None], Iterable[str]),
    (KeysView[str], Iterable[str]),
    (ItemsView[str, int], Iterable[tuple[str, int]]),
    (Counter[str], Iterable[str], Mapping[str, int]),
    # tuples
    (tuple[int, str], tuple[int, str], tuple),
    (tuple[Dog, Cat], tuple[Animal, Animal]),
    (tuple[int, int], tuple[int, ...]),
    (tuple[Dog, ...], tuple[Animal, ...]),
    (tuple[int, ...], Sequence[int]),
    (tuple[int, bool], Sequence[int]),
    (tuple[()], tuple[int, ...]),
    (Row2, tuple[int, str], Iterable[int | str]),
    # protocols
    (Record, Named),
    (Slotted, Named),
    (Model, Named),
    (Row, Named),
    (Terrier, Barks),
    (Nameless, Sized),
    (int, SupportsInt),
    # typed dictionaries
    (Small, Small, dict, Partial),
    (Large, Small),
    # type variables that nothing has settled yet
    (T, int, K),
    (list[T], list[int]),
    (Pet, Dog, Animal),
    (Text, bytes),
    # models of a generic model
    (Envelope[Dog], Envelope[Dog]),
    (Envelope[int], Envelope[float], Envelope, BaseModel, Envelope[Any]),
]

MISFITS: list[tuple[Any, ...]] = [
    (Animal, Dog),
    (Cat, Dog),
    (object, Dog),
    (Dog, None, Barks),
    (None, Dog),
    (str, int, int | None, Literal["a"], Sequence[int], list[str], list[T]),
    (float, int),
    (int, bool, Sized, Pet, Text),
    (complex, float),
    (bytes, str, bytearray, Sequence[str]),
    (bool, Literal[True]),
    (int | str, int),
    (int | None, int),
    (Optional[Dog], Dog),
    (Dog | Cat, Dog | None),
    (Literal["c"], Literal["a", "b"]),
    (Literal["a", "c"], Literal["a", "b"]),
    (Literal[1], Literal[True]),
    (Literal["a", 1], str),
    (Literal["a"], int | None),
    (Literal[Colour.RED], Level),
    (Annotated[str, "metres"], int),
    (UserId, int),
    (list[int], list[str], set[int], Sequence[str], Pet),
    (list[Animal], list[Dog]),
    (list[list[Cat]], Sequence[Sequence[Dog]]),
    (Sequence[int], list[int]),
    (Iterable[int], Sequence[int]),
    (dict[str, int], Mapping[str, str]),
    (dict[int, str], Mapping[str, str]),
    (OrderedDict[str, int], dict[str, str]),
    (Words, list[int], Sequence[int]),
    (Index, Mapping[str, Cat]),
    (Box[Cat], Box[Dog]),
    (DogBox, Box[Cat]),
    (Lifted[Dog], Box[list[Cat]]),
    (Swapped[int, str], Pair[str, int]),
    (Box[Dog], DogBox),
    (type[Animal], type[Dog]),
    (Callable[[int], str], Callable[..., int]),
    (Generator[str, None, None], Iterable[int]),
    (KeysView[str], Iterable[int]),
    (ItemsView[str, int], Iterable[str]),
    (typing.Counter[str], Iterable[int]),
    (Counter[str], Mapping[int, int], Mapping[str, str]),
    (tuple[int, str], tuple[str, int], tuple[int, ...], Sequence[int]),
    (tuple[int], tuple[int, int], tuple[()]),
    (tuple[int, ...], tuple[int, int], list[int]),
    (tuple[str, ...], tuple[int, ...], Sequence[int]),
    (Row2, tuple[str, str], Iterable[str]),
    (Nameless, Named, SupportsInt),
    (Small, Large, Other),
    (LikeSmall, Small),
    (Partial, Small),
    (dict, Small),
    (Envelope[str], Envelope[int]),
    (Envelope[int], Model),
]


def test_every_item_of_the_source_can_be_read():
    assert [(source, sink) for source, *sinks in FITS for sink in sinks if not assignable(source, sink)] == []


def test_some_item_of_the_source_cannot_be_read():
    assert [(source, sink) for source, *sinks in MISFITS for sink in sinks if assignable(source, sink)] == []


STANDS_FOR = {
    # what T stands for, or all variables, in each pattern, where something flows in
    T: [(int, int), (Dog | None, Dog | None), (list[int], list[int]), (K, {}), (list[K], {})],
    int: [(str, {})],
    list[T]: [(list[int], int), (Literal["a"], {}), (Pair[int, str], {}), (Box[int], {})],
    Sequence[T]: [(list[int], int), (Words, str), (str, str), (tuple[int, ...], int), (tuple[int, str], int | str)],
    Mapping[K, T]: [(dict[str, int], {K: str, T: int}), (Index, {K: str, T: Dog})],
    Box[T]: [(DogBox, Dog), (Lifted[Dog], list[Dog])],
    Pair[K, T]: [(Swapped[int, str], {K: int, T: str})],
    tuple[K, T]: [(tuple[int, str], {K: int, T: str})],
    tuple[T, ...]: [(tuple[int, ...], int), (tuple[int, str], int | str)],
    T | None: [(int | None, int), (int, int), (None, {})],
    T | int: [(str | int, str)],
    list[T] | T: [(int, int)],
    Annotated[T, 1]: [(Annotated[int, 2], int)],
    Pet: [(Dog, {Pet: Dog}), (int, {})],
    Text: [(str, {Text: str}), (int, {})],
    Envelope[T]: [(Envelope[int], int)],
}


@pytest.mark.parametrize(("pattern", "flows"), STANDS_FOR.items())
def test_a_pattern_learns_what_its_variables_stand_for(pattern, flows):
    for actual, bound in flows:
        learnt = {}
        bind(pattern, actual, learnt)
        assert learnt == (bound if isinstance(bound, dict) else {T: bound}), actual


def test_what_a_variable_stands_for_already_stays():
    learnt = {T: Dog}
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
)
def test_bound_variables_are_filled_in_and_free_ones_stay(pattern, filled):
    assert substitute(pattern, {T: int, K: str}) == filled


def test_a_type_is_known_unless_it_has_free_variables():
    assert not any(map(is_known, [Any, object, T, list[T], Annotated[T, 1], T | None]))
    assert all(map(is_known, [int, list[int], Dog, Box[Dog], None, int | None]))


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
        (Optional[Dog], "Dog | None"),
        (Union[int, str], "int | str"),
        (list[Dog], "list[Dog]"),
        (typing.List[Dog], "list[Dog]"),
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
)
def test_a_type_is_spelled_as_its_author_writes_it(payload, text):
    assert spelled(payload) == text


def test_two_classes_of_one_name_are_distinguished_by_their_modules_which_builtins_do_not_need():
    assert [identity(payload) for payload in (int, Dog, Any, None)] == ["int", f"{__name__}.Dog", "Any", "None"]


@dataclass
class Price:
    amount: float


class Row(NamedTuple):
    id: int
    price: "Price | None"


class Model(BaseModel):
    constant: ClassVar[int] = 1
    id: int


class Typed(TypedDict):
    id: int


@pytest.mark.parametrize(
    ("payload", "fields"),
    [
        (Price, ("amount: float",)),
        (Row, ("id: int", "price: Price | None")),
        (Model, ("id: int",)),
        (Typed, ("id: int",)),
        (tuple[Price, str], ("amount: float",)),
        (Batch[Price], ("amount: float",)),
        (int, ()),
        (Block, ()),
    ],
    ids=str,
)
def test_the_fields_of_an_authors_records_are_spelled(payload, fields):
    assert fields_of_authors(payload) == fields
