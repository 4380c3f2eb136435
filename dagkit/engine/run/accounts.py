"""Parts that account for what each window did: the receipts of input files, and the items of ports and streams."""

import logging

from dagkit.api.work import SplittableOperator
from dagkit.engine.checkpoint.checkpoint import Checkpoint
from dagkit.engine.checkpoint.row_account import breaches, row_account
from dagkit.engine.program.program import Program
from dagkit.engine.receipts.due import WindowRead, receipts_after
from dagkit.engine.run.run_part import EndedWindow, RunPart, Saved
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.waiting import Waiting

_logger = logging.getLogger(__name__)


class Receipts(RunPart):
    """Receipts for input files that are committed with all their output. `Outputs` writes those that are due."""

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        before = ended.before.receipts
        given = [item for item in ended.window.given if _is_read(ended.program, item)]
        read = WindowRead(ended.window_id, given, ended.answer)
        if not before and all(item.receipt is None for item in read.found):
            return {"receipts": (), "receipted": ()}
        waiting: Waiting = saved["queue"]
        aside = {each.item.receipt_source for each in saved["aside"]}  # it may be retried
        open_files = {part.file for part in saved["files"]}
        receipts, receipted = receipts_after(before, read, waiting.receipt_sources | aside, open_files)
        return {"receipts": receipts, "receipted": receipted}


def _is_read(program: Program, item: WorkItem) -> bool:
    """Whether the operator that processes an item reads positions of its source, instead of dividing it."""
    operator = program.operators[item.into.operator][0]
    return isinstance(operator, SplittableOperator) and operator.reads_positions


class RowAccounts(RunPart):
    """The items that operators and streams passed on in each window."""

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:  # noqa: ARG002 - as other parts
        return {"rows": row_account(ended.program, ended.answer.reports)}

    def committed(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        for breach in breaches(ended.window_id, checkpoint.rows):
            _logger.warning("%s", breach)
