"""Slices and checkpoints, each stored under the hash of its content, so that every read can be checked."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Literal

from dagkit.ledger.format.block import Record, unwritable
from dagkit.ledger.format.events import Checkpoint, DataEvent, DataSlice, Event, OffsetInterval, changed_checkpoint
from dagkit.ledger.format.faults import ChainBroken, Fault, LedgerCode
from dagkit.ledger.format.hashing import canonical, hash_of, read_json
from dagkit.ledger.stores.local import LocalStore
from dagkit.ledger.stores.store import KeyMissing, KeyTaken, Store, refused

Shelf = Literal["data", "checkpoints"]
WORDS: dict[Shelf, str] = {"data": "slice", "checkpoints": "checkpoint"}

# As files of their own, a slice and a checkpoint would be two more files and syncs for each window, and a crash between
# them and the block would leave orphans. The cost is a second place in which readers look.
INLINE_LIMIT = 4096
"""The most bytes of text that are stored inside the record: a window and its state then cost one durable write."""

# Without it, the logical and the physical hash of a slice would be equal.
_LINES_DOMAIN = b"dagkit.lines/1\n"


class Objects:
    """The contents that one chain's blocks name."""

    def __init__(self, store: Store, folder: str, chain: str) -> None:
        self._store = store
        self._folder = folder
        self._chain = chain

    def put(self, shelf: Shelf, content: bytes) -> None:
        """Store the content; an existing intact copy stays and gets a new modification time."""
        key = self.key(shelf, hash_of(content))
        while True:
            try:
                return self._store.create(key, content)
            except KeyTaken:
                # `gc` may delete the copy in between, or it is damaged. Then the next round creates it.
                with contextlib.suppress(KeyMissing):
                    return self._reuse(key, content)

    def _reuse(self, key: str, content: bytes) -> None:
        """Renew the age of a content that a crash left: `gc` must keep it until the block that names it is appended."""
        if self._store.get(key) != content:
            # `put` creates it again. Not `replace`, which need not be durable, as the block that names the content is.
            self._store.delete([key])
            raise KeyMissing(key)
        if not isinstance(self._store, LocalStore):
            self._store.replace(key, content)
            return
        try:
            os.utime(self._store.root / key)
        except FileNotFoundError:
            raise KeyMissing(key) from None
        except OSError as error:
            raise refused(str(self._store), error) from error

    def has(self, shelf: Shelf, name: str) -> bool:
        return self._store.exists(self.key(shelf, name))

    def get(self, shelf: Shelf, name: str, record: Record) -> bytes:
        """The content that the record names; raise `ChainBroken` if it is missing or changed."""
        inline = (record.objects or {}).get(name)
        if inline is not None:
            return inline.encode()
        what = WORDS[shelf]
        try:
            content = self._store.get(self.key(shelf, name))
        except KeyMissing:
            code: LedgerCode = "data-missing" if shelf == "data" else "checkpoint-missing"
            raise ChainBroken(self._fault(code, f"its {what} {name} is missing", record)) from None
        if hash_of(content) != name:
            damaged: LedgerCode = "data-damaged" if shelf == "data" else "checkpoint-damaged"
            raise ChainBroken(self._fault(damaged, f"the content of its {what} {name} has changed", record))
        return content

    def names(self, shelf: Shelf) -> list[str]:
        """The names of all stored contents."""
        return self._store.names(f"{self._folder}/{shelf}")

    def key(self, shelf: Shelf, name: str) -> str:
        return f"{self._folder}/{shelf}/{name}"

    def _fault(self, code: LedgerCode, problem: str, record: Record) -> Fault:
        return Fault(code, problem, "restore the file from a backup of the folder", self._chain, record.seq)


def contents_named(event: Event) -> Iterator[tuple[Shelf, DataSlice | Checkpoint]]:
    """Yield the contents that a block adds to its chain: its slice, and its checkpoint unless it is the one before."""
    if isinstance(event, DataEvent) and event.new_data is not None:
        yield "data", event.new_data
    if (checkpoint := changed_checkpoint(event)) is not None:
        yield "checkpoints", checkpoint


def is_small(content: bytes) -> bool:
    """Whether the content is stored inside the record."""
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
    """The logical hash of canonical lines: equal only for equal rows, for each row has one text."""
    return hash_of(_LINES_DOMAIN + content)


def slice_of(content: bytes, first: int, count: int) -> DataSlice:
    """The slice for these bytes: `count` records from offset `first` on."""
    assert count > 0, "a slice has at least one record"
    return DataSlice(
        logical_hash=lines_hash(content),
        physical_hash=hash_of(content),
        offset_interval=OffsetInterval(start=first, end=first + count - 1),
        size=len(content),
    )


def checkpoint_of(content: bytes) -> Checkpoint:
    """The checkpoint entry for these bytes."""
    return Checkpoint(physical_hash=hash_of(content), size=len(content))
