"""The bytes of files that may be no files at all: a device without end, a pipe that nobody fills."""

import errno
import os
import stat
from pathlib import Path


def regular_bytes(path: str | Path, most: int) -> bytes:
    """What a regular file holds. `OSError` says why it cannot be read, also where it holds more than `most` bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ValueError as refused:  # a NUL, or what the file system cannot spell
        raise OSError(errno.EINVAL, f"this is no path: {refused}") from refused
    with os.fdopen(descriptor, "rb") as file:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is no regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it holds more than {most} bytes")
    return data
