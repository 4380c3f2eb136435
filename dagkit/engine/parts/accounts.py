"""The accounts of each window: its work, the receipts of input files, the items of ports and streams."""

import logging

from dagkit.api.work import SplittableOperator
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.row_account import breaches, row_account
from dagkit.engine.checkpoint.work_records import work_recorded
from dagkit.engine.parts.run_part import EndedWindow, RunPart, Saved
from dagkit.engine.parts.setting_aside import Aside
from dagkit.engine.program.program import Program
from dagkit.engine.receipts.due import WindowRead, receipts_after
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.waiting import Waiting

_logger = logging.getLogger(__name__)


class Accounts(RunPart):
    """What the ledger proves of a window: that no byte is lost or read twice, and which items passed."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        given, reports = ended.given, ended.answer.reports
        work = work_recorded(given, reports, saved["queue"], self._aside.decided, ended.before.work)
        return {"work": work, "rows": row_account(ended.program, reports), **_receipts(ended, saved)}

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        for breach in breaches(ended.window_id, checkpoint.rows):
            _logger.warning("%s", breach)


def _receipts(ended: EndedWindow, saved: Saved) -> Saved:
    """The open receipts after a window, and those that are due after it, which `Outputs` writes."""
    before = ended.before.receipts
    given = [item for item in ended.given if _is_read(ended.program, item)]
    read = WindowRead(ended.window_id, given, ended.answer)
    if not before and all(item.receipt is None for item in read.found):
        return {}
    waiting: Waiting = saved["queue"]
    aside = {each.item.receipt_source for each in saved["aside"]}  # it may be retried
    open_files = {part.file for part in saved["files"]}
    receipts, receipted = receipts_after(before, read, waiting.receipt_sources | aside, open_files)
    return {"receipts": receipts, "receipted": receipted}


def _is_read(program: Program, item: WorkItem) -> bool:
    """Whether the operator that processes an item reads positions of its source, instead of dividing it."""
    operator = program.operators[item.into.operator][0]
    return isinstance(operator, SplittableOperator) and operator.reads_positions
