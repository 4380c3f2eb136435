"""Reading files by a user's path, which may name an endless device or a pipe without a writer."""

import errno
import os
import stat
from pathlib import Path


def regular_bytes(path: str | Path, most: int) -> bytes:
    """The content of a regular file. Raise `OSError` if it cannot be read, or has more than `most` bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except ValueError as refused:  # a NUL, or characters that the file system cannot encode
        raise OSError(errno.EINVAL, f"this is not a path: {refused}") from refused
    with os.fdopen(descriptor, "rb") as file:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "it is not a regular file")
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes")
    return data
