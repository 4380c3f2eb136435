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
from abc import abstractmethod
from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import islice
from types import MappingProxyType
from typing import Any, Generic, TypeVar, get_args

from pydantic import JsonValue

from dagkit.api.adapters import Adapter, adapter_of
from dagkit.api.declared import Assignable, PerInstance, declarations
from dagkit.api.keyed import Keyed, Stored, saved_keys
from dagkit.ground.overlays import Overlay
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

    @property
    @abstractmethod
    def held(self) -> tuple[Any, ...]:
        """The types of what is saved. Any for one that only a value of it would show."""

    @abstractmethod
    def saved(self, value: T, types: Bindings = NO_TYPES) -> JsonValue:
        """The value as JSON. Raise Unwritable if it could not be restored unchanged.

        `types` are those that type variables stand for.
        """

    @abstractmethod
    def restored(self, saved: JsonValue, types: Bindings = NO_TYPES) -> T:
        """The value, from the JSON that `saved` returned for the same types, whose members it may share."""


class State(Declared[T], Assignable[T]):
    """State with one value for each partition of the operator."""

    def __init__(self, default: T | Callable[[], T]) -> None:
        self._default = default

    @property
    def spelled(self) -> str:
        return f"State[{spelled(self._declared)}]"

    @property
    def held(self) -> tuple[Any, ...]:
        if self._arguments or not callable(self._default):
            return (self._declared,)
        return (self._default if isinstance(self._default, type) else Any,)

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


class KeyedState(Declared[Keyed[K, V]], Generic[K, V]):
    """State with a value for each key. Keys move between partitions when the number of partitions changes."""

    def __init__(self, make: Callable[[], V]) -> None:
        if not callable(make):
            raise TypeError(f"KeyedState takes a function that makes the value of a new key, such as int, not {make!r}")
        self._make = make

    @property
    def spelled(self) -> str:
        return f"KeyedState[{spelled(self._argument(0))}, {spelled(self._argument(1))}]"

    @property
    def held(self) -> tuple[Any, ...]:
        return (self._argument(0), self._argument(1))

    def fresh(self) -> Keyed[K, V]:
        return Keyed(self._make)

    def saved(self, value: Keyed[K, V], types: Bindings = NO_TYPES) -> JsonValue:
        return value.saved(*self._adapters(types))  # type: ignore[return-value] # JSON that nothing changes

    def restored(self, saved: JsonValue, types: Bindings = NO_TYPES) -> Keyed[K, V]:
        stored = Stored(saved_keys(saved), *self._adapters(types))
        entries = stored.saved.layers[-1].set if isinstance(stored.saved, Overlay) else stored.saved
        # The types may have changed since the state was saved. The first entry shows it here, and not when a window
        # reads a key.
        for text, (value, _) in islice(entries.items(), 1):
            stored.keys.load(json.loads(text))
            stored.values.load(value)
        return Keyed(self._make, stored)

    def _adapters(self, types: Bindings) -> tuple[Adapter, Adapter]:
        """The adapters of keys and of values."""
        return adapter_of(substitute(self._argument(0), types)), adapter_of(substitute(self._argument(1), types))


def declared_state(operator: type) -> Mapping[str, Declared[Any]]:
    """The state that a class declares, by name; that of its bases comes first."""
    return declarations(operator, Declared)
