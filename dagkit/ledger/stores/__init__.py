"""Storage for ledgers, behind one small protocol."""

import os

from dagkit.ground.urls import in_fsspec, is_url, local_path
from dagkit.ledger.stores.local import LocalStore
from dagkit.ledger.stores.memory import MemoryStore
from dagkit.ledger.stores.store import KeyMissing, KeyTaken, Store, unknown

_OBJECT_STORES = ("s3://", "s3a://", "gs://", "az://", "adl://", "abfs://", "abfss://")

Place = str | os.PathLike[str] | Store


def open_store(place: Place, *, durable: bool = True) -> Store:
    """The store of a path or a URL; a store is itself."""
    if not isinstance(place, str | os.PathLike):
        return place
    path = os.fspath(place)
    if path.startswith(_OBJECT_STORES):
        from dagkit.ledger.stores.bucket import BucketStore  # noqa: PLC0415 - imported only if needed

        return BucketStore.at(path)
    if is_url(path):
        try:
            filesystem, inner = in_fsspec(path)
        except (ValueError, ImportError, OSError) as error:
            raise unknown(path, str(error).partition("\n")[0]) from error
        from fsspec.implementations.local import LocalFileSystem  # noqa: PLC0415 - imported only if needed

        from dagkit.ledger.stores.fsspecs import FsspecStore  # noqa: PLC0415 - as above

        if isinstance(filesystem, LocalFileSystem):
            return LocalStore(inner, durable=durable)
        return FsspecStore(filesystem, inner)
    return LocalStore(local_path(path), durable=durable)


__all__ = ["KeyMissing", "KeyTaken", "LocalStore", "MemoryStore", "Place", "Store", "open_store"]
