"""Answers about the chains of the ledger: their blocks, newest first."""

from starlette.exceptions import HTTPException

from dagkit.console.run_folder import RunFolder
from dagkit.console.window_answers import Row
from dagkit.ledger.exchange.manifests import manifest_of


def blocks(folder: RunFolder, name: str, before: int | None, limit: int) -> Row:
    """A page of the blocks of one chain."""
    with folder.ledger() as ledger:
        if ledger is None or name not in ledger.names():
            raise HTTPException(404, f"the ledger has no chain {name!r}")
        chain = ledger.chain(name)
        end = chain.head.seq + 1 if before is None else min(before, chain.head.seq + 1)
        first = max(0, end - limit)
        found = [
            {"block": record.seq, "hash": record.hash, **manifest_of(record)}
            for record in chain.records(first, end - 1)
        ]
    return {"chain": name, "rows": found[::-1], "next": first or None}
