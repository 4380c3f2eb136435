"""What flows through file ingestion: files, blocks of files, records of blocks."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from dagkit import Block

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file that was found, and as how many blocks it will be read."""

    path: str
    length: int
    modified_millis: int
    block_count: int
    identity: str = ""
    """What tells it from another file that takes its name; empty where whoever found it did not look."""

    @property
    def source(self) -> str:
        """Under what name the ledger knows what is read of it: its path, and its identity if that is known."""
        return f"{self.path}@{self.identity}" if self.identity else self.path

    def place(self, position: int | None) -> str:
        """The file and the byte."""
        return self.path if position is None else f"{self.path}, byte {position}"


@dataclass(frozen=True, slots=True)
class Record(Generic[T_co]):
    """A record, and the block that it was read from."""

    block_id: int
    value: T_co


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line of which no record could be made."""

    path: str
    start: int | None
    """The byte at which it starts in the file, or in the content of a compressed one; none where a subclass gives lines
    without their places.
    """
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A file that cannot be read on from where it was left; what it held from there on is lost, if there was any."""

    path: str
    start: int
    """How far it was read."""
    reason: str


__all__ = ["Block", "FileInfo", "Lost", "Record", "Rejected"]
