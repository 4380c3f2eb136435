"""`dagkit status`: what an application does now, or how its last launch ended."""

import rich_click as click

from dagkit.cli.application.located import Located, of_application_or_only
from dagkit.cli.operating.run_views import document, seen_at, with_partitions
from dagkit.cli.terminal.output import Output
from dagkit.observers.run_text import picture


@click.command()
@of_application_or_only
@with_partitions
def status(*, there: Located, partitions: bool, output: Output) -> None:
    """Show what an application does now, or how its last launch ended.

    It reads only what the driver writes into the application's folder; the driver may run on another host.
    """
    seen = seen_at(there.place)
    if output.as_json:
        output.document("dagkit.status/1", document(seen))
        return
    output.result(picture(seen, partitions=partitions))
