"""The payloads of file ingestion: files, blocks of files, records of blocks."""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field, ValidationError

from dagkit import Block
from dagkit.api.tagged import tag
from dagkit.ground.urls import plain

T_co = TypeVar("T_co", covariant=True)

BLOCK_SIZE = 64 << 20
"""The default size of a block in bytes."""
VALUE = "value"
"""The field of a Record that operators process."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file that was found. For a splitter, its path is enough."""

    path: str
    length: int = -1
    """Its bytes; -1: unknown."""
    modified_millis: int = 0
    """The time of its last change, in milliseconds since 1970; 0: unknown."""
    block_count: int = 0
    """The number of blocks in which it is read; 0 also if it is not divided yet."""
    identity: str = ""
    """Distinguishes the file from a later one of its name; empty if the operator that found it took no identity."""
    content_length: Annotated[int | None, Field(exclude_if=lambda length: length is None)] = None
    """Bytes of the content of a gzip file that was read before, and can be divided; None for any other file."""

    receipt: Annotated[dict[str, Any] | None, Field(exclude_if=lambda receipt: receipt is None)] = None
    """Where to write a receipt for it, and what it was like when it was found; None if no receipt is wanted."""
    is_found_again: Annotated[bool, Field(exclude_if=lambda is_found_again: not is_found_again)] = False
    """Whether the operator that found it sends it again if it grows. So one that is cut off is left until then."""

    @property
    def source(self) -> str:
        """The name under which the ledger records what is read of the file: its path, and its identity if known."""
        return f"{self.path}@{self.identity}" if self.identity else self.path

    def place(self, position: int | None) -> str:
        """The file's path, with the byte if a position is given."""
        return self.path if position is None else f"{self.path}, byte {position}"


@dataclass(frozen=True, slots=True)
class FileMetadata(FileInfo):
    """A file or a directory that a splitter describes, and the blocks into which it divides the file."""

    relative_path: str = ""
    """The name of the scanned directory and the path below it; the file's name if no directory was scanned for it.

    If it is not UTF-8, it is a `file:` URL, as in `file:folder/a%FF`; `local_path` of dagkit.ground.urls returns the
    bytes."""
    is_directory: bool = False
    """Whether it is a directory. Directories have no blocks."""
    discovered_millis: int = 0
    """When the splitter began with it, in milliseconds since 1970."""
    data_offset: int = 0
    """The byte at which its first block starts."""
    first_block_id: int = 0
    """The ID of its first block; the others follow without gaps."""

    @property
    def file_name(self) -> str:
        """The last part of its path."""
        return plain(self.path).rstrip("/").rpartition("/")[2]

    @property
    def block_ids(self) -> range:
        """The IDs of its blocks, in order."""
        return range(self.first_block_id, self.first_block_id + self.block_count)


@dataclass(frozen=True, slots=True)
class QuarantinedFile(FileInfo):
    """A file that is not read because it contradicts its checksum or its totals."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Bytes of a file, and where they are."""

    key: str
    """The file in the state in which it was found, as `key_of_copy` returns it."""
    start: int
    """The position of the first byte."""
    content: bytes = b""
    """The bytes; empty if the slice only names them."""
    path: str = ""
    """The local file from which to copy the bytes, if the slice only names them."""
    length: int = 0
    """How many bytes to copy from there."""


def key_of_copy(path: str, length: int, modified_millis: int) -> str:
    """A name for a file in the state in which it was found: a later state must not be mixed with it."""
    return f"{path}@{length}.{modified_millis}"


@dataclass(frozen=True, slots=True)
class Record(Generic[T_co]):
    """A record, with the ID of the block that it was read from."""

    block_id: int
    value: T_co


# State without a type holds no classes. With a tag, records of values without a type stay records there.
tag(Record, "~record", "block_id", "value")


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that a reader could not parse into a record, or an item that a later operator refused."""

    path: str
    """The file; empty if the operator that refused the item does not know it."""
    start: int | None
    """The byte at which the line starts in the file, or in the content of a compressed file; None if it is unknown.

    Of a record of Parquet or Avro, the byte at which its row group or data block starts."""
    text: str
    """The line, or the refused value as text."""
    reason: str
    item: Any = None
    """The refused item as it arrived; None if a reader refused a line."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A file that cannot be read further from the last position. Any unread content after that position is lost."""

    path: str
    start: int
    """The position up to which the file was read."""
    reason: str


def why_invalid(fault: ValueError) -> str:
    """Why a value is refused. All faults that pydantic finds are in one line, each with the path of its field."""
    if not isinstance(fault, ValidationError):
        return str(fault)
    faults = fault.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}".removeprefix(": ") for one in faults)


__all__ = [
    "Block",
    "FileInfo",
    "FileMetadata",
    "FileSlice",
    "Lost",
    "QuarantinedFile",
    "Record",
    "Rejected",
    "why_invalid",
]
