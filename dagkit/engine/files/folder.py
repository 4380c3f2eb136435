"""A folder that files are staged in and published to, wherever it is.

A place is a path, or a URL such as `s3://bucket/folder`. A file is known by the whole of its path or URL.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import BinaryIO, ClassVar

from dagkit.engine.files.pieces import BUFFER_BYTES, Piece


class Folder(ABC):
    """One folder, which need not exist yet."""

    @abstractmethod
    def below(self, name: str) -> "Folder":
        """A folder inside it."""

    @abstractmethod
    def path_of(self, name: str) -> str:
        """The whole path of a file in it."""

    @abstractmethod
    def make(self) -> None:
        """It exists from here on, and so do those that it is in."""

    @abstractmethod
    def create(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        """A new file in it, empty."""

    appends: ClassVar[bool] = False
    """Whether a file in it can be gone on with."""

    def append(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        """A file in it, at its end."""
        raise AssertionError(f"{self.path_of(name)} is asked for what only folders do that append ({buffer_bytes})")

    @abstractmethod
    def length(self, file: str) -> int | None:
        """How long a file is; none where there is none."""

    @abstractmethod
    def put_in_place(self, pieces: Sequence[Piece], file: str, *, durable: bool) -> None:
        """The file, which is in this folder, holds the pieces, one after the other, all at once; the pieces are gone.

        Pieces may lie anywhere else. Whoever was killed in the middle of it may do it again.
        """

    @abstractmethod
    def sync(self, levels: int) -> None:
        """That it exists, and so many folders that it lies in, survives a power cut."""

    @abstractmethod
    def remove(self) -> None:
        """It does not exist, nor does what was in it."""

    @abstractmethod
    def remove_if_empty(self) -> None:
        """It does not exist if nothing was in it; what somebody puts into it meanwhile stays."""

    @abstractmethod
    def folders(self) -> list[str]:
        """The names of the folders in it."""


def checked(name: str) -> str:
    """The name of a file that lies in its folder, or below it."""
    parts = name.split("/")
    if not name or name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name!r} is no name for a file in a folder")
    return name
