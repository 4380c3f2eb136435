"""Work of an input operator that runs beside the loop."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any


class Background:
    """Runs work on threads of its own, and wakes the loop when it ends.

    The threads are daemons: work that hangs, such as listing a folder of a server that is gone, delays no exit.
    """

    def __init__(self, name: str, wake: Callable[[], None]) -> None:
        self._name = name
        self._wake = wake
        self._running: list[Future[Any]] = []
        self.begun = 0
        """How often work was begun."""

    def start(self, work: Callable[[], Any]) -> "Future[Any]":
        """Begin the work. Its result, or what it raised, is in the future once it has ended."""
        future: Future[Any] = Future()
        self._running.append(future)
        self.begun += 1
        Thread(target=self._run, args=(work, future), name=self._name, daemon=True).start()
        return future

    @property
    def is_running(self) -> bool:
        """Whether any work has not ended yet."""
        self._running = [future for future in self._running if not future.done()]
        return bool(self._running)

    def _run(self, work: Callable[[], Any], future: "Future[Any]") -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - the operator raises it on the thread of the loop
            future.set_exception(error)
        else:
            future.set_result(result)
        self._wake()
