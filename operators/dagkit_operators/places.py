"""Where files lie: on this machine's paths, or behind URLs that pyarrow or fsspec open.

A path is absolute, so that it means the same to every worker, whatever folder that stands in.
"""

import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import quote, unquote, urlsplit

REMOTE_READ = 8 << 20
"""Bytes that are asked of another machine at a time."""


class Stream(Protocol):
    """Bytes that are read from any place on; closed when the `with` is left."""

    def seek(self, offset: int, /) -> int: ...
    def readinto(self, buffer: memoryview, /) -> int | None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Found:
    """A file as it was when somebody looked."""

    path: str
    length: int
    modified_millis: int


def is_url(path: str) -> bool:
    """Whether a filesystem must be asked; `file:` is this machine."""
    return "://" in path and not path.startswith("file:")


def absolute(path: str) -> str:
    """The path as every worker understands it."""
    if is_url(path):
        return path
    return os.path.abspath(_local(path))  # noqa: PTH100 - a link keeps its own name


def _local(path: str) -> str:
    """The path on this machine."""
    return unquote(urlsplit(path).path) if path.startswith("file:") else path


def opened(path: str) -> Stream:
    """The bytes of a file, from its beginning."""
    if not is_url(path):
        local: Stream = open(_local(path), "rb", buffering=0)  # type: ignore[assignment] # noqa: PTH123, SIM115 - whoever asked closes it
        return local
    filesystem, inner, _ = _resolved(path)
    remote: Stream = io.BufferedReader(filesystem.open_input_file(inner), REMOTE_READ)  # type: ignore[assignment]
    return remote


def looked_up(path: str) -> Found | None:
    """The file as it is now; none where there is none."""
    if not is_url(path):
        try:
            status = Path(_local(path)).stat()
        except FileNotFoundError:
            return None
        return Found(path, status.st_size, status.st_mtime_ns // 1_000_000) if stat.S_ISREG(status.st_mode) else None
    filesystem, inner, _ = _resolved(path)
    info = filesystem.get_file_info(inner)
    return Found(path, info.size or 0, _millis(info)) if info.is_file else None


def exists(path: str) -> bool:
    """Whether there is a file or a folder."""
    if not is_url(path):
        return Path(_local(path)).exists()
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - whoever only compiles does not load Arrow

    filesystem, inner, _ = _resolved(path)
    return bool(filesystem.get_file_info(inner).type != pa_fs.FileType.NotFound)


def plain(path: str) -> str:
    """A path as people read it, and patterns match it: a URL without its options, and with nothing quoted."""
    if not is_url(path):
        return _local(path)
    return unquote(path.partition("?")[0]) if _resolved(path)[2] else path


def files_below(folder: str, *, recursive: bool) -> Iterator[tuple[str, Found]]:
    """The files in a folder, and in those inside it, each with its plain path from there on."""
    if is_url(folder):
        yield from _remote_files(folder, recursive=recursive)
        return
    for found in _local_files(folder, recursive=recursive, entered=set()):
        yield found.path[len(folder) :].lstrip("/"), found


def _local_files(folder: str, *, recursive: bool, entered: set[tuple[int, int]]) -> Iterator[Found]:
    """Links are followed; a folder that was entered already is not entered again."""
    try:
        status = Path(folder).stat()
        if not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) in entered:
            return
        entered.add((status.st_dev, status.st_ino))
        entries = list(os.scandir(folder))
    except FileNotFoundError:  # it went while others were looked at
        return
    for entry in entries:
        if entry.is_dir():
            if recursive:
                yield from _local_files(entry.path, recursive=True, entered=entered)
            continue
        found = looked_up(entry.path)
        if found is not None:
            yield found


def _remote_files(folder: str, *, recursive: bool) -> Iterator[tuple[str, Found]]:
    import pyarrow.fs as pa_fs  # noqa: PLC0415 - whoever only compiles does not load Arrow

    filesystem, inner, quoted = _resolved(folder)
    whole, mark, options = folder.partition("?") if quoted else (folder, "", "")
    root = inner.rstrip("/")
    for info in filesystem.get_file_info(pa_fs.FileSelector(inner, allow_not_found=True, recursive=recursive)):
        if info.is_file:
            below = info.path[len(root) :].lstrip("/")
            path = f"{whole.rstrip('/')}/{quote(below) if quoted else below}{mark}{options}"
            yield below, Found(path, info.size or 0, _millis(info))


def _millis(info: Any) -> int:
    """When a file changed; 0 where its filesystem does not tell."""
    return 0 if info.mtime_ns is None else int(info.mtime_ns) // 1_000_000


def _resolved(url: str) -> tuple[Any, str, bool]:
    """A filesystem, the path in it, and whether paths in such URLs are quoted."""
    parts = urlsplit(url)
    filesystem, before = _filesystem(parts.scheme, parts.netloc, parts.query)
    if filesystem is not None:
        return filesystem, (before + unquote(parts.path)).rstrip("/") or "/", True
    import fsspec  # noqa: PLC0415 - whoever reads local files does not load it
    import pyarrow.fs as pa_fs  # noqa: PLC0415

    other, inner = fsspec.core.url_to_fs(url)
    return pa_fs.PyFileSystem(pa_fs.FSSpecHandler(other)), inner, False


@lru_cache(maxsize=256)
def _filesystem(scheme: str, host: str, options: str) -> tuple[Any, str]:
    """A filesystem of Arrow, made once, and what stands before the paths in it; none for a scheme unknown to Arrow."""
    import pyarrow as pa  # noqa: PLC0415 - whoever only compiles does not load Arrow
    import pyarrow.fs as pa_fs  # noqa: PLC0415

    try:
        filesystem, inner = pa_fs.FileSystem.from_uri(f"{scheme}://{host}/{'?' if options else ''}{options}")
    except pa.ArrowInvalid:
        return None, ""
    return filesystem, inner.rstrip("/")
