"""`dagkit items`: the items of each operator in each window, and whether they add up."""

from collections.abc import Iterator, Sequence
from typing import Any

import rich_click as click

from dagkit.cli.application.located import Located, of_application_or_only, refuse_unknown_operator
from dagkit.cli.terminal.output import Output
from dagkit.engine.record.history import Window, row_history
from dagkit.engine.record.row_account import OperatorRows, RowAccount, RowsUnbalanced, breaches
from dagkit.errors import printable
from dagkit.ground.amounts import aligned
from dagkit.ledger import Ledger

_HEADER = ("window", "operator", "received", "sent", "rejected", "dropped", "adds up")


@click.command()
@of_application_or_only
@click.option("--operator", metavar="NAME", help="Only this operator.")
def items(*, there: Located, operator: str | None, output: Output) -> None:
    """List the items that each operator received, sent, rejected and dropped, window by window.

    PATH is an application's folder (or URL); the application may be running. The command fails if the items of a
    window do not add up.
    """
    windows = list(row_history(Ledger.open(there.place)))
    refuse_unknown_operator(there, operator, (name for window in windows for name in window.checkpoint.rows.operators))
    if output.as_json:
        output.document("dagkit.items/1", {"windows": [_document(window, operator) for window in windows]})
    else:
        table = [_HEADER, *(row for window in windows for row in _rows(window, operator))]
        output.result(aligned(table) if len(table) > 1 else "no items were counted")
    # The list comes first: it shows the operators between which items were lost.
    for breach in (breach for window in windows for breach in _breaches(window)):
        raise breach


def _rows(window: Window, operator: str | None) -> Iterator[Sequence[str]]:
    for name, counted in _chosen(window.checkpoint.rows, operator):
        dropped = "-" if counted.dropped is None else str(counted.dropped)
        counts = (str(counted.received), str(counted.passed_on), str(counted.rejected), dropped)
        holds = "-" if counted.rule is None else "yes" if counted.adds_up else "no"
        yield str(window.checkpoint.window), printable(name), *counts, holds


def _document(window: Window, operator: str | None) -> dict[str, Any]:
    account = window.checkpoint.rows
    return {
        "window": window.checkpoint.window,
        "operators": {
            name: {
                "taken": dict(counted.taken),
                "sent": dict(counted.sent),
                "rule": counted.rule,
                "received": counted.received,
                "passed_on": counted.passed_on,
                "rejected": counted.rejected,
                "dropped": counted.dropped,
                "left_out": dict(counted.left_out),
                "adds_up": counted.adds_up,
            }
            for name, counted in _chosen(account, operator)
        },
        "streams": {
            name: {**counted.model_dump(), "adds_up": counted.adds_up}
            for name, counted in sorted(account.streams.items())
        },
        "breaches": [breach.problem for breach in _breaches(window)],
    }


def _breaches(window: Window) -> Iterator[RowsUnbalanced]:
    return breaches(window.checkpoint.window, window.checkpoint.rows)


def _chosen(account: RowAccount, operator: str | None) -> Iterator[tuple[str, OperatorRows]]:
    return ((name, counted) for name, counted in sorted(account.operators.items()) if operator in (None, name))
