"""The context of an operator: the argument of `setup`."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from dagkit.api.attributes import Attribute
from dagkit.errors import did_you_mean
from dagkit.ranges import BundleFinalizer


class Until(StrEnum):
    """When a launch ends."""

    ONCE = "once"
    """When all input is processed that the first look of each input operator found."""
    IDLE = "idle"
    """When no work is left, and a further look finds no new input."""
    DRAINED = "drained"
    """When all work found before is done. Inputs do not look for more, and endless work is truncated."""
    STOPPED = "stopped"
    """Only when it is stopped."""

    @classmethod
    def _missing_(cls, value: object) -> "Until":
        raise ValueError(f"there is no until={value!r}; {did_you_mean(str(value), [each.value for each in cls])}")


@dataclass(frozen=True)
class Context:
    """The argument of `setup`: the operator's name, its partition, and its attributes."""

    application: str
    operator: str
    partition: int = 0
    partitions: int = 1
    window_id: int = 0
    """The ID of the next window."""
    home: str = ""
    """The folder to which paths are relative: the working directory of the launch, not that of a worker."""
    application_path: str = ""
    """The application's folder, which contains its ledger; empty if there is none."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    is_followed: bool = False
    """Whether an operator with `follows_files` gets the files that this one finds, also through others."""
    written: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The folders of this machine into which the application writes, each with examples of the names of its files."""
    known_items: tuple[object, ...] | None = None
    """Of an operator that finds files: all items that this launch may send it, as `Items` does; None if unknown."""
    watermarks: Mapping[str, datetime | None] = field(default_factory=dict)
    """The watermark of each input port after the last window, for ports that can have one; None if it is unknown."""
    watermark: datetime | None = None
    """The watermark of all inputs together, which never goes back. Ports of idle sources do not hold it back."""
    until: Until = Until.STOPPED
    """When the launch ends. For `ONCE`, an input operator must look for input only once."""
    launched: datetime | None = None
    """When the launch began, by the clock of the driver; None in a test of one operator."""
    began: datetime | None = None
    """On a worker, when the driver began the window, by its clock; None in a test of one operator."""
    now: Callable[[], datetime] | None = None
    """The clock of the launch, on the driver, where input operators run; None on a worker."""
    finalizer: BundleFinalizer = field(default_factory=BundleFinalizer)
    """Callbacks to call on the driver once the window is committed, such as to acknowledge messages.

    On a worker, they travel to the driver with the report of the window, so they must be functions of values that can
    be pickled. A crash between the commit and the call leaves them uncalled.
    """
    start: "Callable[[Callable[[], Any]], Future[Any]] | None" = None
    """Runs a function on another thread, on the driver; None on a worker. See `in_background`."""

    def in_background(self, work: Callable[[], Any]) -> "Future[Any]":
        """Begin work that may take long, such as listing folders, in an input operator.

        On the driver, the work runs on another thread. `emit_tuples` can return at once, windows continue, and the
        operator looks again after the work has ended. Until then, the launch does not end for lack of input. In a test
        of one operator, the work is done at once. `result()` of the future raises what the work raised.
        """
        if self.start is not None:
            return self.start(work)
        future: Future[Any] = Future()
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001 - `result()` raises it, as if the work had run on another thread
            future.set_exception(error)
        return future

    def value(self, attribute: Attribute[Any]) -> Any:
        """The value of an attribute of the operator or the application, or its default if it is not set."""
        return self.attributes.get(attribute.qualified, attribute.default)


class Shutdown(Exception):
    """Raised by an input operator that will never emit again. The application ends once all of them raised it."""
