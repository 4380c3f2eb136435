"""The fingerprint of a plan: the same for equal plans on every machine, in whatever order they were declared."""

import hashlib
import json
from typing import Any

from dagkit.plan.model import FORMERLY_DISTRIBUTED, Plan, Routing


def fingerprint(plan: Plan) -> str:
    """Sixteen hexadecimal digits that change when what will run changes.

    Parts that only explain the plan do not count: the origin of a number, and the text of a reason.
    """
    data = plan.model_dump(mode="json")
    for operator in data["operators"]:
        del operator["why"]
    for cut in data["cuts"]:
        del cut["reason"]
    for stream in data["streams"]:
        stream.pop("fields", None)  # ledgers hold fingerprints of plans without them
    for sink in (sink for stream in data["streams"] for sink in stream["sinks"]):
        if sink["routing"] == Routing.DISTRIBUTED:
            sink["routing"] = FORMERLY_DISTRIBUTED  # ledgers hold fingerprints of older plans
    return hashlib.sha256(canonical(data).encode()).hexdigest()[:16]


def canonical(data: Any) -> str:
    """JSON in canonical form: sorted keys, no spaces, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
