"""Resolving: what configuration says about each operator, port and stream takes its place over what code said."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dagkit.api.application import Module, StreamingApplication
from dagkit.api.attributes import DagContext, PortContext
from dagkit.api.configuration import Config
from dagkit.compiler.rules.property_rules import property_faults
from dagkit.conf.apply.settings import Attributes, Found
from dagkit.conf.apply.settings import Settings as Keys
from dagkit.errors import Diagnostic, Where
from dagkit.graph import Graph, Node, Setting, Settings, Stream


class Resolver:
    """One configuration, held against one application; it remembers which keys were of use, and what was wrong."""

    def __init__(
        self, conf: Config, author: StreamingApplication | None, otherwise: str, told: list[Diagnostic]
    ) -> None:
        keys = Keys(conf)
        self.application = str(keys.name_of(author).value) if author is not None else otherwise
        self.keys = keys.of(self.application)
        self.told = told
        """What was told so far, in this pass and in others: what goes wrong here is added to it."""

    def configured_application(self, author: StreamingApplication, where: Where | None) -> StreamingApplication:
        """The application with the properties that configuration sets on it, before it draws."""
        configured = self.keys.configure_application(author)
        self.told += configured.diagnostics
        self.told += property_faults(self.application, configured.component, where, configured.origins)
        return configured.component

    def configured_module(self, node: Node) -> Module:
        """A module with the properties that configuration sets on it, before it draws."""
        assert isinstance(node.operator, Module), "only modules are configured before they are expanded"
        configured = self.keys.configure(node.name, node.operator)
        self.told += configured.diagnostics
        self.told += property_faults(node.name, configured.component, node.where, configured.origins)
        return configured.component

    def resolve(self, graph: Graph, *, allow_unknown: bool) -> Graph:
        """The graph with every value that configuration gives, and a diagnostic for each key that met nothing."""
        attributes = self._over(graph.attributes, self.keys.application_attributes())
        if DagContext.STRING_CODECS in attributes and isinstance(attributes[DagContext.STRING_CODECS].value, Mapping):
            self.keys.codecs = attributes[DagContext.STRING_CODECS].value
        nodes = tuple(self._node(graph, node) for node in graph.nodes)
        graph = replace(graph, application=self._name(graph, attributes), attributes=attributes, nodes=nodes)
        graph = self._streams(graph)
        self.told += self.keys.unmatched(allow_unknown=allow_unknown)
        return graph

    def _name(self, graph: Graph, attributes: Settings) -> str:
        """What the application is called; a name that cannot be printed, or be written as JSON, is told."""
        setting = attributes.get(DagContext.APPLICATION_NAME)
        name = self.application if setting is None else str(setting.value)
        if not name.isprintable():
            where = graph.where if setting is None else setting.origin.where or graph.where
            problem = f"the application name {name!r} cannot be printed as it is"
            help_ = "name it with letters, digits, blanks and signs"
            self.told.append(Diagnostic("name-malformed", problem, help_, where))
        return "".join(letter if letter.isprintable() else "\N{MIDDLE DOT}" for letter in name)

    def _node(self, graph: Graph, node: Node) -> Node:
        configured = self.keys.configure(node.name, node.operator)
        self.told += configured.diagnostics
        return replace(
            node,
            operator=configured.component,
            property_origins=configured.origins,
            attributes=self._over(node.attributes, self.keys.operator_attributes(node.name)),
            inputs=self._ports(graph, node, node.inputs, output=False),
            outputs=self._ports(graph, node, node.outputs, output=True),
            unifiers=self._unifiers(graph, node),
        )

    def _ports(
        self, graph: Graph, node: Node, written: Mapping[str, Settings], *, output: bool
    ) -> Mapping[str, Settings]:
        streams = graph.streams_from if output else graph.streams_into
        return _by_port(
            {
                port: self._over(
                    written.get(port, {}),
                    self.keys.port_attributes(
                        node.name, port, output=output, connected=node.unsure or bool(streams(node.name, port))
                    ),
                )
                for port in (node.output_ports if output else node.input_ports)
            }
        )

    def _unifiers(self, graph: Graph, node: Node) -> Mapping[str, Settings]:
        return _by_port(
            {
                port: self._over(
                    node.unifiers.get(port, {}),
                    self.keys.unifier_attributes(
                        node.name, port, connected=node.unsure or bool(graph.streams_from(node.name, port))
                    ),
                )
                for port in node.output_ports
            }
        )

    def _streams(self, graph: Graph) -> Graph:
        """The graph whose streams are as near, and carry what, configuration says; copied once for all of them."""
        streams, nodes = list[Stream](), dict(graph.by_name)
        for stream in graph.streams:
            found = self.keys.stream(stream.name)
            self.told += found.diagnostics
            if found.schema is not None:
                _tell_schema(nodes, stream, found.schema)
            streams.append(stream if found.locality is None else _placed(stream, found.locality))
        return replace(graph.with_nodes(nodes), streams=tuple(streams))

    def _over(self, written: Settings, found: Attributes) -> dict[Any, Setting]:
        """What code set, with what configuration sets over it."""
        self.told += found.diagnostics
        return {**written, **{a: Setting(f.value, f.origin) for a, f in found.values.items()}}


def _by_port(settings: Mapping[str, Settings]) -> dict[str, Settings]:
    return {port: of_port for port, of_port in settings.items() if of_port}


def _placed(stream: Stream, locality: Found) -> Stream:
    return replace(stream, locality=locality.value, locality_origin=locality.origin)


def _tell_schema(nodes: dict[str, Node], stream: Stream, schema: Found) -> None:
    """Let every port on the stream know the class of what flows."""
    setting = Setting(schema.value, schema.origin)
    for end in stream.sinks:
        node = nodes[end.node]
        nodes[end.node] = replace(node, inputs=_told(node.inputs, end.port, setting))
    if stream.source is not None:
        node = nodes[stream.source.node]
        nodes[node.name] = replace(node, outputs=_told(node.outputs, stream.source.port, setting))


def _told(by_port: Mapping[str, Settings], port: str, setting: Setting) -> Mapping[str, Settings]:
    return {**by_port, port: {**by_port.get(port, {}), PortContext.TUPLE_CLASS: setting}}
