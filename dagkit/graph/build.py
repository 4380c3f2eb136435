"""Build a frozen Graph from a Dag. Mistakes that leave parts out of the graph become diagnostics."""

from collections.abc import Sequence
from typing import Any

from dagkit.api.attributes import Attribute, Scope
from dagkit.api.configuration import Origin, Setting, Source
from dagkit.api.dag import Assignment, Dag, Placement
from dagkit.api.dag import Stream as DrawnStream
from dagkit.api.ports import Inlet, MissingPort, Outlet
from dagkit.errors import Diagnostic, Where
from dagkit.graph.frozen import End, Graph, Node, Stream


def graph_of(dag: Dag, application: str, where: Where | None = None) -> tuple[Graph, list[Diagnostic]]:
    """The graph of a Dag, and the faults that keep parts of the Dag out of it."""
    builder = _Builder(dag)
    streams = tuple(builder.stream(drawn) for drawn in dag.streams)
    for assignment in dag.assignments:
        builder.assign(assignment)
    # Last: nodes take the attributes that `assign` collects.
    nodes = tuple(builder.node(placement) for placement in dag.placements)
    graph = Graph(application, nodes, streams, builder.application_attributes, where)
    return graph, [*dag.faults, *builder.faults]


class _Builder:
    """Collects nodes and streams. Only here are operators found by identity; later passes use names."""

    def __init__(self, dag: Dag) -> None:
        self.dag = dag
        self.faults: list[Diagnostic] = []
        self.names = _unique_names(dag.placements)
        self.application_attributes: dict[Attribute[Any], Setting] = {}
        self.assigned: dict[str, dict[tuple[str, str], dict[Attribute[Any], Setting]]] = {}
        self.strangers: set[int] = set()
        """The identities of operators that were never added. Each is reported once, however often it is used."""
        self.unsure = _unsure(dag)

    def node(self, placement: Placement) -> Node:
        name = self.names[id(placement.component)]
        by_place = self.assigned.get(name, {})
        return Node(
            name,
            placement.component,
            placement.where,
            attributes=by_place.get(("", ""), {}),
            inputs={port: settings for (kind, port), settings in by_place.items() if kind == "input"},
            outputs={port: settings for (kind, port), settings in by_place.items() if kind == "output"},
            unifiers={port: settings for (kind, port), settings in by_place.items() if kind == "unifier"},
            unsure=id(placement.component) in self.unsure,
        )

    def stream(self, drawn: DrawnStream) -> Stream:
        ends = [(end, self._end(end, where, f"stream {drawn.name!r}")) for end, where in drawn.ends]
        sources = tuple(end for drawn_end, end in ends if isinstance(drawn_end, Outlet) and end is not None)
        sinks = tuple(end for drawn_end, end in ends if isinstance(drawn_end, Inlet) and end is not None)
        origin = Origin(Source.CODE, drawn.where)
        lost = any(end is None for _, end in ends)
        return Stream(drawn.name, sources, sinks, drawn.where, drawn.locality, origin, lost)

    def _end(self, end: Inlet[Any] | Outlet[Any] | MissingPort, where: Where, what: str) -> End | None:
        name = self._name_of(end.operator, where, f"{what} is connected to {end!r}, whose operator")
        return None if name is None or isinstance(end, MissingPort) else End(name, end.port.name, end.port, where)

    def _name_of(self, component: Any, where: Where, subject: str) -> str | None:
        name = self.names.get(id(component))
        if name is None and id(component) not in self.strangers:
            self.strangers.add(id(component))
            self.faults.append(
                Diagnostic(
                    "operator-unknown",
                    f"{subject} was never added to the Dag",
                    "add it with dag.add_operator first",
                    where,
                )
            )
        return name

    def assign(self, assignment: Assignment) -> None:
        setting = Setting(assignment.value, Origin(Source.CODE, assignment.where))
        target = assignment.target
        # The step that drew the Dag reports the missing port itself.
        if isinstance(target, MissingPort):
            return
        wanted, bearer = _bearer(assignment)
        if assignment.attribute.scope not in wanted:
            self._misplaced(assignment, wanted)
        elif target is None:
            self.application_attributes[assignment.attribute] = setting
        else:
            component = target.operator if isinstance(target, Inlet | Outlet) else target
            name = self._name_of(
                component, assignment.where, f"{assignment.attribute.name} is set on {target!r}, which"
            )
            if name is not None:
                self.assigned.setdefault(name, {}).setdefault(bearer, {})[assignment.attribute] = setting

    def _misplaced(self, assignment: Assignment, wanted: Sequence[Scope]) -> None:
        bearers = {Scope.APPLICATION: "the application", Scope.OPERATOR: "an operator", Scope.PORT: "a port"}
        borne = bearers[assignment.attribute.scope]
        self.faults.append(
            Diagnostic(
                "attribute-misplaced",
                f"{assignment.attribute.qualified} is set on {bearers[wanted[0]]}, but it belongs to {borne}",
                f"set it on {borne}, or choose an attribute of {wanted[0].value}",
                assignment.where,
            )
        )


def _bearer(assignment: Assignment) -> tuple[Sequence[Scope], tuple[str, str]]:
    """The scopes of attributes that the target may have, and the key under which its node keeps the setting."""
    target = assignment.target
    if isinstance(target, Inlet):
        return (Scope.PORT,), ("input", target.port.name)
    if isinstance(target, Outlet):
        return (
            ((Scope.OPERATOR,), ("unifier", target.port.name))
            if assignment.unifier
            else ((Scope.PORT,), ("output", target.port.name))
        )
    if target is None:
        return (Scope.APPLICATION, Scope.OPERATOR), ("", "")
    return (Scope.OPERATOR,), ("", "")


def _unsure(dag: Dag) -> set[int]:
    """The identities of operators on which the application used a port that they do not have."""
    ends: list[Any] = [end for stream in dag.streams for end, _ in stream.ends if isinstance(end, MissingPort)]
    ends += [e.inner for e in dag.exposures if isinstance(e.inner, MissingPort) or isinstance(e.outer, MissingPort)]
    return {id(end.operator) for end in ends}


def _unique_names(placements: Sequence[Placement]) -> dict[int, str]:
    """A name for each component. A duplicate, which is reported elsewhere, gets a prime that authors cannot write."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for placement in placements:
        name = str(placement.name)
        while name in taken:
            name += "\N{PRIME}"
        taken.add(name)
        names[id(placement.component)] = name
    return names
