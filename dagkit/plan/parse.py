"""Plans as JSON text: reading a written plan gives an equal one."""

import json
from collections import Counter
from collections.abc import Iterator

from pydantic import ValidationError

from dagkit.errors import plan_unreadable
from dagkit.plan.model import PLAN_SCHEMA, Plan

_WRITE_AGAIN = "write the plan again, as in `dagkit plan APP --json`"


def write_plan(plan: Plan) -> str:
    """The plan as JSON, indented for people."""
    return plan.model_dump_json(indent=2)


def read_plan(text: str, source: str = "the text") -> Plan:
    """Read a plan that `write_plan` wrote. Raise plan-unreadable if the text is not a plan, or not of this version."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as malformed:
        raise plan_unreadable(f"{source} is not a plan: {malformed}", _WRITE_AGAIN) from malformed
    found = data.get("schema") if isinstance(data, dict) else None
    # First: the fields of another schema would fail one by one, and explain nothing.
    if found != PLAN_SCHEMA:
        raise plan_unreadable(f"{source} is of schema {found!r}; this dagkit reads {PLAN_SCHEMA!r}", _WRITE_AGAIN)
    try:
        plan = Plan.model_validate(data)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise plan_unreadable(f"{source} is not a plan: {path}: {first['msg']}", _WRITE_AGAIN) from invalid
    inconsistent = next(_inconsistencies(plan), None)
    if inconsistent is not None:
        raise plan_unreadable(f"{source} is not a plan: {inconsistent}", _WRITE_AGAIN)
    return plan


def _inconsistencies(plan: Plan) -> Iterator[str]:
    """One sentence for each name that the plan uses without defining it, or defines twice."""
    for what, names in (
        ("operators", [operator.name for operator in plan.operators]),
        ("streams", [stream.name for stream in plan.streams]),
        ("stages", [stage.name for stage in plan.stages]),
    ):
        yield from (f"two {what} are called {name!r}" for name, count in Counter(names).items() if count > 1)
    streams, stages = {stream.name for stream in plan.streams}, {stage.name: stage for stage in plan.stages}
    for operator in plan.operators:
        if operator.stage not in stages or operator.name not in stages[operator.stage].operators:
            yield f"operator {operator.name!r} names stage {operator.stage!r}, which does not contain it"
    homes = Counter(name for stage in plan.stages for name in stage.operators)
    yield from (f"operator {name!r} is in {count} stages" for name, count in homes.items() if count > 1)
    for what, end in _ends(plan):
        if end not in plan.by_name:
            yield f"{what} names operator {end!r}, which does not exist"
    for cut in plan.cuts:
        if cut.stream not in streams:
            yield f"the cut between {cut.source} and {cut.sink} names stream {cut.stream!r}, which does not exist"


def _ends(plan: Plan) -> Iterator[tuple[str, str]]:
    """Every part of the plan that names an operator, with the name."""
    for operator in plan.operators:
        if operator.parallel_with is not None:
            yield f"operator {operator.name!r}", operator.parallel_with
    for stream in plan.streams:
        yield from ((f"stream {stream.name!r}", end.operator) for end in (stream.source, *stream.sinks))
    for stage in plan.stages:
        yield from ((f"stage {stage.name!r}", name) for name in stage.operators)
    for cut in plan.cuts:
        yield from ((f"a cut of stream {cut.stream!r}", end.operator) for end in (cut.source, cut.sink))
