"""A run as its driver last described it in the application's folder."""

import shlex
from dataclasses import replace
from typing import Any

import rich_click as click

from dagkit.engine.record.history import application_chain, window_at
from dagkit.engine.record.status_file import LastWindow, SeenRun
from dagkit.errors import ApplicationNotFound, printable
from dagkit.ledger import Ledger

with_partitions = click.option(
    "--partitions", is_flag=True, help="Show how the work of each operator is divided among its partitions, too."
)


def seen_at(place: str) -> SeenRun:
    """The application's last launch; raise ApplicationNotFound if there is nothing to see of it."""
    ledger = Ledger.open(place)
    seen = seen_in(ledger)
    if seen is None:
        raise ApplicationNotFound(
            f"{printable(place)} has no status: no launch has written one",
            f"launch the application; `dagkit ledger show {shlex.quote(place)}` shows what earlier ones did",
        )
    return seen


def seen_in(ledger: Ledger) -> SeenRun | None:
    """The application's last launch, with the last window in the ledger if its driver does not write any more."""
    seen = SeenRun.of(ledger.store)
    if seen is None or seen.presence not in ("gone", "silent"):
        return seen
    return replace(seen, last=_last_window(ledger))


def _last_window(ledger: Ledger) -> LastWindow | None:
    """The last window in the ledger; None if none was ever committed."""
    chain = application_chain(ledger)
    block = None if chain is None else chain.standing.data_at
    found = None if chain is None or block is None else window_at(chain, block.seq)
    return None if found is None else LastWindow(found.checkpoint.window, found.committed)


def document(seen: SeenRun) -> dict[str, Any]:
    """The fields of the JSON document."""
    fields = seen.snapshot.model_dump(mode="json", exclude={"format"})
    last = {"last_sign": seen.last_sign, "last_window": seen.window}
    return {"presence": seen.presence, "shown_state": seen.state, **last, **fields}
