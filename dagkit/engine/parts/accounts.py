"""The accounts of each window: its work, the receipts of input files, the items of ports and streams."""

import logging

from dagkit.engine.parts.due_receipts import receipts_after
from dagkit.engine.parts.run_part import EndedWindow, RunPart, Saved
from dagkit.engine.parts.setting_aside import Aside
from dagkit.engine.record.checkpoint import Checkpoint
from dagkit.engine.record.row_account import breaches, row_account
from dagkit.engine.record.work_records import work_recorded

_logger = logging.getLogger(__name__)


class Accounts(RunPart):
    """What the ledger proves of a window: that no byte is lost or read twice, and which items passed."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside

    def after(self, ended: EndedWindow, saved: Saved) -> Saved:
        given, reports = ended.given, ended.answer.reports
        work = work_recorded(given, reports, saved["queue"], self._aside.decided, ended.before.work)
        return {"work": work, "rows": row_account(ended.program, reports), **receipts_after(ended, saved)}

    def announce(self, ended: EndedWindow, checkpoint: Checkpoint) -> None:
        for breach in breaches(ended.window_id, checkpoint.rows):
            _logger.warning("%s", breach)
