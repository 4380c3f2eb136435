"""`dagkit ledger adopt`: take over the files that a query of Structured Streaming has read."""

from collections.abc import Callable

import rich_click as click

from dagkit.api.files import AdoptsFiles
from dagkit.cli.application.located import ledger_of, located
from dagkit.cli.application.options import Asked, WholeNumber, configured, spoken
from dagkit.cli.terminal.output import Output
from dagkit.compiler import Compilation
from dagkit.ground.amounts import counted
from dagkit.ground.urls import shown
from dagkit.ledger import Ledger
from dagkit.runs.inventory.adoption import Adoption, Doubt, adoption_refused
from dagkit.runs.inventory.adoption import adopt as adopt_files
from dagkit.runs.inventory.spark_checkpoint import files_read

_READ = click.Choice(["read", "unread"])


@click.command()
@click.argument("target", metavar="APP")
@click.option("--from-spark", "checkpoint", metavar="CHECKPOINT", required=True, help="The query's checkpointLocation.")
@click.option("--source", type=WholeNumber(min=0), help="Which source of the query, if it has several.")
@click.option("--operator", metavar="NAME", help="Which input operator remembers the files, if several can.")
@click.option("--in-flight", type=_READ, help="How the files of an unfinished micro-batch count.")
@click.option("--changed", type=_READ, help="How files that changed after Spark listed them count.")
@click.option("--dry-run", is_flag=True, help="Only show what would be taken over and what a launch would read.")
@click.option("--path", metavar="FOLDER", help="The application's folder, if APP is launched with --path.")
@configured
@spoken
def adopt(
    *,
    target: str,
    checkpoint: str,
    source: int | None,
    operator: str | None,
    in_flight: str | None,
    changed: str | None,
    dry_run: bool,
    path: str | None,
    configuring: Callable[[str], Asked],
    output: Output,
) -> None:
    """Count the files that a query of Structured Streaming has read as read by APP.

    Stop the query for good first, and adopt its CHECKPOINT before the first launch: the application then reads only the
    files that Spark has not read. The ledger records the checkpoint and a hash of the list of files.
    """
    there = located(target, path, configuring, output)
    if there.compilation is None:
        raise click.UsageError(f"{target} is a folder; name the application, whose operator knows where it looks")
    chosen = _operator_of(there.compilation, operator)
    doubt = Doubt(*(None if choice is None else choice == "read" for choice in (in_flight, changed)))
    read = files_read(checkpoint, source, in_flight_is_read=bool(doubt.in_flight))
    ledger = ledger_of(there) if dry_run else Ledger.create(there.place)
    adoption = adopt_files(there.compilation, ledger, chosen, read, doubt, pretend=dry_run)
    if output.as_json:
        output.document("dagkit.adoption/1", _body(adoption, dry_run=dry_run))
    else:
        output.result("\n".join(_lines(adoption, dry_run=dry_run)))


def _operator_of(compilation: Compilation, wanted: str | None) -> str:
    """The input operator that adopts."""
    able = [node.name for node in compilation.graph.nodes if isinstance(node.operator, AdoptsFiles)]
    if wanted is None and len(able) == 1:
        return able[0]
    if not able or (wanted not in able and wanted in compilation.graph.by_name):
        raise adoption_refused(
            f"{f'{wanted} cannot' if wanted else 'no operator can'} take over files that Spark has read: only an input "
            "operator can remember files before the first launch",
            "let an input operator find the files, such as FileSplitterInput in the place of MatchFiles, and a reader "
            "of blocks, such as LineReader, read them",
        )
    if wanted not in able:
        problem = f"there is no operator {wanted}" if wanted else "several operators can take over files"
        raise click.UsageError(f"{problem}; name one with --operator: {', '.join(able)}")
    return wanted


def _lines(adoption: Adoption, *, dry_run: bool) -> list[str]:
    read = adoption.read
    count, done = counted(len(adoption.adopted), "file"), "would count" if dry_run else "counts"
    lines = [
        f"{adoption.operator} {done} {count} as read{', as before' if adoption.is_repeated else ''}",
        f"the query has read: {counted(len(read.files), 'file')}, hash {read.digest}",
        f"last micro-batch: {read.batch}",
        f"a launch reads: {counted(len(adoption.unread), 'file')}",
    ]
    lines += [f"  of micro-batch {read.in_flight}, which has not ended: {shown(path)}" for path in adoption.in_flight]
    if not adoption.doubt.changed:
        lines += [f"  changed since Spark listed it: {shown(path)}" for path in adoption.changed]
    lines += [f"  too old for Spark's default maxFileAge: {shown(path)}" for path in adoption.old]
    if adoption.missing:
        lines.append(f"no longer there, or not where {adoption.operator} looks: {counted(adoption.missing, 'file')}")
    return lines


def _body(adoption: Adoption, *, dry_run: bool) -> dict[str, object]:
    return {
        "operator": adoption.operator,
        "dry_run": dry_run,
        "repeated": adoption.is_repeated,
        "record": adoption.as_record(),
        "adopted": adoption.adopted,
        "unread": adoption.unread,
        "changed": adoption.changed,
        "in_flight": adoption.in_flight,
        "old": adoption.old,
        "missing": adoption.missing,
    }
