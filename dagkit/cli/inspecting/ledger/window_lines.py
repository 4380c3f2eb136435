"""What a block of the ledger says of its window, for people: what was read, written and passed on."""

from collections.abc import Iterator, Sequence
from functools import partial
from json import loads

from dagkit.api.operators import DROPPED
from dagkit.engine.files.staging import by_file, in_order
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.journal import stored_at
from dagkit.engine.record.row_account import OperatorRows
from dagkit.engine.record.stored import CheckpointReader
from dagkit.errors import printable
from dagkit.ledger import Chain, ExecuteTransform, LedgerError, Record
from dagkit.ledger.audit.completeness import blocks_of
from dagkit.ledger.chain.contents import rows_of
from dagkit.ledger.format.events import AddData
from dagkit.observers.amounts import counted

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
        yield from _named("found", [str(block) for block in blocks_of(chain, record)])
    elif isinstance(event, ExecuteTransform) and (content := chain.checkpoint_at(record)) is not None:
        whole = CheckpointReader(partial(stored_at, chain)).whole(loads(content), record.seq)
        checkpoint = Checkpoint.model_validate(whole)
        yield f"window: {checkpoint.window}"
        work = checkpoint.work
        spans = [*work.consumed, *(span for part in work.inputs or () for span in part.consumed)]
        yield from _named("read", [str(span) for span in spans])
        yield from _named("wrote", _pieces(chain, record))
        earlier = {file: pieces for file, pieces in by_file(checkpoint.finished).items() if len(in_order(pieces)) > 1}
        lengths = {file: sum(piece.length for piece in pieces) for file, pieces in earlier.items()}
        yield from _named("completed", [f"{file}, {length} B with earlier windows" for file, length in lengths.items()])
        for name, rows in checkpoint.rows.operators.items():
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


def _named(what: str, things: Sequence[str]) -> Iterator[str]:
    if things:
        more = [f"and {len(things) - MOST_NAMED} more"] if len(things) > MOST_NAMED else []
        yield f"{what}: {'; '.join(printable(thing) for thing in [*things[:MOST_NAMED], *more])}"
