"""The Dag that `populate_dag` fills. It records each declaration of the author, with its line.

A mistake in the graph does not raise: it becomes a diagnostic, and the compiler reports all diagnostics together.
`dagkit.graph` reads what a Dag recorded.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Never, TypeVar, overload

from dagkit.api.attributes import Attribute, Locality
from dagkit.api.component import Component
from dagkit.api.port_pairs import pair_meant
from dagkit.api.ports import Inlet, MissingPort, Outlet, called, input_ports, output_ports
from dagkit.api.traces import shown_path
from dagkit.errors import Code, Diagnostic, Where, did_you_mean

T = TypeVar("T")
ComponentT = TypeVar("ComponentT", bound=Component)

_PACKAGE = str(Path(__file__).parents[1]) + "/"


# Not frozen: an application that is declared in a file replaces the line by one of that file.
@dataclass(slots=True)
class Placement:
    """An operator or a module of a Dag, its name, and the line that added it."""

    name: str
    component: Component
    where: Where


@dataclass(slots=True, eq=False)
class Stream:
    """A named stream: one source and its sinks. `add_stream` returns it, so that ends can be added later."""

    name: str
    where: Where
    source: Outlet[Any] | None = None
    sinks: list[Inlet[Any]] = field(default_factory=list)
    locality: Locality | None = None
    ends: list[tuple[Inlet[Any] | Outlet[Any] | MissingPort, Where]] = field(default_factory=list)
    """Every end that was connected, with its line. A second source is kept here, to be reported."""
    faults: list[Diagnostic] = field(default_factory=list, repr=False)
    """The list of faults of its Dag."""

    def set_source(self, source: Outlet[Any]) -> "Stream":
        """Connect the outlet in which the stream begins. Return the stream."""
        where = _author_line()
        self._report_misplaced(Outlet, source, where)
        self.connect(source, where)
        return self

    def add_sink(self, sink: Inlet[Any]) -> "Stream":
        """Connect a further inlet in which the stream ends. Return the stream."""
        where = _author_line()
        self._report_misplaced(Inlet, sink, where)
        self.connect(sink, where)
        return self

    def begin(self, source: Outlet[Any] | Inlet[Any] | None, sinks: Sequence[Any], where: Where) -> None:
        """Connect the ends that `add_stream` was given. Swapped ends are reported once."""
        turned = next((end for end in sinks if isinstance(end, Outlet)), None)
        if isinstance(source, Inlet) and turned is not None:
            self._report_reversed(f"begins at {source!r}, an input, and ends at {turned!r}, an output", where)
        elif not self._report_misplaced(Outlet, source, where):
            self._report_misplaced(Inlet, turned, where)
        for end in (source, *sinks):
            if end is not None:
                self.connect(end, where)

    def _report_misplaced(self, kind: type, end: object, where: Where) -> bool:
        """Report an inlet given as the source, or an outlet given as a sink. Return whether it was reported."""
        if isinstance(end, kind) or not isinstance(end, Inlet | Outlet):
            return False
        problem = "begins at {!r}, an input" if isinstance(end, Inlet) else "ends at {!r}, an output"
        self._report_reversed(problem.format(end), where)
        return True

    def _report_reversed(self, problem: str, where: Where) -> None:
        help_ = "items flow from an output into inputs: write the output first, and inputs after it"
        self.faults.append(Diagnostic("stream-reversed", f"stream {self.name!r} {problem}", help_, where))

    def connect(self, end: Any, where: Where) -> None:
        """Connect an outlet as the source, unless there is one, or an inlet as a further sink.

        Raise TypeError if the end is not a port.
        """
        if isinstance(end, Outlet):
            self.source = self.source or end
        elif isinstance(end, Inlet):
            self.sinks.append(end)
        elif not isinstance(end, MissingPort):
            raise TypeError(f"stream {self.name!r} is given {end!r}, which is not a port; write operator.port")
        self.ends.append((end, where))

    def set_locality(self, locality: Locality | str | None) -> "Stream":
        """Set how close to each other both ends must run. An unknown locality is reported, not raised."""
        if locality is None or locality in tuple(Locality):
            self.locality = None if locality is None else Locality(locality)
        else:
            help_ = did_you_mean(str(locality), [str(known) for known in Locality])
            problem = f"stream {self.name!r} cannot have the locality {locality!r}"
            self.faults.append(Diagnostic("locality-invalid", problem, help_, _author_line()))
        return self


@dataclass(frozen=True, slots=True)
class Assignment:
    """An attribute that the author set on an operator, on a port, or on the application (`target` None)."""

    target: Component | Inlet[Any] | Outlet[Any] | MissingPort | None
    attribute: Attribute[Any]
    value: Any
    where: Where
    unifier: bool = False


@dataclass(frozen=True, slots=True)
class Exposure:
    """A port of a module, and the inner port that it exposes."""

    outer: Inlet[Any] | Outlet[Any] | MissingPort
    inner: Inlet[Any] | Outlet[Any] | MissingPort
    where: Where


class Dag:
    """The graph of an application or a module, as its author declares it: operators, streams and attributes."""

    drawing: ClassVar[Callable[[Any], Mapping[str, str]] | None] = None
    """Draws a Dag for a notebook. The package `dagkit` sets it, because this layer cannot import that of drawings."""

    def __init__(self, *names: Never) -> None:
        if names:
            raise TypeError("a Dag has no name: an application is called after its class, or by APPLICATION_NAME")
        self.placements: list[Placement] = []
        self.streams: list[Stream] = []
        self.assignments: list[Assignment] = []
        self.exposures: list[Exposure] = []
        self.faults: list[Diagnostic] = []
        self._by_name: dict[str, Placement] = {}
        # By identity, since operators with equal properties are equal, and different vertices.
        self._by_component: dict[int, Placement] = {}
        self._stream_names: dict[str, Stream] = {}
        self._drawn_from: dict[tuple[int, str], Stream] = {}

    # -- operators and modules ---------------------------------------------------------------------------------------

    def add_operator(self, name: str, operator: ComponentT) -> ComponentT:
        """Add an operator under a unique name, and return it. Adding it again under the same name has no effect."""
        return self._place(name, operator)

    def add_module(self, name: str, module: ComponentT) -> ComponentT:
        """Add a module under a unique name, and return it. Its operators get the names `name$inner`."""
        return self._place(name, module)

    def _place(self, name: str, component: ComponentT) -> ComponentT:
        where = _author_line()
        # As objects: a type checker takes their declared types for granted, and not every caller is checked by one.
        given: tuple[object, object] = (name, component)
        if isinstance(given[0], Component) and isinstance(given[1], str):
            raise TypeError(f"{component!r} is not an operator: did you swap name and operator?")
        if not isinstance(component, Component):
            raise TypeError(
                f"{name!r} is {component!r}, neither an operator nor a module; did you forget to call the class?"
            )
        if not component.is_made:
            cls = type(component).__name__
            # So that the compiler can check it, and report further faults.
            Component.__init__(component)
            self._fault(
                "property-invalid",
                f"{name}: __init__ of {cls} does not call that of its base",
                where,
                f"call super().__init__(**properties) in it, or declare properties in {cls} and leave __init__ out",
            )
        present = self._by_component.get(id(component))
        if present is not None:
            if present.name != name:
                self._fault(
                    "operator-reused",
                    f"one {type(component).__name__} is added as {present.name!r} and as {name!r}",
                    where,
                    "make an operator of its own for each name",
                )
            return component
        name = self._named("operator", name, where)
        if name in self._by_name:
            self._fault(
                "operator-duplicated",
                f"two operators are called {name!r}; the first is at {self._by_name[name].where}",
                where,
                "give this one another name",
            )
        placement = Placement(name, component, where)
        self.placements.append(placement)
        # The first operator of a name stays: messages about further ones point to its line.
        self._by_name.setdefault(name, placement)
        self._by_component[id(component)] = placement
        component._placed = self  # noqa: SLF001 - `>>` adds its streams to this Dag
        return component

    def operator(self, name: str) -> Any:
        """The operator or module of this name. Raise KeyError, with a similar name, if there is none."""
        if name not in self._by_name:
            raise KeyError(f"no operator {name!r}; {did_you_mean(name, self._by_name)}")
        return self._by_name[name].component

    def stream(self, name: str) -> Stream:
        """The stream of this name. Raise KeyError, with a similar name, if there is none."""
        if name not in self._stream_names:
            raise KeyError(f"no stream {name!r}; {did_you_mean(name, self._stream_names)}")
        return self._stream_names[name]

    def placement_of(self, component: object) -> Placement | None:
        """The name and line under which this component (the object, not an equal one) was added; None if it was not."""
        return self._by_component.get(id(component))

    # -- streams -----------------------------------------------------------------------------------------------------

    def add_stream(self, name: str, source: Outlet[T] | None = None, /, *sinks: Inlet[T]) -> Stream:
        """Connect an outlet to inlets, under a unique name. `set_source` and `add_sink` can add ends later."""
        where = _author_line()
        stream = self._draw(name, where)
        stream.begin(source, sinks, where)
        return stream

    def _draw(self, name: str, where: Where) -> Stream:
        name = self._named("stream", name, where)
        stream = Stream(name, where, faults=self.faults)
        if name in self._stream_names:
            self._fault(
                "stream-duplicated",
                f"two streams are called {name!r}; the first is at {self._stream_names[name].where}",
                where,
                "give this one another name, or add its sinks to the first",
            )
        self._stream_names.setdefault(name, stream)
        self.streams.append(stream)
        return stream

    def wire(self, source: Any, sink: Any) -> Any:
        """Connect `source >> sink`. For an operator, choose the port that matches. Return the sink."""
        where = _author_line()
        pair = pair_meant(source, sink)
        if isinstance(pair, str):
            self._fault(
                "wiring-ambiguous",
                f"{_shown(source)} >> {_shown(sink)}: {pair}",
                where,
                "write the ports out, as in reader.messages >> keep.input",
            )
            return sink
        outlet, inlet = pair
        port = outlet.port.name if isinstance(outlet, Outlet) else outlet.name
        # One output feeds one stream, so a further `>>` from it adds a sink to that stream.
        drawn = self._drawn_from.get((id(outlet.operator), port))
        if drawn is None:
            name = outlet.stream_name or f"{called(outlet.operator)}:{port}"
            drawn = self._drawn_from[id(outlet.operator), port] = self._draw(name, where)
            drawn.connect(outlet, where)
        elif outlet.stream_name not in (None, drawn.name):
            self._fault(
                "port-taken",
                f"{_shown(outlet)} is already on stream {drawn.name!r}, and cannot be on {outlet.stream_name!r}",
                where,
                "leave the second name out: one stream may have many sinks",
            )
        drawn.connect(inlet, where)
        return sink

    @overload
    def expose(self, outer: Outlet[T], inner: Outlet[T]) -> None: ...
    @overload
    def expose(self, outer: Inlet[T], inner: Inlet[T]) -> None: ...
    def expose(self, outer: Any, inner: Any) -> None:
        """In a module: expose the port `inner` of an operator as the port `outer` of the module."""
        if not any(
            isinstance(outer, kind) and isinstance(inner, kind) for kind in (Inlet | MissingPort, Outlet | MissingPort)
        ):
            raise TypeError(
                f"{inner!r} cannot be exposed as {outer!r}; expose an input as an input, or an output as an output"
            )
        self.exposures.append(Exposure(outer, inner, _author_line()))

    # -- attributes --------------------------------------------------------------------------------------------------

    def set_attribute(self, attribute: Attribute[T], value: T) -> None:
        """Set an attribute of the application, or the default of an operator attribute for all operators."""
        self._assign(None, attribute, value)

    def set_operator_attribute(self, operator: Component, attribute: Attribute[T], value: T) -> None:
        """Set an attribute of an operator, or of every operator in a module."""
        if self._accepts(operator, Component, "set_operator_attribute", "operator"):
            self._assign(operator, attribute, value)

    def set_input_port_attribute(self, port: Inlet[Any], attribute: Attribute[T], value: T) -> None:
        """Set an attribute of an input port."""
        if self._accepts(port, Inlet, "set_input_port_attribute", "input port"):
            self._assign(port, attribute, value)

    def set_output_port_attribute(self, port: Outlet[Any], attribute: Attribute[T], value: T) -> None:
        """Set an attribute of an output port."""
        if self._accepts(port, Outlet, "set_output_port_attribute", "output port"):
            self._assign(port, attribute, value)

    def set_unifier_attribute(self, port: Outlet[Any], attribute: Attribute[T], value: T) -> None:
        """Set an operator attribute of the unifier of an output port, if the operator gets several partitions."""
        if self._accepts(port, Outlet, "set_unifier_attribute", "output port"):
            self._assign(port, attribute, value, unifier=True)

    def _accepts(self, target: object, kind: type, method: str, what: str) -> bool:
        """Whether the method accepts such a target. If not, report the fault, with the method to use."""
        if isinstance(target, kind | MissingPort):
            return True
        setters = {Inlet: "set_input_port_attribute", Outlet: "set_output_port_attribute"}
        fitting = next((setter for end, setter in setters.items() if isinstance(target, end)), None)
        help_ = f"call {fitting}, or give it an {what}" if fitting else f"give it an {what}, as in reader.messages"
        if isinstance(target, Component):
            ports = (input_ports if kind is Inlet else output_ports)(type(target))
            help_ = f"call set_operator_attribute, or give it a port of {called(target)}: {', '.join(ports) or 'none'}"
        elif kind is Component and fitting is None:
            help_ = "give it the operator that add_operator returned"
        named = called(target) if isinstance(target, Component) else repr(target)
        self._fault("attribute-misplaced", f"{method} is given {named}, which is not an {what}", _author_line(), help_)
        return False

    def _assign(self, target: Any, attribute: Attribute[T], value: T, *, unifier: bool = False) -> None:
        if not isinstance(attribute, Attribute):
            raise TypeError(f"{attribute!r} is not an attribute; use one of DagContext, OperatorContext or PortContext")
        self.assignments.append(Assignment(target, attribute, value, _author_line(), unifier))

    # -- faults and pictures -----------------------------------------------------------------------------------------

    def _named(self, what: str, name: Any, where: Where) -> str:
        """The name as printable text. A missing or malformed name is reported."""
        if not name:
            self._fault(
                "name-missing",
                f"{'an' if what == 'operator' else 'a'} {what} has no name",
                where,
                f"give the {what} a name, as in {'Block-reader' if what == 'operator' else 'records'!r}",
            )
        elif not (isinstance(name, str) and name.isprintable()):
            self._fault(
                "name-malformed",
                f"the {what} name {name!r} is not printable text",
                where,
                "use letters, digits, spaces and punctuation",
            )
        elif "." in name:
            self._fault(
                "name-malformed",
                f"the {what} name {name!r} contains a dot",
                where,
                f"property keys are split on dots: call it {name.replace('.', '-')!r}",
            )
        return "".join(char if char.isprintable() else "\N{MIDDLE DOT}" for char in str(name or ""))

    def _fault(self, code: Code, problem: str, where: Where, help_: str) -> None:
        self.faults.append(Diagnostic(code, problem, help_, where))

    def _repr_mimebundle_(self, **_: Any) -> Mapping[str, str]:
        return Dag.drawing(self) if Dag.drawing is not None else {"text/plain": repr(self)}

    def _repr_svg_(self) -> str | None:
        return self._repr_mimebundle_().get("image/svg+xml")

    def __repr__(self) -> str:
        return f"<Dag of {len(self.placements)} operators and {len(self.streams)} streams>"


def _author_line() -> Where:
    """The innermost line on the stack that is not dagkit's own."""
    frame = sys._getframe(1)  # noqa: SLF001 - inspect.stack would read source files at each call
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    return Where(shown_path(frame.f_code.co_filename), frame.f_lineno)


def _shown(end: Any) -> str:
    """An end of a stream in messages: the author's name for an operator, or `operator.port`."""
    return called(end) if isinstance(end, Component) else repr(end)
