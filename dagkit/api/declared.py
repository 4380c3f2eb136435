"""Declarations in a class, such as ports and state, which may be annotated: `n: State[int] = State(0)`."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, get_args, get_origin, get_type_hints, overload

T = TypeVar("T")


class Annotation:
    """The annotation of a declaration. It is evaluated when it is used, because it may name types defined later."""

    def __init__(self, written: Any, module: str) -> None:
        self._written = written
        self._module = module

    def arguments(self) -> tuple[Any, ...]:
        """The type arguments: `(int,)` for `OutputPort[int]`; empty if there are none that can be evaluated."""
        hint = Any if self._written is None else resolved(self._written, self._module)
        while get_origin(hint) in (ClassVar, Final):
            (hint,) = get_args(hint)
        return get_args(hint)


def annotation_of(owner: type, name: str) -> Annotation:
    """The annotation of a declaration, which this call replaces by ClassVar in the class.

    Call it from `__set_name__`. Without the replacement, pydantic would turn the annotation into a field, with the
    declaration as its default.
    """
    written = inspect.get_annotations(owner).get(name)
    if written is not None:
        owner.__annotations__[name] = ClassVar[Any]
    return Annotation(written, owner.__module__)


def resolved(written: Any, module: str) -> Any:
    """The type of an annotation, evaluated in its module; Any if a name in it is undefined."""
    # `get_type_hints` resolves names in the module of a class, so the annotation needs one.
    bearer = type("bearer", (), {"__annotations__": {"declared": written}, "__module__": module})
    try:
        return get_type_hints(bearer, include_extras=True)["declared"]
    except NameError:
        return Any


@lru_cache(maxsize=8192)
def declarations(component: type, kind: type) -> Mapping[str, Any]:
    """The declarations of a kind in a class, by name; those of its bases come first. A class overrides its bases."""
    found: dict[str, Any] = {}
    for ancestor in reversed(component.__mro__):
        found.update({name: value for name, value in vars(ancestor).items() if isinstance(value, kind)})
    return found


class PerInstance(ABC, Generic[T]):
    """A declaration on a class, with a value for each instance, which the first read creates.

    The instance keeps the values by name in one of its stores. State, metrics and services have stores of their own,
    because checkpoints save state, each window resets metrics, and the engine provides services.
    """

    name: str

    store: ClassVar[str]
    """The private attribute of an instance that holds the values."""

    _annotation = Annotation(None, __name__)
    """Empty until `__set_name__` replaces it by the annotation in the class."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self._annotation = annotation_of(owner, name)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: Any, owner: type) -> "Self | T":
        if instance is None:
            return self
        # operators read values for each item, and pydantic's `__getattr__` takes four times as long
        values = instance.__pydantic_private__[self.store]
        if self.name not in values:
            values[self.name] = self.fresh()
        value: T = values[self.name]
        return value

    @classmethod
    def values_of(cls, instance: Any) -> dict[str, Any]:
        """The values of an instance for this kind of declaration, by name."""
        values: dict[str, Any] = instance.__pydantic_private__[cls.store]
        return values

    @abstractmethod
    def fresh(self) -> T:
        """A new initial value. Each instance needs its own, so that partitions and attempts never share a list."""


class Service(PerInstance[T]):
    """Declares what the engine provides to an operator while a window runs, such as its output files."""

    store = "_services"

    def fresh(self) -> T:
        raise AssertionError(f"{self.name} can be used only while a window runs")


class Assignable(Generic[T]):
    """Lets an operator replace the value of a declaration: `self.count = 3`.

    It is not an ABC, because each assignment calls `isinstance` with it, which takes longer for an ABC than the
    assignment itself.
    """

    name: str
    store: ClassVar[str]

    def __set__(self, instance: Any, value: T) -> None:
        instance.__pydantic_private__[self.store][self.name] = value
