"""Resolving: apply the configuration to each operator, port and stream. It overrides the settings of code.

Two passes then carry what is known from the sources downstream. `infer` finds the types of each operator's type
variables, from its class, inputs and functions, and sets the properties that follow from these types. `settle_modes`
lets operators lose items that are downstream of one that may lose them.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dagkit.api.application import Module, StreamingApplication
from dagkit.api.attributes import DagContext, OperatorContext, PortContext, ProcessingMode
from dagkit.api.configuration import Config, Setting
from dagkit.api.operators import Operator
from dagkit.compiler.alike import merge_alike
from dagkit.compiler.order import running_order
from dagkit.compiler.rules.property_rules import property_faults
from dagkit.conf.apply.settings import Attributes
from dagkit.conf.apply.settings import Settings as Keys
from dagkit.errors import Diagnostic, Severity, Where
from dagkit.graph import Graph, Node, Settings, Stream
from dagkit.schema import arguments_of_class, bind, is_known


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
        # Attributes of the application come first: its codecs convert the properties of operators.
        attributes = self._over(graph.attributes, self.keys.application_attributes())
        if DagContext.STRING_CODECS in attributes and isinstance(attributes[DagContext.STRING_CODECS].value, Mapping):
            self.keys.codecs = attributes[DagContext.STRING_CODECS].value
        nodes = tuple(self._node(graph, node) for node in graph.nodes)
        graph = replace(graph, application=self._name(graph, attributes), attributes=attributes, nodes=nodes)
        graph = self._streams(graph)
        self.diagnostics += self.keys.unmatched(allow_unknown=allow_unknown)
        return graph

    def _name(self, graph: Graph, attributes: Settings) -> str:
        """The name of the application, with unprintable characters replaced. A malformed name becomes a diagnostic."""
        setting = attributes.get(DagContext.APPLICATION_NAME)
        name = self.application if setting is None else str(setting.value)
        where = graph.where if setting is None else setting.origin.where or graph.where
        if not name.isprintable():
            problem = f"the application name {name!r} contains characters that cannot be printed"
            help_ = "use only letters, digits, spaces and punctuation in the name"
            self.diagnostics.append(Diagnostic("name-malformed", problem, help_, where))
        elif name.startswith("."):
            # The name is that of the application's folder, which `--fresh` renames: ".." is the folder of other files.
            problem, help_ = f"the application name {name!r} begins with a dot", "begin the name with another character"
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
        return by_port(
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
        return by_port(
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
            settings = self.keys.stream(stream.name)
            self.diagnostics += settings.diagnostics
            if settings.schema is not None:
                _set_schema(nodes, stream, settings.schema)
            streams.append(stream if settings.locality is None else _placed(stream, settings.locality))
        return replace(graph.with_nodes(nodes), streams=tuple(streams))

    def _over(self, written: Settings, configured: Attributes) -> dict[Any, Setting]:
        """The settings of code, overridden by those of configuration."""
        self.diagnostics += configured.diagnostics
        return {**written, **configured.values}


def by_port(settings: Mapping[str, Settings]) -> dict[str, Settings]:
    """The settings of the ports that have any."""
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


def infer(graph: Graph) -> Graph:
    """The graph with the bindings of every node, upstream first, or by name if there is an undelayed loop."""
    nodes = dict(graph.by_name)
    for name in running_order(graph):
        node = nodes[name]
        # `bind` keeps earlier bindings, so what the author wrote, as in `Filter[Line]`, holds against what flows in.
        bindings = arguments_of_class(type(node.operator))
        fed = dict(graph.connected_inputs(name))
        received = {}
        for port, declared in node.input_ports.items():
            stream = fed.get(port)
            if stream is not None and stream.source is not None:
                received[port] = nodes[stream.source.node].payload(stream.source.declared)
                bind(declared.payload, received[port], bindings)
        known = node.operator if isinstance(node.operator, Operator) and not node.operator.faults else None
        for port, sending in node.output_ports.items():
            sent = None if known is None else known.sent_payload(port, received)
            if sent is not None:
                bind(sending.payload, sent, bindings)
        if bindings:
            nodes[name] = replace(node, bindings=bindings)
        if known is not None and received:
            taken = {
                port: sent if is_known(sent) else nodes[name].payload(node.input_ports[port])
                for port, sent in received.items()
            }
            implied = known.implied_properties(taken)
            if implied:
                nodes[name] = replace(nodes[name], operator=known.configured(implied))
    return graph.with_nodes(nodes)


def settle_modes(graph: Graph) -> tuple[Graph, list[Diagnostic]]:
    """Give AT_MOST_ONCE to every operator downstream of one that has it, loops included, unless it has its own mode."""
    if OperatorContext.PROCESSING_MODE in graph.attributes:
        return graph, []  # it is set for all
    nodes, notes = dict(graph.by_name), list[Diagnostic]()
    spreading = deque(name for name, node in nodes.items() if _may_lose(graph, node))
    while spreading:
        source = spreading.popleft()
        for name in graph.network.successors(source):
            if OperatorContext.PROCESSING_MODE in nodes[name].attributes:
                continue
            setting = Setting(ProcessingMode.AT_MOST_ONCE, _mode(graph, nodes[source]).origin)
            nodes[name] = replace(
                nodes[name], attributes={**nodes[name].attributes, OperatorContext.PROCESSING_MODE: setting}
            )
            notes.append(_lowered(nodes[name], source))
            spreading.append(name)
    return graph.with_nodes(nodes), merge_alike(notes, graph)


def _mode(graph: Graph, node: Node) -> Setting:
    return graph.setting(node, OperatorContext.PROCESSING_MODE)


def _may_lose(graph: Graph, node: Node) -> bool:
    """Whether the mode is AT_MOST_ONCE. A rule reports values that are not modes; they may not even be comparable."""
    mode = _mode(graph, node).value
    return isinstance(mode, str) and mode == ProcessingMode.AT_MOST_ONCE


def _lowered(node: Node, source: str) -> Diagnostic:
    return Diagnostic(
        "mode-mismatch",
        f"{node.name} becomes AT_MOST_ONCE, because {source} feeds it and is AT_MOST_ONCE",
        f"set PROCESSING_MODE of {node.name} to AT_MOST_ONCE to confirm this",
        node.where,
        Severity.WARNING,
    )
