"""Sync complete files to disk in the background."""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from io import UnsupportedOperation
from typing import BinaryIO

# A commit survives a power cut, so a slot reports when all of its pieces are on the disk. If it waited after each
# block, it waited for longer than it worked: a GiB took 1.01 s, and takes 0.69 with this thread. `sync_file_range`,
# which begins before a piece has ended, is no faster and exists on Linux only.
MOST_BEHIND = 16
"""The highest number of files that wait for the disk; adding another one blocks, since each of them is open."""

Blame = Callable[[OSError], Exception]
"""Returns the error to raise if the disk fails, with the owner of the file."""


class Syncing:
    """Syncs files one after the other, in a thread that the first file starts."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._behind: deque[tuple[BinaryIO, Future[None], Blame]] = deque()

    def add(self, stream: BinaryIO, blame: Blame) -> None:
        """Sync and close this file in the background. The caller must not write to it any more.

        When `wait` returns, the file survives a power cut. If that fails, this call or `wait` raises the error that
        `blame` makes, and the caller must call `abandon`.
        """
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="dagkit-sync")
        self._behind.append((stream, self._thread.submit(_sync_and_close, stream), blame))
        if len(self._behind) > MOST_BEHIND:
            self._wait_for_first()

    def wait(self) -> None:
        """Wait until all added files are safe, then stop the thread."""
        while self._behind:
            self._wait_for_first()
        self._end()

    def abandon(self) -> None:
        """Close all added files without syncing them, and stop the thread."""
        self._end()
        for stream, _, _ in self._behind:
            with suppress(Exception):  # the reason for abandoning the files is the one to report
                stream.close()
        self._behind.clear()

    def _wait_for_first(self) -> None:
        _, synced, blame = self._behind.popleft()
        try:
            synced.result()
        except OSError as error:
            raise blame(error) from error

    def _end(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
            self._thread = None


def _sync_and_close(stream: BinaryIO) -> None:
    with stream, suppress(UnsupportedOperation, AttributeError):  # a remote file is durable once it is closed
        os.fsync(stream.fileno())
