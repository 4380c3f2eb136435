"""Syncing: files that are written to their end reach the disk while work goes on."""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from io import UnsupportedOperation
from typing import BinaryIO

MOST_BEHIND = 16
"""Files that wait for the disk at most; whoever has one more waits, too, for each of them is open."""

Blame = Callable[[OSError], Exception]
"""What is raised where the disk fails: it says whose file that was."""


class Syncing:
    """Files on their way to the disk, one after the other, in a thread that begins with the first of them."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._behind: deque[tuple[BinaryIO, Future[None], Blame]] = deque()

    def add(self, stream: BinaryIO, blame: Blame) -> None:
        """Nothing more is written to it. It is closed, and survives a power cut, when `wait` returns.

        What goes wrong is raised as `blame` has it, here or by `wait`; then all of them are to be abandoned.
        """
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="dagkit-sync")
        self._behind.append((stream, self._thread.submit(_sync_and_close, stream), blame))
        if len(self._behind) > MOST_BEHIND:
            self._wait_for_first()

    def wait(self) -> None:
        """All that was added is safe, and nothing runs any more."""
        while self._behind:
            self._wait_for_first()
        self._end()

    def abandon(self) -> None:
        """Nothing that was added counts; all of it is closed, and nothing runs any more."""
        self._end()
        for stream, _, _ in self._behind:
            with suppress(Exception):  # why the others are abandoned is what counts
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
    with stream, suppress(UnsupportedOperation, AttributeError):  # one of a store elsewhere stays when it is closed
        os.fsync(stream.fileno())
