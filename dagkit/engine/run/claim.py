"""The beginning of a launch: of several at the same moment, one runs, and the others are refused.

A driver that runs is known by its status file. Until a new driver has written it, the launch holds a lock of the
application's folder. In object stores, and on filesystems without such locks, only the ledger decides between two
launches of the same moment.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from dagkit.engine.record.status_file import refuse_second
from dagkit.engine.run.launch_record import keep_aside
from dagkit.ground.urls import is_url
from dagkit.ledger.stores import open_store

_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""The errors of filesystems that cannot lock a folder, such as NFS."""


@contextmanager
def claimed(place: str, *, take_over: bool, fresh: bool) -> Iterator[str | None]:
    """Within the block, no other launch of this machine begins in the folder: it waits, and then reads the status.

    If `fresh`, the folder of the earlier run is renamed; yield its new path. Raise driver-runs if another process runs
    the application, unless this one is to `take_over`.
    """
    with _locked(place):
        if not take_over:
            refuse_second(open_store(place), datetime.now(UTC))
        kept = keep_aside(place, datetime.now(UTC)) if fresh else None
        if kept is None:
            yield None
            return
    with claimed(place, take_over=take_over, fresh=False):  # of the new folder, which another launch may make first
        yield kept


@contextmanager
def _locked(place: str) -> Iterator[None]:
    """Hold the lock of the folder of this name, which is made if there is none."""
    folder = None if is_url(place) else _lock(Path(place))
    try:
        yield
    finally:
        if folder is not None:
            os.close(folder)


def _lock(path: Path) -> int | None:
    """A descriptor of the folder, with its lock; None if it cannot be locked, or not be made, which is found later."""
    while True:
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(folder)):
                return folder
            os.close(folder)  # it was renamed meanwhile
        except OSError as error:
            os.close(folder)
            if error.errno in _NO_LOCKS:
                return None
            raise
