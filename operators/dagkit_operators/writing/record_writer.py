"""Writing records to files."""

from typing import Any

from pydantic import Field

from dagkit import Batch, InputPort, Operator, OutputFiles
from dagkit.errors import clipped
from dagkit_operators.payloads import Record
from dagkit_operators.writing.content import FolderPath, as_bytes, joined


class RecordWriter(Operator):
    """Writes the records of each block to a file of its own, named by the block's ID in hexadecimal digits.

    A block without records gets no file.
    """

    kind = "files.record-writer/1"
    stateless = True
    input = InputPort[Record[str] | Record[bytes]](key="block_id")
    files = OutputFiles(lambda writer: writer.file_path, examples=lambda _: ("0",))

    file_path: FolderPath = Field(default=..., kw_only=False)
    """The directory that the files are written to: a path or a URL."""
    record_separator: str = "\n"
    """The text after each record."""

    def process(self, record: Record[str] | Record[bytes]) -> None:
        if not isinstance(record.value, str | bytes):
            raise TypeError(_unwritable(record))
        self._file(record.block_id).write(as_bytes(record.value) + self.record_separator.encode())

    def process_batch(self, batch: Batch[Record[Any]]) -> None:
        for block_id, records in batch.grouped("block_id"):
            if len(records):
                content = joined(records.column("value"), self.record_separator.encode())
                if content is None:
                    raise TypeError(
                        next(_unwritable(r) for r in records.items() if not isinstance(r.value, str | bytes))
                    )
                self._file(block_id).write(content)

    def _file(self, block_id: int) -> Any:
        return self.files.open(f"{block_id:x}", block=block_id)


def _unwritable(record: Record[Any]) -> str:
    return (
        f"record {clipped(record.value, 60)} of block {record.block_id} is neither text nor bytes; "
        "make either of it before it is written, with a Map"
    )
