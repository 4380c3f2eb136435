"""Reconfiguring: compile the same graph with another value of one property or attribute, as if a file had set it."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dagkit.api.attributes import BY_SCOPE, Attribute, DagContext, OperatorContext, Scope
from dagkit.api.component import Component
from dagkit.api.configuration import Origin, Setting, Source
from dagkit.api.secrets import MASK
from dagkit.compiler.repartition import relowered
from dagkit.compiler.rules import check
from dagkit.compiler.steps import Compilation
from dagkit.conf.grammar.names import bare
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import Address, Malformed, PropertyPath, parse_path, text_of
from dagkit.conf.sources.references import References, Unresolved, shown_instead, with_value, without_secret
from dagkit.conf.values.attribute_values import attribute_value
from dagkit.conf.values.classes import ClassNotFound
from dagkit.conf.values.conversion import Conversion
from dagkit.conf.values.properties import with_properties
from dagkit.conf.values.property_types import as_declared
from dagkit.errors import ApplicationFaults, Code, Diagnostic, did_you_mean, errors_among
from dagkit.graph import Node
from dagkit.plan.portable import portable_attributes, portable_properties

CHANGEABLE: tuple[Attribute[Any], ...] = (
    OperatorContext.RECOVERY_ATTEMPTS,
    OperatorContext.STATS_LISTENERS,
    OperatorContext.PARTITIONER,
)
"""The attributes that may change between two windows of a run."""


def reconfigured(compilation: Compilation, operator: str, name: str, raw: Any) -> Compilation:
    """The compilation with another value of a property of an operator, or of one of the attributes that may change.

    `name` is what follows `operator.NAME.prop.` in a property file, or the name of an attribute. The operator is
    partitioned again; the counts of all others stay. Raise `ApplicationFaults`, as a launch with such a file would.
    """
    setting = _Change(compilation, operator, name, raw)
    node = setting.changed()
    graph = compilation.graph.with_nodes({operator: node})
    faults = [*setting.faults, *errors_among(check(graph))]
    if faults:
        raise ApplicationFaults(compilation.application, faults)
    known = {other: partitioning for other, partitioning in compilation.partitioned.items() if other != operator}
    return relowered(compilation, graph, known)


def plain_secret(operator: str, name: str, raw: Any) -> Diagnostic | None:
    """Refuse a value whose name makes it a secret, unless it is a reference: set values are stored in plain text."""
    if shown_instead(_address(name), f"{operator}.{name}", raw) != MASK:
        return None
    return _secret(operator, name)


def _secret(operator: str, name: str) -> Diagnostic:
    return Diagnostic(
        "attribute-invalid" if _is_attribute(name) else "property-invalid",
        f"{operator}.{name} is a secret, and values set while the application runs are stored in its folder",
        "set it by reference, as ${env:NAME} or ${file:PATH}; each driver resolves the reference itself",
    )


def _is_attribute(name: str) -> bool:
    return name in BY_SCOPE[Scope.OPERATOR]


def _address(name: str) -> Address | Malformed:
    """The address that a name means. It does not depend on the operator."""
    return parse_path(f"operator.any.{'attr' if _is_attribute(name) else 'prop'}.{name}")


def value_of(compilation: Compilation, operator: str, name: str) -> Any:
    """The value of a property or an attribute of an operator, as JSON data. A secret appears as the reference to it."""
    node = compilation.node(operator)
    if node is None:
        return None
    if _is_attribute(name):
        return portable_attributes(node.attributes).get(name)
    address = _address(name)
    if isinstance(address, Malformed):
        return None
    assert isinstance(address.sets, PropertyPath), "what follows prop. is a property"
    value: Any = portable_properties(node.operator, node.property_origins)
    for step in address.sets.steps:
        value = _part(value, text_of(step))
    return value


def name_of(compilation: Compilation, operator: str, name: str) -> str:
    """The name of a property as its class spells it, from any accepted spelling; any other name unchanged."""
    node, address = compilation.node(operator), _address(name)
    if node is None or _is_attribute(name) or isinstance(address, Malformed):
        return name
    assert isinstance(address.sets, PropertyPath), "what follows prop. is a property"
    return str(as_declared(node.operator, address.sets))


def _part(value: Any, step: str) -> Any:
    """The part of a value one step below it, from any accepted spelling; None if there is none."""
    if isinstance(value, Mapping):
        return next((part for key, part in value.items() if key == step or bare(str(key)) == bare(step)), None)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    return None


class _Change:
    """The change of one value in a node, with its faults."""

    def __init__(self, compilation: Compilation, operator: str, name: str, raw: Any) -> None:
        self.compilation, self.graph = compilation, compilation.graph
        self.operator, self.name = operator, name
        self.key = f"{operator}.{name}"
        self.faults: list[Diagnostic] = []
        entry = ParsedEntry(self.key, raw, Origin(Source.COMMAND_LINE, None, self.key), _address(name))
        value, tainted = self._resolved(raw)
        self.entry = with_value(entry, value, tainted=tainted)
        self.origin = self.entry.origin

    def changed(self) -> Node:
        """The node with the new value. Raise `ApplicationFaults` if the operator is unknown or the key malformed."""
        node = self.compilation.node(self.operator)
        if node is None:
            help_ = did_you_mean(self.operator, [node.name for node in self.graph.nodes])
            self._refuse("operator-unknown", f"there is no operator {self.operator!r}", help_)
        elif isinstance(fault := self.entry.parsed, Malformed):
            self._refuse("key-malformed", f"{self.key}: {fault.problem}", fault.help)
        elif self.origin.shown == MASK:
            self.faults.append(_secret(self.operator, self.name))
        if self.faults or node is None:
            raise ApplicationFaults(self.compilation.application, self.faults)
        return self._with_attribute(node) if _is_attribute(self.name) else self._with_property(node)

    def _resolved(self, raw: Any) -> tuple[Any, bool]:
        try:
            return References({}, os.environ).resolve(raw)
        except Unresolved as unresolved:
            self.faults.append(unresolved.diagnostic(self.key))
            return raw, True

    def _refuse(self, code: Code, problem: str, help_: str) -> None:
        self.faults.append(Diagnostic(code, problem, help_))

    def _with_property(self, node: Node) -> Node:
        configured = with_properties(node.operator, [self.entry], node.name, self._conversion())
        self.faults += configured.diagnostics
        self.faults += [fault for _, fault in configured.unknown]
        is_hidden = self.origin.shown is not None
        if not (self.faults or is_hidden) and _holds_secret(configured.component, self.entry.path):
            self.faults.append(_secret(self.operator, self.name))
        origins = {**node.property_origins, **configured.origins}
        return replace(node, operator=configured.component, property_origins=origins)

    def _with_attribute(self, node: Node) -> Node:
        attribute = OperatorContext.attributes()[self.name]
        if attribute not in CHANGEABLE:
            changeable = ", ".join(one.name for one in CHANGEABLE)
            self._refuse(
                "attribute-invalid",
                f"{self.key} cannot change while the application runs",
                f"set it in a property file and launch again; a running application can change {changeable}",
            )
            return node
        try:
            # Importing a module runs it, and a request may not run code.
            value = attribute_value(attribute, self.entry.value, self.compilation.home, imports=False)
        except ClassNotFound as missing:
            self.faults.append(Diagnostic("class-not-found", f"{self.key}: {missing}", missing.help))
            return node
        except ValueError as refused:
            why = without_secret(str(refused), self.entry.value, self.origin.shown)
            self._refuse("attribute-invalid", f"{self.key} cannot be {self.entry.shown}: {why}", "fix the value")
            return node
        return replace(node, attributes={**node.attributes, attribute: Setting(value, self.origin)})

    def _conversion(self) -> Conversion:
        codecs = self.graph.application_value(DagContext.STRING_CODECS)
        return Conversion(codecs or {}, self.compilation.home, data_only=True)


def _holds_secret(component: Component, path: PropertyPath) -> bool:
    """Whether the type of the value makes it a secret."""
    value: Any = portable_properties(component, {})
    for step in path.steps:
        value = _part(value, text_of(step))
    return MASK in str(value)
