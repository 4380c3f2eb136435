"""`dagkit splits`: where and why work was split, and the pending work with its expected time."""

from typing import Any

import rich_click as click

from dagkit.cli.application.located import Located, of_application_or_only
from dagkit.cli.terminal.output import Output
from dagkit.engine.program.facts import Split
from dagkit.engine.record.history import history, newest_checkpoint
from dagkit.engine.work.cost import CostEstimate, usual_of
from dagkit.engine.work.item import WorkItem
from dagkit.errors import printable
from dagkit.ground.amounts import aligned
from dagkit.ledger import Ledger
from dagkit.ranges.progress import percent, share_of


@click.command()
@of_application_or_only
@click.option("--source", metavar="TEXT", default="", help="Only sources whose name contains this.")
@click.option("--waiting", "is_waiting", is_flag=True, help="List the pending work and its expected time.")
def splits(*, there: Located, source: str, is_waiting: bool, output: Output) -> None:
    """List every split of a run, window by window: the source, the place, the rule and its reason.

    PATH is an application's folder (or URL); the application may be running.
    """
    if is_waiting:
        _print_pending(there.place, source, output)
        return
    found = [
        {"window": entry.checkpoint.window, **fact.as_row()}
        for entry in history(Ledger.open(there.place))
        for fact in entry.checkpoint.facts
        if isinstance(fact, Split) and source in fact.source
    ]
    if output.as_json:
        output.document("dagkit.splits/1", {"splits": found})
        return
    rows = [[_place(split, name) if name in _PLACES else _shown(split[name]) for name in _COLUMNS] for split in found]
    output.result(aligned([list(_COLUMNS.values()), *rows]) if rows else "nothing was split")


_COLUMNS = {
    "window": "window",
    "slot": "slot",
    "block": "block",
    "start": "from",
    "at": "split at",
    "end": "to",
    "why": "why",
    "source": "source",
}

_PLACES = "start", "at", "end"
"""The columns that hold positions, or shares of an element."""


def _print_pending(path: str, source: str, output: Output) -> None:
    queue = newest_checkpoint(Ledger.open(path)).queue
    usual = usual_of(queue)
    pending = [(item, _pending(item, usual)) for item in queue if source in item.name]
    if output.as_json:
        output.document("dagkit.waiting/1", {"waiting": [row for _, row in pending]})
        return
    header = ["from", "to", "done before it", "expected", "source"]
    rows = [
        [_place(row, "start"), _place(row, "end"), _done(row), _expected(row), printable(item.name)]
        for item, row in pending
    ]
    output.result(aligned([header, *rows]) if rows else "no pending work")


def _pending(item: WorkItem, usual: float | None) -> dict[str, Any]:
    expected = None if usual is None or not item.has_end else CostEstimate(usual).millis(item)
    return {
        "into": item.into,
        "source": item.source,
        "element": item.element,
        "block": item.element_id,
        "start": item.start,
        "end": item.end if item.has_end else None,
        "positions": item.length if item.has_end and not item.is_shares else None,
        "done_positions": item.done.positions,
        "done_millis": round(item.done.millis, 3),
        "expected_millis": None if expected is None else round(expected, 3),
        "start_share": share_of(item.start, is_shares=item.is_shares),
        "end_share": share_of(item.end, is_shares=item.is_shares) if item.has_end else None,
        "share": share_of(item.length, is_shares=item.is_shares) if item.has_end else None,
        "done_share": share_of(item.done.positions, is_shares=item.is_shares),
    }


def _done(row: dict[str, Any]) -> str:
    if not row["done_positions"]:
        return "-"
    return f"{_place(row, 'done_positions')} in {row['done_millis'] / 1000:.2f} s"


def _expected(row: dict[str, Any]) -> str:
    return "-" if row["expected_millis"] is None else f"{row['expected_millis'] / 1000:.2f} s"


def _place(row: dict[str, Any], name: str) -> str:
    """A position as it is, or the share of an element in percent."""
    share = row[f"{name.removesuffix('_positions')}_share"]
    return _shown(row[name]) if share is None else percent(row[name])


def _shown(value: object) -> str:
    return "-" if value is None else printable(str(value))
