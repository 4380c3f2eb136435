"""The keys that an application uses; why it does not use the others, and which names they probably mean."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from dagkit.api.application import Module
from dagkit.api.attributes import BY_SCOPE, Scope, attribute_names
from dagkit.api.configuration import Entry, Source
from dagkit.api.ports import input_ports, output_ports
from dagkit.conf.grammar.names import NamePattern
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import (
    PREFIXES,
    SECTION_WORDS,
    Address,
    AttributeRef,
    Element,
    Keyword,
    Malformed,
    PortKind,
    PropertyPath,
    canonical,
    parse_path,
    scopes_set_by,
)
from dagkit.conf.sources.references import without_secret
from dagkit.errors import Code, Diagnostic, Severity, did_you_mean
from dagkit.ground.patterns import HELP, refusal

FOREIGN = (
    "fs.",
    "hadoop.",
    "yarn.",
    "spark.",
    "io.",
    "mapreduce.",
    "mapred.",
    "dfs.",
    "hive.",
    "java.",
    "ipc.",
    "net.",
)
"""Prefixes of the keys of other systems, which may be in the same files. dagkit ignores such keys."""

SHARED = (Source.SITE_DEFAULT, Source.SITE, Source.APPLICATION, Source.USER_SITE, Source.PACKAGE_FILE)
"""Sources that serve several applications, and so may contain sections for other ones."""

MOST_SUGGESTIONS = 200
"""The most names for which a similar one is searched. In a graph of thousands of operators each search is slow."""

LONGEST_SHOWN = 200
"""The most characters of a malformed key that a message shows."""

_BEARERS = {Scope.APPLICATION: "the application", Scope.OPERATOR: "an operator", Scope.PORT: "a port"}


@dataclass(slots=True)
class KeyUsage:
    """The names that exist, and the keys that matched: filled while settings are looked up, read once at the end."""

    application: str = ""
    application_class: type | None = None
    malformed: list[tuple[Entry, Malformed]] = field(default_factory=list)
    strangers: list[Entry] = field(default_factory=list)
    """The keys that have none of dagkit's prefixes."""
    templates: Collection[str] = ()
    operators: dict[str, type | None] = field(default_factory=dict)
    """Operators and modules by name, with their classes."""
    streams: list[str] = field(default_factory=list)
    entries: list[ParsedEntry] = field(default_factory=list)
    """The keys that are for this application."""
    elsewhere: list[ParsedEntry] = field(default_factory=list)
    """The keys in the sections of other applications."""
    used: set[ParsedEntry] = field(default_factory=set)
    """The keys that set something."""
    won: set[ParsedEntry] = field(default_factory=set)
    """The keys that decided a value."""
    beaten: dict[ParsedEntry, ParsedEntry] = field(default_factory=dict)
    """The key that decided instead, by a key that set the same."""
    unknown: dict[ParsedEntry, Diagnostic] = field(default_factory=dict)
    """The fault of a property that the last component which its key matched does not have."""
    secrets: dict[str, bool] = field(default_factory=dict)
    """The keys of properties whose types are known, and whether the type makes the value a secret."""
    stranded: dict[ParsedEntry, str] = field(default_factory=dict)
    """The unconnected port that a key matched."""
    suggested: dict[str, str] = field(default_factory=dict)
    """The most similar known name, by the name that does not exist."""

    def note_operator(self, operator: str, cls: type | None = None) -> None:
        self.operators[operator] = cls or self.operators.get(operator)

    def use(self, entry: ParsedEntry) -> None:
        self.used.add(entry)

    def contest(self, entries: Sequence[ParsedEntry]) -> None:
        """Note which of these keys, the strongest last, decides each value."""
        # A key for several operators may decide for one and lose for another: then it is in `won` and in `beaten`.
        deciding = {_target(entry): entry for entry in entries}
        for entry in entries:
            winner = deciding[_target(entry)]
            if winner is entry:
                self.won.add(entry)
            else:
                self.beaten[entry] = winner

    def overridden(self) -> list[tuple[ParsedEntry, ParsedEntry]]:
        """The keys of the command line that decide nothing, each with a narrower key of a file that does instead."""
        asked = [entry for entry in self.entries if entry.origin.source is Source.COMMAND_LINE]
        return [
            (entry, self.beaten[entry])
            for entry in asked
            if entry in self.beaten and entry not in self.won and self.beaten[entry].origin.source < Source.COMMAND_LINE
        ]

    def note_type(self, entry: ParsedEntry, *, secret: bool) -> None:
        self.secrets[entry.key] = secret or self.secrets.get(entry.key, False)

    def fitting(self, pattern: NamePattern | None) -> dict[str, type | None]:
        """The operators that a key's name fits."""
        return {name: cls for name, cls in self.operators.items() if pattern is None or pattern.fit(name)}

    # -- the keys that matched nothing -------------------------------------------------------------------------------

    def unmatched(self, asked: Collection[str], *, allow_unknown: bool) -> list[Diagnostic]:
        """A fault for every key that set nothing and that the application did not read, in the order of the sources."""
        # The application may read a key with another prefix than the file has.
        own = {canonical(key) for key in asked}
        faults = [_malformed(entry, fault) for entry, fault in self.malformed if canonical(entry.key) not in own]
        faults += [_stranger(e, own) for e in self.strangers if e.key not in own and not e.key.startswith(FOREIGN)]
        for entry in (*self.elsewhere, *(entry for entry in self.entries if entry not in self.used)):
            if canonical(entry.key) not in own:
                faults += self.faults_of(entry)
        severity = Severity.WARNING if allow_unknown else Severity.ERROR
        return [
            *(replace(diagnostic, severity=severity) for diagnostic in faults),
            *(_overridden(*contest) for contest in self.overridden()),
        ]

    def near(self, name: str, known: Iterable[str], otherwise: str = "") -> str:
        """The most similar known name. Searched once for each name, and no more after `MOST_SUGGESTIONS` searches."""
        if name not in self.suggested:
            if len(self.suggested) >= MOST_SUGGESTIONS:
                return otherwise or "see the names suggested for earlier keys"
            self.suggested[name] = did_you_mean(name, known, otherwise)
        return self.suggested[name]

    def faults_of(self, entry: ParsedEntry) -> Iterator[Diagnostic]:
        """The fault in this key; none if it is for another application."""
        address = entry.address
        faulty = next((p for p in (address.application, address.name, address.port) if p is not None and p.fault), None)
        section = address.application
        # The section comes first: whatever is wrong in it, a key of another application is not reported.
        if section is not None and not section.fit(self.application) and not faulty:
            if not self._is_for_another(entry, section.text):
                known = did_you_mean(section.text, [self.application], f"it is called {self.application!r}")
                yield self._fault(entry, f"the application is not called {section.text!r}", known)
        elif isinstance(address.sets, AttributeRef) and not scopes_set_by(address.element, address.sets):
            yield self._attribute(entry, address.sets)
        elif faulty is not None:
            help_ = r"names are regular expressions of RE2: write \w* for any word characters, or * alone for any name"
            yield self._fault(entry, f"{faulty.text!r} is not a pattern: {faulty.fault}", help_, "key-malformed")
        else:
            yield self._missed(entry)

    def _is_for_another(self, entry: ParsedEntry, section: str) -> bool:
        """Whether the section, in a shared file, names another application, not a misspelling of this one."""
        near = get_close_matches(section.casefold(), [self.application.casefold()], n=1, cutoff=0.8)
        return entry.origin.source in SHARED and not near

    def _missed(self, entry: ParsedEntry) -> Diagnostic:
        element = entry.address.element
        if element is Element.STREAM:
            return self._stream(entry)
        if element is Element.TEMPLATE:
            return self._template(entry)
        if element is Element.APPLICATION and isinstance(entry.address.sets, PropertyPath):
            return self._of_application(entry, entry.address.sets)
        return self._of_operator(entry)

    def _attribute(self, entry: ParsedEntry, attribute: AttributeRef) -> Diagnostic:
        bearers = [scope for scope, catalogue in BY_SCOPE.items() if attribute.name in catalogue]
        if not bearers:
            return self._fault(
                entry, f"there is no attribute {attribute.name!r}", did_you_mean(attribute.name, attribute_names())
            )
        belongs = " or ".join(_BEARERS[scope] for scope in bearers)
        problem = f"{attribute.name} belongs to {belongs} and cannot be set here"
        return self._fault(entry, problem, f"set it on {belongs}", "attribute-misplaced")

    def _stream(self, entry: ParsedEntry) -> Diagnostic:
        word, name = str(entry.address.sets), entry.name
        if any(name.fit(stream) for stream in self.streams):
            help_ = "keys define streams and operators only in an application that is itself a property file"
            return self._fault(entry, f"the application itself defines the {word} of stream {name.text!r}", help_)
        otherwise = "" if self.streams else "the application has no streams"
        near = self.near(name.text, self.streams, otherwise)
        return self._fault(entry, f"there is no stream {name.text!r}", near)

    def _template(self, entry: ParsedEntry) -> Diagnostic:
        name = entry.name.text
        if entry in self.unknown:
            return self.unknown[entry]
        if isinstance(entry.address.sets, Keyword):
            why_not = refusal(str(entry.value).strip())
            if why_not is not None:
                why_not = without_secret(why_not, entry.value, entry.origin.shown)
                return self._fault(entry, f"{entry.shown} is not a pattern: {why_not}", HELP, "key-malformed")
            return self._fault(entry, f"template {name!r} matches no operator by this pattern", self._matchable(entry))
        help_ = f"write operator.NAME.template={name}, or give it a matchIdRegExp that fits an operator"
        return self._fault(entry, f"no operator uses template {name!r}", help_)

    def _of_application(self, entry: ParsedEntry, path: PropertyPath) -> Diagnostic:
        """The fault in a key for the application: a misspelt section, or a property that it does not have."""
        first = path.first
        fields: Iterable[str] = getattr(self.application_class, "model_fields", ())
        near = get_close_matches(first, (*SECTION_WORDS, "attr", "prop"), n=1, cutoff=0.7)
        if near and len(path.steps) > 1:
            return self._fault(entry, f"there is no section {first!r}", f"did you mean {near[0]!r}?")
        if entry in self.unknown and len(path.steps) > 1 and first in fields:
            return self.unknown[entry]
        otherwise = "neither dagkit nor the application reads a property of this name"
        return self._fault(
            entry,
            f"the application has no property {first!r}",
            did_you_mean(first, fields, otherwise),
            "property-unknown" if entry.address.application is not None else "key-unmatched",
        )

    def _of_operator(self, entry: ParsedEntry) -> Diagnostic:
        name = entry.address.name
        fitting = self.fitting(name)
        if name is not None and not fitting:
            known = self.near(name.text, self.operators, self._known_operators())
            return self._fault(entry, f"there is no operator {name.text!r}", known + self._if_shared(entry))
        if entry in self.unknown:
            return self.unknown[entry]
        if isinstance(entry.address.sets, Keyword):
            return self._keyword(entry, entry.address.sets)
        if entry in self.stranded:
            bearer = self.stranded[entry]
            help_ = "connect a stream to the port, or set the attribute on a connected port"
            return self._fault(
                entry, f"{entry.address.sets} is for {bearer}, which no stream uses", help_, "attribute-stranded"
            )
        if entry.address.port is not None:
            return self._port(entry, fitting)
        modules = [known for known, cls in fitting.items() if cls is not None and issubclass(cls, Module)]
        if modules:
            help_ = f"write {modules[0]}$NAME for an operator inside"
            return self._fault(entry, f"{modules[0]} is a module, which has no attributes", help_)
        return self._fault(entry, "it fits nothing here", self._known_operators())

    def _matchable(self, entry: ParsedEntry) -> str:
        """The names that the pattern of a template is matched against."""
        if entry.word == "matchAppNameRegExp":
            return f"the application is called {self.application!r}"
        if entry.word != "matchClassNameRegExp":
            return self._known_operators()
        return _listed("classes", dict.fromkeys(c.__qualname__ for c in self.operators.values() if c is not None))

    def _known_operators(self) -> str:
        return _listed("operators", self.operators)

    def _if_shared(self, entry: ParsedEntry) -> str:
        """How a key can be for another application, if its file is read for each one in its folder."""
        is_shared = entry.origin.source is Source.APPLICATION
        return "; put keys of another application into a file properties-NAME with its name" if is_shared else ""

    def _keyword(self, entry: ParsedEntry, keyword: Keyword) -> Diagnostic:
        if keyword.word == "template":
            name = str(entry.value) if entry.origin.shown is None else entry.origin.shown
            otherwise = "" if self.templates else f"declare it, as in {PREFIXES[0]}template.{name}.prop.NAME"
            near = did_you_mean(name, self.templates, otherwise)
            return self._fault(entry, f"there is no template {name!r}", near)
        help_ = "keys define streams and operators only in an application that is itself a property file"
        return self._fault(entry, f"the application itself defines the {keyword.word} of an operator", help_)

    def _port(self, entry: ParsedEntry, fitting: dict[str, type | None]) -> Diagnostic:
        port, kind = entry.address.port, entry.address.port_kind
        assert port is not None, "the key names a port"
        inputs = [name for cls in fitting.values() if cls is not None for name in input_ports(cls)]
        outputs = [name for cls in fitting.values() if cls is not None for name in output_ports(cls)]
        other = {PortKind.INPUT: outputs, PortKind.OUTPUT: inputs}.get(kind or PortKind.PORT, [])
        names = {PortKind.INPUT: inputs, PortKind.OUTPUT: outputs}.get(kind or PortKind.PORT, inputs + outputs)
        if port.text in other:
            right = "an output" if kind is PortKind.INPUT else "an input"
            return self._fault(
                entry,
                f"{port.text!r} is {right} port, not an {kind}",
                f"write port, or {'outputport' if kind is PortKind.INPUT else 'inputport'}",
            )
        near = did_you_mean(port.text, names, "" if names else "it has none")
        of = f" of {next(iter(fitting))}" if len(fitting) == 1 else ""
        return self._fault(entry, f"there is no {kind} {port.text!r}{of}", near)

    def _fault(self, entry: ParsedEntry, problem: str, help_: str, code: Code = "key-unmatched") -> Diagnostic:
        return Diagnostic(code, f"{entry.key}: {problem}", help_, entry.origin.where)


def _target(entry: ParsedEntry) -> tuple[str, ...]:
    """What a key sets, without the section that it is in, the same for every spelling."""
    sets = entry.address.sets
    return (sets.name,) if isinstance(sets, AttributeRef) else entry.way


def _overridden(entry: ParsedEntry, winner: ParsedEntry) -> Diagnostic:
    return Diagnostic(
        "key-unmatched",
        f"{entry.key} of the command line decides nothing: {winner.key} is narrower",
        f"pass -D {winner.key}=…: a narrower key wins, whatever its source",
        winner.origin.where,
        Severity.WARNING,
    )


def _malformed(entry: Entry, fault: Malformed) -> Diagnostic:
    key = entry.key if len(entry.key) <= LONGEST_SHOWN else f"{entry.key[:LONGEST_SHOWN]}…"
    return Diagnostic("key-malformed", f"{key}: {fault.problem}", fault.help, entry.origin.where)


def _stranger(entry: Entry, asked: Collection[str]) -> Diagnostic:
    """A fault for a key without a prefix, which may lack the prefix, or may be one that the application reads."""
    otherwise = f"nothing reads it; keys of dagkit begin with one of {', '.join(PREFIXES)}"
    begins = entry.key.partition(".")[0]
    meant = next((word for word in (*SECTION_WORDS, "attr") if begins == word), None)
    if meant and isinstance(parse_path(entry.key), Address):
        otherwise = f"did you mean '{PREFIXES[0]}{entry.key}'?"
    near_prefix = get_close_matches(f"{begins}.", PREFIXES, n=1, cutoff=0.6)
    if near_prefix and "." in entry.key:
        otherwise = f"did you mean '{near_prefix[0]}{entry.key.partition('.')[2]}'?"
    help_ = otherwise if meant or near_prefix else did_you_mean(entry.key, asked, otherwise)
    return Diagnostic("key-unmatched", f"nothing is called {entry.key}", help_, entry.origin.where)


def _listed(what: str, names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    return f"{what} here: {', '.join(shown[:12])}{', …' * (len(shown) > 12)}" if shown else "there is no operator"
