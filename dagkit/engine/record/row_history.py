"""The row accounts of all windows, read from a ledger."""

from collections.abc import Iterator
from dataclasses import dataclass

from dagkit.engine.record.history import history
from dagkit.engine.record.row_account import RowAccount, RowsUnbalanced, breaches
from dagkit.ledger import Ledger


@dataclass(frozen=True, slots=True)
class WindowRows:
    """The row account of one window."""

    window_id: int
    account: RowAccount

    def breaches(self) -> Iterator[RowsUnbalanced]:
        """Yield an error for each operator and stream whose items do not add up."""
        return breaches(self.window_id, self.account)


def row_history(ledger: Ledger) -> Iterator[WindowRows]:
    """Yield the accounts of all windows that had items, oldest first."""
    for entry in history(ledger):
        if entry.checkpoint.rows:
            yield WindowRows(entry.checkpoint.window, entry.checkpoint.rows)


def refuse_unbalanced(ledger: Ledger) -> None:
    """Raise the first RowsUnbalanced of a ledger, if the items of any window do not add up."""
    for window in row_history(ledger):
        for breach in window.breaches():
            raise breach
