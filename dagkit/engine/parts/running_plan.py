"""The running plan: the application as it was compiled, with all later changes; and the requested changes."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from dagkit.api.attributes import PortContext
from dagkit.api.partitioning import Partition, PartitionKeys
from dagkit.api.stats import BatchedOperatorStats
from dagkit.compiler import Compilation
from dagkit.compiler.reconfigure import name_of, reconfigured, value_of
from dagkit.compiler.repartition import redefined, repartitioned
from dagkit.engine.inputs.watermark_flow import WatermarkFlow
from dagkit.engine.parts.requests import ForgetFile, OnWork, Request, SetCount, SetValue
from dagkit.engine.program.address import Address
from dagkit.engine.program.facts import Changed, Fact, Forgotten, Scaled
from dagkit.engine.program.lower import program_of
from dagkit.engine.program.program import Program
from dagkit.engine.record.checkpoint import Altered, Checkpoint, Partitioned
from dagkit.engine.work.summary import ProgramSummary
from dagkit.errors import ApplicationFaults
from dagkit.graph import Graph
from dagkit.plan.model import Keys

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunningPlan:
    """One state of an application's plan; each change returns another one."""

    launched: Compilation
    """The plan from code and configuration."""
    configured: Compilation
    """The plan with values that were set since, and the partitions that follow from them."""
    compilation: Compilation
    """The plan that runs: with the partitions that were assigned since."""
    partitions: Mapping[str, Partitioned] = field(default_factory=dict)
    altered: tuple[Altered, ...] = ()

    @classmethod
    def of(cls, compilation: Compilation) -> "RunningPlan":
        """Return the plan without changes."""
        return cls(compilation, compilation, compilation)

    @classmethod
    def resumed(cls, compilation: Compilation, checkpoint: Checkpoint) -> "RunningPlan":
        """Return the plan of a checkpoint, without changes whose configuration was edited since or that do not fit.

        An edit of a property file that is newer than a value set at run time wins.
        """
        plan = cls.of(compilation)
        for one in checkpoint.changes.altered:
            if value_of(compilation, one.operator, one.name) != one.configured:
                _log.warning(
                    "the value set for %s.%s while it ran is dropped, because its configuration was edited since",
                    one.operator,
                    one.name,
                )
                continue
            try:
                plan = plan.setting(one.operator, one.name, one.value)
            except ApplicationFaults as faults:
                _log.warning(
                    "the value set for %s.%s while it ran is dropped, because it does not fit any more: %s",
                    one.operator,
                    one.name,
                    faults,
                )
        return plan.partitioned_as(checkpoint.changes.partitions)

    @cached_property
    def program(self) -> Program:
        return program_of(self.compilation)

    @cached_property
    def summary(self) -> ProgramSummary:
        return ProgramSummary(self.program)

    @cached_property
    def flow(self) -> WatermarkFlow | None:
        """The flow of watermarks; None if no operator estimates one."""
        return WatermarkFlow.of(self.program)

    @property
    def graph(self) -> Graph:
        return self.compilation.graph

    def count(self, operator: str) -> int:
        """The number of partitions of an operator."""
        return self.compilation.partitioned[operator].count

    def capacity(self, inputs: Iterable[Address]) -> int:
        """The total queue capacity of these inputs."""
        ports = [(self.graph.by_name[into.operator], into.port) for into in inputs]
        return sum(node.port_value(port, PortContext.QUEUE_CAPACITY) for node, port in ports)

    def setting(self, operator: str, name: str, raw: Any) -> "RunningPlan":
        """Return the plan with a new value of a property or an attribute. Raise `ApplicationFaults` if invalid."""
        name = name_of(self.configured, operator, name)
        configured = reconfigured(self.configured, operator, name, raw)
        configured_value = value_of(self.launched, operator, name)
        mine = Altered(operator=operator, name=name, value=raw, configured=configured_value)
        others = tuple(one for one in self.altered if (one.operator, one.name) != (operator, name))
        plan = RunningPlan(self.launched, configured, configured, {}, (*others, mine))
        # the new value may change counts, so the partitions that were assigned are assigned again, if they still fit
        return plan.partitioned_as(self.partitions)

    def asked_for(
        self,
        operator: str,
        *,
        wanted: int = 0,
        loads: Sequence[int] = (),
        stats: Sequence[BatchedOperatorStats] = (),
    ) -> "RunningPlan":
        """Ask the partitioner of an operator again, and return the plan with its answer; `self` if nothing changes.

        Raise `ApplicationFaults` if the answer is invalid.
        """
        partitions = redefined(self.compilation, operator, wanted=wanted, loads=loads, stats=stats)
        if partitions == self.compilation.partitioned[operator].partitions:
            return self
        return self.with_partitions(operator, partitions)

    def with_partitions(self, operator: str, partitions: Sequence[Partition]) -> "RunningPlan":
        partitioned = Partitioned(
            configured=self.configured.partitioned[operator].count,
            keys=tuple(
                {port: Keys(mask=keys.mask, keys=tuple(sorted(keys.keys))) for port, keys in one.keys.items()}
                for one in partitions
            ),
        )
        compilation = repartitioned(self.compilation, {operator: partitions})
        return replace(self, compilation=compilation, partitions={**self.partitions, operator: partitioned})

    def partitioned_as(self, kept: Mapping[str, Partitioned]) -> "RunningPlan":
        """Return the plan with these partitions, if its configuration still gives the counts that it gave then."""
        plan = self
        for operator, partitioned in kept.items():
            configured = plan.configured
            there = configured.partitioned.get(operator)
            if there is None or (there.head, there.count) != (operator, partitioned.configured):
                _log.warning("%s has the partitions of its configuration, which has changed since", operator)
                continue
            try:
                plan = plan.with_partitions(operator, plan.partitions_of(operator, partitioned))
            except ApplicationFaults as faults:
                _log.warning("the partitions that %s was given do not fit any more: %s", operator, faults)
        return plan

    def partitions_of(self, operator: str, kept: Partitioned) -> list[Partition]:
        """Return partitions with the kept keys, and with the operators that the partitioner creates now."""
        count = len(kept.keys)
        try:
            made = redefined(self.compilation, operator, wanted=count)
        except ApplicationFaults:  # the partitioner follows loads and takes no wanted count
            made = (self.compilation.partitioned[operator].partitions[0],) * count
        return [
            Partition(one.operator, {port: PartitionKeys(k.mask, frozenset(k.keys)) for port, k in keys.items()})
            for one, keys in zip(made, kept.keys, strict=True)
        ]


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
