"""Components: operators, modules and applications, all of which have properties.

A component is a frozen pydantic model. Its constructor never raises for an invalid property, because a property file
may still set that property, and because the compiler reports all faults together. The component keeps the given
values, and `faults` lists what is wrong with them.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from dagkit.api.declared import Assignable, PerInstance
from dagkit.api.ports import InputPort, OutputPort
from dagkit.errors import did_you_mean


@dataclass(frozen=True, slots=True)
class Fault:
    """An invalid property, by its dotted path; `missing` if it has no value."""

    path: str
    """Empty if each property is valid by itself, and the combination of them is not."""
    message: str
    missing: bool = False
    unknown: bool = False
    """Whether there is no such property."""
    value: Any = field(default=None, compare=False)
    """The given value, or the default."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Component(BaseModel):
    """Configuration whose fields are properties: validated, settable from property files, listed by `describe`."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        validate_default=True,
        ignored_types=(InputPort, OutputPort, PerInstance),
    )
    _given: dict[str, Any] = PrivateAttr(default_factory=dict)
    _faults: tuple[Fault, ...] = PrivateAttr(default=())
    _placed: Any = PrivateAttr(default=None)
    _kept: dict[str, Any] = PrivateAttr(default_factory=dict)
    """The current state, by name. The engine saves and restores it."""
    _types: Mapping[Any, Any] = PrivateAttr(default_factory=dict)
    """The types that type variables stand for in state. The engine sets it."""
    _measured: dict[str, Any] = PrivateAttr(default_factory=dict)
    """The metrics that are fields, by name. They are reset at the start of each window."""
    _sinks: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Where each output port sends items, by port name. The engine binds it; an unbound port drops its items."""
    _batch_sinks: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Where each output port sends batches of items."""
    _control_sinks: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Where each output port sends control tuples."""
    _services: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Services of the engine, such as output files, by the name of their declaration; only while a window runs."""

    kind: ClassVar[str] = ""
    """The component's name in plans and ledgers, `<name>/<version>`. It stays the same if the class moves."""

    def __init__(self, *first: Any, **given: Any) -> None:
        """Take properties by their names. The first argument may be the one that is declared with `kw_only=False`."""
        given |= _by_name(type(self), first, given) if first else {}
        try:
            self.__pydantic_validator__.validate_python(given, self_instance=self)
        except ValidationError as invalid:
            self._keep_unvalidated(given)
            errors = invalid.errors(include_url=False)
            # A default that is computed from other properties is missing only because of their faults.
            self._faults = tuple(
                _fault(type(self), error) for error in errors if error["type"] != "default_factory_not_called"
            )
        self._given = given

    def _keep_unvalidated(self, given: Mapping[str, Any]) -> None:
        """Keep the given values, and defaults for the rest, without calling the author's validation hooks."""
        fields = type(self).model_fields
        values = {
            name: given[name] if name in given else field.get_default(call_default_factory=True)
            for name, field in fields.items()
            if name in given or not (field.is_required() or field.default_factory_takes_validated_data)
        }
        private = {name: _private_default(attribute) for name, attribute in type(self).__private_attributes__.items()}
        # `model_construct` does the same, but returns another object than the one that the author gets.
        object.__setattr__(self, "__dict__", values)
        object.__setattr__(self, "__pydantic_fields_set__", set(values) & set(given))
        object.__setattr__(self, "__pydantic_extra__", None)
        object.__setattr__(self, "__pydantic_private__", private)

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign declared state or a metric. Raise AttributeError for any other public name: properties are frozen."""
        # pydantic would refuse the assignment: the model is frozen, and a declaration is no field.
        declared = getattr(type(self), name, None)
        if isinstance(declared, Assignable):
            declared.__set__(self, value)
            return
        try:
            super().__setattr__(name, value)
        except ValidationError:
            raise AttributeError(self._unassigned(name)) from None

    def _unassigned(self, name: str) -> str:
        """The error message for an assignment to this name."""
        attribute = f"{type(self).__name__}.{name}"
        if name not in type(self).model_fields and not hasattr(type(self), name):
            state = f"declare it, `{name} = State(...)`, to have it saved"
            return f"{attribute} is not declared: {state}, or call it `_{name}` if `setup` can create it again"
        why = "a property" if name in type(self).model_fields else "declared, but not as State"
        help_ = "keep a changing value in State under another name, or in an attribute whose name begins with _"
        return f"{attribute} is {why}: {help_}"

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, name: str) -> Any:
            """Look up a private attribute. pydantic takes ten times as long, and operators use them for each item."""
            try:
                return object.__getattribute__(self, "__pydantic_private__")[name]
            except (AttributeError, KeyError, TypeError):
                # Not a private attribute, or `__init__` did not run.
                pass
            # Outside of the handler, so that the error has no context.
            return super().__getattr__(name)

    def __eq__(self, other: object) -> bool:
        """Whether both are of the same class and have equal properties, however these were set."""
        if not isinstance(other, Component):
            return NotImplemented
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """The hash of the class, because the values of properties need not be hashable."""
        return hash(type(self))

    def __repr__(self) -> str:
        """The component as Python writes it, with its faults: building one never raises."""
        shown = super().__repr__()
        return f"<{shown} cannot run: {'; '.join(map(str, self._faults))}>" if self.is_made and self._faults else shown

    @property
    def is_made(self) -> bool:
        """Whether `Component.__init__` ran. The `__init__` of a subclass may have failed to call it."""
        return getattr(self, "__pydantic_private__", None) is not None

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults of the current properties; empty if the component can run."""
        return self._faults

    @property
    def given(self) -> Mapping[str, Any]:
        """The properties that were set, with the values as given, before conversion."""
        return self._given

    def configured(self, properties: Mapping[str, Any]) -> Self:
        """A copy of this component with these properties set."""
        # Without the constructor of the class: that of an author may take other arguments than properties.
        configured = self.model_copy()
        Component.__init__(configured, **{**self._given, **properties})
        return configured

    def __getstate__(self) -> dict[Any, Any]:
        """Pickle the component without its Dag, which holds all other components."""
        state = super().__getstate__()
        return {**state, "__pydantic_private__": {**(state["__pydantic_private__"] or {}), "_placed": None}}

    @classmethod
    def declared_kind(cls) -> str:
        """The kind that the class itself declares, else the name of the class with version 1."""
        declared = cls.__dict__.get("kind")
        return declared if declared and isinstance(declared, str) else f"{cls.__qualname__}/1"

    def wire(self, source: Any, sink: Any) -> Any:
        """Add the stream that `source >> sink` means to the Dag of this component."""
        if self._placed is None:
            raise ValueError(f"{type(self).__name__} is wired with >> before dag.add_operator placed it")
        return self._placed.wire(source, sink)

    def __rshift__(self, sink: Any) -> Any:
        """Connect the one matching output to a port or an operator. Return that sink, so that `>>` can be chained."""
        return self.wire(self, sink)


def _by_name(cls: type[BaseModel], first: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments without a name, by the properties that they set. Raise TypeError for too many."""
    names = [name for name, field in cls.model_fields.items() if field.kw_only is False]
    if len(first) > len(names):
        takes = f"only {names[0]} can be set without its name" if names else "properties are set by their names"
        raise TypeError(f"{cls.__name__}(…): {takes}; it has {', '.join(cls.model_fields) or 'none'}")
    named = dict(zip(names, first, strict=False))
    for name in named.keys() & given.keys():
        raise TypeError(f"{cls.__name__}(…): {name} is set twice, without its name and by it")
    return named


def _private_default(attribute: Any) -> Any:
    """The default of a private attribute; None if its factory needs validated properties, which do not exist."""
    if attribute.default_factory is None:
        return deepcopy(attribute.default)
    return None if getattr(attribute, "default_factory_takes_validated_data", False) else attribute.default_factory()


_OF_SEVERAL: Mapping[str, Callable[[str], str]] = {
    "tuple_type": "({!r},)".format,
    "list_type": "[{!r}]".format,
    "set_type": "{{{!r}}}".format,
}
"""How several values are written of which one was given, by the type of the error."""


def _fault(kind: type[Component], error: Any) -> Fault:
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        # A longer path leads into another model, which has other fields.
        meant = f"; {did_you_mean(path, kind.model_fields)}" if len(error["loc"]) == 1 else ""
        return Fault(path, f"there is no such property{meant}", unknown=True, value=error["input"])
    message = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    # Only words of pydantic are adapted to the sentence. Those of an author's validator stay as they are.
    if message == error["msg"]:
        message = message[:1].lower() + message[1:]
    if isinstance(error["input"], str) and error["type"] in _OF_SEVERAL:
        message += f", such as {_OF_SEVERAL[error['type']](error['input'])}"
    return Fault(path, message, error["type"] == "missing", value=error["input"])
