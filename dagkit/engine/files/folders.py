"""Folders that files are staged in and finished into: on this machine, or wherever pyarrow or fsspec reach.

A place is a path, or a URL such as `s3://bucket/folder`. A file is known by the whole of its path or URL.
"""

import errno
import os
import re
import secrets
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple
from urllib.parse import urlsplit

from dagkit.errors import DagkitError, printable
from dagkit.urls import below, is_url, local_path, parent, resolved

BUFFER_BYTES = 256 << 10
"""What is written in small pieces is gathered so far; what a chunk of lines leaves is more, and goes out uncopied."""
OBJECT_STORES = frozenset(
    ["s3", "s3a", "s3n", "gs", "gcs", "az", "abfs", "abfss", "adl", "wasb", "wasbs", "oss", "oci", "cos", "r2"]
)
"""Schemes of stores in which a file is seen when it was written to its end, and in which moving is copying."""


class PiecesLost(DagkitError):
    """What a file is to be made of is not there any more as it was committed, and neither is the file."""

    exit_code: ClassVar[int] = 7

    def __init__(self, file: str) -> None:
        super().__init__(
            f"staged pieces of {printable(file)} are gone or cut, and it is not whole: somebody removed or changed "
            "one or the other; bring either back from a copy, for it is committed"
        )
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return PiecesLost, (self.file,)


class FileUnplaced(DagkitError):
    """A file of a committed window cannot be where it belongs; what it is made of is kept."""

    exit_code: ClassVar[int] = 7

    def __init__(self, file: str, error: OSError) -> None:
        super().__init__(
            f"{printable(file)} is committed, and cannot be put in place: {error}; nothing of it is lost: repair "
            "that, and start again"
        )
        self.file, self.error = file, error

    def __reduce__(self) -> tuple[Any, ...]:
        return FileUnplaced, (self.file, self.error)


class Piece(NamedTuple):
    """What a file is made of, and how long it was when it was committed."""

    path: str
    length: int


class Seen(NamedTuple):
    """A file that is there."""

    length: int
    changed: int | None
    """When it was last written, in nanoseconds, by the clock of its storage; none where that does not tell."""


class Folder(ABC):
    """One folder, which need not exist yet."""

    @abstractmethod
    def below(self, name: str) -> "Folder":
        """A folder inside it."""

    @abstractmethod
    def path_of(self, name: str) -> str:
        """The whole path of a file in it."""

    @abstractmethod
    def make(self) -> None:
        """It exists from here on, and so do those that it is in."""

    @abstractmethod
    def create(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        """A new file in it, empty."""

    appends: ClassVar[bool] = False
    """Whether a file in it can be gone on with."""

    def append(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        """A file in it, at its end."""
        raise AssertionError(f"{self.path_of(name)} is asked for what only folders do that append ({buffer_bytes})")

    @abstractmethod
    def length(self, file: str) -> int | None:
        """How long a file is; none where there is none."""

    @abstractmethod
    def put_in_place(self, pieces: Sequence[Piece], file: str, *, durable: bool) -> None:
        """The file, which is in this folder, holds the pieces, one after the other, all at once; the pieces are gone.

        Pieces may lie anywhere else. Whoever was killed in the middle of it may do it again.
        """

    @abstractmethod
    def sync(self, levels: int) -> None:
        """That it exists, and so many folders that it lies in, survives a power cut."""

    @abstractmethod
    def remove(self) -> None:
        """It does not exist, nor does what was in it."""

    @abstractmethod
    def remove_if_empty(self) -> None:
        """It does not exist if nothing was in it; what somebody puts into it meanwhile stays."""

    @abstractmethod
    def folders(self) -> list[str]:
        """The names of the folders in it."""


def checked(name: str) -> str:
    """The name of a file that lies in its folder, or below it."""
    parts = name.split("/")
    if not name or name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{name!r} is no name for a file in a folder")
    return name


@dataclass(frozen=True, slots=True)
class LocalFolder(Folder):
    """A folder of this machine."""

    appends: ClassVar[bool] = True

    path: Path

    def below(self, name: str) -> "LocalFolder":
        return LocalFolder(self.path / checked(name))

    def path_of(self, name: str) -> str:
        return str(self.path / checked(name))

    def make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)

    def create(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        return (self.path / checked(name)).open("wb", buffering=buffer_bytes)

    def append(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        return (self.path / checked(name)).open("ab", buffering=buffer_bytes)

    def length(self, file: str) -> int | None:
        try:
            return Path(file).stat().st_size
        except FileNotFoundError:
            return None

    def put_in_place(self, pieces: Sequence[Piece], file: str, *, durable: bool) -> None:
        target = Path(file)
        try:
            for again in (True, True, False):
                if is_in_place(pieces, file):
                    break
                make_folder(target.parent, durable=durable)
                try:
                    if any(is_url(piece.path) for piece in pieces):
                        _fetch([piece.path for piece in pieces], target, durable=durable)
                    else:
                        _place([Path(piece.path) for piece in pieces], target, durable=durable)
                    break
                except FileNotFoundError:  # another driver, which ends now, works on the same file
                    if not again:
                        raise
            if durable:  # before the pieces go: they may lie on another disk
                _sync_folder(target.parent)
            remove([piece.path for piece in pieces])
        except OSError as error:
            raise FileUnplaced(file, error) from error

    def sync(self, levels: int) -> None:
        folder = self.path
        for _ in range(levels):
            _sync_folder(folder)
            folder = folder.parent

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_if_empty(self) -> None:
        with suppress(OSError):  # it is not empty, or somebody was faster
            self.path.rmdir()

    def folders(self) -> list[str]:
        try:
            return sorted(entry.name for entry in self.path.iterdir() if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []


def _place(pieces: Sequence[Path], target: Path, *, durable: bool) -> None:
    """One piece is renamed; of several a whole is made, under a name that nobody else has."""
    whole = pieces[0]
    if len(pieces) > 1:
        whole = whole.with_name(f"{secrets.token_hex(8)}.whole")
        _copy([str(piece) for piece in pieces], whole, durable=durable)
    try:
        whole.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _fetch([str(whole)], target, durable=durable)
        if len(pieces) > 1:
            whole.unlink(missing_ok=True)


def _fetch(pieces: Sequence[str], target: Path, *, durable: bool) -> None:
    """What lies elsewhere is copied beside its place, and renamed."""
    # a driver that was killed left such copies; those of another file whose name begins with this one's are at work
    mine = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.finishing")
    for left in target.parent.iterdir():
        if mine.fullmatch(left.name):
            left.unlink(missing_ok=True)
    copy = target.parent / f".{target.name}.{secrets.token_hex(8)}.finishing"
    _copy(pieces, copy, durable=durable)
    copy.replace(target)


def _copy(pieces: Sequence[str], whole: Path, *, durable: bool) -> None:
    with whole.open("wb") as sink:  # one without a buffer leaves off where the disk is full, and does not say so
        _pour(pieces, sink)
        sink.flush()
        if durable:
            os.fsync(sink.fileno())


def _pour(pieces: Sequence[str], sink: Any) -> None:
    """One after the other, each from where it lies."""
    for piece in pieces:
        with _opened(piece) as source:
            shutil.copyfileobj(source, sink, BUFFER_BYTES)


def _opened(file: str) -> Any:
    if not is_url(file):
        return Path(file).open("rb", buffering=0)
    try:
        return resolved(file).filesystem.open_input_stream(resolved(file).path)
    except FileNotFoundError as error:  # whoever looked for it here would look on this machine
        raise PiecesLost(file) from error


def remove(files: Sequence[str]) -> None:
    """None of the files is there."""
    for file in files:
        if not is_url(file):
            Path(file).unlink(missing_ok=True)
    remote = [file for file in files if is_url(file)]
    for file, found in zip(remote, look_at(remote), strict=True):
        if found is not None:
            with suppress(FileNotFoundError):
                resolved(file).filesystem.delete_file(resolved(file).path)


def make_folder(folder: Path, *, durable: bool) -> None:
    """The folder exists; each one that had to be made for it survives a power cut, too."""
    missing = [folder] if durable and not folder.exists() else []
    while missing and not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    folder.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        _sync_folder(made.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class RemoteFolder(Folder):
    """A folder behind a URL."""

    filesystem: Any
    url: str
    path: str
    """As its filesystem knows it."""

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0]

    def below(self, name: str) -> "RemoteFolder":
        return RemoteFolder(self.filesystem, self.path_of(name), f"{self.path}/{name}")

    def path_of(self, name: str) -> str:
        return below(self.url, checked(name))

    def make(self) -> None:
        self.filesystem.create_dir(self.path, recursive=True)

    def create(self, name: str, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        stream: BinaryIO = self.filesystem.open_output_stream(f"{self.path}/{checked(name)}", buffer_size=buffer_bytes)
        return stream

    def length(self, file: str) -> int | None:
        size: int | None = self.filesystem.get_file_info(resolved(file).path).size
        return size

    def put_in_place(self, pieces: Sequence[Piece], file: str, *, durable: bool) -> None:  # noqa: ARG002 - it always is
        files = [piece.path for piece in pieces]
        try:
            if not is_in_place(pieces, file):
                self._place(files, resolved(file).path)
            remove(files)
        except OSError as error:
            raise FileUnplaced(file, error) from error

    def sync(self, levels: int) -> None:
        """What was written there stays."""

    def _place(self, pieces: Sequence[str], target: str) -> None:
        """A piece of the same store is moved; what is to be copied is seen when it is whole."""
        folder, _, name = target.rpartition("/")
        self.filesystem.create_dir(folder, recursive=True)
        if len(pieces) == 1 and self._holds(pieces[0]):
            self._move(resolved(pieces[0]).path, target)
            return
        if self.scheme in OBJECT_STORES:
            self._write(pieces, target)
            return
        beside = f"{folder}/.{name}.{secrets.token_hex(8)}.finishing"
        self._write(pieces, beside)
        self._move(beside, target)

    def _holds(self, file: str) -> bool:
        """Whether a file lies in this very store."""
        return file.startswith(f"{self.scheme}://") and bool(resolved(file).filesystem == self.filesystem)

    def _write(self, pieces: Sequence[str], target: str) -> None:
        with self.filesystem.open_output_stream(target, buffer_size=BUFFER_BYTES) as whole:
            _pour(pieces, whole)

    def _move(self, source: str, target: str) -> None:
        try:
            self.filesystem.move(source, target)
        except OSError:
            if not self.filesystem.get_file_info(target).is_file:
                raise
            self.filesystem.delete_file(target)  # one of an earlier life, which this store does not replace
            self.filesystem.move(source, target)

    def remove(self) -> None:
        import pyarrow.fs  # noqa: PLC0415 - only where files lie elsewhere

        if self.filesystem.get_file_info(self.path).type is not pyarrow.fs.FileType.NotFound:
            self.filesystem.delete_dir(self.path)

    def remove_if_empty(self) -> None:
        """An empty folder costs nothing there, and could only be removed with what comes into it meanwhile."""

    def folders(self) -> list[str]:
        import pyarrow.fs  # noqa: PLC0415 - only where files lie elsewhere

        inside = pyarrow.fs.FileSelector(self.path, allow_not_found=True)
        found = self.filesystem.get_file_info(inside)
        return sorted(info.base_name for info in found if info.type is pyarrow.fs.FileType.Directory)


def folder_at(place: Any, home: str = "") -> Folder:
    """The folder at a path or a URL; a relative path is taken from home, else from where this process works."""
    text = str(place)
    if not is_url(text):
        return LocalFolder((Path(home) / local_path(text)).absolute())
    filesystem, path, _ = resolved(text)
    return RemoteFolder(filesystem, text, path.rstrip("/"))


def put_in_place(pieces: Sequence[Piece], file: str, *, durable: bool) -> None:
    """The file holds the pieces, wherever it is and wherever they are, and they are gone."""
    folder_at(parent(file)).put_in_place(pieces, file, durable=durable)


def write_together(pieces: Sequence[Piece], folder: Folder, name: str, *, durable: bool) -> None:
    """A new file in the folder holds the pieces, one after the other; they are still there."""
    with folder.create(name) as sink:
        _pour([piece.path for piece in pieces], sink)
        sink.flush()
        if durable and isinstance(folder, LocalFolder):
            os.fsync(sink.fileno())
    if durable:
        folder.sync(levels=5)


def is_in_place(pieces: Sequence[Piece], file: str) -> bool:
    """Whether that was done before: a piece is gone only when the file is whole."""
    whole, *seen = look_at([file, *(piece.path for piece in pieces)])
    lengths = [there.length for there in seen if there is not None]
    if lengths == [piece.length for piece in pieces]:
        return False
    if len(lengths) == len(pieces) or whole is None or whole.length != sum(piece.length for piece in pieces):
        raise PiecesLost(file)
    return True


def look_at(files: Sequence[str]) -> list[Seen | None]:
    """What is there of these files; one call for each on this machine, and one for all of a store elsewhere."""
    found = {file: _looked_at(file) for file in files if not is_url(file)}
    stores: dict[tuple[str, str, str], list[str]] = {}
    for file in files:
        if is_url(file):
            parts = urlsplit(file)
            stores.setdefault((parts.scheme, parts.netloc, parts.query), []).append(file)
    for remote in stores.values():
        infos = resolved(remote[0]).filesystem.get_file_info([resolved(file).path for file in remote])
        for file, info in zip(remote, infos, strict=True):
            found[file] = Seen(info.size, info.mtime_ns) if info.is_file else None
    return [found[file] for file in files]


def _looked_at(file: str) -> Seen | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - there may be many
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Seen(status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None
