"""Writing records to files."""

from pathlib import Path

from dagkit import InputPort, Operator
from dagkit_operators.blocks import Record


class RecordWriter(Operator):
    """Writes the records of each block to a file of its own, named by the block's id in hexadecimal digits."""

    kind = "files.record-writer/1"
    served_by_engine = True
    checkpointable_within_app_window = False
    input = InputPort[Record[str]]()

    file_path: Path
    """The directory that the files are written to."""
    record_separator: str = "\n"
    """What ends each record."""
