"""The figures of a run below the cell of a notebook that launched it, renewed while it runs."""

import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from dagkit.engine.record.run_events import Ended, Failed, RunEvent
from dagkit.engine.record.run_picture import RunPicture
from dagkit.observers.run_text import own_picture

_SECONDS_BETWEEN = 1.0
"""The shortest time between two updates."""


class LiveFigures:
    """An observer that shows the figures of its run: those of `dagkit top`."""

    def __init__(
        self, run: RunPicture, show: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._run = run
        self._show = show
        self._clock = clock
        self._due = clock()

    def __call__(self, event: RunEvent) -> None:
        now = self._clock()
        if now >= self._due or isinstance(event, Ended | Failed):
            self._due = now + _SECONDS_BETWEEN
            self._show(own_picture(self._run.snapshot()))


def in_notebook(run: RunPicture) -> Iterator[LiveFigures]:
    """Yield an observer if this is the kernel of a notebook. IPython is not imported unless it runs."""
    # the thread that starts Spark may be importing IPython now, which then has not got this function yet
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_ipython is None else get_ipython()
    if getattr(shell, "kernel", None) is None:
        return
    display = import_module("IPython.display").display
    shown: list[Any] = []

    def show(text: str) -> None:
        if shown:
            shown[0].update({"text/plain": text}, raw=True)
        else:
            shown.append(display({"text/plain": text}, raw=True, display_id=True))

    yield LiveFigures(run, show)
