"""State: declared values of an operator, which the engine saves with every window and restores on any worker.

    class CountByKey(Operator):
        words = InputPort(Word, key=lambda word: word.text)
        counts = KeyedState[str, int](int)

        def process(self, word: Word) -> None:
            self.counts[word.text] += 1

Other attributes of an operator are transient: `setup` creates them again. State is saved as JSON according to its
declared type, and a value that would not be restored unchanged is refused. Without a declared type, state may hold
numbers, text, bytes, None, and tuples, lists, dicts and sets of these. A type variable of a generic operator
stands for the type that the compiler inferred.
"""

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin

from pydantic import JsonValue, PydanticSchemaGenerationError, TypeAdapter

from dagkit.api.declared import Assignable, PerInstance, declarations
from dagkit.api.tagged import Unwritable, is_tagged, tagged, untagged
from dagkit.schema import Bindings, spelled, substitute

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

NO_TYPES: Bindings = MappingProxyType({})


class Declared(PerInstance[T]):
    """The base of both kinds of state: a declaration whose values can be saved as JSON and restored."""

    store = "_kept"

    @property
    def _arguments(self) -> tuple[Any, ...]:
        """The type arguments of `State[X](…)`, else those of the annotation."""
        subscripted = getattr(self, "__orig_class__", None)
        if subscripted is not None:
            return get_args(subscripted)
        return self._annotation.arguments()

    def _argument(self, index: int) -> Any:
        """The type argument at this index; Any if there are none."""
        return (self._arguments or (Any,) * (index + 1))[index]

    @property
    @abstractmethod
    def spelled(self) -> str:
        """The declaration as text, such as `State[int]`, for messages."""

    @abstractmethod
    def saved(self, value: T, types: Bindings = NO_TYPES) -> JsonValue:
        """The value as JSON. Raise Unwritable if it could not be restored unchanged.

        `types` are those that type variables stand for.
        """

    @abstractmethod
    def restored(self, saved: JsonValue, types: Bindings = NO_TYPES) -> T:
        """The value, from the JSON that `saved` returned for the same types, whose members it may share."""


class Adapter(Protocol):
    """Converts values of one type to JSON and back."""

    def dump(self, value: Any) -> JsonValue:
        """The value as JSON. Raise Unwritable if it could not be restored unchanged."""

    def load(self, data: JsonValue) -> Any:
        """The value, from the JSON that `dump` returned. It may share members with this JSON: see `copied`."""


def copied(data: JsonValue) -> JsonValue:
    """A copy of saved JSON, to load values from if the JSON stays in use.

    pydantic passes on members without a declared type as they are, and a change of the value would change them.
    """
    copy: JsonValue = json.loads(json.dumps(data)) if isinstance(data, list | dict) else data
    return copy


class Untyped:
    """Converts values by their own class. It also serves numbers and text, because pydantic cannot write every text."""

    def dump(self, value: Any) -> JsonValue:
        data: JsonValue = tagged(value)
        return data

    def load(self, data: JsonValue) -> Any:
        return untagged(data)


class Typed:
    """Converts values of a type that pydantic supports. Members without a declared type are written by their class."""

    def __init__(self, declared: Any) -> None:
        try:
            self._adapter: TypeAdapter[Any] | None = TypeAdapter(declared)
        except PydanticSchemaGenerationError:
            self._adapter = None
        self._open = _is_open(declared)

    @property
    def has_schema(self) -> bool:
        """Whether pydantic supports the type. If not, no value of it can be saved."""
        return self._adapter is not None

    def dump(self, value: Any) -> JsonValue:
        if self._adapter is None:
            raise Unwritable(value)
        data = tagged(value) if self._open else self._dumped(value)
        if not is_same(self._read(data, value), value):
            raise Unwritable(value)
        return data  # type: ignore[no-any-return] # as JSON has it

    def load(self, data: JsonValue) -> Any:
        return self._loaded(data)

    def _loaded(self, data: Any) -> Any:
        assert self._adapter is not None, "only a type that pydantic supports was written"
        return self._adapter.validate_python(untagged(data) if self._open else data)

    def _dumped(self, value: Any) -> Any:
        assert self._adapter is not None, "dump refuses a type that pydantic does not support"
        try:
            return self._adapter.dump_python(value, mode="json", warnings="none")
        except (ValueError, TypeError) as error:
            raise Unwritable(value) from error

    def _read(self, data: Any, value: Any) -> Any:
        try:
            return self._loaded(data)
        except (ValueError, TypeError) as error:
            raise Unwritable(value) from error


def is_same(restored: Any, value: Any) -> bool:
    """Whether a restored value equals the saved one. Objects without an `__eq__` are compared by their attributes."""
    if type(restored) is not type(value):
        return False
    if isinstance(value, list | tuple):
        return len(restored) == len(value) and all(map(is_same, restored, value))
    if isinstance(value, dict):
        return restored.keys() == value.keys() and all(is_same(restored[key], item) for key, item in value.items())
    if restored == value:
        return True
    if isinstance(value, float):
        return math.isnan(restored) and math.isnan(value)
    return not _defines_equality(value) and is_same(vars(restored), vars(value))


def _defines_equality(value: Any) -> bool:
    return not hasattr(value, "__dict__") or any("__eq__" in vars(cls) for cls in type(value).__mro__[:-1])


def adapter_of(declared: Any) -> Adapter:
    """The adapter of a type. It is cached, because each window asks for it."""
    try:
        hash(declared)
    except TypeError:  # an annotation may hold an object that cannot be hashed
        return _adapter(declared)
    return _adapter_once(declared)


def _adapter(declared: Any) -> Adapter:
    untyped = declared in (str, int, float, bool, Any, object) or isinstance(declared, TypeVar)
    return Untyped() if untyped else Typed(declared)


_adapter_once = lru_cache(maxsize=256)(_adapter)


def _is_open(declared: Any) -> bool:
    """Whether values are written with their types, by `tagged`: bytes, and builtin containers of values that need it.

    Values of undeclared type need it, and floats, because JSON has no inf.
    """
    parts = list(_parts(declared))
    return all(part in _BUILTIN or is_tagged(part) for part in parts) and any(part in _TAGGED for part in parts)


def _parts(declared: Any) -> Iterator[Any]:
    """The classes that a type consists of; Any for members whose type is not declared."""
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is None:
        yield Any if declared in _CONTAINERS or isinstance(declared, TypeVar) else declared
    else:
        yield origin
        for argument in arguments:
            yield from _parts(argument)


_CONTAINERS = (list, dict, tuple, set, frozenset)
_TAGGED = (Any, object, bytes, float)
"""Types whose values JSON cannot represent without a tag."""
_BUILTIN = (*_CONTAINERS, *_TAGGED, str, int, float, bool, None, type(None), ...)


class State(Declared[T], Assignable[T]):
    """State with one value for each partition of the operator."""

    def __init__(self, default: T | Callable[[], T]) -> None:
        self._default = default

    @property
    def spelled(self) -> str:
        return f"State[{spelled(self._declared)}]"

    def fresh(self) -> T:
        initial: T = self._default() if callable(self._default) else deepcopy(self._default)
        return initial

    def saved(self, value: T, types: Bindings = NO_TYPES) -> JsonValue:
        return adapter_of(substitute(self._declared, types)).dump(value)

    def restored(self, saved: JsonValue, types: Bindings = NO_TYPES) -> T:
        value: T = adapter_of(substitute(self._declared, types)).load(saved)
        return value

    @property
    def _declared(self) -> Any:
        """The declared type, else that of the initial value. If that is None, any type: other values will follow."""
        if self._arguments:
            return self._argument(0)
        default = self.fresh()
        return Any if default is None else type(default)


class Keyed(MutableMapping[K, V]):
    """Values by key. Reading a missing key creates its value. Each key keeps the routing code of its first item."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._values: dict[K, V] = {}
        self.codes: dict[K, int] = {}
        """The routing code of the item that created each key. The key moves to the partition that owns the code."""
        self.current_code: int | None = None
        """The routing code of the current item; None between items."""
        self.code_of: Callable[[Any], int] | None = None
        """Gives the routing code of a key while a batch is processed whose items are routed by the same keys."""

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
        raise KeyError(f"key {key!r} is new, and only the processing of an item can add a key")

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
        """Add a key with its value and routing code, from another partition or a checkpoint."""
        self._values[key] = value
        self.codes[key] = code


class KeyedState(Declared[Keyed[K, V]], Generic[K, V]):
    """State with a value for each key. Keys move between partitions when the number of partitions changes."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make

    @property
    def spelled(self) -> str:
        return f"KeyedState[{spelled(self._argument(0))}, {spelled(self._argument(1))}]"

    def fresh(self) -> Keyed[K, V]:
        return Keyed(self._make)

    def saved(self, value: Keyed[K, V], types: Bindings = NO_TYPES) -> JsonValue:
        keys, values = self._adapters(types)
        return [[keys.dump(key), values.dump(held), value.codes[key]] for key, held in value.items()]

    def restored(self, saved: JsonValue, types: Bindings = NO_TYPES) -> Keyed[K, V]:
        keys, values = self._adapters(types)
        keyed = self.fresh()
        for key, held, code in saved:  # type: ignore[union-attr, misc, str-unpack] # as `saved` wrote it
            keyed.put(keys.load(key), values.load(held), int(code))  # type: ignore[arg-type]
        return keyed

    def _adapters(self, types: Bindings) -> tuple[Adapter, Adapter]:
        """The adapters of keys and of values."""
        return adapter_of(substitute(self._argument(0), types)), adapter_of(substitute(self._argument(1), types))


def declared_state(operator: type) -> Mapping[str, Declared[Any]]:
    """The state that a class declares, by name; that of its bases comes first."""
    return declarations(operator, Declared)
