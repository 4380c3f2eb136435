"""Slices and checkpoints under the hash of their content: what a name promises can always be checked."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Literal

from dagkit.ledger.format.block import Record, unwritable
from dagkit.ledger.format.events import Checkpoint, DataSlice, OffsetInterval
from dagkit.ledger.format.faults import ChainBroken, Fault, LedgerCode
from dagkit.ledger.format.hashing import canonical, hash_of, read_json
from dagkit.ledger.stores.local import LocalStore
from dagkit.ledger.stores.store import KeyMissing, KeyTaken, Store, refused

Shelf = Literal["data", "checkpoints"]

INLINE_LIMIT = 4096
"""Up to so many bytes, text is kept inside the record: a window and its state then cost one durable write."""

_LINES_DOMAIN = b"dagkit.lines/1\n"


class Objects:
    """The contents that one chain's blocks name."""

    def __init__(self, store: Store, folder: str, chain: str) -> None:
        self._store = store
        self._folder = folder
        self._chain = chain

    def put(self, shelf: Shelf, content: bytes) -> None:
        """The content is kept, and young; one that is there already stays, unless it was torn."""
        key = self.key(shelf, hash_of(content))
        while True:
            try:
                return self._store.create(key, content)
            except KeyTaken:
                with contextlib.suppress(KeyMissing):  # swept away between the two: created after all
                    return self._reuse(key, content)

    def _reuse(self, key: str, content: bytes) -> None:
        """What a crash left may be old; the block that names it now is still to come, and `gc` must wait for it."""
        if self._store.get(key) != content:
            self._store.replace(key, content)
        elif isinstance(self._store, LocalStore):  # written anew it would not be durable, as it is
            try:
                os.utime(self._store.root / key)
            except FileNotFoundError:
                raise KeyMissing(key) from None
            except OSError as error:
                raise refused(str(self._store), error) from error
        else:
            self._store.replace(key, content)

    def has(self, shelf: Shelf, name: str) -> bool:
        return self._store.exists(self.key(shelf, name))

    def get(self, shelf: Shelf, name: str, record: Record) -> bytes:
        """The content that the record names, whole and unchanged, or the fault is named."""
        inline = (record.objects or {}).get(name)
        if inline is not None:
            return inline.encode()
        what = "slice" if shelf == "data" else "checkpoint"
        try:
            content = self._store.get(self.key(shelf, name))
        except KeyMissing:
            code: LedgerCode = "data-missing" if shelf == "data" else "checkpoint-missing"
            raise ChainBroken(self._fault(code, f"its {what} {name} is not there", record)) from None
        if hash_of(content) != name:
            damaged: LedgerCode = "data-damaged" if shelf == "data" else "checkpoint-damaged"
            raise ChainBroken(self._fault(damaged, f"its {what} {name} has another content now", record))
        return content

    def names(self, shelf: Shelf) -> list[str]:
        """Every content that is kept, whoever names it."""
        return self._store.names(f"{self._folder}/{shelf}")

    def key(self, shelf: Shelf, name: str) -> str:
        return f"{self._folder}/{shelf}/{name}"

    def _fault(self, code: LedgerCode, problem: str, record: Record) -> Fault:
        return Fault(code, problem, "bring the file back from a copy of the folder", self._chain, record.seq)


def is_small(content: bytes) -> bool:
    """Whether the content travels inside the record."""
    if len(content) > INLINE_LIMIT:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def lines_of(rows: Iterator[Any] | list[Any] | tuple[Any, ...]) -> bytes:
    """The rows as canonical JSON, one to a line."""
    try:
        return b"".join(canonical(row).encode() + b"\n" for row in rows)
    except ValueError as error:
        raise unwritable("a row", error) from error


def rows_of(content: bytes) -> list[Any]:
    """The rows that `lines_of` wrote."""
    return [read_json(line) for line in content.splitlines()]


def lines_hash(content: bytes) -> str:
    """The logical hash of canonical lines: equal rows, equal hash, and never otherwise, for each row has one text."""
    return hash_of(_LINES_DOMAIN + content)


def slice_of(content: bytes, first: int, count: int) -> DataSlice:
    """The slice that says: these bytes are the `count` records from offset `first` on."""
    assert count > 0, "a slice has at least one record"
    return DataSlice(
        logical_hash=lines_hash(content),
        physical_hash=hash_of(content),
        offset_interval=OffsetInterval(start=first, end=first + count - 1),
        size=len(content),
    )


def checkpoint_of(content: bytes) -> Checkpoint:
    """The checkpoint that these bytes are."""
    return Checkpoint(physical_hash=hash_of(content), size=len(content))
