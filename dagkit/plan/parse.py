"""Plans as text: JSON out, and back in equal."""

import json
from collections import Counter
from collections.abc import Iterator

from pydantic import ValidationError

from dagkit.errors import PlanUnreadable
from dagkit.plan.model import PLAN_SCHEMA, Plan


def write_plan(plan: Plan) -> str:
    """The plan as JSON, indented for people."""
    return plan.model_dump_json(indent=2)


def read_plan(text: str, source: str = "the text") -> Plan:
    """The plan that `write_plan` wrote; `PlanUnreadable` says why there is none, or which version it has."""
    try:
        data = json.loads(text)
    except ValueError as malformed:
        raise PlanUnreadable(f"{source} is no plan: {malformed}") from malformed
    found = data.get("schema") if isinstance(data, dict) else None
    if found != PLAN_SCHEMA:
        raise PlanUnreadable(f"{source} is of schema {found!r}; this dagkit reads {PLAN_SCHEMA!r}")
    try:
        plan = Plan.model_validate(data)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise PlanUnreadable(f"{source} is no plan: {path}: {first['msg']}") from invalid
    inconsistent = next(_inconsistencies(plan), None)
    if inconsistent is not None:
        raise PlanUnreadable(f"{source} is no plan: {inconsistent}")
    return plan


def _inconsistencies(plan: Plan) -> Iterator[str]:
    """Where parts of the plan speak of what the plan does not hold, or hold it twice."""
    for what, names in (
        ("operators", [operator.name for operator in plan.operators]),
        ("streams", [stream.name for stream in plan.streams]),
        ("stages", [stage.name for stage in plan.stages]),
    ):
        yield from (f"two {what} are called {name!r}" for name, count in Counter(names).items() if count > 1)
    streams, stages = {stream.name for stream in plan.streams}, {stage.name: stage for stage in plan.stages}
    for operator in plan.operators:
        if operator.stage not in stages or operator.name not in stages[operator.stage].operators:
            yield f"operator {operator.name!r} is to run in stage {operator.stage!r}, which does not hold it"
    homes = Counter(name for stage in plan.stages for name in stage.operators)
    yield from (f"operator {name!r} stands in {count} stages" for name, count in homes.items() if count > 1)
    for what, end in _ends(plan):
        if end not in plan.by_name:
            yield f"{what} names operator {end!r}, which is not there"
    for cut in plan.cuts:
        if cut.stream not in streams:
            yield f"the cut between {cut.source} and {cut.sink} names stream {cut.stream!r}, which is not there"


def _ends(plan: Plan) -> Iterator[tuple[str, str]]:
    """Every operator that a part of the plan names, and the part."""
    for operator in plan.operators:
        if operator.parallel_with is not None:
            yield f"operator {operator.name!r}", operator.parallel_with
    for stream in plan.streams:
        yield from ((f"stream {stream.name!r}", end.operator) for end in (stream.source, *stream.sinks))
    for stage in plan.stages:
        yield from ((f"stage {stage.name!r}", name) for name in stage.operators)
    for cut in plan.cuts:
        yield from ((f"a cut of stream {cut.stream!r}", end.operator) for end in (cut.source, cut.sink))
