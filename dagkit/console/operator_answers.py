"""Answers about operators: their figures, what they rejected, their values in effect."""

from collections.abc import Iterator
from typing import Any

from dagkit.api.operators import REJECTED
from dagkit.console.tables import Row
from dagkit.engine.record.snapshot import RunSnapshot
from dagkit.engine.run.launch_record import LaunchRecord
from dagkit.plan.configuration_lines import DEFAULT
from dagkit.plan.model import Plan, PlannedOperator

_OMITTED: Any = {
    "reads": True,
    "rejections": {"rejected_records"},
    "backlog": {"pending", "underway", "elements_begun"},
}
"""The figures that a row of a table does not have as they are."""


def operators(snapshot: RunSnapshot) -> Iterator[Row]:
    """The figures of each operator."""
    left_out = snapshot.metrics.left_out
    for operator in snapshot.operators:
        backlog = operator.backlog
        pending = {each.port: each.positions for each in backlog.pending}
        at_work = next((work for work in snapshot.windows.working if work.operator == operator.name), None)
        # The element that takes longest; if slots do not report theirs, one that the last window did not finish.
        now = at_work or next(iter(backlog.underway), None)
        figures = operator.model_dump(mode="json", exclude=_OMITTED)
        yield {
            **{name: round(value, 3) if isinstance(value, float) else value for name, value in figures.items()},
            "busiest": operator is snapshot.busiest,
            "pending": pending,
            "waiting": sum(pending.values()) if pending else None,
            "rejected": left_out.get(operator.name, {}).get(REJECTED, 0),
            "source": None if now is None else now.source,
            "fraction": None if now is None else now.fraction,
            "working_seconds": None if at_work is None else (snapshot.status.at - at_work.since).total_seconds(),
        }


def rejected(snapshot: RunSnapshot) -> list[Row]:
    """The last records that operators rejected in the last launch, the newest window first."""
    records = [
        {"operator": operator.name, **record.model_dump()}
        for operator in snapshot.operators
        for record in operator.rejections.rejected_records
    ]
    return sorted(records, key=lambda row: -row["window"])


def operator_of(plan: Plan, name: str) -> Row | None:
    """An operator of a plan, with its properties and attributes, without secrets; None if there is none."""
    operator = plan.by_name.get(name)
    if operator is None:
        return None
    return operator.model_dump(mode="json", exclude={"partitions"}) | {"count": operator.count}


def values(launched: LaunchRecord) -> Iterator[Row]:
    """The properties and attributes of each operator of a launch, with their origins: None if it did not record them.

    A value that a run changed, as `dagkit set` does, has this as its origin.
    """
    before, origins = launched.authored.by_name, launched.origins

    def origin(operator: PlannedOperator, name: str, value: object) -> str | None:
        as_written = before.get(operator.name)
        if as_written is None or {**as_written.properties, **as_written.attributes}.get(name) != value:
            return "changed by a run"
        return None if origins is None else origins.get(operator.name, {}).get(name, DEFAULT)

    for operator in launched.plan.operators:
        for name, value in (*operator.properties.items(), *operator.attributes.items()):
            shown = {"name": name, "value": value, "origin": origin(operator, name, value)}
            yield {"operator": operator.name, "class": operator.class_, **shown}
