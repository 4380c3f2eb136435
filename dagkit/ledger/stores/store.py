"""What a ledger asks of the place that keeps it: bytes under keys, and a creation that only one of many can win."""

import errno
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, runtime_checkable

from dagkit.ledger.format.faults import Fault, StoreError


class KeyTaken(Exception):
    """Somebody created the key before; nothing was changed."""


class KeyMissing(Exception):
    """There is nothing under the key."""


@runtime_checkable
class Store(Protocol):
    """Bytes under slash-separated keys. Whatever a reader sees under a key is whole."""

    def get(self, key: str) -> bytes:
        """All bytes under the key, or `KeyMissing`."""
        ...

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """The bytes `[start, end)` under the key, fewer where it ends before, or `KeyMissing`."""
        ...

    def create(self, key: str, content: bytes) -> None:
        """The key holds the content, durably, and did not exist before; else `KeyTaken`, and nothing was changed."""
        ...

    def replace(self, key: str, content: bytes) -> None:
        """The key holds the content, whatever was there; whole for every reader, but perhaps not durable."""
        ...

    def note(self, key: str, content: bytes) -> None:
        """The key holds the content, as cheaply as can be: a reader may find it torn, and must be able to tell."""
        ...

    def exists(self, key: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """The last parts of the keys directly under the folder, in no order."""
        ...

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly under the folder, in no order."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """None of the keys exists any more."""
        ...

    def modified(self, key: str) -> datetime | None:
        """When the key was written, or None if it is gone."""
        ...


def unmade(place: str, error: OSError) -> StoreError:
    """A place whose folder cannot be made, so that nothing came there."""
    found = refused(place, error)
    if found.code != "store-unreachable":
        return found
    help_ = "give a place where a folder can be made; nothing was committed"
    return StoreError(Fault("store-unreachable", f"{place} cannot be made: {error}", help_))


def refused(place: str, error: BaseException) -> StoreError:
    """The place's own error as one that says what to do."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreError(
            Fault("store-full", f"{place} is full: {error}", "make room and run again; nothing was committed")
        )
    if number in (errno.EROFS, errno.EACCES, errno.EPERM) or isinstance(error, PermissionError):
        return StoreError(
            Fault("store-readonly", f"{place} cannot be written: {error}", "give this user the right to write there")
        )
    return StoreError(
        Fault(
            "store-unreachable",
            f"{place} failed: {error}",
            "whether the last append was committed is not known: open the ledger again, and it tells",
        )
    )


def unknown(place: str, why: str) -> StoreError:
    """A URL that leads nowhere."""
    help_ = "give a folder, or a URL of a kind whose filesystem is installed here, with all that it asks for"
    return StoreError(Fault("store-unreachable", f"{place} leads to no place: {why}", help_))


def unfenced(place: str, why: str) -> StoreError:
    """A place where two writers could both believe that they won."""
    return StoreError(
        Fault(
            "store-unfenced",
            f"{place} cannot create a file only if it does not exist: {why}",
            "keep the ledger on a local disk, in an object store given by its URL (s3://..., gs://..., az://...), "
            "or on a filesystem with exclusive creation",
        )
    )
