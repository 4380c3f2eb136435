"""`dagkit scale`: explain, simulate and set numbers of partitions."""

import shlex
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import rich_click as click

from dagkit.cli.application.answer_wait import waiting
from dagkit.cli.application.located import Located, of_application
from dagkit.cli.application.options import DefaultGroup, WholeNumber
from dagkit.cli.terminal.output import Output
from dagkit.conf.grammar.names import snake
from dagkit.engine.parts.asking import answered
from dagkit.engine.parts.requests import SetCount
from dagkit.engine.record.backlogs import Recorded, ScalingDecision, backlog_millis, decisions, recorded
from dagkit.ground.amounts import aligned, counted
from dagkit.ledger import Ledger
from dagkit.scaling import ScalingSettings, decide
from dagkit.scaling.policy import in_a_line
from dagkit.simulation import Course, Simulation, following, world_of


@click.group(cls=DefaultGroup, default="explain")
def scale() -> None:
    """Explain, simulate and set how many partitions operators have.

    PATH is an application's folder (or URL); the application may be running.
    """


@scale.command()
@of_application
@click.option("--operator", metavar="NAME", help="Only this operator.")
@click.option("--changes", is_flag=True, help="Only decisions that changed something.")
def explain(*, there: Located, operator: str | None, changes: bool, output: Output) -> None:
    """List every decision of a run, with its inputs, the deciding rule, and the result."""
    made = [
        decided
        for decided in decisions(Ledger.open(there.place), operator)
        if not changes or decided.fact.before != decided.fact.after
    ]
    if output.as_json:
        output.document("dagkit.scaling/1", {"decisions": [decided.as_json() for decided in made]})
        return
    output.result("\n".join(_described(decided) for decided in made) or "nothing was decided")


@scale.command()
@of_application
@click.option("--operator", metavar="NAME", help="Which operator, if several follow their backlogs.")
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="Simulate with this setting; repeatable.")
def simulate(*, there: Located, operator: str | None, settings: Sequence[str], output: Output) -> None:
    """Compare what other settings would have done with the recorded backlog to what was done."""
    record = recorded(Ledger.open(there.place), operator)
    as_it_was = record.inputs[-1].settings
    other = _with(as_it_was, settings)
    courses = {"simulated, as it was": as_it_was, **({"simulated, as set": other} if settings else {})}
    world, first = world_of(record), record.decisions[0].fact.before
    lines = [
        _recorded_line(record),
        *(
            {
                "what": what,
                # The run began with a number that its own settings allowed; the others may require more.
                **_line(record, Simulation(world, following(how), max(first, how.min_partitions)).run()),
            }
            for what, how in courses.items()
        ),
    ]
    if output.as_json:
        body = {"operator": record.operator, "settings": other.model_dump(mode="json"), "courses": lines}
        output.document("dagkit.simulated/1", body)
        return
    output.result(_table(record, lines))


@scale.command("set")
@of_application
@click.argument("operator")
@click.argument("count", metavar="N", type=WholeNumber(min=1))
@waiting
def set_count(*, there: Located, operator: str, count: int, seconds: float, output: Output) -> None:
    """Set the partitions of an operator to N while its application runs, from the next window on.

    An operator that follows its backlog may soon change the number again; for a reader, prevent that with
    `dagkit set PATH OPERATOR collect_stats false`.
    """
    reply = answered(there.place, SetCount(operator=operator, count=count), seconds)
    if output.as_json:
        body = {"operator": operator, "window": reply.window, "before": reply.before, "after": reply.after}
        output.document("dagkit.scale.set/1", body)
        return
    partitions = counted(count, "partition")
    output.result(f"{operator} has {partitions} from window {reply.window} on (before: {reply.before})")
    if next(iter(decisions(Ledger.open(there.place), operator)), None) is not None:
        keep = f"dagkit set {shlex.quote(there.place)} {shlex.quote(operator)} collect_stats false"
        output.message(
            f"{operator} follows its backlog, which may soon change the number again; `{keep}` prevents that"
        )


def _described(decided: ScalingDecision) -> str:
    """A decision in readable form."""
    fact, inputs = decided.fact, decided.inputs
    lines = [f"{fact.at.isoformat(timespec='milliseconds')} {fact.operator}, by {fact.policy}: {decided.sentence}"]
    # The ledger has all inputs of a decision, so a policy that changed since shows here.
    if inputs is not None and (again := decide(inputs)).after != fact.after:
        lines.append(f"  this dagkit would have decided {again.after}: {again.rule}")
    return "\n".join(lines)


READERS: Mapping[str, str] = {"min_readers": "min_partitions", "max_readers": "max_partitions"}
"""The names of these settings in a block reader."""


def _with(settings: ScalingSettings, changed: Sequence[str]) -> ScalingSettings:
    """The settings with these changes."""
    values: dict[str, Any] = {}
    for text in changed:
        spelled, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} does not have the form NAME=VALUE", param_hint="--set")
        name = snake(spelled.strip())
        values[READERS.get(name, name)] = None if value.strip().lower() == "none" else value.strip()
    try:
        return settings.changed(values)
    except ValueError as invalid:
        raise click.BadParameter(in_a_line(invalid), param_hint="--set") from invalid


def _recorded_line(record: Recorded) -> dict[str, Any]:
    facts = [decided.fact for decided in record.decisions]
    return {
        "what": "recorded",
        "backlog_millis": round(backlog_millis(record.arrivals, record.drained)),
        "most": max(max(fact.before, fact.after) for fact in facts),
        "changes": sum(fact.before != fact.after for fact in facts),
        "slot_millis": None,
    }


def _line(record: Recorded, course: Course) -> dict[str, Any]:
    return {
        "backlog_millis": round(backlog_millis(record.arrivals, course.drained)),
        "most": max([change.after for change in course.changes] + [course.began_with]),
        "changes": len(course.changes),
        "slot_millis": round(course.slot_millis),
    }


def _table(record: Recorded, lines: Sequence[dict[str, Any]]) -> str:
    blocks = sum(arrival.blocks for arrival in record.arrivals)
    rows = [["", "with a backlog", "most partitions", "changes", "time of slots"]]
    rows += [
        [
            line["what"],
            _seconds(line["backlog_millis"]),
            str(line["most"]),
            str(line["changes"]),
            "" if line["slot_millis"] is None else _seconds(line["slot_millis"]),
        ]
        for line in lines
    ]
    return f"{record.operator}: {counted(blocks, 'block')} came\n{aligned(rows)}"


def _seconds(millis: float) -> str:
    assert millis < inf, "all work is read in the end"
    return f"{millis / 1000:.1f} s"
