"""The overview of an application: what runs or ran, how far it is, and what its chains hold."""

from dagkit.console.run_folder import RunFolder, status_of
from dagkit.console.window_answers import Row, row_of
from dagkit.engine.record.history import window_at


def overview(folder: RunFolder, *, allows_control: bool) -> Row:
    """The overview. It reads the last window only."""
    launched, run = folder.launched(), folder.run()
    with folder.windows() as chain, folder.ledger() as ledger:
        last = None if chain is None else window_at(chain, chain.head.seq)
        chains = [] if ledger is None else [ledger.chain(name).summary() for name in ledger.names()]
    return {
        "application": launched.plan.application if launched is not None else chain.name if chain is not None else "",
        "path": folder.place,
        "launched": None if launched is None else launched.at.isoformat(),
        "version": None if launched is None else launched.version,
        "status": status_of(run),
        "allows_control": allows_control,
        "last": None if last is None else row_of(last, folder.units()),
        "chains": chains,
    }
