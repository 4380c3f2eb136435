"""Records of applying a configuration: the names that exist, and the keys that matched."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dagkit.api.configuration import Source
from dagkit.conf.grammar.matching import Rule
from dagkit.conf.grammar.names import NamePattern
from dagkit.conf.grammar.property_keys import AttributeRef
from dagkit.conf.values.properties import Unknown


@dataclass(slots=True)
class KeyUsage:
    """Filled while settings are looked up, and read once at the end."""

    application: str
    application_class: type | None = None
    operators: dict[str, type | None] = field(default_factory=dict)
    """Operators and modules by name, with their classes."""
    streams: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    """The keys that are for this application."""
    elsewhere: list[Rule] = field(default_factory=list)
    """The keys in the sections of other applications."""
    used: set[int] = field(default_factory=set)
    """The positions of the keys that set something."""
    won: set[int] = field(default_factory=set)
    """The positions of the keys that decided a value."""
    beaten: dict[int, Rule] = field(default_factory=dict)
    """The key that decided instead, by the position of a key that set the same."""
    unknown: dict[int, Unknown] = field(default_factory=dict)
    """Why a property is unknown to the last component that its key matched."""
    secrets: dict[str, bool] = field(default_factory=dict)
    """The keys of properties whose types are known, and whether the type makes the value a secret."""
    stranded: dict[int, str] = field(default_factory=dict)
    """The unconnected port that a key matched."""

    def note_operator(self, operator: str, cls: type | None = None) -> None:
        self.operators[operator] = cls or self.operators.get(operator)

    def use(self, rule: Rule) -> None:
        self.used.add(rule.position)

    def contest(self, rules: Sequence[Rule]) -> None:
        """Note which of these keys, the strongest last, decides each value."""
        deciding = {_target(rule): rule for rule in rules}
        for rule in rules:
            winner = deciding[_target(rule)]
            if winner is rule:
                self.won.add(rule.position)
            else:
                self.beaten[rule.position] = winner

    def overridden(self) -> list[tuple[Rule, Rule]]:
        """The keys of the command line that decide nothing, each with a narrower key of a file that does instead."""
        asked = [rule for rule in self.rules if rule.origin.source is Source.COMMAND_LINE]
        return [
            (rule, self.beaten[rule.position])
            for rule in asked
            if rule.position in self.beaten
            and rule.position not in self.won
            and self.beaten[rule.position].origin.source < Source.COMMAND_LINE
        ]

    def note_type(self, rule: Rule, *, secret: bool) -> None:
        key = str(rule.origin.key)
        self.secrets[key] = secret or self.secrets.get(key, False)

    def refuse(self, rule: Rule, unknown: Unknown) -> None:
        self.unknown[rule.position] = unknown

    def strand(self, rule: Rule, bearer: str) -> None:
        self.stranded[rule.position] = bearer

    def unused(self) -> list[Rule]:
        return [rule for rule in self.rules if rule.position not in self.used]

    def fitting(self, pattern: NamePattern | None) -> dict[str, type | None]:
        """The operators that a key's name fits."""
        return {name: cls for name, cls in self.operators.items() if pattern is None or pattern.fit(name)}


def _target(rule: Rule) -> str:
    """What a key sets, without the section that it is in."""
    sets = rule.address.sets
    return sets.name if isinstance(sets, AttributeRef) else str(sets)
