"""The protocol of a ledger's storage: bytes under keys, and a creation that only one of many writers can win."""

import errno
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from dagkit.errors import reason_of
from dagkit.ledger.format.faults import Fault, StoreError


class KeyTaken(Exception):
    """The key exists already; nothing was changed."""


class KeyMissing(Exception):
    """The key does not exist."""


@runtime_checkable
class Store(Protocol):
    """Bytes under slash-separated keys. A reader never sees a part of a content, except after `note`."""

    def get(self, key: str) -> bytes:
        """All bytes under the key; raise `KeyMissing` if it does not exist."""
        ...

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """The bytes `[start, end)` under the key, fewer if it is shorter; raise `KeyMissing` if it does not exist."""
        ...

    def create(self, key: str, content: bytes) -> None:
        """Create the key durably; raise `KeyTaken`, and change nothing, if it exists."""
        ...

    def replace(self, key: str, content: bytes) -> None:
        """Create or replace the key: atomic for every reader, but perhaps not durable."""
        ...

    def note(self, key: str, content: bytes) -> None:
        """Create or overwrite the key as cheaply as possible: a reader may see a torn content and must detect it."""
        ...

    def exists(self, key: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """The last parts of the keys directly under the folder, unordered."""
        ...

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly under the folder, unordered."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete the keys; missing ones are ignored."""
        ...

    def modified(self, key: str) -> datetime | None:
        """When the key was written; None if it does not exist."""
        ...


def unmade(place: str, error: OSError) -> StoreError:
    """The error of a place whose folder cannot be created; nothing was written there."""
    found = refused(place, error)
    if found.code != "store-unreachable":
        return found
    help_ = "choose a place where you may create a folder, with --path or APPLICATION_PATH"
    problem = f"{place} cannot be created: {reason_of(error)}; nothing was committed"
    return StoreError(Fault("store-unreachable", problem, help_))


def refused(place: str, error: BaseException, *, action: Literal["read", "written"] = "written") -> StoreError:
    """Convert an error of the storage to one that says what to do; `action` is what was tried."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreError(
            Fault(
                "store-full",
                f"{place} is full: {reason_of(error)}",
                "free some space and run again; nothing was committed",
            )
        )
    if number in (errno.EROFS, errno.EACCES, errno.EPERM) or isinstance(error, PermissionError):
        permission = "read" if action == "read" else "write"
        return StoreError(
            Fault(
                "store-readonly",
                f"{place} cannot be {action}: {reason_of(error)}",
                f"give this user {permission} permission there, or choose another place",
            )
        )
    if number == errno.ENAMETOOLONG:
        help_ = "choose a shorter name or path, such as by --path or APPLICATION_PATH; nothing was committed"
        return StoreError(Fault("store-unreachable", f"{place} is too long a path: {reason_of(error)}", help_))
    return StoreError(
        Fault(
            "store-unreachable",
            f"{place} failed: {error}",
            "it is unknown whether the last append was committed: opening the ledger again shows it",
        )
    )


def unknown(place: str, why: str) -> StoreError:
    """The error of a URL that cannot be opened."""
    help_ = "give a folder, or a URL whose filesystem is installed here, with the options that it requires"
    return StoreError(Fault("store-unreachable", f"{place} cannot be opened: {why}", help_))


def unfenced(place: str, why: str) -> StoreError:
    """The error of a place that cannot create exclusively, so that two writers could both win."""
    return StoreError(
        Fault(
            "store-unfenced",
            f"{place} does not support exclusive creation of files: {why}",
            "keep the ledger on a local disk, in an object store given by its URL (s3://..., gs://..., az://...), "
            "or on a filesystem with exclusive creation",
        )
    )
