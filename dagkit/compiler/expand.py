"""Expanding: replace each module by its operators, under names that begin with the module's name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from dagkit.api.application import Module
from dagkit.api.attributes import Scope
from dagkit.api.configuration import Config
from dagkit.api.dag import Dag
from dagkit.api.ports import MissingPort, Outlet
from dagkit.compiler.alike import merge_alike
from dagkit.compiler.draw import draw
from dagkit.compiler.resolve import by_port
from dagkit.errors import Code, Diagnostic, Where
from dagkit.graph import SEPARATOR, End, Graph, Node, Settings, Stream, graph_of
from dagkit.plan.fingerprint import canonical
from dagkit.plan.portable import portable

Configure = Callable[[Node], Module]
"""Returns the module of a node with the properties that configuration sets on it."""

DEEPEST = 100
"""How deep modules may nest. A deeper module probably contains itself."""


def expand(graph: Graph, conf: Config, configure: Configure) -> tuple[Graph, list[Diagnostic], BaseException | None]:
    """The graph with every module, at any depth, replaced by its operators; the faults; and what was raised."""
    expansion = _Expansion(conf, configure)
    while expansion.raised is None and any(node.is_module for node in graph.nodes):
        graph = expansion.one_level(graph)
    return graph, merge_alike(expansion.faults, graph), expansion.raised


@dataclass(frozen=True, slots=True)
class _Inside:
    """The contents of a module: its own graph, renamed, and the inner ends behind each of its ports."""

    graph: Graph
    behind: Mapping[tuple[str, bool], tuple[End, ...]]
    unsure: bool = False
    """Whether the module exposes an end under a port that it does not have. Any of its ports may have been meant."""


class _Expansion:
    """Replaces modules by their operators, level by level, and collects the faults."""

    def __init__(self, conf: Config, configure: Configure) -> None:
        self.conf = conf
        self.configure = configure
        self.faults: list[Diagnostic] = []
        self.raised: BaseException | None = None
        self.around: dict[str, tuple[Module, ...]] = {}
        """For each module inside another, by full name: the modules around it, the outermost first."""

    def one_level(self, graph: Graph) -> Graph:
        """The graph with its modules replaced by their contents, in which there may be modules again."""
        names = _Names(graph, self.faults)
        insides = {node.name: self._inside(node, names) for node in graph.nodes if node.is_module}
        nodes = tuple(
            inner
            for node in graph.nodes
            for inner in (
                (_inherited(n, node, insides[node.name]) for n in insides[node.name].graph.nodes)
                if node.name in insides
                else (node,)
            )
        )
        drawn = tuple(_rewired(stream, graph, insides, self.faults) for stream in graph.streams)
        within = tuple(stream for inside in insides.values() for stream in inside.graph.streams)
        return replace(graph, nodes=nodes, streams=(*drawn, *within))

    def _inside(self, node: Node, names: "_Names") -> _Inside:
        module = self.configure(node)
        around = self.around.get(node.name, ())
        if len(around) == DEEPEST or any(_alike(module, outer) for outer in around):
            self._endless(node, len(around))
        # An exception of one module ends the compiler, so `populate_dag` of the others does not run any more.
        if self.raised is not None:
            return _Inside(Graph(node.name), {})
        dag, unfinished, self.raised = draw(module, self.conf)
        self.faults += [unfinished] if unfinished else []
        graph, faults = graph_of(dag, node.name)
        self.faults += [*faults, *_application_attributes(graph)]
        renamed = names.inside(node.name, graph)
        self.around |= {inner.name: (*around, module) for inner in renamed.nodes if inner.is_module}
        inner_names = {id(n.operator): n.name for n in renamed.nodes}
        unsure = any(isinstance(exposure.outer, MissingPort) for exposure in dag.exposures)
        # The module that ran may be a configured copy of the one that was added. A port of either is a port of this
        # module.
        return _Inside(renamed, _behind(node, dag, inner_names, (node.operator, module), self.faults), unsure)

    def _endless(self, node: Node, depth: int) -> None:
        if self.raised is None:
            outermost = node.name.split(SEPARATOR)[0]
            problem = f"module {outermost} never ends: {type(node.operator).__name__} contains itself"
            if depth == DEEPEST:
                problem = f"module {outermost} contains modules more than {DEEPEST} deep"
            help_ = "let populate_dag add the inner module only on a condition that becomes false at some depth"
            self.faults.append(Diagnostic("populate-failed", problem, help_, node.where))
            self.raised = RecursionError(problem)


def _alike(module: Module, other: Module) -> bool:
    """Whether both are of one class with equal properties. Values without `==`, like arrays, compare by data."""
    if type(module) is not type(other) or vars(module).keys() != vars(other).keys():
        return False
    return all(_equal(value, vars(other)[name]) for name, value in vars(module).items())


def _equal(value: Any, other: Any) -> bool:
    try:
        return value is other or bool(value == other)
    except Exception:  # noqa: BLE001 - the author's values may raise anything when compared
        return canonical(portable(value)) == canonical(portable(other))


def _application_attributes(graph: Graph) -> Iterable[Diagnostic]:
    """A module is not the application: attributes that only an application has would be lost."""
    for attribute, setting in graph.attributes.items():
        if attribute.scope is Scope.APPLICATION:
            yield Diagnostic(
                "attribute-misplaced",
                f"{attribute.qualified} is set in module {graph.application}, but it belongs to the application",
                "set it in populate_dag of the application",
                setting.origin.where,
            )


class _Names:
    """Gives the operators and streams of a module their full names, and reports names that are already used."""

    def __init__(self, graph: Graph, faults: list[Diagnostic]) -> None:
        self.operators = {node.name: node.where for node in graph.nodes}
        self.streams = {stream.name: stream.where for stream in graph.streams}
        self.faults = faults

    def inside(self, module: str, graph: Graph) -> Graph:
        names = {node.name: self._new("operator", self.operators, module, node) for node in graph.nodes}

        def renamed(end: End) -> End:
            return replace(end, node=names[end.node])

        return replace(
            graph,
            nodes=tuple(replace(node, name=names[node.name]) for node in graph.nodes),
            streams=tuple(
                replace(
                    stream,
                    name=self._new("stream", self.streams, module, stream),
                    sources=tuple(map(renamed, stream.sources)),
                    sinks=tuple(map(renamed, stream.sinks)),
                )
                for stream in graph.streams
            ),
        )

    def _new(
        self, what: Literal["operator", "stream"], taken: dict[str, Where], module: str, named: Node | Stream
    ) -> str:
        name = f"{module}{SEPARATOR}{named.name}"
        if name in taken:
            code: Code = "operator-duplicated" if what == "operator" else "stream-duplicated"
            problem = f"two {what}s are called {name!r}; the first is at {taken[name]}"
            self.faults.append(Diagnostic(code, problem, "give one of them another name", named.where))
        while name in taken:
            name += "\N{PRIME}"
        taken[name] = named.where
        return name


def _behind(
    node: Node, dag: Dag, names: Mapping[int, str], own: tuple[Any, ...], faults: list[Diagnostic]
) -> Mapping[tuple[str, bool], tuple[End, ...]]:
    """The inner ends behind each port of a module, by the port's name and whether it is an output."""
    behind: dict[tuple[str, bool], tuple[End, ...]] = {}
    for exposure in dag.exposures:
        outer, exposed = exposure.outer, exposure.inner
        if isinstance(outer, MissingPort):
            continue
        if all(outer.operator is not module for module in own):
            faults.append(
                Diagnostic(
                    "operator-unknown",
                    f"module {node.name} exposes {outer!r}, which is not a port of the module",
                    f"expose a port of the module itself, as in dag.expose(self.{outer.port.name}, …)",
                    exposure.where,
                )
            )
            continue
        key = outer.port.name, isinstance(outer, Outlet)
        inner = behind.setdefault(key, ())
        if isinstance(exposed, MissingPort):
            continue
        name = names.get(id(exposed.operator))
        if name is None:
            faults.append(
                Diagnostic(
                    "operator-unknown",
                    f"{exposed!r} is exposed, but its operator was never added to the module",
                    "add it with dag.add_operator first",
                    exposure.where,
                )
            )
        else:
            behind[key] = (*inner, End(name, exposed.port.name, exposed.port, exposure.where))
    return behind


def _inherited(inner: Node, module: Node, inside: _Inside) -> Node:
    """The inner node with the attributes of the module and its ports, where it has none of its own."""
    inputs, outputs, unifiers = dict(inner.inputs), dict(inner.outputs), dict(inner.unifiers)
    for (port, is_output), ends in inside.behind.items():
        for end in ends:
            if end.node == inner.name:
                of_module = (module.outputs if is_output else module.inputs).get(port, {})
                into = outputs if is_output else inputs
                into[end.port] = {**of_module, **into.get(end.port, {})}
                if is_output:
                    unifiers[end.port] = {**module.unifiers.get(port, {}), **unifiers.get(end.port, {})}
    return replace(
        inner,
        attributes={**module.attributes, **_for_all(inside.graph), **inner.attributes},
        inputs=by_port(inputs),
        outputs=by_port(outputs),
        unifiers=by_port(unifiers),
        unsure=inner.unsure or (module.unsure and _is_behind(inner, inside)),
    )


def _is_behind(inner: Node, inside: _Inside) -> bool:
    return any(end.node == inner.name for ends in inside.behind.values() for end in ends)


def _for_all(graph: Graph) -> Settings:
    """The operator attributes that a module set on its Dag: defaults for its operators."""
    return {a: setting for a, setting in graph.attributes.items() if a.scope is Scope.OPERATOR}


def _rewired(stream: Stream, graph: Graph, insides: Mapping[str, _Inside], faults: list[Diagnostic]) -> Stream:
    """The stream with each end at a module replaced by the inner ends behind that port."""
    if not any(end.node in insides for end in stream.ends):
        return stream
    lost = stream.cut_short

    def behind(ends: Iterable[End], *, output: bool) -> Iterator[End]:
        nonlocal lost
        for end in ends:
            if end.node not in insides:
                yield end
                continue
            inner = insides[end.node].behind.get((end.port, output))
            lost = lost or not inner
            yield from inner or ()
            if inner is None and not insides[end.node].unsure:
                module = type(graph.by_name[end.node].operator).__name__
                faults.append(
                    Diagnostic(
                        "port-unexposed",
                        f"stream {stream.name!r} is connected to {end}, but the module exposes nothing there",
                        f"in populate_dag of {module}, call dag.expose(self.{end.port}, …)",
                        end.where,
                    )
                )

    sources = tuple(behind(stream.sources, output=True))
    sinks = tuple(behind(stream.sinks, output=False))
    return replace(stream, sources=sources, sinks=sinks, cut_short=lost)
