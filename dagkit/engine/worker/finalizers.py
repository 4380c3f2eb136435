"""Callbacks that operators on workers register, and that the driver calls after the commit of their window."""

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dagkit.ranges import BundleFinalizer


class ReportedFinalizer(BundleFinalizer):
    """Collects the callbacks of one slot, which travel to the driver with its report."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def register(self, callback: Callable[[], object]) -> None:
        """Register a callback. Raise TypeError unless it can be sent to the driver."""
        from dagkit.engine.worker import pickling  # noqa: PLC0415 - most applications register none

        try:
            self.written.append(pickling.dumps(callback))
        except Exception as error:
            raise TypeError(
                f"{callback!r} cannot be sent to the driver; register a function of values that can be pickled"
            ) from error


@dataclass(frozen=True, slots=True)
class _Unrestored:
    """A callback that arrived on the driver and cannot be made there: calling it raises the reason."""

    reason: Exception

    def __call__(self) -> None:
        raise self.reason

    def __repr__(self) -> str:
        return "a callback that the driver cannot restore"


def call_back(written: Iterable[bytes]) -> int:
    """Call the callbacks of a committed window in order, and return how many failed; failures are logged."""
    finalizer = BundleFinalizer()
    for callback in written:
        finalizer.register(_restored(callback))
    return finalizer.finalize()


def _restored(written: bytes) -> Callable[[], object]:
    try:
        callback: Callable[[], object] = pickle.loads(written)  # noqa: S301 - written by our own workers
    except Exception as error:  # noqa: BLE001 - the finalizer logs it, as any failure after the commit
        return _Unrestored(error)
    return callback
