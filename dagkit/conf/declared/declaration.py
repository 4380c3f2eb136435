"""An application that is declared as data: its operators, its streams, and their settings."""

import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dagkit.api.application import Module, StreamingApplication
from dagkit.api.component import Component
from dagkit.api.configuration import Config, Origin, Source
from dagkit.api.dag import Dag, Stream
from dagkit.api.operators import Operator
from dagkit.api.ports import Inlet, Outlet, input_ports, output_ports
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import Address, Element, PropertyPath
from dagkit.conf.values.classes import ClassNotFound, find_class
from dagkit.conf.values.properties import with_properties
from dagkit.errors import Diagnostic, Where, did_you_mean


@dataclass(frozen=True, slots=True)
class DeclaredOperator:
    """An operator by name and class."""

    name: str
    class_name: str
    where: Where


@dataclass(frozen=True, slots=True)
class DeclaredEnd:
    """A port that a stream names."""

    operator: str
    port: str
    where: Where


@dataclass(frozen=True, slots=True)
class DeclaredStream:
    """A stream by name, with its ends."""

    name: str
    where: Where
    source: DeclaredEnd | None = None
    sinks: tuple[DeclaredEnd, ...] = ()
    locality: tuple[str, Where] | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """The content of a declaring file, in its order."""

    name: str
    operators: tuple[DeclaredOperator, ...] = ()
    streams: tuple[DeclaredStream, ...] = ()
    settings: tuple[ParsedEntry, ...] = ()
    """Values that configuration overrides, with their references."""
    variables: dict[str, Any] = field(default_factory=dict)
    """Values that references in the file may name, besides the configuration."""
    faults: tuple[Diagnostic, ...] = ()


class DeclaredApplication(StreamingApplication):
    """The application that a declaration describes."""

    declaration: Declaration

    @property
    def application_name(self) -> str:
        return self.declaration.name

    def populate_dag(self, dag: Dag, conf: Config) -> None:  # noqa: ARG002 - configuration is applied to the graph
        _Pen(dag, self.declaration).draw()


class _Pen:
    """Fills a Dag from a declaration. What it adds has the lines of the declaring file."""

    def __init__(self, dag: Dag, declaration: Declaration) -> None:
        self.dag, self.faults = dag, dag.faults
        self.declaration = declaration
        self.components: dict[str, Component | None] = {}
        self.properties = _plain_properties(declaration)

    def draw(self) -> None:
        self.faults.extend(self.declaration.faults)
        for operator in self.declaration.operators:
            self.place(operator)
        for stream in self.declaration.streams:
            self.connect(stream)

    def place(self, declared: DeclaredOperator) -> None:
        component = self.made(declared)
        if component is not None:
            with self.lines_of(declared.where):
                self.dag.add_operator(declared.name, component)
        self.components.setdefault(declared.name, component)

    def made(self, declared: DeclaredOperator) -> Component | None:
        """The operator with the properties that are set on its name. Configuring it later reports invalid values."""
        try:
            cls = find_class(declared.class_name, is_called=False)
        except ClassNotFound as missing:
            self.fault("class-not-found", f"operator {declared.name!r}: {missing}", missing.help, declared.where)
            return None
        if not issubclass(cls, Operator | Module) or inspect.isabstract(cls):
            what = "abstract" if issubclass(cls, Operator | Module) else "neither an operator nor a module"
            problem = f"operator {declared.name!r}: {cls.__name__} is {what}"
            self.fault("class-not-found", problem, "name a class that can be placed", declared.where)
            return None
        try:
            component = cls()
        except Exception as raised:  # noqa: BLE001 - the author's constructor may raise anything: it is reported
            problem = f"operator {declared.name!r}: {cls.__name__}() raises {type(raised).__name__}: {raised}"
            self.fault("populate-failed", problem, "let its constructor work without arguments", declared.where)
            return None
        return with_properties(component, self.properties[declared.name], declared.name).component

    def connect(self, declared: DeclaredStream) -> None:
        with self.lines_of(declared.where):
            stream = self.dag.add_stream(declared.name)
        for end, is_source in ((declared.source, True), *((sink, False) for sink in declared.sinks)):
            if end is not None:
                with self.lines_of(end.where, stream):
                    self.connect_end(stream, end, is_source=is_source)
        if declared.locality is not None:
            locality, where = declared.locality
            with self.lines_of(where):
                stream.set_locality(locality)

    def connect_end(self, stream: Stream, end: DeclaredEnd, *, is_source: bool) -> None:
        if end.operator not in self.components:
            problem = f"stream {stream.name!r} names {end.operator}.{end.port}, but there is no operator of that name"
            self.fault("operator-unknown", problem, did_you_mean(end.operator, self.components), end.where)
            return
        component = self.components[end.operator]
        if component is None:
            return
        ports: dict[str, Any] = dict((output_ports if is_source else input_ports)(type(component)))
        port = ports.get(end.port)
        if port is None:
            kind = "output" if is_source else "input"
            problem = f"stream {stream.name!r} names {end.operator}.{end.port}, but it has no {kind} of that name"
            self.fault("port-unknown", problem, did_you_mean(end.port, ports, f"it has no {kind}"), end.where)
        elif is_source:
            stream.set_source(Outlet(component, port))
        else:
            stream.add_sink(Inlet(component, port))

    def fault(self, code: Any, problem: str, help_: str, where: Where) -> None:
        self.faults.append(Diagnostic(code, problem, help_, where))

    @contextmanager
    def lines_of(self, where: Where, stream: Stream | None = None) -> Iterator[None]:
        """Within the context, give everything that is added to the Dag this line instead of a line of Python."""
        faults, placements, streams = len(self.faults), len(self.dag.placements), len(self.dag.streams)
        ends = len(stream.ends) if stream is not None else 0
        yield
        self.faults[faults:] = [replace(fault, where=where) for fault in self.faults[faults:]]
        for placement in self.dag.placements[placements:]:
            placement.where = where
        for drawn in self.dag.streams[streams:]:
            drawn.where = where
        if stream is not None:
            stream.ends[ends:] = [(end, where) for end, _ in stream.ends[ends:]]


def _plain_properties(declaration: Declaration) -> Mapping[str, list[ParsedEntry]]:
    """The plain values that are set on operators by name. References are resolved when the operator is configured."""
    properties: defaultdict[str, list[ParsedEntry]] = defaultdict(list)
    for setting in declaration.settings:
        address = setting.address
        is_reference = isinstance(setting.value, str) and "${" in setting.value
        if address.element is Element.OPERATOR and isinstance(address.sets, PropertyPath) and not is_reference:
            assert address.name is not None, "an operator has a name"
            properties[address.name.text].append(setting)
    return properties


def setting(address: Address, raw: Any, where: Where, key: str) -> ParsedEntry:
    """A value that a declaration sets."""
    return ParsedEntry(key, raw, Origin(Source.CODE, where, key), address)
