"""State: declared values that the engine keeps for an operator, saves with every window and restores on any worker.

    class CountByKey(Operator):
        words = InputPort(Word, key=lambda word: word.text)
        counts = KeyedState[str, int](int)

        def process(self, word: Word) -> None:
            self.counts[word.text] += 1

Other attributes of an operator are transient: `setup` creates them again. State is saved as JSON, so it holds what its
declared type can be written as, and what would not come back as it was is refused. Where no type is declared, numbers,
text, bytes, None, and tuples, lists, dicts and sets of these come back.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin

from pydantic import JsonValue, PydanticSchemaGenerationError, TypeAdapter

from dagkit.api.declared import Assignable, PerInstance
from dagkit.api.tagged import Unwritable, tagged, untagged
from dagkit.schema import spelled

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Declared(PerInstance[T]):
    """What both kinds of state share: the store that checkpoints save, and a way to JSON and back."""

    store = "_kept"

    @property
    def _arguments(self) -> tuple[Any, ...]:
        """What was written between the brackets of `State[X](…)`, else between those of its annotation."""
        subscripted = getattr(self, "__orig_class__", None)
        if subscripted is not None:
            return get_args(subscripted)
        return self._annotation.arguments()

    def _argument(self, index: int) -> Any:
        """One of the arguments; anything, where none were written."""
        return (self._arguments or (Any,) * (index + 1))[index]

    @property
    @abstractmethod
    def spelled(self) -> str:
        """What it is declared as."""

    @abstractmethod
    def saved(self, value: T) -> JsonValue:
        """The value as JSON."""

    @abstractmethod
    def restored(self, saved: JsonValue) -> T:
        """The value that `saved` gave."""


class Adapter(Protocol):
    """What writes values of one type as JSON, and reads them again."""

    def dump(self, value: Any) -> JsonValue:
        """The value as JSON; `Unwritable` where it would not come back as it was."""

    def load(self, data: JsonValue) -> Any:
        """The value that was written."""


class Untyped:
    """Writes values by their own class; numbers and text too, since pydantic does not write every text."""

    def dump(self, value: Any) -> JsonValue:
        data: JsonValue = tagged(value)
        return data

    def load(self, data: JsonValue) -> Any:
        return untagged(data)


class Typed:
    """Writes values of a type that pydantic knows; members without a declared type are written by their own class."""

    def __init__(self, declared: Any) -> None:
        try:
            self._adapter: TypeAdapter[Any] | None = TypeAdapter(declared)
        except PydanticSchemaGenerationError:
            self._adapter = None
        self._open = _is_open(declared)

    @property
    def has_schema(self) -> bool:
        """Whether the type says how its values are written."""
        return self._adapter is not None

    def dump(self, value: Any) -> JsonValue:
        if self._adapter is None:
            raise Unwritable(value)
        data = tagged(value) if self._open else self._dumped(value)
        if not is_same(self._read(data, value), value):
            raise Unwritable(value)
        return data  # type: ignore[no-any-return] # as JSON has it

    def load(self, data: JsonValue) -> Any:
        assert self._adapter is not None, "nothing was written of what cannot be"
        return self._adapter.validate_python(untagged(data) if self._open else data)

    def _dumped(self, value: Any) -> Any:
        assert self._adapter is not None, "only what has an adapter is dumped"
        try:
            return self._adapter.dump_python(value, mode="json", warnings="none")
        except (ValueError, TypeError) as error:
            raise Unwritable(value) from error

    def _read(self, data: Any, value: Any) -> Any:
        try:
            return self.load(data)
        except (ValueError, TypeError) as error:
            raise Unwritable(value) from error


def is_same(back: Any, value: Any) -> bool:
    """Whether what came back is what was written; what knows no equality is compared by its parts."""
    if type(back) is not type(value):
        return False
    if isinstance(value, list | tuple):
        return len(back) == len(value) and all(map(is_same, back, value))
    if isinstance(value, dict):
        return back.keys() == value.keys() and all(is_same(back[key], each) for key, each in value.items())
    if back == value:
        return True
    if isinstance(value, float):
        return math.isnan(back) and math.isnan(value)
    return not _knows_equality(value) and is_same(vars(back), vars(value))


def _knows_equality(value: Any) -> bool:
    return not hasattr(value, "__dict__") or any("__eq__" in vars(cls) for cls in type(value).__mro__[:-1])


def adapter_of(declared: Any) -> Adapter:
    """What writes values of a type as JSON, and reads them again; it is made once, for each window asks for it."""
    try:
        hash(declared)
    except TypeError:  # an annotation may hold anything
        return _adapter(declared)
    return _adapter_once(declared)


def _adapter(declared: Any) -> Adapter:
    untyped = declared in (str, int, float, bool, Any, object) or isinstance(declared, TypeVar)
    return Untyped() if untyped else Typed(declared)


_adapter_once = lru_cache(maxsize=256)(_adapter)


def _is_open(declared: Any) -> bool:
    """Whether it is bytes, or a builtin container whose values must carry their type: JSON has no inf."""
    parts = list(_parts(declared))
    return all(part in _KNOWN for part in parts) and any(part in _TELLING for part in parts)


def _parts(declared: Any) -> Iterator[Any]:
    """What a type is made of; Any, where it holds what it does not declare."""
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is None:
        yield Any if declared in _CONTAINERS or isinstance(declared, TypeVar) else declared
    else:
        yield origin
        for each in arguments:
            yield from _parts(each)


_CONTAINERS = (list, dict, tuple, set, frozenset)
_TELLING = (Any, object, bytes, float)
_KNOWN = (*_CONTAINERS, *_TELLING, str, int, float, bool, None, type(None), ...)


class State(Declared[T], Assignable[T]):
    """One value for each partition of the operator."""

    def __init__(self, default: T | Callable[[], T]) -> None:
        self._default = default

    @property
    def spelled(self) -> str:
        return f"State[{spelled(self._declared)}]"

    def fresh(self) -> T:
        """What it starts with, of its own: two partitions, or two attempts at a window, never share a list."""
        made: T = self._default() if callable(self._default) else deepcopy(self._default)
        return made

    def saved(self, value: T) -> JsonValue:
        return adapter_of(self._declared).dump(value)

    def restored(self, saved: JsonValue) -> T:
        value: T = adapter_of(self._declared).load(saved)
        return value

    @property
    def _declared(self) -> Any:
        """The type between the brackets, else that of what it starts with; None says nothing of what will follow it."""
        if self._arguments:
            return self._argument(0)
        default = self.fresh()
        return Any if default is None else type(default)


class Keyed(MutableMapping[K, V]):
    """Values by key, each made when it is first asked for; knows the routing code under which each key came."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._values: dict[K, V] = {}
        self.codes: dict[K, int] = {}
        """The code of the item under which each key was first touched: the key goes wherever such items go."""
        self.current_code: int | None = None
        """The code of the item being processed; none between items."""
        self.code_of: Callable[[Any], int] | None = None
        """The code of a key, while a batch is processed that is routed by these very keys."""

    def __getitem__(self, key: K) -> V:
        if key not in self._values:
            self[key] = self._make()
        return self._values[key]

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self._values:
            self.codes[key] = self._code_of_new(key)
        self._values[key] = value

    def _code_of_new(self, key: K) -> int:
        if self.current_code is not None:
            return self.current_code
        if self.code_of is not None:
            return self.code_of(key)
        raise KeyError(f"key {key!r} is new, and no item is being processed that says where it belongs")

    def __delitem__(self, key: K) -> None:
        del self._values[key]
        del self.codes[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def put(self, key: K, value: V, code: int) -> None:
        """Take over a key with its value from another partition, or from a checkpoint."""
        self._values[key] = value
        self.codes[key] = code


class KeyedState(Declared[Keyed[K, V]], Generic[K, V]):
    """Values by key, which move with their key when the number of partitions changes."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make

    @property
    def spelled(self) -> str:
        return f"KeyedState[{spelled(self._argument(0))}, {spelled(self._argument(1))}]"

    def fresh(self) -> Keyed[K, V]:
        return Keyed(self._make)

    def saved(self, value: Keyed[K, V]) -> JsonValue:
        keys, values = adapter_of(self._argument(0)), adapter_of(self._argument(1))
        return [[keys.dump(key), values.dump(held), value.codes[key]] for key, held in value.items()]

    def restored(self, saved: JsonValue) -> Keyed[K, V]:
        keys, values = adapter_of(self._argument(0)), adapter_of(self._argument(1))
        keyed = self.fresh()
        for key, held, code in saved:  # type: ignore[union-attr, misc, str-unpack] # as `saved` wrote it
            keyed.put(keys.load(key), values.load(held), int(code))  # type: ignore[arg-type]
        return keyed


@lru_cache(maxsize=1024)
def declared_state(operator: type) -> Mapping[str, Declared[Any]]:
    """The state that a class declares, by name, that of its bases first."""
    found: dict[str, Declared[Any]] = {}
    for ancestor in reversed(operator.__mro__):
        found.update({name: value for name, value in vars(ancestor).items() if isinstance(value, Declared)})
    return found
