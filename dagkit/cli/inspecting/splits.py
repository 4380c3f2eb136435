"""`dagkit splits`: where work was divided, by whom and why; and what waits, with what it is expected to take."""

from collections.abc import Iterable, Sequence
from typing import Any

import rich_click as click

from dagkit.cli.application.options import spoken
from dagkit.cli.terminal.output import Output
from dagkit.engine.facts import Split
from dagkit.engine.history.history import history
from dagkit.engine.work.cost import CostEstimate, usual_of
from dagkit.engine.work.item import WorkItem
from dagkit.errors import printable
from dagkit.ledger import Ledger


@click.command()
@click.argument("path", metavar="PATH")
@click.option("--source", metavar="TEXT", default="", help="Only of sources whose name holds this.")
@click.option("--waiting", "is_waiting", is_flag=True, help="Tell what waits, and how long it is expected to take.")
@spoken
def splits(*, path: str, source: str, is_waiting: bool, output: Output) -> None:
    """Tell every split of a run, window by window: of what, where, by whom and why.

    PATH is an application's folder (or URL); it may be running meanwhile.
    """
    if is_waiting:
        _tell_waiting(path, source, output)
        return
    found = [
        {"window": entry.checkpoint.window, **fact.model_dump(mode="json", exclude={"fact"})}
        for entry in history(Ledger.open(path))
        for fact in entry.checkpoint.facts
        if isinstance(fact, Split) and source in fact.source
    ]
    if output.as_json:
        output.document("dagkit.splits/1", {"splits": found})
        return
    rows = [[_shown(split[name]) for name in _COLUMNS] for split in found]
    output.result(_aligned([list(_COLUMNS.values()), *rows]) if rows else "nothing was split")


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


def _tell_waiting(path: str, source: str, output: Output) -> None:
    queue: Sequence[WorkItem] = ()
    for entry in history(Ledger.open(path)):
        queue = entry.checkpoint.queue
    usual = usual_of(queue)
    told = [(each, _waiting(each, usual)) for each in queue if source in each.name]
    if output.as_json:
        output.document("dagkit.waiting/1", {"waiting": [each for _, each in told]})
        return
    header = ["from", "to", "done before it", "expected", "source"]
    rows = [
        [_shown(each["start"]), _shown(each["end"]), _done(each), _expected(each), printable(waiting.name)]
        for waiting, each in told
    ]
    output.result(_aligned([header, *rows]) if rows else "nothing waits")


def _waiting(each: WorkItem, usual: float | None) -> dict[str, Any]:
    expected = None if usual is None or not each.has_end else CostEstimate(usual).millis(each)
    return {
        "into": each.into,
        "source": each.source,
        "element": each.element,
        "block": each.element_id,
        "start": each.start,
        "end": each.end if each.has_end else None,
        "positions": each.length if each.has_end else None,
        "done_positions": each.done_positions,
        "done_millis": round(each.done_millis, 3),
        "expected_millis": None if expected is None else round(expected, 3),
    }


def _done(each: dict[str, Any]) -> str:
    if not each["done_positions"]:
        return "-"
    return f"{each['done_positions']} in {each['done_millis'] / 1000:.2f} s"


def _expected(each: dict[str, Any]) -> str:
    return "-" if each["expected_millis"] is None else f"{each['expected_millis'] / 1000:.2f} s"


def _shown(value: object) -> str:
    return "-" if value is None else printable(str(value))


def _aligned(rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
