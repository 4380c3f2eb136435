"""The fingerprint: equal for equal plans, whoever compiled them, wherever, and in whatever order they were written."""

import hashlib
import json
from typing import Any

from dagkit.plan.model import Plan


def fingerprint(plan: Plan) -> str:
    """Sixteen hexadecimal digits that change when what will run changes.

    What only explains the plan is left out: who decided a number, the words of a reason, and how items travel.
    """
    data = plan.model_dump(mode="json")
    for operator in data["operators"]:
        del operator["why"]
    for cut in data["cuts"]:
        del cut["reason"]
    for stage in data["stages"]:
        del stage["batches"]
    return hashlib.sha256(canonical(data).encode()).hexdigest()[:16]


def canonical(data: Any) -> str:
    """JSON with one spelling: keys sorted, no blanks, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
