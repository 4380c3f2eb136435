"""Class-level declarations, such as ports and state, that an author annotates: `n: State[int] = State(0)`."""

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, get_args, get_origin, get_type_hints, overload

T = TypeVar("T")


class Annotation:
    """The annotation of a declaration, whose arguments are evaluated when they are asked for.

    A class may be annotated with types that are declared further down.
    """

    def __init__(self, written: Any, module: str) -> None:
        self._written = written
        self._module = module

    def arguments(self) -> tuple[Any, ...]:
        """The arguments of the declared class: `(int,)` for `OutputPort[int]`; empty where none can be evaluated."""
        hint = Any if self._written is None else resolved(self._written, self._module)
        while get_origin(hint) in (ClassVar, Final):
            (hint,) = get_args(hint)
        return get_args(hint)


def annotation_of(owner: type, name: str) -> Annotation:
    """The annotation under which a declaration stands in its class.

    Call it from `__set_name__`: there the annotation becomes that of a class variable, which the declaration is.
    Of any other annotation pydantic would make a field, with the declaration as its default.
    """
    written = inspect.get_annotations(owner).get(name)
    if written is not None:
        owner.__annotations__[name] = ClassVar[Any]
    return Annotation(written, owner.__module__)


def resolved(written: Any, module: str) -> Any:
    """The type that was written, where its names are known in the module; else anything."""
    bearer = type("bearer", (), {"__annotations__": {"declared": written}, "__module__": module})
    try:
        return get_type_hints(bearer, include_extras=True)["declared"]
    except NameError:
        return Any


class PerInstance(ABC, Generic[T]):
    """A declaration on a class whose value belongs to each instance. The first read makes the value.

    The instance holds the values by name in one of its stores. Each kind of declaration names its store: checkpoints
    save state, and metrics start over with each window.
    """

    name: str

    store: ClassVar[str]
    """The private attribute of an instance that holds the values."""

    _annotation = Annotation(None, __name__)
    """Replaced by that of its class, where the declaration stands in one."""

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
        # operators read their values for each item: pydantic's `__getattr__` takes four times as long
        values = instance.__pydantic_private__[self.store]
        if self.name not in values:
            values[self.name] = self.fresh()
        value: T = values[self.name]
        return value

    @classmethod
    def values_of(cls, instance: Any) -> dict[str, Any]:
        """The values that an instance has of this kind of declaration, by name."""
        values: dict[str, Any] = instance.__pydantic_private__[cls.store]
        return values

    @abstractmethod
    def fresh(self) -> T:
        """The value that an instance starts with: its own, so that two partitions or attempts never share a list."""


class Assignable(Generic[T]):
    """Lets an operator replace the value of a declaration: `self.count = 3`.

    It is no ABC, since each assignment asks for it: `isinstance` of an ABC takes longer than the assignment itself.
    """

    name: str
    store: ClassVar[str]

    def __set__(self, instance: Any, value: T) -> None:
        instance.__pydantic_private__[self.store][self.name] = value
