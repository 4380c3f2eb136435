"""`dagkit ledger`: read, verify, export, import and clean the ledger in an application's folder."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import rich_click as click
from click.exceptions import Exit

from dagkit.cli.application.options import spoken
from dagkit.cli.inspecting.adopting import adopt
from dagkit.cli.terminal.output import Output, counted
from dagkit.engine.address import Address
from dagkit.errors import printable
from dagkit.ledger import Chain, Fault, Ledger, LedgerError, Record, StoreError
from dagkit.ledger.audit.orphans import set_torn_aside, sweep
from dagkit.ledger.audit.verify import ChainVerdict, Verdict
from dagkit.ledger.audit.verify import verify as verify_ledger
from dagkit.ledger.exchange.manifests import export as export_to
from dagkit.ledger.exchange.manifests import import_into, manifest_of
from dagkit.ledger.format.proof import Proven
from dagkit.ranges.shares import SHARES

path = click.argument("path", metavar="PATH")


@click.group()
def ledger() -> None:
    """Read, verify, export, import and clean the ledger in an application's folder (or URL).

    Every command but `adopt` works while the application runs, and exits with 0 only if it finds no error.
    """


ledger.add_command(adopt)


@ledger.command()
@path
@spoken
def ls(*, path: str, output: Output) -> None:
    """List the chains with their lengths and last offsets.

    Exits with 1 if the end of a chain is missing, damaged or forged, and with 6 if there is no ledger.
    """
    with _Faults(output):
        opened = Ledger.open(path)
        _report_unborn(opened, output)
        rows: list[dict[str, Any]] = []
        faults: list[Fault] = []
        for name in opened.names():
            try:
                rows.append(_row(opened.chain(name)))
            except LedgerError as error:
                faults += error.faults
    if output.as_json:
        output.document("dagkit.ledger.ls/1", {"chains": rows, "faults": [_fault(f) for f in faults]})
    else:
        output.result("\n".join(_aligned([_HEADER, *([_text(v) for v in row.values()] for row in rows)])))
    _end(output, faults)


_HEADER = ["chain", "kind", "blocks", "last offset", "watermark", "written"]


@ledger.command()
@path
@click.argument("chain", required=False)
@click.option("--block", type=click.IntRange(min=0), help="Only the block of this number.")
@click.option("--offset", type=click.IntRange(min=0), help="Only the block whose slice holds this offset.")
@click.option(
    "--at",
    metavar="TIME",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]),
    help="Only the last block not later than this, such as 2030-01-31T12:00:00Z.",
)
@click.option("--last", default=5, show_default=True, type=click.IntRange(min=1), help="How many of the last blocks.")
@spoken
def show(
    *,
    path: str,
    chain: str | None,
    block: int | None,
    offset: int | None,
    at: datetime | None,
    last: int,
    output: Output,
) -> None:
    """Show the last blocks of each chain, or one chosen block.

    Exits with 1 if a block is missing or damaged, or if there is no such block.
    """
    with _Faults(output):
        opened = Ledger.open(path)
        _report_unborn(opened, output)
        names = opened.names() if chain is None else [chain]
        shown = [(name, r) for name in names for r in _asked(opened.chain(name), block, offset, at, last)]
        blocks = [_block(name, record) for name, record in shown] if output.as_json else []
    if output.as_json:
        output.document("dagkit.ledger.show/1", {"blocks": blocks})
    else:
        output.result("\n\n".join(_described(name, record) for name, record in shown))
    if not shown:
        output.message("there is no such block")
        raise Exit(1)


@ledger.command()
@path
@click.option("--chain", help="Only this chain.")
@click.option("--contents/--no-contents", default=True, help="Hash every slice and checkpoint, and count every byte.")
@click.option("--complete", is_flag=True, help="Treat bytes that are not read yet as a fault.")
@spoken
def verify(*, path: str, chain: str | None, contents: bool, complete: bool, output: Output) -> None:
    """Replay every block, hash every content, and prove that every byte was consumed exactly once.

    Exits with 1 at any fault, and names the chain and the block.
    """
    with _Faults(output):
        opened = Ledger.open(path)
        _report_unborn(opened, output)
        verdict = verify_ledger(opened, only=chain, contents=contents)
    if output.as_json:
        body = {
            "well": verdict.is_valid,
            "complete": verdict.is_complete,
            "proven": [_proven(input_) for input_ in verdict.proven],
            "unproven": list(verdict.unproven),
            "chains": [_judged(v) for v in verdict.chains],
        }
        output.document("dagkit.ledger.verdict/1", body)
    else:
        proofs = [*map(_proof_in_words, verdict.proven), *(f"not proven: {printable(w)}" for w in verdict.unproven)]
        output.result("\n".join([*(_sentence(v) for v in verdict.chains), *proofs]))
    if not output.as_json:
        for fault in verdict.faults:
            output.fault(str(fault))
    if not _is_good(verdict, complete=complete):
        raise Exit(1)


@ledger.command("export")
@path
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@spoken
def export(*, path: str, out: Path, form: Any, output: Output) -> None:
    """Write every chain with its contents to the folder OUT, as Open Data Fabric manifests."""
    with _Faults(output):
        opened = Ledger.open(path)
        _report_unborn(opened, output)
        exported = export_to(opened, out, form)
    if output.as_json:
        output.document("dagkit.export/1", exported.as_json())
    else:
        output.result("\n".join(f"{c.name}: {counted(c.blocks, 'block')} to {out / c.file}" for c in exported.chains))


@ledger.command("import")
@path
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@spoken
def import_(*, path: str, source: Path, output: Output) -> None:
    """Import the chains that `export` wrote to the folder SOURCE into the ledger in PATH; check every block."""
    with _Faults(output):
        imported = import_into(Ledger.create(path), source)
    if output.as_json:
        output.document("dagkit.export/1", imported.as_json())
    else:
        output.result("\n".join(f"{c.name}: {counted(c.blocks, 'block')}, head {c.head}" for c in imported.chains))


@ledger.command()
@path
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option(
    "--grace-minutes",
    default=60,
    show_default=True,
    type=click.IntRange(0, 10**7),
    help="Keep younger files; temporary files under ten minutes are always kept.",
)
@click.option("--repair", is_flag=True, help="First move a torn last record to torn/; only while no driver runs.")
@spoken
def gc(*, path: str, dry_run: bool, grace_minutes: int, repair: bool, output: Output) -> None:
    """Delete what a crash left behind, and pack full runs of blocks. No committed block is ever touched.

    If a chain is broken, skip it, clean the others, and exit with 1.
    """
    with _Faults(output):
        opened = Ledger.open(path)
        _report_unborn(opened, output)
        moved, faults = _set_aside(opened) if repair and not dry_run else ([], [])
        found = sweep(opened, grace=timedelta(minutes=grace_minutes), pretend=dry_run)
    faults += [fault for fault in found.faults if fault not in faults]
    if output.as_json:
        rows = [{"chain": s.chain, "what": s.what, "key": s.key} for s in found.swept]
        body = {"swept": rows, "set_aside": moved, "dry_run": dry_run, "faults": [_fault(f) for f in faults]}
        output.document("dagkit.ledger.gc/1", body)
    else:
        lines = [*(f"set aside: {key}" for key in moved), *(f"{s.what}: {s.key}" for s in found.swept)]
        done = "would be deleted" if dry_run else "deleted"
        output.result("\n".join([*lines, f"{counted(len(found.swept), 'file')} {done}"]))
    _end(output, faults)


def _set_aside(opened: Ledger) -> tuple[list[str], list[Fault]]:
    """Set torn records aside; return their keys, and the faults of chains that this does not repair."""
    moved: list[str] = []
    faults: list[Fault] = []
    for name in opened.names():
        try:
            key = set_torn_aside(opened, name)
        except StoreError:
            raise
        except LedgerError as error:
            faults += error.faults
        else:
            moved += [] if key is None else [key]
    return moved, faults


def _report_unborn(opened: Ledger, output: Output) -> None:
    for name in opened.unborn():
        output.message(f"{name}: no chain yet: its creation was interrupted before the first block; skipped")


class _Faults:
    """Ends the command on a `LedgerError`, with its code, its help and its exit code."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LedgerError):
            if self._output.as_json:
                body = {"faults": [_fault(f) for f in error.faults], "exit_code": error.exit_code}
                self._output.document("dagkit.ledger.failure/1", body)
            self._output.end(error)


def _end(output: Output, faults: list[Fault]) -> None:
    if faults:
        output.end(LedgerError(*faults))


def _is_good(verdict: Verdict, *, complete: bool) -> bool:
    return verdict.is_valid and (verdict.is_complete or not complete)


def _asked(chain: Chain, block: int | None, offset: int | None, at: datetime | None, last: int) -> Iterable[Record]:
    one: Callable[[], Record | None] | None = None
    if block is not None:
        one = lambda: chain.read(block) if block <= chain.head.seq else None  # noqa: E731 - one of three questions
    elif offset is not None:
        one = lambda: chain.seek_offset(offset)  # noqa: E731 - as above
    elif at is not None:
        one = lambda: chain.seek_time(at)  # noqa: E731 - as above
    if one is None:
        return list(chain.records(max(0, chain.head.seq - last + 1)))
    found = one()
    return [] if found is None else [found]


def _row(chain: Chain) -> dict[str, Any]:
    standing = chain.standing
    return {
        "chain": chain.name,
        "kind": str(chain.kind),
        "blocks": standing.next_seq,
        "last_offset": standing.offset,
        "watermark": None if standing.watermark is None else standing.watermark.isoformat(),
        "written": None if standing.system_time is None else standing.system_time.isoformat(),
    }


def _block(name: str, record: Record) -> dict[str, Any]:
    return {"chain": name, "hash": record.hash, **manifest_of(record)}


def _described(name: str, record: Record) -> str:
    """A block for people to read: a headline, then one line for each field of its event."""
    event = record.block.event.as_json()
    lines = [f"{name} block {record.seq}: {event.pop('kind')}, {record.block.system_time.isoformat()}"]
    lines += [f"  {field}: {_text(value)}" for field, value in event.items()]
    return "\n".join([*lines, f"  hash: {record.hash}"])


def _judged(verdict: ChainVerdict) -> dict[str, Any]:
    return {
        "chain": verdict.name,
        "kind": verdict.kind,
        "well": verdict.is_valid,
        "blocks": verdict.blocks,
        "last_offset": verdict.offset,
        "faults": [_fault(f) for f in verdict.faults],
    }


def _proven(proven: Proven) -> dict[str, Any]:
    return {
        "operator": Address(proven.input).operator,
        "input": proven.input,
        "sources": len(proven.sources),
        "elements_without_source": proven.elements,
        "positions": proven.positions,
        "elements": proven.shares / SHARES,
        "waiting": proven.waiting,
        "waiting_elements": proven.waiting_shares / SHARES,
        "endless": proven.endless,
        "set_aside": [str(span) for span in proven.aside],
        "given_up": [str(span) for span in proven.given_up],
    }


def _proof_in_words(proven: Proven) -> str:
    """`Block-reader: 7 sources, 1,234 positions, every one read once`."""
    counts = [counted(len(proven.sources), "source")]
    counts += [f"{proven.elements:,} elements besides"] if proven.elements else []
    counts += [_elements(proven.shares)] if proven.shares else []
    counts += [f"{proven.positions:,} positions"] if proven.positions or not proven.shares else []
    counts += ["every one read once"]
    counts += [f"{proven.waiting:,} wait"] if proven.waiting else []
    counts += [f"{_elements(proven.waiting_shares)} wait"] if proven.waiting_shares else []
    counts += [f"{proven.endless:,} without an end"] if proven.endless else []
    counts += [f"set aside: {' '.join(map(str, proven.aside))}"] if proven.aside else []
    counts += [f"given up: {' '.join(map(str, proven.given_up))}"] if proven.given_up else []
    return f"{printable(Address(proven.input).operator)}: {', '.join(counts)}"


def _elements(shares: int) -> str:
    """`3 elements`, `2.75 elements`: what a sum of shares comes to; what is not done is not rounded up."""
    whole, hundredths = divmod(shares * 100 // SHARES, 100)
    if not whole and not hundredths:
        return "less than 0.01 elements"
    number = f"{whole:,}.{hundredths:02}" if hundredths else f"{whole:,}"
    return "1 element" if number == "1" else f"{number} elements"


def _sentence(verdict: ChainVerdict) -> str:
    state = "OK" if verdict.is_valid else "NOT OK"
    unread = "" if not verdict.is_valid or not verdict.faults else "; some bytes are not read yet"
    return f"{verdict.name}: {state} ({counted(verdict.blocks, 'block')} verified{unread})"


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "code": fault.code,
        "warning": fault.is_warning,
        "chain": fault.chain,
        "block": fault.block,
        "problem": fault.problem,
        "help": fault.help,
    }


def _text(value: Any) -> str:
    return "-" if value is None else printable(str(value))


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
