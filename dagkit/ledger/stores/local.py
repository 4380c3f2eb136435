"""A folder on a local disk: a file appears whole or not at all, and survives a power cut.

A temporary file is written and synced, then linked under its name (which fails if the name exists), then the folder
is synced. `durable=False` skips the syncs: creation is still atomic between processes, but a power cut may lose or
tear the last files. It is meant for tests and for building large chains in a benchmark.
"""

import contextlib
import errno
import itertools
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from dagkit.ledger.stores.store import KeyMissing, KeyTaken, refused, unfenced, unmade

_NO_LINKS = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class LocalStore:
    """Keys as files under a folder."""

    def __init__(self, root: str | os.PathLike[str], *, durable: bool = True) -> None:
        self.root = Path(root).absolute()
        self.durable = durable
        self._base = str(self.root)
        self._counter = itertools.count()
        self._folders: set[str] = set()
        """Folders known to exist."""

    def __repr__(self) -> str:
        return f"LocalStore({self._base!r})"

    def __str__(self) -> str:
        return self._base

    def get(self, key: str) -> bytes:
        with self._reading(key):
            return Path(f"{self._base}/{key}").read_bytes()
        # Never reached: mypy assumes that any context manager may suppress an exception.
        raise KeyMissing(key)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        with self._reading(key), Path(f"{self._base}/{key}").open("rb") as file:
            # A damaged index may ask for more than the file, or the memory, holds.
            size = os.fstat(file.fileno()).st_size
            return os.pread(file.fileno(), max(0, min(end, size) - start), start) if start < size else b""
        raise KeyMissing(key)

    def create(self, key: str, content: bytes) -> None:
        folder = self._folder(key)
        temporary = self._write_temporary(folder, content)
        try:
            # A link fails if the name exists; a rename would replace the file of another writer.
            os.link(temporary, f"{self._base}/{key}")
        except FileExistsError:
            # A network filesystem repeats a link whose answer was lost, and the repeat finds its own file.
            if not _is_linked(temporary):
                raise KeyTaken(key) from None
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise unfenced(self._base, "it has no hard links") from error
            raise refused(self._base, error) from error
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108 - a path would cost more than the call
        self._sync(folder)

    def replace(self, key: str, content: bytes) -> None:
        folder = self._folder(key)
        temporary = self._write_temporary(folder, content, synced=False)
        try:
            os.replace(temporary, f"{self._base}/{key}")  # noqa: PTH105 - a path would cost more than the call
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108 - as above
            raise refused(self._base, error) from error

    def note(self, key: str, content: bytes) -> None:
        self._folder(key)
        try:
            # In place: renaming over a file makes some filesystems flush it, which is as slow as an append.
            descriptor = os.open(f"{self._base}/{key}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.pwrite(descriptor, content, 0)
                os.ftruncate(descriptor, len(content))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise refused(self._base, error) from error

    def exists(self, key: str) -> bool:
        try:
            os.stat(f"{self._base}/{key}")  # noqa: PTH116 - as above
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:  # os.path.exists would report an unreadable file as absent
            raise refused(self._base, error, action="read") from error
        return True

    def names(self, folder: str) -> list[str]:
        """The names of the files, without temporary ones, which begin with a dot."""
        return [e.name for e in self._entries(folder) if not e.name.startswith(".") and not e.is_dir()]

    def folders(self, folder: str) -> list[str]:
        return [e.name for e in self._entries(folder) if not e.name.startswith(".") and e.is_dir()]

    def temporaries(self, folder: str) -> list[str]:
        """The names of files that a killed writer left."""
        return [e.name for e in self._entries(folder) if e.name.startswith(".tmp-")]

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            try:
                os.unlink(f"{self._base}/{key}")  # noqa: PTH108 - as above
            except FileNotFoundError:
                continue
            except OSError as error:
                raise refused(self._base, error) from error

    def modified(self, key: str) -> datetime | None:
        try:
            return datetime.fromtimestamp(os.stat(f"{self._base}/{key}").st_mtime, UTC)  # noqa: PTH116 - as above
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise refused(self._base, error, action="read") from error

    @contextlib.contextmanager
    def _reading(self, key: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            raise KeyMissing(key) from None
        except OSError as error:
            raise refused(self._base, error, action="read") from error

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self._base}/{folder}" if folder else self._base) as entries:
                return list(entries)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise refused(self._base, error, action="read") from error

    def _folder(self, key: str) -> str:
        """The folder of the key; created if missing."""
        name = key.rpartition("/")[0]
        folder = f"{self._base}/{name}" if name else self._base
        if folder not in self._folders:
            try:
                self._make(folder)
            except OSError as error:
                raise unmade(folder, error) from error
        return folder

    def _make(self, folder: str) -> None:
        missing = [folder]
        while not os.path.isdir(missing[-1]):  # noqa: PTH112 - as above
            missing.append(missing[-1].rpartition("/")[0] or "/")
        Path(folder).mkdir(parents=True, exist_ok=True)
        # A new folder is an entry of its parent: without these syncs, a power cut could lose it with all its blocks.
        if self.durable:
            for parent in missing[1:]:
                descriptor = os.open(parent, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        self._folders.add(folder)

    def _write_temporary(self, folder: str, content: bytes, *, synced: bool = True) -> str:
        """Write a temporary file in the folder and sync it; remove it if that fails."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            while True:
                # In the folder of the key: a link or a rename cannot lead to another filesystem.
                temporary = f"{folder}/.tmp-{os.getpid()}-{id(self):x}-{next(self._counter)}"
                try:
                    descriptor = os.open(temporary, flags, 0o644)
                    break
                except FileExistsError:  # left by a killed writer: containers reuse process ids
                    continue
        except FileNotFoundError:
            # The next write makes it again.
            self._folders.discard(folder)
            raise refused(self._base, OSError(errno.ENOENT, "its folder was removed", folder)) from None
        except OSError as error:
            raise refused(self._base, error) from error
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if self.durable and synced:
                os.fsync(descriptor)
        except OSError as error:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108 - as above
            raise refused(self._base, error) from error
        os.close(descriptor)
        return temporary

    def _sync(self, folder: str) -> None:
        """Sync the folder, so that a name that was just created survives a power cut."""
        if not self.durable:
            return
        try:
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            # The name exists already, so it is unknown whether the file will stay: report that, whatever the cause.
            unknown = OSError(errno.EIO, f"its folder could not be synced: {error}", folder)
            raise refused(self._base, unknown) from error


def _is_linked(temporary: str) -> bool:
    """Whether the file has its second name."""
    try:
        return os.stat(temporary).st_nlink > 1  # noqa: PTH116 - as above
    except OSError:
        return False
