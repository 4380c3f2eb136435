"""`dagkit ledger`: read, verify, export, import and clean the ledger in an application's folder."""

import rich_click as click

from dagkit.cli.inspecting.ledger.adopting import adopt
from dagkit.cli.inspecting.ledger.blocks import heads, ls, show
from dagkit.cli.inspecting.ledger.sweeping import gc
from dagkit.cli.inspecting.ledger.transferring import export, import_
from dagkit.cli.inspecting.ledger.verdicts import verify


@click.group()
def ledger() -> None:
    """Read, verify, export, import and clean the ledger in an application's folder (or URL).

    Every command but `adopt` works while the application runs, and exits with 0 only if it finds no error.
    """


for command in (ls, show, heads, verify, export, import_, gc, adopt):
    ledger.add_command(command)
