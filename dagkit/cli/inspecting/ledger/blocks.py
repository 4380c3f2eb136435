"""`dagkit ledger ls`, `heads` and `show`: chains and their blocks."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from json import loads
from typing import Any

import rich_click as click

from dagkit.api.operators import DROPPED
from dagkit.cli.application.options import WholeNumber, spoken
from dagkit.cli.inspecting.ledger.reported import end_with, fault_document, path_or_only, report_unborn, reported_faults
from dagkit.cli.terminal.output import Output
from dagkit.engine.files.staging import by_file, in_order
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.journal import stored_at
from dagkit.engine.record.row_account import OperatorRows
from dagkit.engine.record.stored import CheckpointReader
from dagkit.errors import printable
from dagkit.ground.amounts import aligned, counted, some_of
from dagkit.ledger import BlockNotFound, Chain, ExecuteTransform, Fault, Ledger, LedgerError, Record
from dagkit.ledger.audit.completeness import blocks_of
from dagkit.ledger.audit.kept_heads import heads_of
from dagkit.ledger.chain.contents import rows_of
from dagkit.ledger.exchange.manifests import manifest_of
from dagkit.ledger.format.events import AddData

MOST_NAMED = 5


def window_lines(chain: Chain, record: Record) -> list[str]:
    """The lines about a window, or about what an input operator found; none of other blocks."""
    try:
        return list(_lines(chain, record))
    except (LedgerError, ValueError, KeyError) as error:  # damaged, or the data of another program
        return [f"its content cannot be shown: {printable(str(error).partition(chr(10))[0])}"]


def _lines(chain: Chain, record: Record) -> Iterator[str]:
    event = record.block.event
    if isinstance(event, AddData):
        yield from _named("found", list(blocks_of(chain, record)))
    elif isinstance(event, ExecuteTransform) and (content := chain.checkpoint_at(record)) is not None:
        whole = CheckpointReader(partial(stored_at, chain)).whole(loads(content), record.seq)
        checkpoint = Checkpoint.model_validate(whole)
        yield f"window: {checkpoint.window}"
        work, counts = checkpoint.work, checkpoint.rows
        yield from _named("read", list(work.all_consumed))
        yield from _named("wrote", _pieces(chain, record))
        finished = by_file(checkpoint.output.finished)
        earlier = {file: pieces for file, pieces in finished.items() if len(in_order(pieces)) > 1}
        lengths = {file: sum(piece.length for piece in pieces) for file, pieces in earlier.items()}
        yield from _named("completed", [f"{file}, {length} B with earlier windows" for file, length in lengths.items()])
        for name, rows in counts.operators.items():
            yield f"{printable(name)}: {counted(rows.received, 'item')} received, {rows.passed_on} sent{_unsent(rows)}"


def _unsent(rows: OperatorRows) -> str:
    """What an operator did not send: `, 2 rejected, 1 dropped, 3 left out (fields_ignored)`."""
    unsent = {"rejected": rows.rejected, "dropped": rows.dropped or 0}
    unsent |= {f"left out ({metric})": count for metric, count in rows.left_out.items() if metric != DROPPED}
    return "".join(f", {count} {what}" for what, count in unsent.items() if count)


def _pieces(chain: Chain, record: Record) -> list[str]:
    """The pieces of files that a window wrote: `Writer out/0, 24 B`."""
    content = chain.data(record)
    rows = [] if content is None else rows_of(content)
    # a piece without bytes only completes its file
    return [f"{row['operator']} {row['file']}, {row['length']} B" for row in rows if row["length"]]


def _named(what: str, things: Sequence[object]) -> Iterator[str]:
    if things:
        yield f"{what}: {printable('; '.join(some_of(things, MOST_NAMED)))}"


@click.command()
@path_or_only
@spoken
def ls(*, path: str, output: Output) -> None:
    """List the chains with their lengths and last offsets.

    Exits with 1 if the end of a chain is missing, damaged or forged, and with 6 if there is no ledger.
    """
    with reported_faults(output):
        opened = Ledger.open(path)
        report_unborn(opened, output)
        rows: list[dict[str, Any]] = []
        faults: list[Fault] = []
        for name in opened.names():
            try:
                rows.append(opened.chain(name).summary())
            except LedgerError as error:
                faults += error.faults
    if output.as_json:
        output.document("dagkit.ledger.ls/1", {"chains": rows, "faults": [fault_document(f) for f in faults]})
    else:
        output.result(aligned([_HEADER, *([_text(v) for v in row.values()] for row in rows)]))
    end_with(output, faults)


_HEADER = ["chain", "kind", "blocks", "last offset", "watermark", "written"]


@click.command()
@path_or_only
@spoken
def heads(*, path: str, output: Output) -> None:
    """Print the last block of each chain: hash, number and chain. Keep this elsewhere, for `verify --head`."""
    with reported_faults(output):
        opened = Ledger.open(path)
        report_unborn(opened, output)
        found = heads_of(opened)
    if output.as_json:
        rows = [{"chain": head.chain, **head.block.model_dump()} for head in found]
        output.document("dagkit.ledger.heads/1", {"heads": rows})
    else:
        output.result("\n".join(map(str, found)))


@click.command()
@path_or_only
@click.argument("chain", required=False)
@click.option("--block", type=WholeNumber(min=0), help="Only the block of this number.")
@click.option("--offset", type=WholeNumber(min=0), help="Only the block whose slice holds this offset.")
@click.option(
    "--at",
    metavar="TIME",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S%z"]),
    help="Only the last block not later than this, such as 2030-01-31T12:00:00Z.",
)
@click.option("--last", default=5, show_default=True, type=WholeNumber(min=1), help="How many of the last blocks.")
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

    All fields of a block are printed if you choose one, or with `-v`; otherwise those that people read.

    Exits with 1 if a block is missing or damaged, and with 6 if there is no such block.
    """
    with reported_faults(output):
        opened = Ledger.open(path)
        report_unborn(opened, output)
        names = opened.names() if chain is None else [chain]
        shown = [(name, r) for name in names for r in _asked(opened.chain(name), block, offset, at, last)]
        if names and not shown:
            raise _not_found(opened, names)
    if output.as_json:
        blocks = [{"chain": name, "hash": record.hash, **manifest_of(record)} for name, record in shown]
        output.document("dagkit.ledger.show/1", {"blocks": blocks})
    else:
        whole = output.verbose or (block, offset, at) != (None, None, None)
        output.result("\n\n".join(_described(opened.chain(name), record, whole=whole) for name, record in shown))


def _not_found(opened: Ledger, names: Sequence[str]) -> BlockNotFound:
    lasts = ", ".join(f"{printable(name)} 0 to {opened.chain(name).head.seq}" for name in names)
    return BlockNotFound(Fault("block-unknown", "there is no such block", f"there are the blocks of {lasts}"))


def _asked(chain: Chain, block: int | None, offset: int | None, at: datetime | None, last: int) -> Iterable[Record]:
    if block is not None:
        record = chain.read(block) if block <= chain.head.seq else None
    elif offset is not None:
        record = chain.seek_offset(offset)
    elif at is not None:
        record = chain.seek_time(at)
    else:
        return list(chain.records(max(0, chain.head.seq - last + 1)))
    return [] if record is None else [record]


def _described(chain: Chain, record: Record, *, whole: bool) -> str:
    """A block for people to read: a headline, what the window did, then one line for each field of its event.

    Unless `whole`, leave out the fields that have fields or items of their own; those in `extra` are of an application.
    """
    block = record.block
    event = block.event.as_json()
    lines = [f"{chain.name} block {record.seq}: {event.pop('kind')}, {block.system_time.isoformat()}"]
    lines += [f"  {line}" for line in window_lines(chain, record)]
    lines += [
        f"  {field}: {_text(value)}"
        for field, value in event.items()
        if whole or field == "extra" or not isinstance(value, dict | list)
    ]
    return "\n".join([*lines, f"  hash: {record.hash}"])


def _text(value: Any) -> str:
    return "-" if value is None else printable(str(value))
