"""Which input files are committed whole, with all their output. Pure.

A finder asks for a receipt by the fact `receipt` of each block of a file. The receipt is open from the window that was
given the first block. It is due after the window after which no block of the file waits, its last block was given, and
no output file to which its windows wrote is incomplete.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagkit.engine.address import Address
from dagkit.engine.files.staging import Part
from dagkit.engine.receipts.receipt import Receipt
from dagkit.engine.work.item import WorkItem
from dagkit.engine.worker.protocol import Answer


@dataclass(frozen=True, slots=True)
class WindowRead:
    """What one window was given, read and reported."""

    window_id: int
    given: Sequence[WorkItem]
    allocated: Sequence[WorkItem]
    answer: Answer


def receipts_after(
    before: Sequence[Receipt], window: WindowRead, waiting: Iterable[WorkItem], open_files: Container[str]
) -> tuple[tuple[Receipt, ...], tuple[Receipt, ...]]:
    """Return the open receipts after a window, and those that are due after it."""
    receipts = {receipt.source: receipt for receipt in before}
    for item in window.given:
        wanted = item.receipt
        if wanted is not None and item.source is not None:
            receipt = receipts.get(item.source) or _new(item.source, item, wanted)
            is_last = isinstance(item.element, dict) and item.element.get("last") is True
            receipts[item.source] = receipt.model_copy(update={"is_whole": receipt.is_whole or is_last})
    after = _with_work(receipts, window)
    pending = {item.source for item in waiting}
    due = tuple(
        receipt
        for receipt in after
        if receipt.is_whole
        and receipt.source not in pending
        and not any(file in open_files for file in receipt.outputs)
    )
    written = {receipt.source for receipt in due}
    return tuple(receipt for receipt in after if receipt.source not in written), due


def _new(source: str, item: WorkItem, wanted: Mapping[str, Any]) -> Receipt:
    assert isinstance(item.element, dict), "it has the fact `receipt`"
    return Receipt.model_validate({**wanted, "source": source, "path": item.element["path"]})


def _with_work(receipts: Mapping[str, Receipt], window: WindowRead) -> list[Receipt]:
    """The receipts with the rows and outputs of one window."""
    rows: dict[str, dict[str, int]] = {}
    for report in window.answer.reports:
        for into, record in report.records.items():
            operator = Address(into).operator
            for source, count in record.rows.items():
                counted = rows.setdefault(source, {})
                counted[operator] = counted.get(operator, 0) + count
    elements: dict[str, set[int | None]] = {}
    for item in window.allocated:
        if item.source is not None and item.source in receipts:
            elements.setdefault(item.source, {None}).add(item.element_id)
    parts = [part for part in window.answer.parts if not part.is_external]
    return [
        _worked(receipt, window.window_id, rows.get(source, {}), elements[source], parts)
        if source in elements
        else receipt
        for source, receipt in receipts.items()
    ]


def _worked(
    receipt: Receipt, window_id: int, rows: Mapping[str, int], elements: Container[int | None], parts: Iterable[Part]
) -> Receipt:
    """A receipt after a window that read the file. Pieces of files of other blocks hold nothing of it."""
    counted = {name: receipt.rows.get(name, 0) + rows.get(name, 0) for name in sorted({*receipt.rows, *rows})}
    written = (part.file for part in parts if part.part and part.element_id in elements)
    outputs = tuple(sorted({*receipt.outputs, *written}))
    windows = (receipt.windows[0] if receipt.windows else window_id, window_id)
    return receipt.model_copy(update={"rows": counted, "outputs": outputs, "windows": windows})
