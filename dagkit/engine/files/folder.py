"""The interface of a folder for staged and published files, local or remote.

A place is a path, or a URL such as `s3://bucket/folder`. A file is identified by its whole path or URL.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import BinaryIO, ClassVar

from dagkit.engine.files.pieces import BUFFER_BYTES, Piece
from dagkit.ground.urls import name_fault


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
