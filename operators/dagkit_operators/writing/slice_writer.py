"""Writing files from slices that several readers read."""

import zlib

from pydantic import Field, PrivateAttr

from dagkit import Batch, InputPort, Operator, OutputFiles, OutputPort
from dagkit.urls import shown
from dagkit_operators.filesystem.snapshot import FileChanged
from dagkit_operators.payloads import VALUE, FileSlice, Record
from dagkit_operators.writing.content import FolderPath
from dagkit_operators.writing.stretches import Stretch


class FSSliceWriter(Operator):
    """Writes slices to their places in copies of their files, and reports which bytes it wrote.

    The copies are invisible until a `FileMerger` names them. Any number of writers write one file, in any order. They
    need an APPLICATION_PATH that is a mounted folder; on another disk than the target, a copy is copied once more.
    """

    kind = "files.slice-writer/1"
    stateless = True
    input = InputPort[Record[FileSlice]]()
    written = OutputPort(Stretch)
    files = OutputFiles(lambda writer: writer.file_path, of_blocks=False)

    file_path: FolderPath = Field(default=...)
    """The directory in which the copies are to become visible: a path or a URL."""
    checksums: bool = True
    """Whether to compute the CRC-32 of each file, of slices that have their content."""

    _written: list[Stretch] = PrivateAttr(default_factory=list)

    def process(self, record: Record[FileSlice]) -> None:
        self._write(record.value)

    def process_batch(self, batch: Batch[Record[FileSlice]]) -> None:
        for each in batch.column(VALUE).values():
            self._write(each)

    def end_window(self) -> None:
        for stretch in self._written:
            self.written.emit(stretch)
        self._written.clear()

    def _write(self, each: FileSlice) -> None:
        length = len(each.content)
        if each.path:
            length = self.files.copy_at(each.key, each.start, each.path, each.length)
            if length < each.length:
                raise FileChanged(
                    f"{shown(each.path)} ends at byte {each.start + length}, and was longer when it was split",
                    "bring its content back, and do not cut files before they are copied",
                )
        else:
            self.files.write_at(each.key, each.start, each.content)
        checksum = zlib.crc32(each.content) if self.checksums and not each.path else None
        last = self._written[-1] if self._written else None
        if last is not None and (last.key, last.end) == (each.key, each.start):
            if checksum is not None and last.checksum is not None:
                checksum = zlib.crc32(each.content, last.checksum)
            self._written[-1] = Stretch(last.key, last.start, each.start + length, checksum)
        else:
            self._written.append(Stretch(each.key, each.start, each.start + length, checksum))
