"""What flows through file ingestion: files, blocks of files, records of blocks."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file that was found, and as how many blocks it will be read."""

    path: str
    length: int
    modified_millis: int
    block_count: int


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of one file, half-open: the bytes from `start` up to, not including, `end`."""

    block_id: int
    path: str
    start: int
    end: int
    last: bool


@dataclass(frozen=True, slots=True)
class Record(Generic[T_co]):
    """A record, and the block that it was read from."""

    block_id: int
    value: T_co
