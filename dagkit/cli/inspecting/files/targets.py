"""The ledger of the application that a command is about."""

from dagkit.cli.application.located import Located
from dagkit.ledger import ChainNotFound, Ledger
from dagkit.ledger.stores.memory import MemoryStore


def ledger_of(there: Located) -> Ledger:
    """The ledger; an empty one if the application was never launched."""
    try:
        return Ledger.open(there.place)
    except ChainNotFound:
        if there.compilation is None:
            raise
        return Ledger(MemoryStore())
