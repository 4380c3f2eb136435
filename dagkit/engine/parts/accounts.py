"""The accounts of each window: its work, the receipts of input files, the items of ports and streams.

A finder asks for a receipt in the element of each item of work on a file: `receipt` of a file, or the fact `receipt` of
a block. The receipt is open from the window that found the first item, on the driver or in a slot. It is due after the
window after which no item of the file waits, its last one was found, and no output file to which its windows wrote is
incomplete. A file that a reader left to a later reading gets none.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import reduce

from dagkit.api.operators import Operator
from dagkit.api.work import SplittableOperator
from dagkit.engine.files.receipt import ReadCounts, Receipt
from dagkit.engine.files.staging import Part
from dagkit.engine.parts.run_part import EndedWindow, RunPart, Saved
from dagkit.engine.parts.setting_aside import Aside
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.row_account import breaches, row_account
from dagkit.engine.record.work_records import work_recorded
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.record import FileWork, instead_of
from dagkit.engine.work.waiting import Waiting

_logger = logging.getLogger(__name__)

Worked = Sequence[tuple[str, FileWork]]
"""What each reader did of one file in a window, by slot."""


def receipts_after(ended: EndedWindow, saved: Saved) -> Saved:
    """Return the open receipts after a window, and those that are due after it, which `Outputs` writes."""
    found = _found_in(ended)
    before = ended.before.output
    if not before.receipts and all(item.receipt is None for item in found):
        return {}
    receipts = {receipt.source: receipt for receipt in before.receipts}
    for item in found:
        source = item.receipt_source
        if source is not None:
            receipt = receipts.get(source) or _new(source, item)
            receipts[source] = receipt.model_copy(update={"is_whole": receipt.is_whole or item.ends_source})
    worked = _worked_in(ended)
    parts = [part for part in ended.answer.parts if not part.is_external]
    after = [
        _updated(receipt, ended.window_id, worked[source], parts) if source in worked else receipt
        for source, receipt in receipts.items()
    ]
    waiting: Waiting = saved["queue"]
    aside = {each.item.receipt_source for each in saved["aside"]}  # it may be retried
    pending, open_files = waiting.receipt_sources | aside, {part.file for part in saved["files"]}
    done = tuple(
        receipt
        for receipt in after
        if receipt.is_whole
        and receipt.source not in pending
        and not any(file in open_files for file in receipt.outputs)
    )
    closed = {receipt.source for receipt in done}
    still_open = tuple(receipt for receipt in after if receipt.source not in closed)
    return {"receipts": still_open, "receipted": tuple(receipt for receipt in done if not receipt.is_left)}


def _found_in(ended: EndedWindow) -> list[WorkItem]:
    """The items that input operators found for the window, and those that its slots found: at least one of each file.

    An operator that divides its items, instead of reading positions of their source, reads no file.
    """
    program = ended.program
    on_driver = [item for item in ended.discovered if _reads_positions(program.operators[item.into.operator][0])]
    records = (done.record for report in ended.answer.reports for done in report.done.values())
    in_slots = (work.found for record in records for work in record.files.values())
    return [*on_driver, *(item for item in in_slots if item is not None)]


def _reads_positions(operator: Operator) -> bool:
    return isinstance(operator, SplittableOperator) and operator.reads_positions


def _new(source: str, item: WorkItem) -> Receipt:
    assert isinstance(item.element, dict), "it has a receipt"
    return Receipt.model_validate({**(item.receipt or {}), "source": source, "path": item.element["path"]})


def _worked_in(ended: EndedWindow) -> dict[str, list[tuple[str, FileWork]]]:
    """The work of a window on each file for which a receipt is wanted."""
    worked: dict[str, list[tuple[str, FileWork]]] = {}
    for report in ended.answer.reports:
        for into, done in report.done.items():
            record = done.record
            for source, work in record.files.items():
                if work.element_ids:
                    worked.setdefault(source, []).append((into.operator, work))
    return worked


def _updated(receipt: Receipt, window_id: int, worked: Worked, parts: Iterable[Part]) -> Receipt:
    """A receipt after a window that read the file. Pieces of files of other blocks hold nothing of it."""
    elements = {element for _, work in worked for element in work.element_ids}
    written = (part.file for part in parts if part.part and part.element_id in elements)
    outputs = tuple(sorted({*receipt.outputs, *written}))
    windows = (receipt.windows[0] if receipt.windows else window_id, window_id)
    stated = reduce(instead_of, (work.instead for _, work in worked))
    is_left = receipt.is_left or (stated is not None and not stated)  # empty: the file was left
    counts = receipt.counts.joined(_counts_of(reader, work) for reader, work in worked)
    return receipt.model_copy(
        update={"counts": counts, "outputs": outputs, "windows": windows, "is_left": is_left, **(stated or {})}
    )


def _counts_of(reader: str, work: FileWork) -> ReadCounts:
    return ReadCounts(rows={reader: work.rows}, rejected={reader: work.rejected}, dropped={reader: work.dropped})


class Accounts(RunPart):
    """What the ledger proves of a window: that no byte is lost or read twice, and which items passed."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        discovered, reports = ended.discovered, ended.answer.reports
        work = work_recorded(discovered, reports, saved["queue"], self._aside.decided, ended.before.work)
        return {"work": work, "rows": row_account(ended.program, reports), **receipts_after(ended, saved)}

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        for breach in breaches(ended.window_id, checkpoint.rows):
            _logger.warning("%s", breach)
