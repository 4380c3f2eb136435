"""The values that the keys of a configuration set, looked up by the names of an application."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dagkit.api.application import StreamingApplication
from dagkit.api.attributes import BY_SCOPE, Attribute, DagContext, Locality, PortContext, Scope
from dagkit.api.component import Component
from dagkit.api.configuration import Config, Setting
from dagkit.conf.apply.key_usage import KeyUsage
from dagkit.conf.declared.declaration import Declaration, DeclaredApplication
from dagkit.conf.grammar.matching import ByName, Rank, Rule, Templates, Tier, in_order
from dagkit.conf.grammar.names import Fit
from dagkit.conf.grammar.property_keys import (
    Address,
    AttributeRef,
    Element,
    Keyword,
    Malformed,
    PortKind,
    PropertyPath,
    parse_key,
    scopes_set_by,
)
from dagkit.conf.sources.references import References, Unresolved, shown_instead, without_secret
from dagkit.conf.values.attribute_values import attribute_value
from dagkit.conf.values.classes import ClassNotFound
from dagkit.conf.values.conversion import Conversion
from dagkit.conf.values.object_making import Unfit
from dagkit.conf.values.properties import Configured, with_properties
from dagkit.errors import Code, Diagnostic

ComponentT = TypeVar("ComponentT", bound=Component)


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes that configuration sets on one object, and the faults in values that it refuses."""

    values: Mapping[Attribute[Any], Setting] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """The settings of one stream."""

    locality: Setting | None = None
    schema: Setting | None = None
    """The class of the items, for TUPLE_CLASS of the stream's ports."""
    diagnostics: tuple[Diagnostic, ...] = ()


class Settings:
    """The settings for one application. Every method records the keys that match, for `unmatched`."""

    def __init__(self, config: Config, application: StreamingApplication | str) -> None:
        self.config = config
        self.usage = usage = KeyUsage()
        rules = list(_rules_of(config, usage))
        self.application = application if isinstance(application, str) else _name_of(application, rules)
        usage.application = self.application
        self.templates = Templates()
        self.home: str | None = None
        """The module of the application, in which class names without a module are looked up first."""
        self.codecs: Mapping[Any, Callable[[str], Any]] = {}
        """Converters that code sets. Those of configuration override them."""
        self._configured_codecs: Mapping[Any, Callable[[str], Any]] | None = None
        self._of_application: dict[type, list[Rule]] = {AttributeRef: [], PropertyPath: []}
        self._properties, self._references, self._streams = ByName(), ByName(), ByName()
        self._attributes: dict[Scope, ByName] = {Scope.OPERATOR: ByName(), Scope.PORT: ByName()}
        self._unifiers = ByName()
        for rule in rules:
            section = rule.address.application
            fit = Fit.ANYONE if section is None else section.fit(self.application)
            if fit:
                self._file(replace(rule, of_application=fit is Fit.EXACT))
            else:
                usage.elsewhere.append(rule)

    def _file(self, rule: Rule) -> None:
        """Add a rule to the index that its method searches."""
        address = rule.address
        if isinstance(address.sets, AttributeRef):
            self._file_attribute(rule, address.sets)
        elif address.element is Element.TEMPLATE:
            self.templates.add(rule)
        elif address.element is Element.STREAM:
            self._streams.add(address.name, rule)
        elif isinstance(address.sets, PropertyPath):
            if address.element is Element.OPERATOR:
                self._properties.add(address.name, rule)
            else:
                self._of_application[PropertyPath].append(rule)
        elif address.element is Element.OPERATOR and address.sets.word == "template":
            self._references.add(address.name, rule)
        elif address.element is Element.APPLICATION:
            self.usage.use(rule)
        self.usage.rules.append(rule)

    def _file_attribute(self, rule: Rule, attribute: AttributeRef) -> None:
        element, name = rule.address.element, rule.address.name
        for scope in scopes_set_by(element, attribute):
            if element is Element.UNIFIER:
                self._unifiers.add(name, rule)
            elif scope is Scope.APPLICATION:
                self._of_application[AttributeRef].append(rule)
            else:
                self._attributes[scope].add(name, rule)

    # -- the application ---------------------------------------------------------------------------------------------

    def configure_application(self, application: ComponentT) -> Configured[ComponentT]:
        """The application with its properties set. Call this before its `populate_dag`."""
        self.home = self.home or _home_of(application)
        declaration = application.declaration if isinstance(application, DeclaredApplication) else None
        faults = list(self._take_over(declaration)) if declaration is not None else []
        self.usage.application_class = type(application)
        ranked = [((rule.of_application, rule.position), rule) for rule in self._of_application[PropertyPath]]
        configured = self._configured(application, in_order(ranked), self.application)
        return replace(configured, diagnostics=(*faults, *configured.diagnostics))

    def _take_over(self, declaration: Declaration) -> Iterator[Diagnostic]:
        """Add the settings in a declared application as rules. All configuration overrides them."""
        values = {**declaration.variables, **{entry.key: entry.value for entry in self.config.entries}}
        references = References(values, os.environ)
        for position, setting in enumerate(declaration.settings, start=-len(declaration.settings)):
            try:
                raw, tainted = references.resolve(setting.raw)
            except Unresolved as unresolved:
                problem = f"{setting.origin.key}: {unresolved}"
                yield Diagnostic("reference-unresolved", problem, unresolved.help, setting.origin.where)
            else:
                shown = shown_instead(setting.address, str(setting.origin.key), setting.raw, tainted=tainted)
                origin = replace(setting.origin, shown=shown)
                self._file(replace(setting, raw=raw, origin=origin, position=position))
        for key in references.used:
            _ = key in self.config  # mark keys that values refer to as used

    def application_attributes(self) -> Attributes:
        """The application's own attributes."""
        ranked = [((rule.of_application, rule.position), rule) for rule in self._of_application[AttributeRef]]
        return self._valued(in_order(ranked), Scope.APPLICATION, self.application)

    @property
    def _conversion(self) -> Conversion:
        if self._configured_codecs is None:
            found = self.application_attributes().values.get(DagContext.STRING_CODECS)
            self._configured_codecs = found.value if found is not None else {}
        return Conversion({**self.codecs, **self._configured_codecs}, self.home)

    # -- operators and modules ---------------------------------------------------------------------------------------

    def configure(self, name: str, component: ComponentT) -> Configured[ComponentT]:
        """The operator or module of this name with its properties set. Call this before a module's `populate_dag`."""
        self.usage.note_operator(name, type(component))
        references = self._references.ranked(name)
        ranked: list[tuple[Rank, Rule]] = [
            ((Tier.DIRECT, rule.of_application, fit, rule.position), rule)
            for fit, rule in self._properties.fitting(name)
        ]
        ranked += self.templates.reaching(self.application, name, type(component), references)
        rules = in_order(ranked)
        for rule in rules:
            if isinstance(rule.address.sets, Keyword):
                self.usage.use(rule)
        return self._configured(component, [r for r in rules if isinstance(r.address.sets, PropertyPath)], name)

    def operator_attributes(self, name: str) -> Attributes:
        """The attributes of the operator of this name."""
        self.usage.note_operator(name)
        return self._valued(self._attributes[Scope.OPERATOR].ranked(name), Scope.OPERATOR, name)

    def _configured(self, component: ComponentT, rules: Sequence[Rule], owner: str) -> Configured[ComponentT]:
        self.usage.contest(rules)
        configured = with_properties(component, rules, owner, self._conversion)
        unknown = {rule.position: fault for rule, fault in configured.unknown}
        for rule in rules:
            if rule.position in unknown:
                self.usage.unknown[rule.position] = unknown[rule.position]
            else:
                self.usage.use(rule)
                self.usage.note_type(rule, secret=rule in configured.secrets)
        return configured

    # -- ports and streams -------------------------------------------------------------------------------------------

    def port_attributes(self, operator: str, port: str, *, output: bool, connected: bool = True) -> Attributes:
        """The attributes of a port. An unconnected port has none; keys that match only such ports are reported."""
        self.usage.note_operator(operator)
        own = PortKind.OUTPUT if output else PortKind.INPUT
        ranked = [
            ((rule.address.port_kind is own, *rank), rule)
            for rank, rule in self._of_port(self._attributes[Scope.PORT], operator, port)
            if rule.address.port_kind in (own, PortKind.PORT, None)
        ]
        return self._on_port(in_order(ranked), Scope.PORT, f"{operator}.{port}", connected=connected)

    def unifier_attributes(self, operator: str, port: str, *, connected: bool = True) -> Attributes:
        """The operator attributes of the unifier behind an output port."""
        self.usage.note_operator(operator)
        rules = in_order(self._of_port(self._unifiers, operator, port))
        return self._on_port(rules, Scope.OPERATOR, f"the unifier of {operator}.{port}", connected=connected)

    def _of_port(self, rules: ByName, operator: str, port: str) -> Iterable[tuple[Rank, Rule]]:
        for fit, rule in rules.fitting(operator):
            pattern = rule.address.port
            port_fit = Fit.ANYONE if pattern is None else pattern.fit(port)
            if port_fit:
                yield (rule.of_application, fit, port_fit, rule.position), rule

    def _on_port(self, rules: Sequence[Rule], scope: Scope, bearer: str, *, connected: bool) -> Attributes:
        if connected:
            return self._valued(rules, scope, bearer)
        for rule in rules:
            self.usage.stranded[rule.position] = bearer
        return Attributes()

    def stream(self, name: str) -> StreamSettings:
        """The locality and the schema of the stream of this name."""
        self.usage.streams.append(name)
        winners: dict[str, Rule] = {}
        for rule in self._streams.ranked(name):
            if str(rule.address.sets) in _STREAM_CODES:
                winners[str(rule.address.sets)] = rule
                self.usage.use(rule)
        found: dict[str, Setting] = {}
        faults: list[Diagnostic] = []
        for word, rule in winners.items():
            try:
                value = _locality(rule.raw) if word == "locality" else self._class(rule.raw)
            except ValueError as refused:
                faults.append(_refused(rule, f"the {word} of stream {name!r}", refused, _STREAM_CODES[word]))
            else:
                found[word] = Setting(value, rule.origin)
        return StreamSettings(found.get("locality"), found.get("schema"), tuple(faults))

    def _class(self, raw: Any) -> Any:
        return attribute_value(PortContext.TUPLE_CLASS, raw, self.home)

    def _valued(self, rules: Sequence[Rule], scope: Scope, bearer: str) -> Attributes:
        """The value of each attribute, converted from its strongest rule."""
        self.usage.contest(rules)
        winners: dict[str, Rule] = {}
        for rule in rules:
            winners[rule.attribute.name] = rule
            self.usage.use(rule)
        values: dict[Attribute[Any], Setting] = {}
        faults: list[Diagnostic] = []
        for name, rule in winners.items():
            attribute = BY_SCOPE[scope][name]
            try:
                values[attribute] = Setting(attribute_value(attribute, rule.raw, self.home), rule.origin)
            except ValueError as refused:
                faults.append(_refused(rule, f"{name} of {bearer}", refused, "attribute-invalid"))
        return Attributes(values, tuple(faults))

    # -- the end -----------------------------------------------------------------------------------------------------

    def unmatched(self, *, allow_unknown: bool = False) -> list[Diagnostic]:
        """A fault for every key that matched nothing, with the most similar name. Call this after all other methods."""
        self.usage.templates = self.templates.by_name
        return self.usage.unmatched(self.config.asked, allow_unknown=allow_unknown)


def _rules_of(config: Config, usage: KeyUsage) -> Iterator[Rule]:
    """The keys that mean something. The others are noted."""
    for position, entry in enumerate(sorted(config.entries, key=lambda entry: entry.origin.source)):
        address = parse_key(entry.key)
        if isinstance(address, Address):
            shown = entry.origin.shown or shown_instead(address, entry.key, entry.value)
            yield Rule(address, entry.value, replace(entry.origin, shown=shown), position)
        elif isinstance(address, Malformed):
            usage.malformed.append((entry, address))
        else:
            usage.strangers.append(entry)


def _name_of(application: StreamingApplication, rules: Sequence[Rule]) -> str:
    """The application's name: from `application.NAME.class` if that is set, or else its own."""
    cls = type(application)
    names = (cls.__name__, f"{cls.__module__}.{cls.__qualname__}", f"{cls.__module__}:{cls.__qualname__}")
    for rule in reversed(rules):
        alias = rule.address.application
        if rule.address.sets == Keyword("class") and alias is not None and str(rule.raw).strip() in names:
            return alias.text
    return application.application_name


def _home_of(application: Component) -> str:
    """The author's module: that of the class, or of the `populate_dag` function."""
    populate = getattr(application, "populate", None)
    return str(getattr(populate, "__module__", None) or type(application).__module__)


_STREAM_CODES: Mapping[str, Code] = {"locality": "locality-invalid", "schema": "attribute-invalid"}


def _locality(raw: Any) -> Locality:
    text = str(raw).strip()
    if text not in Locality.__members__:
        raise Unfit(f"it must be one of {', '.join(Locality)}")
    return Locality(text)


def _refused(rule: Rule, what: str, refused: ValueError, code: Code) -> Diagnostic:
    problem = f"{what} cannot be {rule.shown}: {without_secret(str(refused), rule.raw, rule.origin.shown)}"
    if isinstance(refused, ClassNotFound):
        help_ = without_secret(refused.help, rule.raw, rule.origin.shown)
        return Diagnostic("class-not-found", problem, help_, rule.origin.where)
    return Diagnostic(code, problem, f"fix the value of {rule.origin.key}", rule.origin.where)
