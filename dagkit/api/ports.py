"""Ports: declared on a class of operators, connected on an instance.

`lines = InputPort(Line)` declares a port, and `operator.lines` is an `Inlet[Line]`, which a stream can feed. Outlets
are covariant and inlets contravariant, so mypy accepts a stream if and only if the sink accepts every item sent.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar, get_args, overload

from dagkit.api.controls import Control, Stamped
from dagkit.api.declared import annotation_of, declarations, resolved
from dagkit.schema.batch import Batch

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
MethodT = TypeVar("MethodT", bound=Callable[..., Any])


class _Port(Generic[T]):
    """The base of input and output ports."""

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
        """The type of the items: the argument, else `X` of `InputPort[X]()`, else that of the annotation, else Any."""
        # Only now: Python sets `__orig_class__` of `InputPort[X]()` after `__init__`, and the names in an annotation
        # may be those of later classes.
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
    """A port that receives items. A stream must feed it, unless it is optional."""

    def __init__(
        self,
        payload: type[T] | None = None,
        *,
        optional: bool = False,
        schema_required: bool = False,
        main: bool = False,
        key: Callable[[T], Any] | str | None = None,
        keyed_by: str | None = None,
        keys_of: str | None = None,
    ) -> None:
        super().__init__(payload, optional=optional, schema_required=schema_required, main=main)
        self.key: Callable[[T], Any] | None = attrgetter(key) if isinstance(key, str) else key
        """Gives the key of an item, which decides the partition. None: the whole item is the key."""
        self.key_field = key if isinstance(key, str) else None
        """The field that is the key, if it is given by name. A batch is then routed without creating its items."""
        self.keyed_by = keyed_by
        """The name of a method of the operator that returns the key, if it depends on properties, as `key` takes it."""
        self.keys_of = keys_of
        """The name of another input: each partition owns the same keys here as there. None: every item reaches all.

        It has an effect if partitions own keys of that input.
        """
        self.handler: str | None = None
        self.batch_handler: str | None = None

    @property
    def is_keyed(self) -> bool:
        """Whether the declaration or the operator defines a key."""
        return self.key is not None or self.keyed_by is not None

    def key_in(self, operator: Any) -> tuple[Callable[[T], Any] | None, str | None]:
        """The key function at this operator, and the field that it reads if the key is a single field."""
        if self.keyed_by is None:
            return self.key, self.key_field
        key = getattr(operator, self.keyed_by)()
        return (attrgetter(key), key) if isinstance(key, str) else (key, None)

    def process(self, method: MethodT) -> MethodT:
        """Decorate the method that processes the items of this port. Without it, `process` receives them."""
        self.handler = method.__name__
        return method

    def process_batch(self, method: MethodT) -> MethodT:
        """Decorate the method that processes whole batches of this port, where that is faster than item by item."""
        self.batch_handler = method.__name__
        return method

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> "Inlet[T]": ...
    def __get__(self, instance: object | None, owner: type) -> "Self | Inlet[T]":
        return self if instance is None else Inlet(instance, self)


class OutputPort(_Port[T]):
    """A port that sends items. It need not be connected, unless `optional=False`."""

    def __init__(
        self,
        payload: type[T] | None = None,
        *,
        optional: bool = True,
        schema_required: bool = False,
        main: bool = False,
        unifier: Callable[[], Any] | None = None,
        unified_by: str | None = None,
        controls: Sequence[type[Control]] = (),
        names_origins: bool = False,
        when_drained: bool = False,
    ) -> None:
        super().__init__(payload, optional=optional, schema_required=schema_required, main=main)
        self.unifier = unifier
        """Creates the unifier: the operator that merges the items that several partitions send from this port."""
        self.unified_by = unified_by
        """The name of a method of the operator that creates the unifier, if it depends on properties."""
        self.controls = tuple(controls)
        """The classes of control tuples that an input operator sends. The ledger refers to them by name."""
        self.names_origins = names_origins
        """Whether what is sent here names where the present item was read, as `item_origin` returns it.

        If the port is connected, the origins of items are taken along on all streams that lead to the operator.
        """
        self.when_drained = when_drained
        """Whether it sends only from `drained`. If it is connected, a launch that runs until it is stopped warns."""

    def unifier_in(self, operator: Any) -> Callable[[], Any] | None:
        """The function that creates the unifier behind this port of an operator; None if it declares none."""
        return self.unifier if self.unified_by is None else getattr(operator, self.unified_by)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> "Outlet[T]": ...
    def __get__(self, instance: object | None, owner: type) -> "Self | Outlet[T]":
        return self if instance is None else Outlet(instance, self)


@dataclass(frozen=True, slots=True, eq=False)
class Inlet(Generic[T_contra]):
    """An input port of an operator in a graph, in which a stream ends."""

    operator: Any
    port: InputPort[Any]

    def __repr__(self) -> str:
        return f"{called(self.operator)}.{self.port.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Outlet(Generic[T_co]):
    """An output port of an operator in a graph, in which a stream begins."""

    operator: Any
    port: OutputPort[Any]
    stream_name: str | None = None

    @property
    def is_connected(self) -> bool:
        """Whether a stream begins here. An operator can skip work for an unconnected output."""
        return self.port.name in self.operator._sinks  # noqa: SLF001 - the engine binds outputs there

    def emit(self, item: T_co) -> None:  # type: ignore[misc] # covariant for wiring; the engine binds what items go to
        """Send an item. An unconnected output drops it."""
        # called for each item, and pydantic's `__getattr__` takes longer than the rest of the call
        sink = self.operator.__pydantic_private__["_sinks"].get(self.port.name)
        if sink is not None:
            sink(item)

    def emit_batch(self, batch: Batch[T_co]) -> None:
        """Send a batch of items. It must stay unchanged until this call returns; then its buffers may be reused."""
        sink = self.operator.__pydantic_private__["_batch_sinks"].get(self.port.name)
        if sink is not None:
            sink(batch)

    def emit_control(self, control: Control) -> None:
        """Send a control tuple once to every partition of every operator downstream."""
        sink = self.operator._control_sinks.get(self.port.name)  # noqa: SLF001 - the engine binds outputs there
        if sink is not None:
            sink(Stamped(control, uuid.uuid4().hex))

    def named(self, stream: str) -> "Outlet[T_co]":
        """This outlet, with the name of the stream that `>>` will create."""
        return Outlet(self.operator, self.port, stream)

    def __rshift__(self, sink: Any) -> Any:
        """Connect this outlet to an inlet, or to the one matching input of an operator. Return that sink."""
        return self.operator.wire(self, sink)

    def __repr__(self) -> str:
        return f"{called(self.operator)}.{self.port.name}"


@dataclass(frozen=True, slots=True, eq=False)
class MissingPort:
    """Stands for a port that does not exist, so that the compiler can report this fault together with all others."""

    operator: Any
    name: str
    """The name of the missing port; empty if an operator was connected, and any of its ports may be meant."""
    stream_name: str | None = None

    def named(self, stream: str) -> "MissingPort":
        return MissingPort(self.operator, self.name, stream)

    def __rshift__(self, sink: Any) -> Any:
        return self.operator.wire(self, sink)

    def __repr__(self) -> str:
        return f"{called(self.operator)}.{self.name}"


def called(component: Any) -> str:
    """The name under which a component was added to a Dag, else that of its class."""
    dag = getattr(component, "_placed", None)
    placement = None if dag is None else dag.placement_of(component)
    return type(component).__name__ if placement is None else str(placement.name)


def input_ports(component: type) -> Mapping[str, InputPort[Any]]:
    """The input ports of a class by name; those of its bases come first. A declaration overrides an inherited one."""
    return declarations(component, InputPort)


def output_ports(component: type) -> Mapping[str, OutputPort[Any]]:
    """The output ports of a class by name; those of its bases come first. A declaration overrides an inherited one."""
    return declarations(component, OutputPort)
