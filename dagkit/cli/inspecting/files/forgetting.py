"""Asks the driver to forget a file, so that it is read again."""

from datetime import UTC, datetime

import rich_click as click

from dagkit.cli.application.asking import answered, waiting
from dagkit.cli.application.located import Located, of_application
from dagkit.cli.terminal.output import Output
from dagkit.engine.changes.requests import ForgetFile, ask
from dagkit.inventory.listing import states
from dagkit.inventory.readings import readings
from dagkit.ledger import Ledger
from dagkit.urls import absolute, as_text, shown


@click.command()
@of_application
@click.argument("file", metavar="FILE")
@click.option("--operator", metavar="NAME", help="Which operator is to forget it, if several know it.")
@click.option(
    "--at-launch", is_flag=True, help="Do not wait for an answer: if no driver runs, the next launch does it."
)
@waiting
def forget(*, there: Located, output: Output, file: str, operator: str | None, at_launch: bool, seconds: float) -> None:
    """Let a file be read again by the next scan, whole and on purpose: its records are in the output twice then.

    The driver of the running application does it between two windows; without one, use --at-launch.
    """
    path, ledger = as_text(absolute(file)), Ledger.open(there.place)
    asks = ForgetFile(operator=operator or _finder_of(there, ledger, path), path=path)
    body = {"operator": asks.operator, "path": path}
    if at_launch:
        request = ask(ledger.store, asks, datetime.now(UTC))
        done = f"{asks.operator} forgets {shown(path)} between two windows, or when the next launch begins"
        body["request"] = request.id
    else:
        reply = answered(there.place, asks, seconds)
        done = f"{asks.operator} has forgotten {shown(path)}: its next scan finds it, and its records are read again"
        body["window"] = str(reply.window)
    if output.as_json:
        output.document("dagkit.forget/1", body)
    else:
        output.result(done)


def _finder_of(there: Located, ledger: Ledger, path: str) -> str:
    """The only operator that knows a file."""
    found = {reading.finder for reading in readings(ledger, path) if reading.finder}
    if there.compilation is not None:
        found = {name for name, state in states(there.compilation, ledger, path=path) if state.state == "seen"}
    if len(found) != 1:
        known = f"{' and '.join(sorted(found))} know" if found else "no operator is known to know"
        raise click.UsageError(f"{known} {shown(path)}; name one with --operator")
    return found.pop()
