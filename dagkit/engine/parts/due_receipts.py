"""Which input files are committed whole, with all their output. Pure.

A finder asks for a receipt in the element of each item of work on a file: `receipt` of a file, or the fact `receipt` of
a block. The receipt is open from the window that found the first item, on the driver or in a slot. It is due after the
window after which no item of the file waits, its last one was found, and no output file to which its windows wrote is
incomplete. A file that a reader left to a later reading gets none.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dagkit.api.operators import Operator
from dagkit.api.work import SplittableOperator
from dagkit.engine.files.receipt import Receipt
from dagkit.engine.files.staging import Part
from dagkit.engine.parts.run_part import EndedWindow, Saved
from dagkit.engine.program.address import Address
from dagkit.engine.work.item import WorkItem
from dagkit.engine.work.record import instead_of
from dagkit.engine.work.waiting import Waiting


@dataclass(slots=True)
class _Worked:
    """The elements of one file that a window read, and the items that it sent for it."""

    rows: Counter[str] = field(default_factory=Counter)
    """How many items each reader sent."""
    rejected: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    elements: set[int | None] = field(default_factory=set)
    instead: Mapping[str, Any] | None = None
    """What the receipt states instead of what the file was found with; empty: the file was left."""


def receipts_after(ended: EndedWindow, saved: Saved) -> Saved:
    """Return the open receipts after a window, and those that are due after it, which `Outputs` writes."""
    found = _found_in(ended)
    if not ended.before.receipts and all(item.receipt is None for item in found):
        return {}
    receipts = {receipt.source: receipt for receipt in ended.before.receipts}
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
    """The items that the window was given, and those that its slots found: at least one of each file.

    An operator that divides its items, instead of reading positions of their source, reads no file.
    """
    program = ended.program
    given = [item for item in ended.given if _reads_positions(program.operators[item.into.operator][0])]
    records = (record for report in ended.answer.reports for record in report.records.values())
    in_slots = (work.found for record in records for work in record.files.values())
    return [*given, *(item for item in in_slots if item is not None)]


def _reads_positions(operator: Operator) -> bool:
    return isinstance(operator, SplittableOperator) and operator.reads_positions


def _new(source: str, item: WorkItem) -> Receipt:
    assert isinstance(item.element, dict), "it has a receipt"
    return Receipt.model_validate({**(item.receipt or {}), "source": source, "path": item.element["path"]})


def _worked_in(ended: EndedWindow) -> dict[str, _Worked]:
    """The work of a window on each file for which a receipt is wanted."""
    worked: dict[str, _Worked] = {}
    for report in ended.answer.reports:
        for into, record in report.records.items():
            operator = Address(into).operator
            for source, work in record.files.items():
                if work.element_ids:
                    of_file = worked.setdefault(source, _Worked())
                    of_file.rows[operator] += work.rows
                    of_file.rejected[operator] += work.rejected
                    of_file.dropped[operator] += work.dropped
                    of_file.elements |= work.element_ids
                    of_file.instead = instead_of(of_file.instead, work.instead)
    return worked


def _updated(receipt: Receipt, window_id: int, worked: _Worked, parts: Iterable[Part]) -> Receipt:
    """A receipt after a window that read the file. Pieces of files of other blocks hold nothing of it."""
    counted = {
        "rows": _sum(receipt.rows, worked.rows),
        "rejected": _sum(receipt.rejected, worked.rejected),
        "dropped": _sum(receipt.dropped, worked.dropped),
    }
    written = (part.file for part in parts if part.part and part.element_id in worked.elements)
    outputs = tuple(sorted({*receipt.outputs, *written}))
    windows = (receipt.windows[0] if receipt.windows else window_id, window_id)
    instead = worked.instead or {}
    is_left = receipt.is_left or (worked.instead is not None and not instead)
    return receipt.model_copy(update={**counted, "outputs": outputs, "windows": windows, "is_left": is_left, **instead})


def _sum(before: Mapping[str, int], worked: Mapping[str, int]) -> dict[str, int]:
    """The counts of each reader after a window."""
    return {name: before.get(name, 0) + worked.get(name, 0) for name in sorted({*before, *worked})}
