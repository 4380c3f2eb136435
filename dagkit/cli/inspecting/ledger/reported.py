"""Faults of a ledger, as every command of `dagkit ledger` reports them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rich_click as click

from dagkit.cli.application.located import only_here
from dagkit.cli.terminal.output import Output
from dagkit.ledger import Fault, Ledger, LedgerError

path = click.argument("path", metavar="PATH")
path_or_only = click.argument("path", metavar="[PATH]", required=False, callback=only_here)
"""Add PATH, by default the folder of the only application that was launched here."""


@contextmanager
def reported_faults(output: Output) -> Iterator[None]:
    """End the command on a `LedgerError`, with its code, its help and its exit code."""
    try:
        yield
    except LedgerError as error:
        if output.as_json:
            body = {"faults": [fault_document(f) for f in error.faults], "exit_code": error.exit_code}
            output.document("dagkit.ledger.failure/1", body)
        output.end(error)


def end_with(output: Output, faults: list[Fault]) -> None:
    if faults:
        output.end(LedgerError(*faults))


def fault_document(fault: Fault) -> dict[str, Any]:
    return {
        "code": fault.code,
        "warning": fault.is_warning,
        "chain": fault.chain,
        "block": fault.block,
        "problem": fault.problem,
        "help": fault.help,
    }


def report_unborn(opened: Ledger, output: Output) -> None:
    for name in opened.unborn():
        output.message(f"{name}: no chain yet: its creation was interrupted before the first block; skipped")
    if not opened.names():
        output.message("the ledger has no chain yet: no launch has begun to work")
