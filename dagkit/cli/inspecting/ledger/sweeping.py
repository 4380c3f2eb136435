"""`dagkit ledger gc`: delete what a crash left behind."""

from datetime import timedelta

import rich_click as click

from dagkit.cli.application.options import WholeNumber, spoken
from dagkit.cli.inspecting.ledger.reported import end_with, fault_document, path_or_only, report_unborn, reported_faults
from dagkit.cli.terminal.output import Output
from dagkit.ground.amounts import counted
from dagkit.ledger import Fault, Ledger, LedgerError, StoreError
from dagkit.ledger.audit.orphans import set_torn_aside, sweep


@click.command()
@path_or_only
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option(
    "--grace-minutes",
    default=60,
    show_default=True,
    type=WholeNumber(0, 10**7),
    help="Keep younger files; temporary files under ten minutes are always kept.",
)
@click.option("--repair", is_flag=True, help="First move a torn last record to torn/; only while no driver runs.")
@spoken
def gc(*, path: str, dry_run: bool, grace_minutes: int, repair: bool, output: Output) -> None:
    """Delete what a crash left behind, and pack full runs of blocks. No committed block is ever touched.

    If a chain is broken, skip it, clean the others, and exit with 1.
    """
    with reported_faults(output):
        opened = Ledger.open(path)
        report_unborn(opened, output)
        moved, faults = _set_aside(opened) if repair and not dry_run else ([], [])
        found = sweep(opened, grace=timedelta(minutes=grace_minutes), pretend=dry_run)
    faults += [fault for fault in found.faults if fault not in faults]
    if output.as_json:
        rows = [{"chain": s.chain, "what": s.what, "key": s.key} for s in found.swept]
        body = {"swept": rows, "set_aside": moved, "dry_run": dry_run, "faults": [fault_document(f) for f in faults]}
        output.document("dagkit.ledger.gc/1", body)
    else:
        lines = [*(f"set aside: {key}" for key in moved), *(f"{s.what}: {s.key}" for s in found.swept)]
        done = "would be deleted" if dry_run else "deleted"
        output.result("\n".join([*lines, f"{counted(len(found.swept), 'file')} {done}"]))
    end_with(output, faults)


def _set_aside(opened: Ledger) -> tuple[list[str], list[Fault]]:
    """Set torn records aside; return their keys, and the faults of chains that this does not repair."""
    moved: list[str] = []
    faults: list[Fault] = []
    for name in opened.names():
        try:
            key = set_torn_aside(opened, name)
        # A `LedgerError`, too, but of the storage, which would fail for the other chains as well.
        except StoreError:
            raise
        except LedgerError as error:
            faults += error.faults
        else:
            moved += [] if key is None else [key]
    return moved, faults
