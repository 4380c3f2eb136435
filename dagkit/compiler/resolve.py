"""Resolving: apply the configuration to each operator, port and stream. It overrides the settings of code."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dagkit.api.application import Module, StreamingApplication
from dagkit.api.attributes import DagContext, PortContext
from dagkit.api.configuration import Config, Setting
from dagkit.compiler.rules.property_rules import property_faults
from dagkit.conf.apply.settings import Attributes
from dagkit.conf.apply.settings import Settings as Keys
from dagkit.errors import Diagnostic, Where
from dagkit.graph import Graph, Node, Settings, Stream


class Resolver:
    """Applies one configuration to one application; records which keys matched, and every fault."""

    def __init__(
        self, conf: Config, author: StreamingApplication | None, otherwise: str, diagnostics: list[Diagnostic]
    ) -> None:
        self.keys = Keys(conf, otherwise if author is None else author)
        self.application = self.keys.application
        self.diagnostics = diagnostics
        """The diagnostics of all passes so far. This pass appends its own."""

    def configured_application(self, author: StreamingApplication, where: Where | None) -> StreamingApplication:
        """The application with the properties that configuration sets on it, before its `populate_dag` runs."""
        configured = self.keys.configure_application(author)
        self.diagnostics += configured.diagnostics
        self.diagnostics += property_faults(self.application, configured.component, where, configured.origins)
        return configured.component

    def configured_module(self, node: Node) -> Module:
        """A module with the properties that configuration sets on it, before its `populate_dag` runs."""
        assert isinstance(node.operator, Module), "only modules are configured before they are expanded"
        configured = self.keys.configure(node.name, node.operator)
        self.diagnostics += configured.diagnostics
        self.diagnostics += property_faults(node.name, configured.component, node.where, configured.origins)
        return configured.component

    def resolve(self, graph: Graph, *, allow_unknown: bool) -> Graph:
        """The graph with every value that configuration sets. Each key that matches nothing becomes a diagnostic."""
        attributes = self._over(graph.attributes, self.keys.application_attributes())
        if DagContext.STRING_CODECS in attributes and isinstance(attributes[DagContext.STRING_CODECS].value, Mapping):
            self.keys.codecs = attributes[DagContext.STRING_CODECS].value
        nodes = tuple(self._node(graph, node) for node in graph.nodes)
        graph = replace(graph, application=self._name(graph, attributes), attributes=attributes, nodes=nodes)
        graph = self._streams(graph)
        self.diagnostics += self.keys.unmatched(allow_unknown=allow_unknown)
        return graph

    def _name(self, graph: Graph, attributes: Settings) -> str:
        """The name of the application, with unprintable characters replaced. Such a name becomes a diagnostic."""
        setting = attributes.get(DagContext.APPLICATION_NAME)
        name = self.application if setting is None else str(setting.value)
        if not name.isprintable():
            where = graph.where if setting is None else setting.origin.where or graph.where
            problem = f"the application name {name!r} contains characters that cannot be printed"
            help_ = "use only letters, digits, spaces and punctuation in the name"
            self.diagnostics.append(Diagnostic("name-malformed", problem, help_, where))
        return "".join(character if character.isprintable() else "\N{MIDDLE DOT}" for character in name)

    def _node(self, graph: Graph, node: Node) -> Node:
        configured = self.keys.configure(node.name, node.operator)
        self.diagnostics += configured.diagnostics
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
        """The graph with the localities and schemas of streams that configuration sets, copied once for all streams."""
        streams, nodes = list[Stream](), dict(graph.by_name)
        for stream in graph.streams:
            found = self.keys.stream(stream.name)
            self.diagnostics += found.diagnostics
            if found.schema is not None:
                _set_schema(nodes, stream, found.schema)
            streams.append(stream if found.locality is None else _placed(stream, found.locality))
        return replace(graph.with_nodes(nodes), streams=tuple(streams))

    def _over(self, written: Settings, found: Attributes) -> dict[Any, Setting]:
        """The settings of code, overridden by those of configuration."""
        self.diagnostics += found.diagnostics
        return {**written, **found.values}


def _by_port(settings: Mapping[str, Settings]) -> dict[str, Settings]:
    return {port: of_port for port, of_port in settings.items() if of_port}


def _placed(stream: Stream, locality: Setting) -> Stream:
    return replace(stream, locality=locality.value, locality_origin=locality.origin)


def _set_schema(nodes: dict[str, Node], stream: Stream, setting: Setting) -> None:
    """Set TUPLE_CLASS on every port of the stream."""
    for end in stream.sinks:
        node = nodes[end.node]
        nodes[end.node] = replace(node, inputs=_with_schema(node.inputs, end.port, setting))
    if stream.source is not None:
        node = nodes[stream.source.node]
        nodes[node.name] = replace(node, outputs=_with_schema(node.outputs, stream.source.port, setting))


def _with_schema(by_port: Mapping[str, Settings], port: str, setting: Setting) -> Mapping[str, Settings]:
    return {**by_port, port: {**by_port.get(port, {}), PortContext.TUPLE_CLASS: setting}}
