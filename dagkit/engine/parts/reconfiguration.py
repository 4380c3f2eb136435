"""The changes that are requested of a running application, and the facts that record them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from dagkit.api.stats import BatchedOperatorStats
from dagkit.compiler.reconfigure import name_of, value_of
from dagkit.engine.parts.requests import ForgetFile, OnWork, Request, SetCount, SetValue
from dagkit.engine.parts.running_plan import RunningPlan
from dagkit.engine.program.facts import Changed, Fact, Forgotten, Scaled

ASKED = "asked"
"""The policy name of a count that a user set by hand."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A requested new value of a property or an attribute."""

    operator: str
    name: str
    value: str
    request: str | None = None
    """The ID of the request to answer; None if the change has no outside request."""

    def on(self, plan: RunningPlan) -> RunningPlan:
        return plan.setting(self.operator, self.name, self.value)

    def fact(self, before: RunningPlan, after: RunningPlan, at: datetime) -> Fact:
        """Return the fact that records the change. Secrets are masked: both values are as a plan shows them."""
        was = value_of(before.configured, self.operator, self.name)
        now = value_of(after.configured, self.operator, self.name)
        name = name_of(after.configured, self.operator, self.name)
        return Changed(operator=self.operator, name=name, at=at, before=was, after=now)


@dataclass(frozen=True, slots=True)
class Scaling:
    """A requested number of partitions, or a request to repartition by load."""

    operator: str
    wanted: int = 0
    loads: Sequence[int] = ()
    stats: Sequence[BatchedOperatorStats] = ()
    policy: str = ASKED
    rule: str = "set by hand"
    inputs: Mapping[str, JsonValue] = field(default_factory=dict)
    request: str | None = None

    def on(self, plan: RunningPlan) -> RunningPlan:
        return plan.asked_for(self.operator, wanted=self.wanted, loads=self.loads, stats=self.stats)

    def fact(self, before: RunningPlan, after: RunningPlan, at: datetime) -> Fact:
        return Scaled(
            operator=self.operator,
            at=at,
            before=before.count(self.operator),
            after=after.count(self.operator),
            policy=self.policy,
            rule=self.rule,
            inputs=self.inputs,
        )


@dataclass(frozen=True, slots=True)
class Forgetting:
    """A request to read a file again."""

    operator: str
    path: str
    request: str

    def on(self, plan: RunningPlan) -> RunningPlan:
        """Return the same plan: only the state of an operator changes."""
        return plan

    def fact(self, before: RunningPlan, after: RunningPlan, at: datetime) -> Fact:
        return Forgotten(operator=self.operator, path=self.path, at=at)


PendingChange = Setting | Scaling | Forgetting


@dataclass(frozen=True, slots=True)
class WorkRequest:
    """A request to give up or to retry work. It changes the queue and not the plan."""

    asks: OnWork
    request: str

    @property
    def operator(self) -> str:
        return self.asks.operator or "the work"


def count_fact(change: PendingChange, before: RunningPlan, after: RunningPlan, at: datetime) -> list[Fact]:
    """Return the fact of another number of partitions, if setting a value caused it."""
    if not isinstance(change, Setting) or before.count(change.operator) == after.count(change.operator):
        return []
    name = name_of(after.configured, change.operator, change.name)
    counted = Scaling(change.operator, rule=f"{name} was set by hand")
    return [counted.fact(before, after, at)]


def change_of(request: Request, asks: SetValue | SetCount | ForgetFile) -> PendingChange:
    if isinstance(asks, SetValue):
        return Setting(asks.operator, asks.name, asks.value, request.id)
    if isinstance(asks, ForgetFile):
        return Forgetting(asks.operator, asks.path, request.id)
    return Scaling(asks.operator, asks.count, request=request.id)
