"""The ratios that must be met."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Law:
    """One contestant must be at least this many times as fast as another, warm."""

    name: str
    numerator: str
    denominator: str
    at_least: float
    per_core: bool = False
    """Whether the numerator's rate is first divided by the cores: the denominator uses only one."""


LAWS = (
    Law("batch over native Spark", "dagkit-batch", "native-spark", 4.0),
    Law("batch over native Spark, neither synced", "dagkit-unsynced", "native-spark", 4.0),
    Law("batch over native Spark, both synced", "dagkit-batch", "native-synced", 4.0),
    Law("batch over PySpark RDD", "dagkit-batch", "rdd", 12.0),
    Law("batch over Polars", "dagkit-batch", "polars", 1.0),
    Law("batch over Beam", "dagkit-batch", "beam", 50.0),
    Law("kernel over grep, one core", "kernel", "grep", 1.0),
    Law("per record over a loop by hand, per core", "dagkit-record", "hand-loop", 0.8, per_core=True),
    Law("per record over native Spark", "dagkit-record", "native-spark", 1.2),
    Law("per record over Beam", "dagkit-record", "beam", 10.0),
    Law("batch over Apex's inner rate", "dagkit-batch", "apex", 10.0),
    Law("per record over Apex's inner rate", "dagkit-record", "apex", 5.0),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result for a ratio in one place."""

    law: Law
    where: str
    ratio: float | None
    """None: one of the two was requested but not measured."""

    @property
    def word(self) -> Literal["holds", "falls short", "not measured"]:
        if self.ratio is None:
            return "not measured"
        return "holds" if self.ratio >= self.law.at_least else "falls short"

    @property
    def holds(self) -> bool:
        return self.word == "holds"


def judged(rates: Mapping[str, float], asked: frozenset[str], where: str, cores: int) -> Iterator[Verdict]:
    """A verdict on each ratio whose contestants were both requested; `rates` holds the finished ones."""
    for law in LAWS:
        if {law.numerator, law.denominator} <= asked:
            yield Verdict(law, where, _ratio(law, rates, cores))


def _ratio(law: Law, rates: Mapping[str, float], cores: int) -> float | None:
    if not {law.numerator, law.denominator} <= rates.keys():
        return None
    return rates[law.numerator] / (cores if law.per_core else 1) / rates[law.denominator]
