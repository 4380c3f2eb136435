"""The grammar of keys: the part of an application that a key names, and what the key sets there.

    key      = ("dt." | "apex." | "dagkit." | "stram.") path
    path     = [ "application." NAME "." ] element
    element  = attribute | ["prop."] bean | "class"
             | "operator." NAME "." ( attribute | ["prop."] bean | "classname" | "template" | port )
             | "stream." NAME "." ["prop."] ( "source" | "sinks" | "template" | "locality" | "schema" )
             | "template." NAME "." ( ["prop."] bean | a "match…RegExp" )
             | port | "unifier." attribute
    port     = ( "port." | "inputport." | "outputport." ) NAME "." attribute
             | "outputport." NAME ".unifier." attribute
    attribute = "attr." [ context "." ] ATTRIBUTE
    bean     = step { "." step },   step = name { "(" key ")" | "[" index "]" }

An environment variable is a path too: `DAGKIT_OPERATOR__BLOCK_READER__PROP__BLOCK_SIZE`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dagkit.api.attributes import BY_SCOPE, Scope
from dagkit.conf.grammar.names import NamePattern, bare, folded
from dagkit.errors import did_you_mean

PREFIXES = ("dt.", "apex.", "dagkit.", "stram.")
VARIABLE_PREFIX = "DAGKIT_"

LONGEST_KEY = 4096
"""The greatest number of characters in a key."""

MOST_STEPS = 100
"""The greatest number of steps from a component to a value within it. Setting the value recurses for each step."""

LONGEST_INDEX = 9
"""The greatest number of digits in a list index."""


class Element(StrEnum):
    """The kind of object on which a key sets something."""

    APPLICATION = "application"
    OPERATOR = "operator"
    STREAM = "stream"
    TEMPLATE = "template"
    PORT = "port"
    UNIFIER = "unifier"


class PortKind(StrEnum):
    """Which ports a key names. `PORT` means inputs and outputs, and is weaker than the other two."""

    PORT = "port"
    INPUT = "inputport"
    OUTPUT = "outputport"


@dataclass(frozen=True, slots=True)
class MapKey:
    """A key of a mapped property, written in parentheses. It may contain dots."""

    text: str

    def __str__(self) -> str:
        return f"({self.text})"


Step = str | int | MapKey


def text_of(step: Step) -> str:
    """The text of a step: `w.a` and `w(a)` have the same."""
    return step.text if isinstance(step, MapKey) else str(step)


@dataclass(frozen=True, slots=True)
class PropertyPath:
    """A property: its name, and the steps from it to a nested value."""

    steps: tuple[Step, ...]

    @property
    def first(self) -> str:
        return str(self.steps[0])

    def __str__(self) -> str:
        shown = "".join(
            f"[{s}]" if isinstance(s, int) else str(s) if isinstance(s, MapKey) else f".{s}" for s in self.steps
        )
        return shown.removeprefix(".")


@dataclass(frozen=True, slots=True)
class AttributeRef:
    """An attribute by name, with its context if the key contains one."""

    name: str
    scope: Scope | None = None

    def __str__(self) -> str:
        return f"attr.{self.scope}.{self.name}" if self.scope else f"attr.{self.name}"


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword of the grammar: `classname`, `locality`, `matchIdRegExp`."""

    word: str

    def __str__(self) -> str:
        return self.word


_REACH: dict[Element, tuple[Scope, ...]] = {
    Element.APPLICATION: (Scope.APPLICATION, Scope.OPERATOR, Scope.PORT),
    Element.OPERATOR: (Scope.OPERATOR, Scope.PORT),
    Element.PORT: (Scope.PORT,),
    Element.UNIFIER: (Scope.OPERATOR,),
}
"""The scopes at and below an element, its own scope first."""


def scopes_set_by(element: Element, attribute: AttributeRef) -> tuple[Scope, ...]:
    """The scopes in which a key sets an attribute if it names this element.

    The element's own scope if that has the attribute, or else every scope below that has it. Empty if none has it.
    """
    own, *below = _REACH[element]
    if attribute.scope is not None:
        reach = attribute.scope in (own, *below) and attribute.name in BY_SCOPE[attribute.scope]
        return (attribute.scope,) if reach else ()
    if attribute.name in BY_SCOPE[own]:
        return (own,)
    return tuple(scope for scope in below if attribute.name in BY_SCOPE[scope])


@dataclass(frozen=True, slots=True)
class Address:
    """The object that a key names, and what the key sets on it."""

    element: Element
    sets: AttributeRef | PropertyPath | Keyword
    name: NamePattern | None = None
    """The operator, stream or template. None for an application, and for the ports of all operators."""
    application: NamePattern | None = None
    """None, as at the root of a file, means any application."""
    port_kind: PortKind | None = None
    port: NamePattern | None = None

    @property
    def identity(self) -> tuple[str, ...]:
        """Equal for two keys that set the same thing. The prefix, `prop.` and the spelling do not matter."""
        if isinstance(self.sets, PropertyPath):
            what = f"{bare(self.sets.first)} {self.sets.steps[1:]}"
        elif isinstance(self.sets, AttributeRef):
            what = f"attr.{' '.join(scopes_set_by(self.element, self.sets)) or self.sets.scope}.{self.sets.name}"
        else:
            what = str(self.sets)
        named = (self.application, self.name, self.port)
        return (self.element, self.port_kind or "", *(str(pattern or "*") for pattern in named), what)

    @property
    def bearer(self) -> tuple[str, ...]:
        """The object that the key names, without what it sets."""
        return self.identity[:-1]

    @property
    def way(self) -> tuple[str, ...]:
        """The steps to what the key sets, in one spelling for all that may mean the same: maps are not distinguished
        from models, nor `w.a` from `w(a)`."""
        return tuple(map(_spelled, self.sets.steps)) if isinstance(self.sets, PropertyPath) else self.identity[-1:]


def _spelled(step: Step) -> str:
    text = text_of(step)
    # `[01]` and `.1` are one index. A longer text is none, and Python refuses to read thousands of digits.
    return str(int(text)) if text.isdecimal() and len(text) < 20 else bare(text)


@dataclass(frozen=True, slots=True)
class Malformed:
    """Why a key is not valid, and what to write instead."""

    problem: str
    help: str


def path_of(key: str) -> str | None:
    """The key without its prefix; None if it has none of the prefixes, and so belongs to another system."""
    for prefix in PREFIXES:
        if key.startswith(prefix):
            return key[len(prefix) :]
    return None


def canonical(key: str) -> str:
    """The key with the first of the equivalent prefixes; unchanged if it has none of them."""
    path = path_of(key)
    return key if path is None else f"{PREFIXES[0]}{path}"


def is_variable(name: str) -> bool:
    """Whether an environment variable is a setting: `DAGKIT_` and a path of at least two words."""
    return name.startswith(VARIABLE_PREFIX) and "__" in name


def parse_key(key: str) -> Address | Malformed | None:
    """The address that the key means; None if it has none of the prefixes, and so belongs to another system."""
    path = path_of(key)
    if path is None and not is_variable(key):
        return None
    if len(key) > LONGEST_KEY:
        return Malformed(f"it is longer than {LONGEST_KEY} characters", "set the whole value instead")
    if path is not None:
        return parse_path(path)
    words = key.removeprefix(VARIABLE_PREFIX).split("__")
    # Keywords are read in lower case, names unchanged.
    return _Reading([w.lower() if w.lower() in _MARKERS else w for w in words], folded=True).address()


def parse_path(path: str) -> Address | Malformed:
    """The address that a key without its prefix means."""
    return _Reading(_DOT.split(path), folded=False).address()


# -- reading ---------------------------------------------------------------------------------------------------------

# A dot in parentheses belongs to the key of a map: `tags(a.b)` has two steps.
_DOT = re.compile(r"\.(?![^()]*\))")
_STEP = re.compile(r"([^()\[\]]+)((?:\([^()]*\)|\[\d+\])*)")
_PART = re.compile(r"\(([^()]*)\)|\[(\d+)\]")

SECTION_WORDS = ("application", "operator", "stream", "template", "port", "inputport", "outputport", "unifier")
_MARKERS = (*SECTION_WORDS, "attr", "prop", "class")
_PORT_WORDS = frozenset(PortKind)
_STREAM_WORDS = ("source", "sinks", "template", "locality", "schema")
_TEMPLATE_WORDS = ("matchIdRegExp", "matchAppNameRegExp", "matchClassNameRegExp")
_SCOPES = {
    "DAGContext": Scope.APPLICATION,
    "DagContext": Scope.APPLICATION,
    "LogicalPlan": Scope.APPLICATION,
    "OperatorContext": Scope.OPERATOR,
    "PortContext": Scope.PORT,
}


_QUANTIFIERS = ("*", "+", "?", "{")
"""What may follow a dot in a regular expression. No word that follows a name begins so."""
NO_DOTS = r"names have no dots: write \w* instead of .*, in TOML in single quotes, as in [dt.operator.'Tok\w*']"


class _Refused(Exception):
    """Carries a `Malformed` out of the recursion. Never leaves this module."""

    def __init__(self, problem: str, help_: str) -> None:
        self.fault = Malformed(problem, help_)


class _Reading:
    """Reads the words of one path from left to right; `words` are those that are left."""

    def __init__(self, words: Sequence[str], *, folded: bool) -> None:
        self.words = list(words)
        self.folded = folded
        """Whether they are of an environment variable."""

    @property
    def head(self) -> str:
        return self.words[0] if self.words else ""

    def address(self) -> Address | Malformed:
        if not all(self.words):
            return Malformed("it has an empty part between two dots", "remove the dot, or write the missing name")
        try:
            return self.element(None)
        except _Refused as refused:
            return refused.fault

    # -- elements ----------------------------------------------------------------------------------------------------

    def element(self, application: NamePattern | None) -> Address:
        self.refuse_dots("application", "operator", "stream", "template", *_PORT_WORDS)
        head = self.head if len(self.words) > 1 else ""
        if head == "application" and application is None:
            return self.element(self.name(head))
        if head == "operator":
            return self.of_operator(self.name(head), application)
        if head == "stream":
            return self.of_stream(self.name(head), application)
        if head == "template":
            return self.of_template(self.name(head), application)
        if head in _PORT_WORDS:
            return self.of_port(None, application)
        if head == "unifier":
            del self.words[0]
            return Address(Element.UNIFIER, self.attribute("unifier"), application=application)
        if self.words == ["class"] and application is not None:
            return Address(Element.APPLICATION, Keyword("class"), application=application)
        return Address(Element.APPLICATION, self.attribute_or_property(), application=application)

    def of_operator(self, name: NamePattern, application: NamePattern | None) -> Address:
        self.refuse_dots(*_PORT_WORDS)
        if self.head in _PORT_WORDS and len(self.words) > 1:
            return self.of_port(name, application)
        # With more words it is a property of that name: `template.size`.
        if len(self.words) == 1 and self.head.lower() in ("classname", "template"):
            return Address(Element.OPERATOR, Keyword(self.head.lower()), name, application)
        return Address(Element.OPERATOR, self.attribute_or_property(), name, application)

    def of_port(self, operator: NamePattern | None, application: NamePattern | None) -> Address:
        kind = PortKind(self.head)
        port = self.name(kind)
        if self.head == "unifier" and kind is not PortKind.INPUT:
            del self.words[0]
            sets = self.attribute("unifier")
            return Address(Element.UNIFIER, sets, operator, application, PortKind.OUTPUT, port)
        return Address(Element.PORT, self.attribute(f"{kind}.{port}"), operator, application, kind, port)

    def of_stream(self, name: NamePattern, application: NamePattern | None) -> Address:
        self.skip_prop()
        word = ".".join(self.words)
        known = {known.lower(): known for known in _STREAM_WORDS}.get(word.lower())
        if known is None:
            help_ = did_you_mean(word, _STREAM_WORDS) if word else f"end it with one of {', '.join(_STREAM_WORDS)}"
            raise _Refused(f"a stream has no {word!r}" if word else "it ends after the stream's name", help_)
        return Address(Element.STREAM, Keyword(known), name, application)

    def of_template(self, name: NamePattern, application: NamePattern | None) -> Address:
        known = {known.lower(): known for known in _TEMPLATE_WORDS}.get(self.head.lower())
        if known is not None and len(self.words) == 1:
            return Address(Element.TEMPLATE, Keyword(known), name, application)
        if self.head == "attr":
            help_ = "set the attribute on operator.NAME, or on operator.*"
            raise _Refused("a template holds properties, not attributes", help_)
        if self.head == "prop":
            del self.words[0]
        return Address(Element.TEMPLATE, self.property_path(), name, application)

    # -- names, attributes and properties ----------------------------------------------------------------------------

    def refuse_dots(self, *before_names: str) -> None:
        """Refuse a quoted name with a dot, which the TOML reader writes in parentheses: `operator(Tok.*)`."""
        section, _, name = self.head.partition("(")
        if section in before_names and "." in name:
            raise _Refused(f"the name {name.removesuffix(')')!r} has a dot", NO_DOTS)

    def name(self, what: str) -> NamePattern:
        """The name after the word for an element."""
        _, text, *self.words = self.words
        name = NamePattern(folded(text) if self.folded else text, self.folded)
        if self.head.startswith(_QUANTIFIERS):
            raise _Refused(f"the dot behind {text!r} divides the key", NO_DOTS)
        if not self.words:
            raise _Refused(f"it ends after the name of the {what}", f"add what to set on {name}, as in …{name}.attr.…")
        return name

    def skip_prop(self) -> None:
        if self.head == "prop" and len(self.words) > 1:
            del self.words[0]

    def attribute_or_property(self) -> AttributeRef | PropertyPath:
        if self.head == "attr" and len(self.words) > 1:
            return self.attribute("")
        self.skip_prop()
        return self.property_path()

    def attribute(self, bearer: str) -> AttributeRef:
        if self.head != "attr" or len(self.words) < 2:
            shown = ".".join(self.words)
            raise _Refused(
                f"what follows {bearer} is {shown!r}" if shown else f"it ends after {bearer}",
                f"write {bearer}.attr.NAME: only attributes can be set there",
            )
        *context, name = self.words[1:]
        if not context:
            return AttributeRef(name)
        # Words before the context, such as the package of Apex or of dagkit, do not matter.
        word = context[-1].rpartition("$")[2]
        if word not in _SCOPES:
            raise _Refused(f"there is no context {word!r} with attributes", did_you_mean(word, _SCOPES))
        return AttributeRef(name, _SCOPES[word])

    def property_path(self) -> PropertyPath:
        if not self.words:
            raise _Refused("it ends before the name of a property", "write prop.NAME")
        steps: list[Step] = []
        for word in self.words:
            found = _STEP.fullmatch(word)
            if found is None:
                raise _Refused(f"{word!r} is not a property", "write name, name(key) for a map, or name[0] for a list")
            steps.append(found[1].lower() if self.folded else found[1])
            parts = _PART.findall(found[2])
            if any(len(index) > LONGEST_INDEX for _, index in parts):
                raise _Refused(f"{found[1]!r} has an index of more than {LONGEST_INDEX} digits", "count from 0")
            steps += [int(index) if index else MapKey(key) for key, index in parts]
        if len(steps) > MOST_STEPS:
            raise _Refused(f"it has more than {MOST_STEPS} steps", "set the whole value instead")
        return PropertyPath(tuple(steps))
