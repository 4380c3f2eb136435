"""Which keys apply to which names, and which of several keys wins: section 4.3 of Apex's rules, as a sort order.

If two keys set the same thing by the same form of name, the stronger source wins. Otherwise the narrower key wins,
whatever its source: an application's own section wins over the root of the file, a name over a pattern, a pattern over
a key for all, and every key that names the operator over templates.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from dagkit.api.configuration import Origin, Source
from dagkit.conf.grammar.names import Fit, NamePattern, folded
from dagkit.conf.grammar.property_keys import Address, AttributeRef, Keyword, PropertyPath
from dagkit.ground.patterns import is_whole


class Tier(IntEnum):
    """How a property reaches an operator, the weakest way first."""

    TEMPLATE_BY_CLASS = 0
    TEMPLATE_BY_APPLICATION = 1
    TEMPLATE_BY_NAME = 2
    TEMPLATE_REFERRED = 3
    DIRECT = 4


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One key with its value, its address and its origin."""

    address: Address
    raw: Any = field(repr=False)
    origin: Origin
    position: int = 0
    """Its position among all keys, those of the strongest source last."""
    of_application: bool = False
    """Whether it is in the section that names this application."""

    @property
    def path(self) -> PropertyPath:
        """The property that it sets."""
        assert isinstance(self.address.sets, PropertyPath), "only properties are set on a component"
        return self.address.sets

    @property
    def attribute(self) -> AttributeRef:
        """The attribute that it sets."""
        assert isinstance(self.address.sets, AttributeRef), "its index holds attributes only"
        return self.address.sets

    @property
    def word(self) -> str:
        """The word of the grammar that it sets."""
        assert isinstance(self.address.sets, Keyword), "a template matches by a word of the grammar"
        return self.address.sets.word

    @property
    def name(self) -> NamePattern:
        """The stream or the template that it names."""
        assert self.address.name is not None, "streams and templates have names"
        return self.address.name

    @property
    def shown(self) -> str:
        """The value in a message: without a secret."""
        return repr(self.raw) if self.origin.shown is None else self.origin.shown


Rank = tuple[int, ...]


@dataclass(slots=True)
class ByName:
    """Rules by the name that they apply to. Names are found in dicts; only patterns are tried one after the other."""

    anyone: list[Rule] = field(default_factory=list)
    plain: dict[str, list[Rule]] = field(default_factory=dict)
    spelled: dict[str, list[Rule]] = field(default_factory=dict)
    """The rules of environment variables, by folded name."""
    patterns: dict[NamePattern, list[Rule]] = field(default_factory=dict)

    def add(self, pattern: NamePattern | None, rule: Rule) -> None:
        if pattern is None:
            self.anyone.append(rule)
        elif pattern.folded:
            self.spelled.setdefault(pattern.text, []).append(rule)
        elif pattern.is_plain:
            self.plain.setdefault(pattern.text, []).append(rule)
        else:
            self.patterns.setdefault(pattern, []).append(rule)

    def fitting(self, name: str) -> Iterator[tuple[Fit, Rule]]:
        """The rules that apply to a name, each with how it fits."""
        yield from ((Fit.ANYONE, rule) for rule in self.anyone)
        for pattern, rules in self.patterns.items():
            fit = pattern.fit(name)
            if fit:
                yield from ((fit, rule) for rule in rules)
        yield from ((Fit.EXACT, rule) for rule in self.plain.get(name, ()))
        if self.spelled:
            yield from ((Fit.EXACT, rule) for rule in self.spelled.get(folded(name), ()))

    def ranked(self, name: str) -> list[Rule]:
        """The rules that apply to a name, the strongest last."""
        found = [((rule.of_application, fit, rule.position), rule) for fit, rule in self.fitting(name)]
        return in_order(found)


def in_order(ranked: Iterable[tuple[Rank, Rule]]) -> list[Rule]:
    """The rules, the strongest last. All configuration is stronger than the settings in a declared application."""
    return [r for _, r in sorted(ranked, key=lambda pair: (pair[1].origin.source > Source.CODE, pair[0]))]


# -- templates: properties under a name, for operators that match its pattern or refer to it --------------------------

_TIERS = {
    "matchClassNameRegExp": Tier.TEMPLATE_BY_CLASS,
    "matchAppNameRegExp": Tier.TEMPLATE_BY_APPLICATION,
    "matchIdRegExp": Tier.TEMPLATE_BY_NAME,
}


@dataclass(slots=True)
class Template:
    """One template: its properties, and its patterns for operators."""

    properties: list[Rule] = field(default_factory=list)
    matches: list[Rule] = field(default_factory=list)


@dataclass(slots=True)
class Templates:
    """The templates of the configuration, by name."""

    by_name: dict[str, Template] = field(default_factory=dict)

    def add(self, rule: Rule) -> None:
        template = self.by_name.setdefault(rule.name.text, Template())
        (template.matches if isinstance(rule.address.sets, Keyword) else template.properties).append(rule)

    def reaching(
        self, application: str, operator: str, cls: type, references: Sequence[Rule]
    ) -> Iterator[tuple[Rank, Rule]]:
        """The properties that reach an operator by templates, and the keys by which they do, with their ranks."""
        for template in self.by_name.values():
            for match in template.matches:
                tier = _TIERS[match.word]
                if _matches(str(match.raw), _names(tier, application, operator, cls)):
                    yield from self._ranked(template, tier, match)
        for reference in references:
            referred = self.by_name.get(str(reference.raw).strip())
            if referred is not None:
                yield from self._ranked(referred, Tier.TEMPLATE_REFERRED, reference)

    def _ranked(self, template: Template, tier: Tier, led_by: Rule) -> Iterator[tuple[Rank, Rule]]:
        yield (tier, 0, 0, -1), led_by
        for rule in template.properties:
            yield (tier, rule.of_application, 0, rule.position), rule


def _names(tier: Tier, application: str, operator: str, cls: type) -> tuple[str, ...]:
    if tier is Tier.TEMPLATE_BY_CLASS:
        return (cls.__qualname__, cls.__name__, f"{cls.__module__}.{cls.__qualname__}")
    return (application,) if tier is Tier.TEMPLATE_BY_APPLICATION else (operator,)


def _matches(pattern: str, names: Sequence[str]) -> bool:
    """Whether the pattern matches one of the names as a whole. An invalid pattern matches nothing."""
    return any(is_whole(pattern.strip(), name) for name in names)
