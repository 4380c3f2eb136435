"""Reading files in slices that say where in their file they lie."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import PrivateAttr

from dagkit import Batch, Block, OutputPort
from dagkit_operators.contexts.fixed_bytes import FixedBytesReaderContext
from dagkit_operators.contexts.reader_context import Tracker
from dagkit_operators.payloads import FileSlice, Record, key_of_copy
from dagkit_operators.reading.block_reader import BlockReader

SLICE = 1 << 20
"""Bytes of a slice by default: it stays in the caches of a core from reading to writing."""


@dataclass(slots=True)
class _Reached:
    """How far the block that is being read was converted."""

    key: str
    position: int


class FileSliceReader(BlockReader[FileSlice]):
    """Reads blocks, and sends their bytes in slices with the file and the position of each."""

    kind = "files.file-slice-reader/1"
    messages = OutputPort[Record[FileSlice]](main=True)

    reader_context: FixedBytesReaderContext = FixedBytesReaderContext(length=SLICE)
    """How long slices are."""

    _reached: _Reached | None = PrivateAttr(default=None)

    def process(self, element: Block, tracker: Tracker) -> Iterator[Batch[Record[FileSlice]]]:
        facts = element.facts or {}
        key = key_of_copy(element.path, facts.get("length", -1), facts.get("modified_millis", 0))
        self._reached = _Reached(key, tracker.current_restriction().start)
        yield from super().process(element, tracker)

    def convert_to_record(self, content: bytes) -> FileSlice:
        reached = self._reached
        assert reached is not None, "slices are read while a block is processed"
        made = FileSlice(reached.key, reached.position, content)
        reached.position += len(content)
        return made
