"""`dagkit status`: what an application does now, or how its last launch ended."""

from collections.abc import Callable

import rich_click as click

from dagkit.cli.application.located import app_or_path_or_only, located
from dagkit.cli.application.options import Asked, configured, spoken
from dagkit.cli.operating.run_views import document, seen_at
from dagkit.cli.terminal.output import Output
from dagkit.observers.run_text import picture


@click.command()
@app_or_path_or_only
@click.option("--path", metavar="FOLDER", help="The application's folder, if APP is launched with --path.")
@configured
@spoken
def status(*, target: str, path: str | None, configuring: Callable[[str], Asked], output: Output) -> None:
    """Show what an application does now, or how its last launch ended.

    It reads only what the driver writes into the application's folder; the driver may run on another host.
    """
    seen = seen_at(located(target, path, configuring, output).place)
    if output.as_json:
        output.document("dagkit.status/1", document(seen))
        return
    output.result(picture(seen))
