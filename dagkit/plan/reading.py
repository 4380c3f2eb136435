"""Plans as text: JSON out, and back in equal."""

import json

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
        return Plan.model_validate(data)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        raise PlanUnreadable(f"{source} is no plan: {path}: {first['msg']}") from invalid
