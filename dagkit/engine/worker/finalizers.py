"""Callbacks that operators on workers register, and that the driver calls after the commit of their window."""

import pickle
from collections.abc import Callable, Iterable

from dagkit.ranges import BundleFinalizer


class ReportedFinalizer(BundleFinalizer):
    """Collects the callbacks of one slot, which travel to the driver with its report."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def register(self, callback: Callable[[], object]) -> None:
        """Register a callback. Raise TypeError unless it can be sent to the driver."""
        import cloudpickle  # noqa: PLC0415 - most applications register none

        try:
            self.written.append(cloudpickle.dumps(callback))
        except (pickle.PicklingError, TypeError) as error:
            raise TypeError(
                f"{callback!r} cannot be sent to the driver; register a function of values that can be pickled"
            ) from error


def call_back(written: Iterable[bytes]) -> int:
    """Call the callbacks of a committed window in order, and return how many failed; failures are logged."""
    finalizer = BundleFinalizer()
    for callback in written:
        finalizer.register(pickle.loads(callback))  # noqa: S301 - written by our own workers
    return finalizer.finalize()
