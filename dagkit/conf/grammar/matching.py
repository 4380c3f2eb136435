"""Which keys apply to which names, and which of several keys wins: section 4.3 of Apex's rules, as a sort order.

If two keys set the same thing by the same form of name, the stronger source wins. Otherwise the narrower key wins,
whatever its source: an application's own section wins over the root of the file, a name over a pattern, a pattern over
a key for all, and every key that names the operator over templates.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from dagkit.api.configuration import Source
from dagkit.conf.grammar.names import Fit, NamePattern, folded
from dagkit.conf.grammar.parsed_entry import ParsedEntry
from dagkit.conf.grammar.property_keys import Keyword
from dagkit.ground.patterns import is_whole


class Tier(IntEnum):
    """How a property reaches an operator, the weakest way first."""

    TEMPLATE_BY_CLASS = 0
    TEMPLATE_BY_APPLICATION = 1
    TEMPLATE_BY_NAME = 2
    TEMPLATE_REFERRED = 3
    DIRECT = 4


Rank = tuple[int, ...]


@dataclass(slots=True)
class ByName:
    """Entries by the name that they apply to. Names are found in dicts; only patterns are tried one after the other."""

    anyone: list[ParsedEntry] = field(default_factory=list)
    plain: dict[str, list[ParsedEntry]] = field(default_factory=dict)
    spelled: dict[str, list[ParsedEntry]] = field(default_factory=dict)
    """The entries of environment variables, by folded name."""
    patterns: dict[NamePattern, list[ParsedEntry]] = field(default_factory=dict)

    def add(self, pattern: NamePattern | None, entry: ParsedEntry) -> None:
        if pattern is None:
            self.anyone.append(entry)
        elif pattern.folded:
            self.spelled.setdefault(pattern.text, []).append(entry)
        elif pattern.is_plain:
            self.plain.setdefault(pattern.text, []).append(entry)
        else:
            self.patterns.setdefault(pattern, []).append(entry)

    def fitting(self, name: str) -> Iterator[tuple[Fit, ParsedEntry]]:
        """The entries that apply to a name, each with how it fits."""
        yield from ((Fit.ANYONE, entry) for entry in self.anyone)
        for pattern, entries in self.patterns.items():
            fit = pattern.fit(name)
            if fit:
                yield from ((fit, entry) for entry in entries)
        yield from ((Fit.EXACT, entry) for entry in self.plain.get(name, ()))
        if self.spelled:
            yield from ((Fit.EXACT, entry) for entry in self.spelled.get(folded(name), ()))

    def ranked(self, name: str) -> list[ParsedEntry]:
        """The entries that apply to a name, the strongest last."""
        found = [((entry.of_application, fit, entry.position), entry) for fit, entry in self.fitting(name)]
        return in_order(found)


def in_order(ranked: Iterable[tuple[Rank, ParsedEntry]]) -> list[ParsedEntry]:
    """The entries, the strongest last. All configuration is stronger than the settings in a declared application."""
    return [entry for _, entry in sorted(ranked, key=lambda pair: (pair[1].origin.source > Source.CODE, pair[0]))]


# -- templates: properties under a name, for operators that match its pattern or refer to it --------------------------

_TIERS = {
    "matchClassNameRegExp": Tier.TEMPLATE_BY_CLASS,
    "matchAppNameRegExp": Tier.TEMPLATE_BY_APPLICATION,
    "matchIdRegExp": Tier.TEMPLATE_BY_NAME,
}


@dataclass(slots=True)
class Template:
    """One template: its properties, and its patterns for operators."""

    properties: list[ParsedEntry] = field(default_factory=list)
    matches: list[ParsedEntry] = field(default_factory=list)


@dataclass(slots=True)
class Templates:
    """The templates of the configuration, by name."""

    by_name: dict[str, Template] = field(default_factory=dict)

    def add(self, entry: ParsedEntry) -> None:
        template = self.by_name.setdefault(entry.name.text, Template())
        (template.matches if isinstance(entry.address.sets, Keyword) else template.properties).append(entry)

    def reaching(
        self, application: str, operator: str, cls: type, references: Sequence[ParsedEntry]
    ) -> Iterator[tuple[Rank, ParsedEntry]]:
        """The properties that reach an operator by templates, and the keys by which they do, with their ranks."""
        for template in self.by_name.values():
            for match in template.matches:
                tier = _TIERS[match.word]
                if _matches(str(match.value), _names(tier, application, operator, cls)):
                    yield from self._ranked(template, tier, match)
        for reference in references:
            referred = self.by_name.get(str(reference.value).strip())
            if referred is not None:
                yield from self._ranked(referred, Tier.TEMPLATE_REFERRED, reference)

    def _ranked(self, template: Template, tier: Tier, led_by: ParsedEntry) -> Iterator[tuple[Rank, ParsedEntry]]:
        yield (tier, 0, 0, -1), led_by
        for entry in template.properties:
            yield (tier, entry.of_application, 0, entry.position), entry


def _names(tier: Tier, application: str, operator: str, cls: type) -> tuple[str, ...]:
    if tier is Tier.TEMPLATE_BY_CLASS:
        return (cls.__qualname__, cls.__name__, f"{cls.__module__}.{cls.__qualname__}")
    return (application,) if tier is Tier.TEMPLATE_BY_APPLICATION else (operator,)


def _matches(pattern: str, names: Sequence[str]) -> bool:
    """Whether the pattern matches one of the names as a whole. An invalid pattern matches nothing."""
    return any(is_whole(pattern.strip(), name) for name in names)
