"""Past windows, read from a ledger while the application runs or later: all of them, a page, or a sample.

Of a page, only what the block of each window stores is read, without what is carried from window to window, such as
the queue.
"""

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from dagkit.engine.record.checkpoint import Checkpoint, WindowOutput
from dagkit.engine.record.journal import last_checkpoint, stored_at
from dagkit.engine.record.row_account import breaches
from dagkit.engine.record.status_file import LastWindow, SeenRun
from dagkit.engine.record.stored import CheckpointReader, own_of
from dagkit.ledger import AddData, Chain, DatasetKind, ExecuteTransform, Ledger, Record
from dagkit.ledger.format.recorded_work import InputWork


@dataclass(frozen=True, slots=True)
class Window:
    """One committed window and its block."""

    chain: Chain
    record: Record
    checkpoint: Checkpoint
    """Its checkpoint; of all readers but `history`, without the parts that are carried from window to window."""

    @property
    def committed(self) -> datetime:
        return self.record.block.system_time

    @property
    def output(self) -> WindowOutput:
        return self.checkpoint.output

    @property
    def work(self) -> Sequence[InputWork]:
        """The work of each input in it."""
        return self.checkpoint.work.inputs or ()

    @property
    def block(self) -> int:
        """The number of its block in the application's chain."""
        return self.record.seq


def application_chain(ledger: Ledger) -> Chain | None:
    """The chain of the ledger's application; None before its first launch has created it."""
    chains = (ledger.chain(name) for name in ledger.names())
    return next((chain for chain in chains if chain.kind is DatasetKind.DERIVATIVE), None)


def root_slices(ledger: Ledger) -> Iterator[tuple[str, Chain, Record]]:
    """The blocks of root chains that hold data, with the names of their chains and the chains."""
    for name in ledger.names():
        chain = ledger.chain(name)
        if chain.kind is DatasetKind.ROOT:
            for record in chain.records():
                if isinstance(record.block.event, AddData):
                    yield name, chain, record


def newest_checkpoint(ledger: Ledger) -> Checkpoint:
    """The checkpoint of the last window; an empty one if there is no window."""
    chain = application_chain(ledger)
    return Checkpoint() if chain is None else last_checkpoint(chain)[0]


def history(ledger: Ledger, first: int = 0) -> Iterator[Window]:
    """Yield the windows of the ledger's application, oldest first, from the block `first` of its chain on."""
    chain = application_chain(ledger)
    if chain is not None:
        reader = CheckpointReader(partial(stored_at, chain))
        for record in chain.records(first):
            content = _stored(chain, record)
            if content is not None:
                whole = reader.whole(json.loads(content), record.seq)
                yield Window(chain, record, Checkpoint.model_validate(whole))


def own_windows(ledger: Ledger, *needles: bytes, first: int = 0) -> Iterator[Window]:
    """Yield the windows whose stored checkpoints contain any of these bytes, oldest first, from a block on."""
    chain = application_chain(ledger)
    if chain is not None:
        for record in chain.records(first):
            content = _stored(chain, record)
            # Few windows have what is sought, and the others are not parsed.
            if content is not None and any(needle in content for needle in needles):
                yield _own_window(chain, record, content)


def windows_between(chain: Chain, first: int, last: int) -> Iterator[Window]:
    """Yield the windows of the blocks from `first` to `last`, both included, oldest first."""
    for record in chain.records(max(0, first), last):
        window = _window(chain, record)
        if window is not None:
            yield window


def window_at(chain: Chain, seq: int) -> Window | None:
    """The window of a block; None if the block is no window."""
    return _window(chain, chain.read(seq)) if 0 <= seq <= chain.head.seq else None


def block_of(chain: Chain, window_id: int) -> int | None:
    """The number of the block of a window, or None; a logarithmic number of reads, for window ids never decrease."""
    # window numbers never fall along a chain, and blocks that are no window lie between them
    low, high = 0, chain.head.seq
    while low < high:
        middle = (low + high) // 2
        found = next(windows_between(chain, middle, high), None)
        if found is None or found.checkpoint.window >= window_id:
            high = middle
        else:
            low = found.record.seq + 1
    found = next(windows_between(chain, low, chain.head.seq), None)
    return found.record.seq if found is not None and found.checkpoint.window == window_id else None


def window_that_took(ledger: Ledger, finder: str, block: int) -> int | None:
    """The window that was given the work of a block of an input operator's chain; None if none was.

    A logarithmic number of reads.
    """
    chain = application_chain(ledger)
    dataset_ids = {} if chain is None else {name: dataset_id for dataset_id, name in ledger.inputs_of(chain).items()}
    if chain is None or finder not in dataset_ids:
        return None

    def taken(seq: int) -> int:
        """The last block of the input operator's chain that was taken up to a block of the application's."""
        record: Record | None = chain.read(seq)
        if record is not None and not isinstance(record.block.event, ExecuteTransform):
            record = chain.before(record, "ExecuteTransform")
        if record is None or not isinstance(record.block.event, ExecuteTransform):
            return -1
        inputs = (part.dataset_id for part in record.block.event.query_inputs)
        number = dict(zip(inputs, record.carry.consumed or (), strict=False)).get(dataset_ids[finder])
        return -1 if number is None else number

    seq = bisect_left(range(chain.head.seq + 1), block, key=taken)
    window = window_at(chain, seq)
    return None if window is None else window.checkpoint.window


def seen_in(ledger: Ledger) -> SeenRun | None:
    """The application's last launch, with the last window in the ledger if its driver does not write any more."""
    seen = SeenRun.of(ledger.store)
    if seen is None or seen.presence not in ("gone", "silent"):
        return seen
    return replace(seen, last=_last_window(ledger))


def _last_window(ledger: Ledger) -> LastWindow | None:
    """The last window in the ledger; None if none was ever committed."""
    chain = application_chain(ledger)
    block = None if chain is None else chain.standing.data_at
    found = None if chain is None or block is None else window_at(chain, block.seq)
    return None if found is None else LastWindow(found.checkpoint.window, found.committed)


def stride(blocks: int, points: int) -> int:
    """The least power of two that leaves at most so many of these blocks.

    The blocks whose numbers it divides stay a sample while the chain grows.
    """
    found = 1
    while blocks > points * found:
        found *= 2
    return found


def _window(chain: Chain, record: Record) -> Window | None:
    content = _stored(chain, record)
    return None if content is None else _own_window(chain, record, content)


def _stored(chain: Chain, record: Record) -> bytes | None:
    """The part of its checkpoint that a block stores; None if the block is no window."""
    return chain.checkpoint_at(record) if isinstance(record.block.event, ExecuteTransform) else None


def _own_window(chain: Chain, record: Record, content: bytes) -> Window:
    return Window(chain, record, Checkpoint.model_validate(own_of(json.loads(content))))


def row_history(ledger: Ledger) -> Iterator[Window]:
    """Yield all windows that had items, with their row accounts, oldest first."""
    return (window for window in own_windows(ledger, b'"rows"') if window.checkpoint.rows)


def refuse_unbalanced(ledger: Ledger) -> None:
    """Raise the first RowsUnbalanced of a ledger, if the items of any window do not add up."""
    for window in row_history(ledger):
        for breach in breaches(window.checkpoint.window, window.checkpoint.rows):
            raise breach
