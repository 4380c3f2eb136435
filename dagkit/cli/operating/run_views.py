"""A run as its driver last described it in the application's folder."""

import shlex
from typing import Any

from dagkit.engine.reports.seen_run import SeenRun
from dagkit.errors import ApplicationNotFound, printable
from dagkit.ledger import Ledger


def seen_at(place: str) -> SeenRun:
    """The application's last launch; raise ApplicationNotFound if there is nothing to see of it."""
    seen = SeenRun.of(Ledger.open(place).store)
    if seen is None:
        raise ApplicationNotFound(
            f"{printable(place)} has no status: no launch has written one",
            f"launch the application; `dagkit ledger show {shlex.quote(place)}` shows what earlier ones did",
        )
    return seen


def document(seen: SeenRun) -> dict[str, Any]:
    """The fields of the JSON document."""
    fields = seen.snapshot.model_dump(mode="json", exclude={"format"})
    return {"presence": seen.presence, "shown_state": seen.state, **fields}
