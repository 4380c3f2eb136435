"""A run as its driver last described it in the application's folder."""

import shlex
from typing import Any

import rich_click as click

from dagkit.engine.parts.requests import NotRunning
from dagkit.engine.record.history import seen_in
from dagkit.engine.record.status_file import SeenRun
from dagkit.errors import ApplicationNotFound, printable
from dagkit.ledger import Ledger

with_partitions = click.option(
    "--partitions", is_flag=True, help="Show how the work of each operator is divided among its partitions, too."
)


def seen_at(place: str) -> SeenRun:
    """The application's last launch; raise ApplicationNotFound unless one has written a status."""
    ledger = Ledger.open(place)
    seen = seen_in(ledger)
    if seen is None:
        raise ApplicationNotFound(
            f"{printable(place)} has no status: no launch has written one",
            f"launch the application; `dagkit ledger show {shlex.quote(place)}` shows what earlier ones did",
        )
    return seen


def running_at(place: str) -> SeenRun:
    """The application's last launch; raise NotRunning unless its driver runs."""
    seen = seen_at(place)
    if not seen.runs:
        raise NotRunning.no_process(seen.launch.application, seen.state)
    return seen


def document(seen: SeenRun) -> dict[str, Any]:
    """The fields of the JSON document."""
    fields = seen.snapshot.model_dump(mode="json", exclude={"format"})
    last = {"last_sign": seen.last_sign, "last_window": seen.window}
    return {"presence": seen.presence, "shown_state": seen.state, **last, **fields}
