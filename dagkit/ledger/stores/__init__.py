"""Storage for ledgers, behind one small protocol."""

import os
from typing import Any

from dagkit.ground.urls import in_fsspec, is_url, local_path
from dagkit.ledger.stores.local import LocalStore
from dagkit.ledger.stores.memory import MemoryStore
from dagkit.ledger.stores.store import KeyMissing, KeyTaken, Store, unfenced, unknown

_OBJECT_STORES = ("s3://", "s3a://", "gs://", "az://", "adl://", "abfs://", "abfss://")

Place = str | os.PathLike[str] | Store


def open_store(place: Place, filesystem: Any = None, *, durable: bool = True, **options: Any) -> Store:
    """The store of a path, a URL, or a path on a `pyarrow.fs` or fsspec filesystem; a store is itself."""
    if not isinstance(place, str | os.PathLike):
        return place
    path = os.fspath(place)
    if filesystem is not None:
        return _on(filesystem, path, durable=durable)
    if path.startswith(_OBJECT_STORES):
        from dagkit.ledger.stores.bucket import BucketStore  # noqa: PLC0415 - imported only if needed

        return BucketStore.at(path, **options)
    if is_url(path):
        try:
            filesystem, inner = in_fsspec(path, **options)
        except (ValueError, ImportError, OSError) as error:
            raise unknown(path, str(error).partition("\n")[0]) from error
        return _on(filesystem, inner, durable=durable)
    return LocalStore(local_path(path), durable=durable)


def _on(filesystem: Any, path: str, *, durable: bool) -> Store:
    # By name, so that neither library need be imported: both have a LocalFileSystem.
    kind = type(filesystem).__name__
    if kind == "LocalFileSystem":
        return LocalStore(path.removeprefix("file://"), durable=durable)
    if kind == "SubTreeFileSystem":
        return _on(filesystem.base_fs, f"{filesystem.base_path.rstrip('/')}/{path.lstrip('/')}", durable=durable)
    if kind == "PyFileSystem" and hasattr(filesystem.handler, "fs"):
        return _on(filesystem.handler.fs, path, durable=durable)
    if hasattr(filesystem, "pipe_file"):
        from dagkit.ledger.stores.fsspecs import FsspecStore  # noqa: PLC0415 - imported only if needed

        return FsspecStore(filesystem, path)
    raise unfenced(f"pyarrow.fs.{kind}", "pyarrow.fs has no exclusive creation")


__all__ = ["KeyMissing", "KeyTaken", "LocalStore", "MemoryStore", "Place", "Store", "open_store"]
