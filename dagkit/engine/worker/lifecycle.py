"""The life of an operator: the order of its calls, and which of them follow after a failure.

setup, activate
for each window: checkpointed and committed (of the last window that can never come back), begin_window, the items,
    drained (in the last window of a launch), end_window, before_checkpoint
deactivate, teardown

All that run operators call them through `Life`, except the reference backend: it spells the order out once more, so
that comparing the two proves this one.
"""

import logging
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dagkit.api.operators import InputOperator, Operator
from dagkit.api.running import Context, Shutdown
from dagkit.engine.program.entrances import code_of
from dagkit.engine.program.failures import Interrupted
from dagkit.engine.program.masking import Masking
from dagkit.ranges import BundleFinalizer

_logger = logging.getLogger(__name__)


class Life:
    """One live operator, from `setup` to `teardown`."""

    def __init__(self, operator: Operator, windows: int = 1, name: str = "") -> None:
        self.operator = operator
        self.name = name or type(operator).__name__
        """The name of the operator in failures."""
        self._windows = windows
        """Streaming windows in one window of the operator."""
        self._owed: list[Callable[[], None]] = []
        """The callbacks that end what was begun, the next one last."""

    def set_up(self, context: Context) -> None:
        """Call `setup` and `activate`. From then on `teardown` and `deactivate` are owed, whatever happens."""
        with code_of(self.name):
            self.operator.setup(context)
            self._owed.append(self.operator.teardown)
            self.operator.activate(context)
            self._owed.append(self.operator.deactivate)

    def commit(self, window_id: int) -> None:
        """Report the last window that can never come back; nothing where the id is 0."""
        if window_id:
            with code_of(self.name):
                self.operator.checkpointed(window_id)
                self.operator.committed(window_id)

    def begin(self, window_id: int) -> None:
        """Begin a streaming window, and the operator's own window where it begins with this one."""
        if (window_id - 1) % self._windows == 0:
            with code_of(self.name):
                self.operator.begin_window(window_id)

    def end(self, window_id: int, *, last: bool = False) -> None:
        """End a streaming window, and the operator's own where it ends with this one; after the last, none comes."""
        with code_of(self.name):
            if last:
                self.operator.drained()
            if window_id % self._windows == 0:
                self.operator.end_window()

    def save(self, window_id: int) -> None:
        """Prepare for saving the state. The caller saves it afterwards."""
        with code_of(self.name):
            self.operator.before_checkpoint(window_id)

    def tear_down(self) -> None:
        """Call `deactivate` and `teardown`, if they are owed."""
        with code_of(self.name):
            while self._owed:
                self._owed.pop()()

    def abandon(self, window_id: int) -> None:
        """Do the same after a window failed. Exceptions are only logged: the first failure is reported."""
        # Logged here, these exceptions do not pass the masking of the failure that the caller raises.
        with Masking(lambda: [self.operator]).masked():
            while self._owed:
                # Each by itself: `teardown` is called even if `deactivate` fails.
                try:
                    self._owed.pop()()
                # A second signal ends the process at once. `sys.exit` of an operator, also a SystemExit, does not.
                except Interrupted:
                    raise
                except (Exception, SystemExit):  # the failure that led here is raised by the caller
                    name = type(self.operator).__name__
                    _logger.exception("%s could not be torn down after window %d failed", name, window_id)


def look(operator: InputOperator, life: Life, window_id: int, has_emitted: Callable[[], bool]) -> bool:
    """Let an input operator emit what there is: a look is a window of its own. Return whether it was the last look."""
    ended = False
    life.begin(window_id)
    try:
        operator.emit_tuples()
        if not has_emitted():
            operator.handle_idle_time()
    except Shutdown:
        ended = True
    life.end(window_id)
    life.save(window_id)
    return ended


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
