"""Copies files and directories. Many readers share a large file, block by block; each writes what it reads.

A copied file becomes visible as a whole, once all of it is written. If its source changes, it is copied again, and the
copy replaces the earlier one. `target` then contains what `cp -r source target` would have copied to an existing
directory. With `checksums`, lists have the CRC-32 of each file. As in lists of `sha256sum`, a line
begins with a backslash if newlines and backslashes in the path are escaped by one.

Symbolic links are followed, unlike by `cp -r`: instead of a link to a file there is a copy of the file. A directory is
copied once, under its own name if it has one below `source`; links that lead nowhere are left out.
"""

from pydantic import Field, PrivateAttr

from dagkit import Config, Dag, InputPort, Operator, OutputFiles, PortContext, StreamingApplication
from dagkit_operators import FileMerger, FileSliceReader, FileSplitterInput, FSSliceWriter, MergedFile

CHUNK = 4 << 20
"""Bytes that a reader claims at a time; less costs time, more makes it harder to share a block among readers."""


class ChecksumLists(Operator):
    """Writes the checksums of the files that a window completed to one list, which becomes visible with them."""

    kind = "file-copy.checksum-lists/1"
    partitionable = False
    stateless = True
    input = InputPort(MergedFile)
    files = OutputFiles(lambda lists: lists.file_path, of_blocks=False)

    file_path: str = Field(default=...)
    """The directory of the lists."""

    _name: str = PrivateAttr(default="")

    def begin_window(self, window_id: int) -> None:
        self._name = f"window-{window_id:06}"

    def process(self, file: MergedFile) -> None:
        self.files.open(self._name).write(f"{file}\n".encode(errors="surrogateescape"))
        self.files.finish(self._name)


class FileCopy(StreamingApplication):
    """Copies all files below `source` to `target`, also empty files, hidden files and empty directories."""

    source: str = Field(default="input")
    """The file or directory to copy."""
    target: str = Field(default="output")
    """The directory to copy it to."""
    checksums: str | None = None
    """The directory for lists of checksums; None: none are computed."""
    block_size: int = Field(default=32 << 20, gt=0)
    """Bytes that a reader copies at a time."""

    def populate_dag(self, dag: Dag, conf: Config) -> None:
        scanner = {"files": [self.source], "directories": True, "skip_unfinished": False, "renamed": "read"}
        splitter = dag.add_operator(
            "Splitter", FileSplitterInput(scanner=scanner, block_size=self.block_size, compression="none")
        )
        reader = dag.add_operator("Reader", FileSliceReader(by_place=True, chunk_size=CHUNK))
        writer = dag.add_operator("Writer", FSSliceWriter(file_path=self.target, checksums=self.checksums is not None))
        merger = dag.add_operator("Merger", FileMerger(file_path=self.target, overwrite_on_conflict=True))

        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("slices", reader.messages, writer.input)
        dag.set_input_port_attribute(writer.input, PortContext.PARTITION_PARALLEL, True)
        dag.add_stream("files", splitter.files_metadata_output, merger.metadata)
        dag.add_stream("written", writer.written, merger.written)
        if self.checksums is not None:
            lists = dag.add_operator("Checksums", ChecksumLists(file_path=self.checksums))
            dag.add_stream("copied", merger.merged, lists.input)
