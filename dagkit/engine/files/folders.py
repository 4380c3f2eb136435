"""Folders for staged and published files, on this machine or behind a URL, and files that are assembled there."""

import errno
import os
import re
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from dagkit.engine.files.pieces import BUFFER_BYTES, Piece, copy_name, file_unplaced, is_in_place, pour, remove
from dagkit.ground.urls import as_text, below, is_url, local_path, name_fault, parent, resolved


class Folder(ABC):
    """One folder, which need not exist yet."""

    @abstractmethod
    def below(self, name: str) -> "Folder":
        """Return a folder inside this one."""

    @abstractmethod
    def path_of(self, name: str) -> str:
        """Return the whole path of a file in the folder."""

    @abstractmethod
    def make(self) -> None:
        """Create the folder and its parents, if they do not exist."""

    @abstractmethod
    def create(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        """Open a new, empty file in the folder."""

    appends: ClassVar[bool] = False
    """Whether files in the folder can be appended to."""

    def append(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        """Open a file in the folder at its end."""
        raise AssertionError(f"{self.path_of(name)} is asked for what only folders do that append ({buffer_bytes})")

    @abstractmethod
    def length(self, file: str) -> int | None:
        """Return the length of a file; None if it does not exist."""

    @abstractmethod
    def put_in_place(self, pieces: Sequence[Piece], file: str, *, durable: bool) -> None:
        """Create the file, in this folder, from the pieces in one atomic step, then remove the pieces.

        Pieces may be anywhere. The call is safe to repeat after a crash.
        """

    @abstractmethod
    def sync(self, levels: int) -> None:
        """Sync the folder and this many of its parents, so that their existence survives a power loss."""

    @abstractmethod
    def remove(self) -> None:
        """Delete the folder and everything in it."""

    @abstractmethod
    def remove_if_empty(self) -> None:
        """Delete the folder if it is empty; files that are written meanwhile stay."""

    @abstractmethod
    def folders(self) -> list[str]:
        """Return the names of the folders in this one."""


def checked(name: str) -> str:
    """Return the name of a file in a folder or below it. Raise `ValueError` if it leads elsewhere."""
    if fault := name_fault(name):
        raise ValueError(fault)
    return name


@dataclass(frozen=True, slots=True)
class LocalFolder(Folder):
    """A folder of this machine."""

    appends: ClassVar[bool] = True

    path: Path

    def below(self, name: str) -> "LocalFolder":
        return LocalFolder(self.path / checked(name))

    def path_of(self, name: str) -> str:
        return as_text(str(self.path / checked(name)))

    def make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)

    def create(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        return (self.path / checked(name)).open("wb", buffering=buffer_bytes)

    def append(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        return (self.path / checked(name)).open("ab", buffering=buffer_bytes)

    def length(self, file: str) -> int | None:
        try:
            return Path(local_path(file)).stat().st_size
        except FileNotFoundError:
            return None

    def put_in_place(self, pieces: Sequence[Piece], file: str, *, durable: bool) -> None:
        target = Path(local_path(file))
        try:
            for again in (True, True, False):
                if is_in_place(pieces, file):
                    break
                make_folder(target.parent, durable=durable)
                try:
                    if any(is_url(piece.path) for piece in pieces):
                        _fetch([piece.path for piece in pieces], target, durable=durable)
                    else:
                        _place([Path(local_path(piece.path)) for piece in pieces], target, durable=durable)
                    break
                except FileNotFoundError:  # another driver, which is ending, places the same file
                    if not again:
                        raise
            if durable:  # before the pieces are removed: they may be on another disk
                sync_folder(target.parent)
            remove([piece.path for piece in pieces])
        except OSError as error:
            raise file_unplaced(file, error) from error

    def sync(self, levels: int) -> None:
        folder = self.path
        for _ in range(levels):
            sync_folder(folder)
            folder = folder.parent

    def remove(self) -> None:
        # What remains costs space only, and a later sweep removes it.
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_if_empty(self) -> None:
        with suppress(OSError):  # it is not empty, or another process removed it
            self.path.rmdir()

    def folders(self) -> list[str]:
        try:
            return sorted(entry.name for entry in self.path.iterdir() if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []


def _place(pieces: Sequence[Path], target: Path, *, durable: bool) -> None:
    """Rename a single piece; join several under a unique name first."""
    whole = pieces[0]
    if len(pieces) > 1:
        # A unique name, since another driver that is ending may join the same pieces.
        whole = whole.with_name(f"{secrets.token_hex(8)}.whole")
        _copy([str(piece) for piece in pieces], whole, durable=durable)
    try:
        whole.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _fetch([str(whole)], target, durable=durable)
        if len(pieces) > 1:
            whole.unlink(missing_ok=True)


def _fetch(pieces: Sequence[str], target: Path, *, durable: bool) -> None:
    """Copy pieces from elsewhere beside the target, then rename the copy."""
    begin = copy_name(target.name)
    # a killed driver left such copies; match the whole name, since copies of files with longer names may be in use
    mine = re.compile(rf"{re.escape(begin)}\.[0-9a-f]{{16}}\.finishing")
    for left in target.parent.iterdir():
        if mine.fullmatch(left.name):
            left.unlink(missing_ok=True)
    copy = target.parent / f"{begin}.{secrets.token_hex(8)}.finishing"
    _copy(pieces, copy, durable=durable)
    copy.replace(target)


def _copy(pieces: Sequence[str], whole: Path, *, durable: bool) -> None:
    with whole.open("wb") as sink:  # an unbuffered file may write short on a full disk without an error
        pour(pieces, sink)
        sink.flush()
        if durable:
            os.fsync(sink.fileno())


def make_folder(folder: Path, *, durable: bool) -> None:
    """Create a folder; if `durable`, each created folder survives a power loss."""
    missing = [folder] if durable and not folder.exists() else []
    while missing and not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    folder.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        sync_folder(made.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


OBJECT_STORES = frozenset(
    ["s3", "s3a", "s3n", "gs", "gcs", "az", "abfs", "abfss", "adl", "wasb", "wasbs", "oss", "oci", "cos", "r2"]
)
"""Schemes of stores that show a file only once it is complete, and that move files by copying them."""


@dataclass(frozen=True, slots=True)
class RemoteFolder(Folder):
    """A folder behind a URL."""

    filesystem: Any
    url: str
    path: str
    """The path within its filesystem."""

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0]

    def below(self, name: str) -> "RemoteFolder":
        return RemoteFolder(self.filesystem, self.path_of(name), f"{self.path}/{name}")

    def path_of(self, name: str) -> str:
        return below(self.url, checked(name))

    def make(self) -> None:
        self.filesystem.create_dir(self.path, recursive=True)

    def create(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        stream: BinaryIO = self.filesystem.open_output_stream(f"{self.path}/{checked(name)}", buffer_size=buffer_bytes)
        return stream

    def length(self, file: str) -> int | None:
        size: int | None = self.filesystem.get_file_info(resolved(file).path).size
        return size

    def put_in_place(self, pieces: Sequence[Piece], file: str, *, durable: bool) -> None:  # noqa: ARG002 - it always is
        files = [piece.path for piece in pieces]
        try:
            if not is_in_place(pieces, file):
                self._place(files, resolved(file).path)
            remove(files)
        except OSError as error:
            raise file_unplaced(file, error) from error

    def sync(self, levels: int) -> None:
        """Do nothing: such stores keep what was written."""

    def _place(self, pieces: Sequence[str], target: str) -> None:
        """Move a piece within the store; a copied file becomes visible once it is complete."""
        folder, _, name = target.rpartition("/")
        self.filesystem.create_dir(folder, recursive=True)
        if len(pieces) == 1 and self._holds(pieces[0]):
            self._move(resolved(pieces[0]).path, target)
            return
        if self.scheme in OBJECT_STORES:
            self._write(pieces, target)
            return
        beside = f"{folder}/{copy_name(name)}.{secrets.token_hex(8)}.finishing"
        self._write(pieces, beside)
        self._move(beside, target)

    def _holds(self, file: str) -> bool:
        """Whether a file is in this store."""
        return file.startswith(f"{self.scheme}://") and bool(resolved(file).filesystem == self.filesystem)

    def _write(self, pieces: Sequence[str], target: str) -> None:
        with self.filesystem.open_output_stream(target, buffer_size=BUFFER_BYTES) as whole:
            pour(pieces, whole)

    def _move(self, source: str, target: str) -> None:
        try:
            self.filesystem.move(source, target)
        except NotImplementedError:  # accounts of Azure without folders
            self.filesystem.copy_file(source, target)
            self.filesystem.delete_file(source)
        except OSError:
            if not self.filesystem.get_file_info(target).is_file:
                raise
            self.filesystem.delete_file(target)  # an older file, which this store does not replace by a move
            self.filesystem.move(source, target)

    def remove(self) -> None:
        import pyarrow.fs  # noqa: PLC0415 - only for remote files

        if self.filesystem.get_file_info(self.path).type is not pyarrow.fs.FileType.NotFound:
            self.filesystem.delete_dir(self.path)

    def remove_if_empty(self) -> None:
        """Do nothing: an empty folder costs nothing, and removing it could remove files that are written meanwhile."""

    def folders(self) -> list[str]:
        import pyarrow.fs  # noqa: PLC0415 - only for remote files

        inside = pyarrow.fs.FileSelector(self.path, allow_not_found=True)
        found = self.filesystem.get_file_info(inside)
        return sorted(info.base_name for info in found if info.type is pyarrow.fs.FileType.Directory)


def folder_at(place: Any, home: str = "") -> Folder:
    """The folder at a path or a URL; a relative path starts from `home`, else from the working directory."""
    text = str(place)
    if not is_url(text):
        return LocalFolder((Path(home) / local_path(text)).absolute())
    filesystem, path, _ = resolved(text)
    return RemoteFolder(filesystem, text, path.rstrip("/"))


def put_in_place(pieces: Sequence[Piece], file: str, *, durable: bool) -> None:
    """Assemble a file from its pieces, wherever they are, and remove the pieces."""
    folder_at(parent(file)).put_in_place(pieces, file, durable=durable)


def write_together(pieces: Sequence[Piece], folder: Folder, name: str, *, durable: bool) -> None:
    """Write a new file with the content of the pieces in order; keep the pieces."""
    with folder.create(name) as sink:
        pour([piece.path for piece in pieces], sink)
        sink.flush()
        if durable and isinstance(folder, LocalFolder):
            os.fsync(sink.fileno())
    if durable:
        # the folder, its attempt, its window, those of all windows, and the application's folder
        folder.sync(levels=5)
