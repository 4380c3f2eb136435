"""Naming the copies of files when all of their bytes are written."""

import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, PrivateAttr

from dagkit import Context, InputPort, Operator, OutputFiles, OutputPort, State
from dagkit.ground.urls import absolute, is_url, local_path, resolved
from dagkit_operators.payloads import FileMetadata, key_of_copy
from dagkit_operators.writing.content import FolderPath
from dagkit_operators.writing.slice_writer import Stretch, joined_with


@dataclass(frozen=True, slots=True)
class Expected:
    """A file whose bytes are not all written."""

    path: str
    relative_path: str
    length: int
    is_superseded: Annotated[bool, Field(exclude_if=lambda superseded: not superseded)] = False
    """Whether a later state of the file is copied already."""


_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
"""Characters of a path that would break a list with a line for each file."""


@dataclass(frozen=True, slots=True)
class MergedFile:
    """A file that is complete in the target."""

    path: str
    """The file that was read."""
    relative_path: str
    length: int
    checksum: int | None = None
    """The CRC-32 of its content; None if it was not computed."""

    def __str__(self) -> str:
        """A line of a list of checksums: as `sha256sum` does, it begins with a backslash if the path has escapes."""
        checksum = "" if self.checksum is None else f"{self.checksum:08x}  "
        path = local_path(self.relative_path)
        escaped = path.translate(_ESCAPES)
        mark = "\\" if escaped != path else ""
        return f"{mark}{checksum}{escaped}"


@dataclass(frozen=True, slots=True)
class Merging:
    """A file that is complete and has no name yet."""

    key: str
    file: MergedFile


class FileMerger(Operator):
    """Gives each copied file its name as soon as all its bytes are written. Creates directories and empty files, too.

    A file becomes visible as a whole, with the window that completes it. If its source changed and is found again,
    it is copied again; with `overwrite_on_conflict`, the copy replaces that of the earlier state.
    """

    kind = "files.merger/1"
    partitionable = False
    metadata = InputPort(FileMetadata)
    written = InputPort(Stretch)
    merged = OutputPort(MergedFile, main=True)
    files = OutputFiles(
        lambda merger: merger.file_path,
        of_blocks=False,
        incomplete=lambda merger: {*merger.expected, *merger.stretches},
    )

    file_path: FolderPath = Field(default=..., kw_only=False)
    """The directory that the files are copied to: a path or a URL."""
    overwrite_on_conflict: bool = False
    """Whether a file that was merged before is replaced by one of its name that is found later, as after a change of
    its source. If not, the run fails with `file-rewritten`."""

    expected = State[dict[str, Expected]](dict)
    """Files that are not complete, by key."""
    stretches = State[dict[str, tuple[Stretch, ...]]](dict)
    """What is written of them, by key."""
    merging = State[dict[str, Merging]](dict)
    """The files that were completed and get their names at the end of the window, by name."""

    _home: str = PrivateAttr(default="")

    def setup(self, context: Context) -> None:
        self._home = context.home

    @metadata.process
    def take_metadata(self, file: FileMetadata) -> None:
        if file.is_directory:
            self._make_directory(local_path(file.relative_path))
            return
        key = key_of_copy(file.path, file.length, file.modified_millis)
        self.expected[key] = Expected(file.path, file.relative_path, file.length)
        if not file.length:
            self.files.write_at(key, 0, b"")
            self.stretches[key] = (Stretch(key, 0, 0, zlib.crc32(b"")),)
        self._merge(key)

    @written.process
    def take_written(self, stretch: Stretch) -> None:
        self.stretches[stretch.key] = joined_with(self.stretches.get(stretch.key, ()), stretch)
        self._merge(stretch.key)

    def end_window(self) -> None:
        for name, merging in self.merging.items():
            file = merging.file
            # A source that changed after its copy has a second copy of the same name, which would stop every launch. To
            # replace is not the default, since two sources may have one name. A file of pieces cannot be replaced.
            self.files.adopt(local_path(name), merging.key, file.length, replace=self.overwrite_on_conflict)
            self.merged.emit(file)
        self.merging.clear()

    def _merge(self, key: str) -> None:
        """Complete a file if it is known, and written from its first to its last byte."""
        file, stretches = self.expected.get(key), self.stretches.get(key, ())
        if file is None or [(stretch.start, stretch.end) for stretch in stretches] != [(0, file.length)]:
            return
        self._supersede_before(key, file.relative_path)
        del self.expected[key], self.stretches[key]
        name, merged = file.relative_path, MergedFile(file.path, file.relative_path, file.length, stretches[0].checksum)
        if name in self.merging and self.merging[name].file.path != file.path:
            raise ValueError(f"{self.merging[name].file.path} and {file.path} are both copied to {name}")
        if not file.is_superseded:
            self.merging[name] = Merging(key, merged)

    def _supersede_before(self, key: str, name: str) -> None:
        """Note that earlier states of a file must not replace the one of this key."""
        # In the order in which the files were found.
        for other, file in self.expected.items():
            if other == key:
                return
            if file.relative_path == name:
                self.expected[other] = replace(file, is_superseded=True)

    def _make_directory(self, relative_path: str) -> None:
        """Create a directory."""
        # Before the commit: it may be repeated, and an empty directory shows nothing unfinished.
        folder = absolute(self.file_path, self._home)
        if is_url(folder):
            resolved(folder).filesystem.create_dir(f"{resolved(folder).path}/{relative_path}", recursive=True)
        else:
            Path(folder, relative_path).mkdir(parents=True, exist_ok=True)
