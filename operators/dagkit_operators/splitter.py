"""Finding files and splitting them, virtually, into blocks that readers share."""

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from dagkit import InputOperator, OutputPort
from dagkit_operators.blocks import Block, FileInfo


class DirectoryScanner(BaseModel):
    """Which files are looked for, where, and how often."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: tuple[str, ...] = Field(min_length=1)
    """The files and directories to scan."""
    recursive: bool = True
    """Whether directories inside directories are scanned too."""
    scan_interval_millis: NonNegativeInt = 5000
    """The time from the end of a scan to the start of the next."""
    file_pattern_regular_exp: str | None = None
    """What the whole path must match; none: every path."""
    ignore_file_pattern_regular_exp: str | None = None
    """What the whole path must not match."""
    trigger: bool = False
    """Set while running, it starts a scan at once."""


class FileSplitterInput(InputOperator):
    """Finds new and changed files, and describes the blocks that they are to be read in."""

    kind = "files.splitter/1"
    checkpointable_within_app_window = False
    files_metadata_output = OutputPort(FileInfo)
    blocks_metadata_output = OutputPort(Block, main=True)

    scanner: DirectoryScanner
    """Where files are looked for."""
    block_size: PositiveInt | None = None
    """Bytes of a block; none: what the filesystem prefers."""
    blocks_threshold: PositiveInt | None = None
    """Blocks described in one window at most; none: as many as there are."""
