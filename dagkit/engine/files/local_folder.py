"""Folders of this machine."""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

from dagkit.engine.files.folder import Folder, checked
from dagkit.engine.files.pieces import BUFFER_BYTES, Piece, copy_name, file_unplaced, is_in_place, pour, remove
from dagkit.ground.urls import as_text, is_url, local_path


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
