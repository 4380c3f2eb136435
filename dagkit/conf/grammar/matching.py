"""Which keys apply to which names, and which of several keys wins: section 4.3 of Apex's rules, as a sort order.

If two keys set the same thing by the same form of name, the stronger source wins. Otherwise the narrower key wins,
whatever its source: an application's own section wins over the root of the file, a name over a pattern, a pattern over
a key for all, and every key that names the operator over templates.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from dagkit.api.configuration import Origin, Source
from dagkit.conf.grammar.names import Fit, NamePattern, folded
from dagkit.conf.grammar.property_keys import Address, PropertyPath


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
