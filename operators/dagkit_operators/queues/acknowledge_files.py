"""Acknowledging the messages whose files are read."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pydantic import Field, PrivateAttr, SecretStr

from dagkit import Block, ExternalOutput, InputPort, Operator, StagedWindow, State
from dagkit_operators.payloads import FileInfo, FileMetadata
from dagkit_operators.queues.consumer import acknowledge


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that is not read to its end."""

    first_block: int
    block_count: int
    left: int
    """How many of its bytes are still to be read."""


class AcknowledgeFiles(Operator):
    """Acknowledges a message to its broker after everything that was read of its file is committed.

    The files of the window that read the rest of it are in place then. Output files that stay open over windows are not
    waited for: what they will contain is committed, but not visible yet.

    Connect it to a `QueuePaths`, to the `FileSplitterBase` that divides its files, and to the reader of their blocks.
    If the run is killed before a message is acknowledged, the broker delivers it again, and it is acknowledged then,
    without reading the file again.
    """

    kind = "queues.acknowledge-files/1"
    partitionable = False
    files = InputPort(FileInfo)
    metadata = InputPort(FileMetadata)
    blocks = InputPort(Block)
    settled = InputPort(str, optional=True)
    missing = InputPort(FileInfo, optional=True)
    acknowledged = ExternalOutput(lambda operator: _Acknowledgements(operator.url.get_secret_value(), operator.queue))

    url: SecretStr = SecretStr("memory://")
    """The URL of the broker, as the input has it."""
    queue: str = Field(default=..., kw_only=False, min_length=1)
    """The name of the queue, as the input has it."""

    open = State[dict[str, OpenFile | None]](dict)
    """The messages that are not acknowledged; None if the metadata of the file have not arrived."""
    early = State[list[tuple[int, int]]](list)
    """Ranges whose files' metadata have not arrived: the ID of the block, and how many bytes were read."""

    _arrived: list[FileInfo] = PrivateAttr(default_factory=list)
    _described: list[FileMetadata] = PrivateAttr(default_factory=list)
    _read: list[tuple[int, int]] = PrivateAttr(default_factory=list)
    _missing: list[FileInfo] = PrivateAttr(default_factory=list)
    _settled: list[str] = PrivateAttr(default_factory=list)

    @files.process
    def take_file(self, file: FileInfo) -> None:
        self._arrived.append(file)

    @metadata.process
    def take_metadata(self, file: FileMetadata) -> None:
        self._described.append(file)

    @blocks.process
    def take_block(self, block: Block) -> None:
        self._read.append((block.number, block.end - block.start))

    @missing.process
    def take_missing(self, file: FileInfo) -> None:
        self._missing.append(file)

    @settled.process
    def take_settled(self, name: str) -> None:
        self._settled.append(name)

    def before_checkpoint(self, window_id: int) -> None:  # noqa: ARG002 - the same for every window
        """Acknowledge the messages with whose files this window has finished."""
        # The order of items of several inputs is not known, so all are used here. Not in `end_window`, which is not
        # called in each streaming window, while each has an instance of its own.
        self.open |= {file.identity: None for file in self._arrived}
        for file in self._described:
            self.open[file.identity] = OpenFile(file.first_block_id, file.block_count, _length_of(file))
        self._count([*self.early, *self._read])
        for gone in self._missing:
            self.open.pop(gone.identity, None)
        finished = [name for name, file in self.open.items() if file is not None and file.left <= 0]
        for name in finished:
            del self.open[name]
        # A message that was delivered again, and whose file is still being read, is acknowledged when that has ended.
        settled = [name for name in self._settled if name not in self.open]
        for name in dict.fromkeys([*(file.identity for file in self._missing), *finished, *settled]):
            self.acknowledged.add(name.encode())
        for taken in (self._arrived, self._described, self._read, self._missing, self._settled):
            taken.clear()

    def _count(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Subtract ranges that were read from what is left of their files."""
        files = sorted((file.first_block, name) for name, file in self.open.items() if file is not None)
        starts = [first for first, _ in files]
        early = []
        for block, length in ranges:
            at = bisect_right(starts, block) - 1
            name = files[at][1] if at >= 0 else None
            file = None if name is None else self.open[name]
            if name is None or file is None or block >= file.first_block + file.block_count:
                early.append((block, length))
            else:
                self.open[name] = replace(file, left=file.left - length)
        self.early = early


def _length_of(file: FileMetadata) -> int:
    """The bytes of a file that are read; of a compressed file that is divided, those of its content."""
    if file.is_directory or not file.block_count:
        return 0
    return (file.length if file.content_length is None else file.content_length) - file.data_offset


class _Acknowledgements:
    """Sends acknowledgements over the connection of the input, which received the messages."""

    def __init__(self, url: str, queue: str) -> None:
        self._url, self._queue = url, queue

    def prepare(self, writer: str) -> None:
        """Do nothing: the input connects."""

    def apply(self, window: StagedWindow) -> None:
        """Acknowledge the messages of a window. It may be repeated: a message is acknowledged once."""
        for entry in window.entries():
            acknowledge(self._url, self._queue, entry.decode())

    def close(self) -> None:
        """Do nothing: the input disconnects."""
