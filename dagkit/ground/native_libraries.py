"""Compiled libraries of installed code, and of the archive as which dagkit is sent to workers on other machines."""

import ctypes
import os
import platform
import zipfile
from pathlib import Path

PLATFORM_FILE = "dagkit-platform"
"""The file of an archive that names the platform for which its libraries were compiled."""


def own_platform() -> str:
    """The system, the processor and the C library of this process, such as `Linux x86_64 glibc`."""
    try:
        libc = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")[0]
    except (AttributeError, OSError, ValueError):  # another C library does not know the name
        libc = ""
    return " ".join(filter(None, (platform.system(), platform.machine(), libc)))


def library_at(path: Path) -> ctypes.CDLL:
    """The library of a file, or of a member of an archive, which is loaded from memory.

    Raise OSError if it is missing, does not load here, or was compiled for another platform.
    """
    # Rejected: unpacking into a folder, which a killed worker leaves behind; compiling on workers, which rarely have a
    # compiler; libraries for several platforms in one archive, which no build of ours makes.
    archive = _archive_of(path)
    if archive is None:
        return ctypes.CDLL(str(path))
    other = other_platform(path)
    if other is not None:
        raise OSError(f"{path.name} was compiled for {other}")
    if not hasattr(os, "memfd_create"):
        raise OSError("this system loads no library from memory")
    content = content_of(path)
    # Never closed: the system's loader knows a library by the name of its file, which another file could get.
    descriptor = os.memfd_create(path.name)
    with os.fdopen(descriptor, "wb", closefd=False) as memory:
        memory.write(content)
    return ctypes.CDLL(f"/proc/self/fd/{descriptor}")


def other_platform(path: Path) -> str | None:
    """The platform for which the libraries of a path's archive were compiled; None if it is this one, or unknown."""
    archive = _archive_of(path)
    try:
        theirs = None if archive is None else content_of(archive / PLATFORM_FILE).decode()
    except OSError:
        return None
    return None if theirs == own_platform() else theirs


def content_of(path: Path) -> bytes:
    """The content of a file, or of a member of an archive. Raise OSError if it is missing."""
    archive = _archive_of(path)
    if archive is None:
        return path.read_bytes()
    try:
        with zipfile.ZipFile(archive) as opened:
            return opened.read(path.relative_to(archive).as_posix())
    except (KeyError, zipfile.BadZipFile) as error:
        raise OSError(f"{path}: {error}") from error


def _archive_of(path: Path) -> Path | None:
    """The archive in which a path is; None if it is in a folder."""
    return next((place for place in path.parents if place.is_file()), None)
