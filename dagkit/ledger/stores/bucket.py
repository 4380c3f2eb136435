"""An object store: S3, Google Cloud Storage, Azure. The service decides which writer created a key first."""

import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import obstore
from obstore import exceptions
from obstore.store import ObjectStore, from_url

from dagkit.ground.urls import object_store_options
from dagkit.ledger.format.faults import StoreError
from dagkit.ledger.stores.store import KeyMissing, KeyTaken, refused, unfenced, unknown

_CREATED_BY = "dagkitcreatedby"
"""An attribute beside the content, so that a record stays a pure function of its block. Azure allows no hyphens or
capitals in its name."""

# obstore raises Python's own exceptions for some failures and its own for others.
_MISSING = (exceptions.NotFoundError, FileNotFoundError)
_FAILED = (exceptions.BaseError, OSError)


class BucketStore:
    """Keys as objects under a prefix."""

    def __init__(self, store: ObjectStore, name: str = "the object store") -> None:
        self._store = store
        self._name = name

    @classmethod
    def at(cls, url: str) -> "BucketStore":
        """The store of a URL; options come from the environment (AWS_..., ...)."""
        try:
            return cls(from_url(url, **object_store_options()), url)
        except (exceptions.BaseError, ValueError) as error:
            raise unknown(url, str(error).splitlines()[0]) from error

    def __repr__(self) -> str:
        return f"BucketStore({self._name!r})"

    def __str__(self) -> str:
        return self._name

    def get(self, key: str) -> bytes:
        try:
            return bytes(obstore.get(self._store, key).bytes())
        except _MISSING:
            raise KeyMissing(key) from None
        except _FAILED as error:
            raise self._refused(error, action="read") from error

    def get_range(self, key: str, start: int, end: int) -> bytes:
        try:
            return bytes(obstore.get_range(self._store, key, start=start, end=end))
        except _MISSING:
            raise KeyMissing(key) from None
        except _FAILED as error:
            if self._ends_before(key, start):
                return b""
            raise self._refused(error, action="read") from error

    def _ends_before(self, key: str, start: int) -> bool:
        """Whether the object is too short for the range, as a truncated segment is."""
        try:
            return int(obstore.head(self._store, key)["size"]) <= start
        except _FAILED:
            return False

    def create(self, key: str, content: bytes) -> None:
        mark = secrets.token_hex(16)
        try:
            # The parts of a multipart upload cannot be made to depend on the key's absence.
            obstore.put(self._store, key, content, mode="create", use_multipart=False, attributes={_CREATED_BY: mark})
        except (exceptions.AlreadyExistsError, FileExistsError):
            if not self._is_ours(key, content, mark):
                raise KeyTaken(key) from None
        except (exceptions.NotSupportedError, NotImplementedError) as error:
            raise unfenced(self._name, str(error)) from error
        except _FAILED as error:
            raise self._refused(error) from error

    def _is_ours(self, key: str, content: bytes, mark: str) -> bool:
        """Whether this call created the object: a client repeats a put if the answer was lost, and the repeat fails."""
        try:
            # Two drivers may write the same bytes, so the bytes alone do not show which one won.
            found = obstore.get(self._store, key)
            return found.attributes.get(_CREATED_BY) == mark and bytes(found.bytes()) == content
        except _MISSING:
            return False
        except _FAILED as error:
            raise self._refused(error, action="read") from error

    def replace(self, key: str, content: bytes) -> None:
        try:
            obstore.put(self._store, key, content, use_multipart=False)
        except _FAILED as error:
            raise self._refused(error) from error

    def note(self, key: str, content: bytes) -> None:
        self.replace(key, content)

    def exists(self, key: str) -> bool:
        return self.modified(key) is not None

    def names(self, folder: str) -> list[str]:
        return [str(o["path"]).rpartition("/")[2] for o in self._listed(folder)["objects"]]

    def folders(self, folder: str) -> list[str]:
        return [str(p).rstrip("/").rpartition("/")[2] for p in self._listed(folder)["common_prefixes"]]

    def delete(self, keys: Iterable[str]) -> None:
        named = list(keys)
        try:
            obstore.delete(self._store, named)
        except _MISSING:
            # S3 ignores missing keys; other services stop at the first one, which may come before keys that exist.
            if len(named) > 1:
                for key in named:
                    self.delete([key])
        except _FAILED as error:
            raise self._refused(error) from error

    def modified(self, key: str) -> datetime | None:
        try:
            return obstore.head(self._store, key)["last_modified"]
        except _MISSING:
            return None
        except _FAILED as error:
            raise self._refused(error, action="read") from error

    def _listed(self, folder: str) -> Any:
        try:
            return obstore.list_with_delimiter(self._store, folder or None)
        except _FAILED as error:
            raise self._refused(error, action="read") from error

    def _refused(self, error: BaseException, *, action: Literal["read", "written"] = "written") -> StoreError:
        if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError):
            return refused(self._name, PermissionError(str(error).splitlines()[0]), action=action)
        return refused(self._name, error, action=action)
