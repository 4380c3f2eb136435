"""State: declared values that the engine keeps for an operator, saves with every window and restores on any worker.

    class CountByKey(Operator):
        words = InputPort(Word, key=lambda word: word.text)
        counts = KeyedState[str, int](int)

        def process(self, word: Word) -> None:
            self.counts[word.text] += 1

What else an operator puts on itself is transient: `setup` makes it anew. State is saved as JSON, so it holds what its
declared type can be written as.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Generic, Self, TypeVar, get_args, overload

from pydantic import JsonValue, TypeAdapter

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Declared(ABC):
    """What both kinds of state share: a name, and a way to text and back."""

    name: str

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def _argument(self, index: int) -> Any:
        """What was written between the brackets of `State[X](…)`, else anything."""
        subscripted = getattr(self, "__orig_class__", None)
        return get_args(subscripted)[index] if subscripted is not None else Any

    @abstractmethod
    def fresh(self) -> Any:
        """What a partition starts with."""

    @abstractmethod
    def saved(self, value: Any) -> JsonValue:
        """The value as JSON."""

    @abstractmethod
    def restored(self, saved: JsonValue) -> Any:
        """The value that `saved` gave."""


class Plain:
    """Writes what JSON has anyway, and any text: pydantic refuses bytes of files that are no UTF-8."""

    @staticmethod
    def dump_python(value: Any, *, mode: str) -> Any:  # noqa: ARG004 - as an adapter is asked
        return value

    @staticmethod
    def validate_python(data: Any) -> Any:
        return data


def adapter_of(declared: Any) -> "TypeAdapter[Any] | Plain":
    """What writes values of a type as JSON, and reads them again."""
    return Plain() if declared in (str, int, float, bool) else TypeAdapter(declared)


class State(Declared, Generic[T]):
    """One value for each partition of the operator."""

    def __init__(self, default: T | Callable[[], T]) -> None:
        self._default = default

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: Any, owner: type) -> "Self | T":
        if instance is None:
            return self
        kept = kept_by(instance)
        if self.name not in kept:
            kept[self.name] = self.fresh()
        value: T = kept[self.name]
        return value

    def __set__(self, instance: Any, value: T) -> None:
        kept_by(instance)[self.name] = value

    def fresh(self) -> T:
        made: T = self._default() if callable(self._default) else self._default
        return made

    def saved(self, value: T) -> JsonValue:
        data: JsonValue = self._adapter.dump_python(value, mode="json")
        return data

    def restored(self, saved: JsonValue) -> T:
        value: T = self._adapter.validate_python(saved)
        return value

    @property
    def _adapter(self) -> "TypeAdapter[Any] | Plain":
        argument = self._argument(0)
        return adapter_of(type(self.fresh()) if argument is Any else argument)


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


class KeyedState(Declared, Generic[K, V]):
    """Values by key, which move with their key when the number of partitions changes."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Keyed[K, V]: ...
    def __get__(self, instance: Any, owner: type) -> "Self | Keyed[K, V]":
        if instance is None:
            return self
        kept = kept_by(instance)
        if self.name not in kept:
            kept[self.name] = self.fresh()
        keyed: Keyed[K, V] = kept[self.name]
        return keyed

    def fresh(self) -> Keyed[K, V]:
        return Keyed(self._make)

    def saved(self, value: Keyed[K, V]) -> JsonValue:
        keys, values = adapter_of(self._argument(0)), adapter_of(self._argument(1))
        return [
            [keys.dump_python(key, mode="json"), values.dump_python(held, mode="json"), value.codes[key]]
            for key, held in value.items()
        ]

    def restored(self, saved: JsonValue) -> Keyed[K, V]:
        keys, values = adapter_of(self._argument(0)), adapter_of(self._argument(1))
        keyed = self.fresh()
        for key, held, code in saved:  # type: ignore[union-attr, misc, str-unpack] # as `saved` wrote it
            keyed.put(keys.validate_python(key), values.validate_python(held), int(code))  # type: ignore[arg-type]
        return keyed


def kept_by(operator: Any) -> dict[str, Any]:
    """The live state of one operator instance, by name."""
    kept: dict[str, Any] = operator._kept  # noqa: SLF001 - state lives on the operator, and this is its one door
    return kept


def declared_state(operator: type) -> dict[str, Declared]:
    """The state that a class declares, by name, that of its bases first."""
    found: dict[str, Declared] = {}
    for ancestor in reversed(operator.__mro__):
        found.update({name: value for name, value in vars(ancestor).items() if isinstance(value, Declared)})
    return found
