"""The values that the keys of a configuration set, looked up by the names of an application."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dagkit.api.application import StreamingApplication
from dagkit.api.attributes import BY_SCOPE, Attribute, DagContext, Locality, PortContext, Scope
from dagkit.api.component import Component
from dagkit.api.configuration import Config, Entry, Setting
from dagkit.conf.apply.key_usage import KeyUsage
from dagkit.conf.declared.declaration import Declaration, DeclaredApplication
from dagkit.conf.grammar.matching import ByName, Rank, Templates, Tier, in_order
from dagkit.conf.grammar.names import Fit
from dagkit.conf.grammar.parsed_entry import ParsedEntry
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
from dagkit.conf.sources.references import References, Unresolved, with_value, without_secret
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
        entries = list(_meant(config, usage))
        self.application = application if isinstance(application, str) else _name_of(application, entries)
        usage.application = self.application
        self.templates = Templates()
        self.home: str | None = None
        """The module of the application, in which class names without a module are looked up first."""
        self.codecs: Mapping[Any, Callable[[str], Any]] = {}
        """Converters that code sets. Those of configuration override them."""
        self._configured_codecs: Mapping[Any, Callable[[str], Any]] | None = None
        self._own_properties, self._own_attributes = ByName(), ByName()
        """The entries for the application itself."""
        self._properties, self._references, self._streams = ByName(), ByName(), ByName()
        self._attributes: dict[Scope, ByName] = {Scope.OPERATOR: ByName(), Scope.PORT: ByName()}
        self._unifiers = ByName()
        for entry in entries:
            section = entry.address.application
            fit = Fit.ANYONE if section is None else section.fit(self.application)
            # Only its exact name makes a section the application's own: `*` and patterns are for several.
            if fit:
                self._file(replace(entry, of_application=fit is Fit.EXACT))
            else:
                usage.elsewhere.append(entry)

    def _file(self, entry: ParsedEntry) -> None:
        """Add an entry to the index that its method searches."""
        address = entry.address
        if isinstance(address.sets, AttributeRef):
            self._file_attribute(entry, address.sets)
        elif address.element is Element.TEMPLATE:
            self.templates.add(entry)
        elif address.element is Element.STREAM:
            self._streams.add(address.name, entry)
        elif isinstance(address.sets, PropertyPath):
            index = self._properties if address.element is Element.OPERATOR else self._own_properties
            index.add(address.name, entry)
        elif address.element is Element.OPERATOR and address.sets.word == "template":
            self._references.add(address.name, entry)
        elif address.element is Element.APPLICATION:
            self.usage.use(entry)
        self.usage.entries.append(entry)

    def _file_attribute(self, entry: ParsedEntry, attribute: AttributeRef) -> None:
        element, name = entry.address.element, entry.address.name
        for scope in scopes_set_by(element, attribute):
            if element is Element.UNIFIER:
                self._unifiers.add(name, entry)
            elif scope is Scope.APPLICATION:
                self._own_attributes.add(name, entry)
            else:
                self._attributes[scope].add(name, entry)

    # -- the application ---------------------------------------------------------------------------------------------

    def configure_application(self, application: ComponentT) -> Configured[ComponentT]:
        """The application with its properties set. Call this before its `populate_dag`."""
        self.home = self.home or _home_of(application)
        declaration = application.declaration if isinstance(application, DeclaredApplication) else None
        faults = list(self._take_over(declaration)) if declaration is not None else []
        self.usage.application_class = type(application)
        configured = self._configured(application, self._own_properties.ranked(self.application), self.application)
        return replace(configured, diagnostics=(*faults, *configured.diagnostics))

    def _take_over(self, declaration: Declaration) -> Iterator[Diagnostic]:
        """Add the settings in a declared application as entries. All configuration overrides them."""
        values = {**declaration.variables, **{entry.key: entry.value for entry in self.config.entries}}
        references = References(values, os.environ)
        for position, setting in enumerate(declaration.settings):
            try:
                value, tainted = references.resolve(setting.value)
            except Unresolved as unresolved:
                yield unresolved.diagnostic(setting.key, setting.origin.where)
            else:
                self._file(replace(with_value(setting, value, tainted=tainted), position=position))
        for key in references.used:
            _ = key in self.config  # mark keys that values refer to as used

    def application_attributes(self) -> Attributes:
        """The application's own attributes."""
        return self._valued(self._own_attributes.ranked(self.application), Scope.APPLICATION, self.application)

    @property
    def _conversion(self) -> Conversion:
        # Not in __init__: the names of codecs are looked up in `home`, which `configure_application` sets.
        if self._configured_codecs is None:
            found = self.application_attributes().values.get(DagContext.STRING_CODECS)
            self._configured_codecs = found.value if found is not None else {}
        return Conversion({**self.codecs, **self._configured_codecs}, self.home)

    # -- operators and modules ---------------------------------------------------------------------------------------

    def configure(self, name: str, component: ComponentT) -> Configured[ComponentT]:
        """The operator or module of this name with its properties set. Call this before a module's `populate_dag`."""
        self.usage.note_operator(name, type(component))
        references = self._references.ranked(name)
        ranked: list[tuple[Rank, ParsedEntry]] = [
            ((Tier.DIRECT, entry.of_application, fit, entry.position), entry)
            for fit, entry in self._properties.fitting(name)
        ]
        ranked += self.templates.reaching(self.application, name, type(component), references)
        entries = in_order(ranked)
        for entry in entries:
            if isinstance(entry.address.sets, Keyword):
                self.usage.use(entry)
        return self._configured(component, [e for e in entries if isinstance(e.address.sets, PropertyPath)], name)

    def operator_attributes(self, name: str) -> Attributes:
        """The attributes of the operator of this name."""
        self.usage.note_operator(name)
        return self._valued(self._attributes[Scope.OPERATOR].ranked(name), Scope.OPERATOR, name)

    def _configured(self, component: ComponentT, entries: Sequence[ParsedEntry], owner: str) -> Configured[ComponentT]:
        self.usage.contest(entries)
        configured = with_properties(component, entries, owner, self._conversion)
        unknown = dict(configured.unknown)
        self.usage.unknown |= unknown
        for entry in entries:
            if entry not in unknown:
                self.usage.use(entry)
                self.usage.note_type(entry, secret=entry in configured.secrets)
        return configured

    # -- ports and streams -------------------------------------------------------------------------------------------

    def port_attributes(self, operator: str, port: str, *, output: bool, connected: bool = True) -> Attributes:
        """The attributes of a port. An unconnected port has none; keys that match only such ports are reported."""
        self.usage.note_operator(operator)
        own = PortKind.OUTPUT if output else PortKind.INPUT
        ranked = [
            ((entry.address.port_kind is own, *rank), entry)
            for rank, entry in self._of_port(self._attributes[Scope.PORT], operator, port)
            if entry.address.port_kind in (own, PortKind.PORT, None)
        ]
        return self._on_port(in_order(ranked), Scope.PORT, f"{operator}.{port}", connected=connected)

    def unifier_attributes(self, operator: str, port: str, *, connected: bool = True) -> Attributes:
        """The operator attributes of the unifier behind an output port."""
        self.usage.note_operator(operator)
        entries = in_order(self._of_port(self._unifiers, operator, port))
        return self._on_port(entries, Scope.OPERATOR, f"the unifier of {operator}.{port}", connected=connected)

    def _of_port(self, entries: ByName, operator: str, port: str) -> Iterable[tuple[Rank, ParsedEntry]]:
        for fit, entry in entries.fitting(operator):
            pattern = entry.address.port
            port_fit = Fit.ANYONE if pattern is None else pattern.fit(port)
            if port_fit:
                yield (entry.of_application, fit, port_fit, entry.position), entry

    def _on_port(self, entries: Sequence[ParsedEntry], scope: Scope, bearer: str, *, connected: bool) -> Attributes:
        if connected:
            return self._valued(entries, scope, bearer)
        for entry in entries:
            self.usage.stranded[entry] = bearer
        return Attributes()

    def stream(self, name: str) -> StreamSettings:
        """The locality and the schema of the stream of this name."""
        self.usage.streams.append(name)
        winners: dict[str, ParsedEntry] = {}
        for entry in self._streams.ranked(name):
            if str(entry.address.sets) in _STREAM_CODES:
                winners[str(entry.address.sets)] = entry
                self.usage.use(entry)
        found: dict[str, Setting] = {}
        faults: list[Diagnostic] = []
        for word, entry in winners.items():
            try:
                value = _locality(entry.value) if word == "locality" else self._class(entry.value)
            except ValueError as refused:
                faults.append(_refused(entry, f"the {word} of stream {name!r}", refused, _STREAM_CODES[word]))
            else:
                found[word] = Setting(value, entry.origin)
        return StreamSettings(found.get("locality"), found.get("schema"), tuple(faults))

    def _class(self, raw: Any) -> Any:
        return attribute_value(PortContext.TUPLE_CLASS, raw, self.home)

    def _valued(self, entries: Sequence[ParsedEntry], scope: Scope, bearer: str) -> Attributes:
        """The value of each attribute, converted from its strongest entry."""
        self.usage.contest(entries)
        winners: dict[str, ParsedEntry] = {}
        for entry in entries:
            winners[entry.attribute.name] = entry
            self.usage.use(entry)
        values: dict[Attribute[Any], Setting] = {}
        faults: list[Diagnostic] = []
        for name, entry in winners.items():
            attribute = BY_SCOPE[scope][name]
            try:
                values[attribute] = Setting(attribute_value(attribute, entry.value, self.home), entry.origin)
            except ValueError as refused:
                faults.append(_refused(entry, f"{name} of {bearer}", refused, "attribute-invalid"))
        return Attributes(values, tuple(faults))

    # -- the end -----------------------------------------------------------------------------------------------------

    def unmatched(self, *, allow_unknown: bool = False) -> list[Diagnostic]:
        """A fault for every key that matched nothing, with the most similar name. Call this after all other methods."""
        self.usage.templates = self.templates.by_name
        return self.usage.unmatched(self.config.asked, allow_unknown=allow_unknown)


def _meant(config: Config, usage: KeyUsage) -> Iterator[ParsedEntry]:
    """The entries whose keys mean something, the strongest source last. The others are noted."""
    for position, entry in enumerate(sorted(map(_parsed, config.entries), key=lambda entry: entry.origin.source)):
        if isinstance(entry.parsed, Address):
            yield replace(entry, position=position)
        elif isinstance(entry.parsed, Malformed):
            usage.malformed.append((entry, entry.parsed))
        else:
            usage.strangers.append(entry)


def _parsed(entry: Entry) -> ParsedEntry:
    """The entry with the meaning of its key. `load` makes such entries; tests and notebooks make plain ones."""
    if isinstance(entry, ParsedEntry):
        return entry
    parsed = ParsedEntry(entry.key, entry.value, entry.origin, parse_key(entry.key))
    return parsed if entry.origin.shown else with_value(parsed, entry.value)


def _name_of(application: StreamingApplication, entries: Sequence[ParsedEntry]) -> str:
    """The application's name: from `application.NAME.class` if that is set, or else its own."""
    cls = type(application)
    names = (cls.__name__, f"{cls.__module__}.{cls.__qualname__}", f"{cls.__module__}:{cls.__qualname__}")
    for entry in reversed(entries):
        alias = entry.address.application
        if entry.address.sets == Keyword("class") and alias is not None and str(entry.value).strip() in names:
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


def _refused(entry: ParsedEntry, what: str, refused: ValueError, code: Code) -> Diagnostic:
    problem = f"{what} cannot be {entry.shown}: {without_secret(str(refused), entry.value, entry.origin.shown)}"
    if isinstance(refused, ClassNotFound):
        help_ = without_secret(refused.help, entry.value, entry.origin.shown)
        return Diagnostic("class-not-found", problem, help_, entry.origin.where)
    return Diagnostic(code, problem, f"fix the value of {entry.key}", entry.origin.where)
