"""`dagkit ledger export` and `import`: Open Data Fabric manifests."""

from pathlib import Path
from typing import Any

import rich_click as click

from dagkit.cli.application.options import spoken
from dagkit.cli.inspecting.ledger.reported import path, report_unborn, reported_faults
from dagkit.cli.terminal.output import Output
from dagkit.ground.amounts import counted
from dagkit.ledger import Ledger
from dagkit.ledger.exchange.manifests import export as export_to
from dagkit.ledger.exchange.manifests import import_into


@click.command("export")
@path
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@spoken
def export(*, path: str, out: Path, form: Any, output: Output) -> None:
    """Write every chain with its contents to the folder OUT, as Open Data Fabric manifests."""
    with reported_faults(output):
        opened = Ledger.open(path)
        report_unborn(opened, output)
        exported = export_to(opened, out, form)
    if output.as_json:
        output.document("dagkit.export/1", exported.as_json())
    else:
        output.result("\n".join(f"{c.name}: {counted(c.blocks, 'block')} to {out / c.file}" for c in exported.chains))


@click.command("import")
@path
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@spoken
def import_(*, path: str, source: Path, output: Output) -> None:
    """Import the chains that `export` wrote to the folder SOURCE into the ledger in PATH; check every block."""
    with reported_faults(output):
        imported = import_into(Ledger.create(path), source)
    if output.as_json:
        output.document("dagkit.export/1", imported.as_json())
    else:
        output.result("\n".join(f"{c.name}: {counted(c.blocks, 'block')}, head {c.head}" for c in imported.chains))
