"""Ports: declared on the class, bound on the instance.

`lines = InputPort(Line)` declares; `operator.lines` is then an `Inlet[Line]`, which a stream can be led into. Outlets
are covariant and inlets contravariant, so that mypy accepts a wire exactly when every item sent may be read.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar, get_args, overload

from dagkit.api.controls import Control, Stamped
from dagkit.api.declared import annotation_of, resolved
from dagkit.schema.batch import Batch

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
MethodT = TypeVar("MethodT", bound=Callable[..., Any])


class _Port(Generic[T]):
    """What input and output ports share: a name, a payload, and whether a stream must be there."""

    name: str

    def __init__(
        self, payload: type[T] | None = None, *, optional: bool, schema_required: bool = False, main: bool = False
    ) -> None:
        self._payload: Any = payload
        self.optional = optional
        self.schema_required = schema_required
        self.main = main

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.declared_in = owner.__qualname__
        self._module = owner.__module__
        self._annotation = annotation_of(owner, name)

    @property
    def payload(self) -> Any:
        """The type that flows: the argument, else the subscript of `InputPort[X | Y]()`, else that of the annotation.

        Anything, where none of them says it.
        """
        if self._payload is None:
            subscripted = getattr(self, "__orig_class__", None)
            if subscripted is not None:
                self._payload = resolved(get_args(subscripted)[0], self._module)
            else:
                self._payload = next(iter(self._annotation.arguments()), Any)
        return self._payload

    @property
    def required(self) -> bool:
        return not self.optional

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', '?')}>"


class InputPort(_Port[T]):
    """A port that items flow into; a stream must feed it unless it is optional."""

    def __init__(
        self,
        payload: type[T] | None = None,
        *,
        optional: bool = False,
        schema_required: bool = False,
        main: bool = False,
        key: Callable[[T], Any] | str | None = None,
    ) -> None:
        super().__init__(payload, optional=optional, schema_required=schema_required, main=main)
        self.key: Callable[[T], Any] | None = attrgetter(key) if isinstance(key, str) else key
        """What of an item says which partition it goes to; none: the whole item."""
        self.key_field = key if isinstance(key, str) else None
        """The field that is the key, where it is one: batches are then routed without making their items."""
        self.handler: str | None = None
        self.batch_handler: str | None = None

    def process(self, method: MethodT) -> MethodT:
        """Decorate the method that takes this port's items; without it an operator's only input goes to `process`."""
        self.handler = method.__name__
        return method

    def process_batch(self, method: MethodT) -> MethodT:
        """Decorate the method that takes this port's items many at once, where that is faster."""
        self.batch_handler = method.__name__
        return method

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> "Inlet[T]": ...
    def __get__(self, instance: object | None, owner: type) -> "Self | Inlet[T]":
        return self if instance is None else Inlet(instance, self)


class OutputPort(_Port[T]):
    """A port that items flow out of; it may stay unconnected unless `optional=False`."""

    def __init__(
        self,
        payload: type[T] | None = None,
        *,
        optional: bool = True,
        schema_required: bool = False,
        main: bool = False,
        unifier: Callable[[], Any] | None = None,
        controls: Sequence[type[Control]] = (),
    ) -> None:
        super().__init__(payload, optional=optional, schema_required=schema_required, main=main)
        self.unifier = unifier
        """Makes the operator that merges what several partitions send from this port."""
        self.controls = tuple(controls)
        """The control tuples that an input operator sends from here: they are kept, and made again from their names."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> "Outlet[T]": ...
    def __get__(self, instance: object | None, owner: type) -> "Self | Outlet[T]":
        return self if instance is None else Outlet(instance, self)


@dataclass(frozen=True, slots=True, eq=False)
class Inlet(Generic[T_contra]):
    """An input port of one operator instance: the far end of a stream."""

    operator: Any
    port: InputPort[Any]

    def __repr__(self) -> str:
        return f"{called(self.operator)}.{self.port.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Outlet(Generic[T_co]):
    """An output port of one operator instance: the near end of a stream."""

    operator: Any
    port: OutputPort[Any]
    stream_name: str | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the output is connected; an operator may skip work for an output that is not."""
        return self.port.name in self.operator._sinks  # noqa: SLF001 - the engine binds outputs there

    def emit(self, item: T_co) -> None:  # type: ignore[misc] # covariant for wiring; the engine binds what items go to
        """Send an item on. Where no stream begins, it is dropped."""
        # for each item: the way through pydantic's `__getattr__` takes longer than all the rest of the way
        sink = self.operator.__pydantic_private__["_sinks"].get(self.port.name)
        if sink is not None:
            sink(item)

    def emit_batch(self, batch: Batch[T_co]) -> None:
        """Send many items on at once; they must be good until this returns."""
        sink = self.operator.__pydantic_private__["_batch_sinks"].get(self.port.name)
        if sink is not None:
            sink(batch)

    def emit_control(self, control: Control) -> None:
        """Send a control tuple to every partition of every operator downstream, once each."""
        sink = self.operator._control_sinks.get(self.port.name)  # noqa: SLF001 - the engine binds outputs there
        if sink is not None:
            sink(Stamped(control, uuid.uuid4().hex))

    def named(self, stream: str) -> "Outlet[T_co]":
        """This outlet, with a name for the stream that `>>` will draw from it."""
        return Outlet(self.operator, self.port, stream)

    def __rshift__(self, sink: Any) -> Any:
        """Lead this outlet into an inlet, or into the one fitting input of an operator; gives back what it fed."""
        return self.operator.wire(self, sink)

    def __repr__(self) -> str:
        return f"{called(self.operator)}.{self.port.name}"


@dataclass(frozen=True, slots=True, eq=False)
class MissingPort:
    """Stands for a port that was asked for and is not there, so that a drawing which fails is reported as a whole."""

    operator: Any
    name: str
    """What it was called; empty where an operator was wired, and any port of it may have been meant."""
    stream_name: str | None = None

    def named(self, stream: str) -> "MissingPort":
        return MissingPort(self.operator, self.name, stream)

    def __rshift__(self, sink: Any) -> Any:
        return self.operator.wire(self, sink)

    def __repr__(self) -> str:
        return f"{called(self.operator)}.{self.name}"


def called(component: Any) -> str:
    """The name under which a component was placed, else that of its class."""
    dag = getattr(component, "_placed", None)
    placement = None if dag is None else dag.placement_of(component)
    return type(component).__name__ if placement is None else str(placement.name)


def input_ports(component: type) -> Mapping[str, InputPort[Any]]:
    """The input ports of a class by name, those of its bases first; a redeclared port hides its namesake."""
    return _ports(component, InputPort)


def output_ports(component: type) -> Mapping[str, OutputPort[Any]]:
    """The output ports of a class by name, those of its bases first; a redeclared port hides its namesake."""
    return _ports(component, OutputPort)


@lru_cache(maxsize=4096)
def _ports(component: type, kind: type) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for ancestor in reversed(component.__mro__):
        found.update({name: value for name, value in vars(ancestor).items() if isinstance(value, kind)})
    return found
