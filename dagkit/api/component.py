"""Components: what an author configures. Operators, modules and applications are all components.

A component is a frozen pydantic model whose faults wait for the compiler. Properties may still come from a property
file, and one report is to name every fault, so building a component never raises: it keeps what was given, and
`faults` says what is wrong with it.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from dagkit.api.declared import Assignable, PerInstance
from dagkit.api.files import OutputFiles
from dagkit.api.ports import InputPort, OutputPort


@dataclass(frozen=True, slots=True)
class Fault:
    """One invalid property, by its dotted path; `missing` if it has no value."""

    path: str
    """Empty where each property holds, and all of them together do not."""
    message: str
    missing: bool = False
    value: Any = field(default=None, compare=False)
    """What was given, or the default."""


class Component(BaseModel):
    """Configuration whose fields are properties: validated, settable from property files, listed by `describe`."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        validate_default=True,
        ignored_types=(InputPort, OutputPort, OutputFiles, PerInstance),
    )
    _given: dict[str, Any] = PrivateAttr(default_factory=dict)
    _faults: tuple[Fault, ...] = PrivateAttr(default=())
    _placed: Any = PrivateAttr(default=None)
    _kept: dict[str, Any] = PrivateAttr(default_factory=dict)
    """The live state, by name; the engine saves and restores it."""
    _measured: dict[str, Any] = PrivateAttr(default_factory=dict)
    """The metrics that are fields, by name; they start over with each window."""
    _sinks: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Where each output port sends, by name; the engine binds it. An output that is not there drops its items."""
    _batch_sinks: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Where each output port sends many items at once."""
    _control_sinks: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Where each output port sends control tuples."""
    _services: dict[str, Any] = PrivateAttr(default_factory=dict)
    """What the engine does for the operator while a window runs, by the name of its declaration."""

    kind: ClassVar[str] = ""
    """The component's name in plans and ledgers, `<what>/<version>`; it outlives any module path."""

    def __init__(self, **given: Any) -> None:
        try:
            self.__pydantic_validator__.validate_python(given, self_instance=self)
        except ValidationError as invalid:
            self._keep_unvalidated(given)
            errors = invalid.errors(include_url=False)
            self._faults = tuple(_fault(error) for error in errors if error["type"] != "default_factory_not_called")
        self._given = given

    def _keep_unvalidated(self, given: Mapping[str, Any]) -> None:
        """Hold what was given and the defaults of the rest, without running the author's own hooks on it."""
        fields = type(self).model_fields
        values = {
            name: given[name] if name in given else field.get_default(call_default_factory=True)
            for name, field in fields.items()
            if name in given or not (field.is_required() or field.default_factory_takes_validated_data)
        }
        private = {name: _private_default(attribute) for name, attribute in type(self).__private_attributes__.items()}
        object.__setattr__(self, "__dict__", values)
        object.__setattr__(self, "__pydantic_fields_set__", set(values) & set(given))
        object.__setattr__(self, "__pydantic_extra__", None)
        object.__setattr__(self, "__pydantic_private__", private)

    def __setattr__(self, name: str, value: Any) -> None:
        """Properties are frozen; declared state and metrics are there to change."""
        declared = getattr(type(self), name, None)
        if isinstance(declared, Assignable):
            declared.__set__(self, value)
            return
        try:
            super().__setattr__(name, value)
        except ValidationError:
            raise AttributeError(self._unassigned(name)) from None

    def _unassigned(self, name: str) -> str:
        """Why the name cannot be assigned, and what can."""
        told = f"{type(self).__name__}.{name}"
        if name not in type(self).model_fields and not hasattr(type(self), name):
            keep = f"{told} is not declared: declare it, `{name} = State(...)`, so that it is kept"
            return f"{keep}, or call it `_{name}` if it is made again"
        why = "a property" if name in type(self).model_fields else "declared, and not as State"
        return f"{told} is {why}: declare what is to change as State under another name, or let that begin with _"

    def __eq__(self, other: object) -> bool:
        """Two components of one class are equal when their properties are, however these were set."""
        if not isinstance(other, Component):
            return NotImplemented
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """Equal components have equal hashes, whatever their properties hold; those of one class share one."""
        return hash(type(self))

    @property
    def is_made(self) -> bool:
        """Whether `__init__` ran; an author's own may have left it out."""
        return getattr(self, "__pydantic_private__", None) is not None

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the properties as they stand; empty for a component that may run."""
        return self._faults

    @property
    def given(self) -> Mapping[str, Any]:
        """The properties that were set, as they were set."""
        return self._given

    def configured(self, properties: Mapping[str, Any]) -> Self:
        """A component of the same class with these properties set over its own."""
        configured = self.model_copy()
        Component.__init__(configured, **{**self._given, **properties})
        return configured

    def __getstate__(self) -> dict[Any, Any]:
        """What is pickled: the component, and not the Dag that it was placed in, which holds all other components."""
        state = super().__getstate__()
        return {**state, "__pydantic_private__": {**(state["__pydantic_private__"] or {}), "_placed": None}}

    @classmethod
    def declared_kind(cls) -> str:
        """The declared kind, or the class's own name where the author declared none."""
        declared = cls.__dict__.get("kind")
        return declared if declared and isinstance(declared, str) else f"{cls.__qualname__}/1"

    def wire(self, source: Any, sink: Any) -> Any:
        """Draw the stream that `source >> sink` means, in the Dag this component was placed in."""
        if self._placed is None:
            raise ValueError(f"{type(self).__name__} is wired with >> before dag.add_operator placed it")
        return self._placed.wire(source, sink)

    def __rshift__(self, sink: Any) -> Any:
        """Lead the one fitting output into a port or an operator; gives back what it fed, so wires chain."""
        return self.wire(self, sink)


def _private_default(attribute: Any) -> Any:
    """The default of a private attribute; none where its factory wants the validated properties, which are not."""
    if attribute.default_factory is None:
        return deepcopy(attribute.default)
    return None if getattr(attribute, "default_factory_takes_validated_data", False) else attribute.default_factory()


def _fault(error: Any) -> Fault:
    path = ".".join(str(part) for part in error["loc"])
    message = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if message == error["msg"]:
        message = message[:1].lower() + message[1:]
    return Fault(path, message, error["type"] == "missing", error["input"])
