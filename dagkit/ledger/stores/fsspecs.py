"""Any other filesystem of fsspec, if a trial shows that it can create exclusively."""

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from dagkit.ledger.stores.store import KeyMissing, KeyTaken, refused, unfenced


class FsspecStore:
    """Keys as files under a folder of an fsspec filesystem."""

    def __init__(self, filesystem: Any, root: str) -> None:
        self._fs = filesystem
        self._root = root.rstrip("/")
        self._proven = False

    def __repr__(self) -> str:
        return f"FsspecStore({self._root!r})"

    def __str__(self) -> str:
        return self._root

    def get(self, key: str) -> bytes:
        try:
            return bytes(self._fs.cat_file(self._path(key)))
        except FileNotFoundError:
            raise KeyMissing(key) from None
        except OSError as error:
            raise refused(self._root, error, action="read") from error

    def get_range(self, key: str, start: int, end: int) -> bytes:
        try:
            return bytes(self._fs.cat_file(self._path(key), start=start, end=end))
        except FileNotFoundError:
            raise KeyMissing(key) from None
        except OSError as error:
            raise refused(self._root, error, action="read") from error

    def create(self, key: str, content: bytes) -> None:
        self._prove()
        self._create(key, content)

    def replace(self, key: str, content: bytes) -> None:
        path = self._path(key)
        try:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(path, content)
        except OSError as error:
            raise refused(self._root, error) from error

    def note(self, key: str, content: bytes) -> None:
        self.replace(key, content)

    def exists(self, key: str) -> bool:
        # Not `isfile`, which reports a file as absent whenever the filesystem fails.
        try:
            return bool(self._fs.info(self._path(key))["type"] == "file")
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise refused(self._root, error, action="read") from error

    def names(self, folder: str) -> list[str]:
        return [name for name, kind in self._entries(folder) if kind != "directory" and not name.startswith(".")]

    def folders(self, folder: str) -> list[str]:
        return [name for name, kind in self._entries(folder) if kind == "directory"]

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            try:
                self._fs.rm_file(self._path(key))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise refused(self._root, error) from error

    def modified(self, key: str) -> datetime | None:
        try:
            found = self._fs.modified(self._path(key))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refused(self._root, error, action="read") from error
        assert isinstance(found, datetime), "fsspec returns the time of a file as a datetime"
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}" if key else self._root

    def _entries(self, folder: str) -> list[tuple[str, str]]:
        try:
            # Another process may have written there since fsspec listed the folder.
            self._fs.invalidate_cache(self._path(folder))
            found = self._fs.ls(self._path(folder), detail=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise refused(self._root, error, action="read") from error
        return [(entry["name"].rstrip("/").rpartition("/")[2], entry["type"]) for entry in found]

    def _create(self, key: str, content: bytes) -> None:
        path = self._path(key)
        try:
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._fs.pipe_file(path, content, mode="create")
        except FileExistsError:
            raise KeyTaken(key) from None
        except (NotImplementedError, ValueError, TypeError) as error:
            raise unfenced(self._root, str(error)) from error
        except OSError as error:
            raise refused(self._root, error) from error

    def _prove(self) -> None:
        """Raise `store-unfenced` unless the filesystem creates exclusively; try it once."""
        if self._proven:
            return
        # Some filesystems ignore the mode of `pipe_file`. With them, two writers could both win.
        probe = f".probe-{secrets.token_hex(8)}"
        self._create(probe, b"1")
        try:
            self._create(probe, b"2")
        except KeyTaken:
            self._proven = True
        finally:
            self.delete([probe])
        if not self._proven:
            raise unfenced(self._root, "it overwrote a file that existed")
