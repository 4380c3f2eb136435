"""Folders that pyarrow or fsspec reach behind a URL."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from dagkit.engine.files.folder import Folder, checked
from dagkit.engine.files.pieces import BUFFER_BYTES, Piece, copy_name, file_unplaced, is_in_place, pour, remove
from dagkit.ground.urls import below, resolved

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
