"""Temporary folders of this process. The next process of the user deletes those that a killed one has left."""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = ".held"
"""The file of a folder that its process locks."""


def own_folder(prefix: str) -> Path:
    """Make a folder whose name begins like that. It is deleted when this process exits."""
    _delete_left_behind(prefix)
    made = Path(tempfile.mkdtemp(prefix=f"new-{prefix}"))
    # Never closed: the end of the process releases the lock.
    lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    home = made.with_name(made.name.removeprefix("new-"))
    # Only now, with its lock held, does it have a name that another process may find and delete.
    made.rename(home)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def _delete_left_behind(prefix: str) -> None:
    """Delete the user's folders that no process holds. A folder without the file of a lock is not ours, and stays."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):  # of another user, held, or deleted by another process meanwhile
            if folder.stat(follow_symlinks=False).st_uid == os.geteuid():
                with _locked(folder / _LOCK):
                    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file. Raise OSError if there is none, or if another process holds it."""
    descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
