"""Templates: properties under a name, for operators that match its pattern or refer to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dagkit.conf.grammar.matching import Rank, Rule, Tier
from dagkit.conf.grammar.property_keys import Keyword
from dagkit.patterns import is_whole

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
        assert rule.address.name is not None, "a template has a name"
        template = self.by_name.setdefault(rule.address.name.text, Template())
        (template.matches if isinstance(rule.address.sets, Keyword) else template.properties).append(rule)

    def reaching(
        self, application: str, operator: str, cls: type, references: Sequence[Rule]
    ) -> Iterator[tuple[Rank, Rule]]:
        """The properties that reach an operator by templates, and the keys by which they do, with their ranks."""
        for template in self.by_name.values():
            for match in template.matches:
                assert isinstance(match.address.sets, Keyword), "a template matches by a word of the grammar"
                tier = _TIERS[match.address.sets.word]
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
