"""Receipts of input files for which they are wanted, and how the due ones are written.

APPLICATION_PATH/receipts/<window>/<name>     a receipt that is not in place yet
APPLICATION_PATH/receipts/<window>-ready/     all receipts of the window were written there
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from dagkit.engine.files.folders import Folder, LocalFolder, folder_at, put_in_place
from dagkit.engine.files.pieces import Piece, file_unplaced
from dagkit.engine.program.stored_value import Group, Grouped, StoredValue

_BEING_WRITTEN = "receipts"


class ReadCounts(Group):
    """The counts of the records of a file, by the reader that read them."""

    rows: Mapping[str, int] = {}
    """How many items each reader sent for it."""
    rejected: Mapping[str, int] = {}
    """How many of its records each reader rejected."""
    dropped: Mapping[str, int] = {}
    """How many of its records each reader dropped, as its conversion asks."""

    def joined(self, others: "Iterable[ReadCounts]") -> "ReadCounts":
        """Return the sums of these and other counts."""
        sums: dict[str, Counter[str]] = {name: Counter() for name in type(self).model_fields}
        for counts in (self, *others):
            for name, total in sums.items():
                total.update(getattr(counts, name))
        return ReadCounts(**{name: dict(sorted(total.items())) for name, total in sums.items()})


class Receipt(StoredValue, Grouped):
    """One input file: its hash, its records and its output."""

    source: str
    """The name of the file in the ledger."""
    path: str
    folder: str
    """Where the receipt is to be written."""
    sha256: str
    """The hash of its bytes, as the finder read them."""
    bytes: int
    modified_millis: int
    counts: ReadCounts = ReadCounts()
    outputs: tuple[str, ...] = ()
    """The output files to which its windows wrote: all of its output is in these."""
    windows: tuple[int, ...] = ()
    """The first and the last window that read it."""
    is_whole: bool = False
    """Whether its last block was given to a window."""
    is_left: bool = False
    """Whether a reader left it to a later reading, so that no receipt of this one is written."""

    @property
    def file_name(self) -> str:
        """The name of the receipt: that of the file, with a digest of its name in the ledger."""
        name = self.path.partition("?")[0].rstrip("/").rpartition("/")[2]
        return f"{name}.{hashlib.blake2b(self.source.encode(), digest_size=6).hexdigest()}.json"

    @property
    def file(self) -> str:
        """The whole path, or the URL, of the receipt."""
        return folder_at(self.folder).path_of(self.file_name)

    def document(self, ledger_hash: str, window_id: int) -> str:
        """The receipt after the window with which everything of the file is committed and visible."""
        body = {
            "format": FORMAT,
            **self.model_dump(mode="json", exclude={"folder", "is_whole", "is_left"}),
            "window": window_id,
            "ledger_hash": ledger_hash,
        }
        return json.dumps(body, ensure_ascii=False, sort_keys=True, indent=2) + "\n"


FORMAT: Literal["dagkit.receipt/1"] = "dagkit.receipt/1"


def write_receipts(
    due: Sequence[Receipt], application_path: str, ledger_hash: str, window_id: int, *, durable: bool
) -> None:
    """Write the receipts of a window. Repeating this after a crash writes only those that were not in place.

    Each receipt is a piece first, and is removed there when it is in place. So a receipt without a piece was in place,
    and the sender may have taken it away since.
    """
    home = folder_at(application_path).below(_BEING_WRITTEN)
    pieces, ready = home.below(str(window_id)), f"{window_id}-ready"
    there = home.folders()
    # Until all pieces are written, a receipt without one need not have been in place.
    if ready not in there:
        for receipt in due:
            _write_piece(pieces, receipt, receipt.document(ledger_hash, window_id), durable=durable)
        home.below(ready).make()
        if durable:
            home.below(ready).sync(levels=3)
    for receipt in due:
        name = receipt.file_name
        length = pieces.length(pieces.path_of(name))
        if length is not None:
            put_in_place([Piece(pieces.path_of(name), length)], receipt.file, durable=durable)
    for earlier in there:
        if earlier not in (str(window_id), ready):
            home.below(earlier).remove()


def _write_piece(pieces: Folder, receipt: Receipt, text: str, *, durable: bool) -> None:
    try:
        pieces.make()
        with pieces.create(receipt.file_name) as sink:
            sink.write(text.encode())
            sink.flush()
            if durable and isinstance(pieces, LocalFolder):
                os.fsync(sink.fileno())
    except OSError as error:
        raise file_unplaced(pieces.path_of(receipt.file_name), error) from error
