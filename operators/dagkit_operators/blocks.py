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


@dataclass(frozen=True, slots=True)
class Record(Generic[T_co]):
    """A record, and the block that it was read from."""

    block_id: int
    value: T_co


__all__ = ["Block", "FileInfo", "Record"]
