"""The looks of input operators: on another thread, at intervals, and again until a server answers.

Events of the filesystem are a hint to look at once. Looks at intervals find what no event reported.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from pydantic import PrivateAttr

from dagkit import Context, InputOperator, Outage, Unavailable, Until
from dagkit.ground.urls import is_url, local_path, shown
from dagkit.ranges import RestrictionTracker

L = TypeVar("L")

_DEBOUNCE_MILLIS = 1600
"""The longest time for which changes that follow each other are reported together."""
_STEP_MILLIS = 50
"""Changes are reported when no other one has followed for this long."""

_log = logging.getLogger(__name__)


class Looks(Generic[L]):
    """The looks of an input operator, one at a time; a launch with `--once` looks once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._look: Future[L | None] | None = None
        self._ended = 0
        self.next: datetime | None = None
        """When the next look is due; None: at once."""
        self.abandoned = threading.Event()
        """Ends a look early."""

    @property
    def are_on(self) -> bool:
        """Whether a look has begun whose result was not taken."""
        return self._look is not None

    def now(self) -> datetime:
        """The time by the clock of the launch."""
        return datetime.now(UTC) if self._context.now is None else self._context.now()

    def are_due(self, *, again: bool = False) -> bool:
        """Whether to look now. `again`: also after the only look of a launch."""
        if self._context.until is Until.ONCE and self._ended and not again:
            return False
        return self.next is None or self.now() >= self.next

    def due_in_millis(self) -> int:
        """The time left until the next look is due."""
        return 0 if self.next is None else max(0, -(-(self.next - self.now()) // timedelta(milliseconds=1)))

    def begin(self, look: Callable[[], L | None]) -> None:
        """Look on another thread."""
        self._look = self._context.in_background(look)

    def take(self, interval_millis: int = 0) -> L | None:
        """Return the result of a look that has ended, once; else None. The next look is due after the interval."""
        if self._look is None or not self._look.done():
            return None
        look, self._look = self._look, None
        result = look.result()
        self._ended += 1
        self.next = self.now() + timedelta(milliseconds=interval_millis) if interval_millis else None
        return result

    def ask(self, server: str, question: Callable[[], L], unanswered: type[Exception] = Unavailable) -> L | None:
        """Ask a server until it answers; None if the operator is torn down before. A look calls it."""
        outage = Outage(server)
        while True:
            try:
                answer = question()
            except unanswered as failure:
                reason = failure.problem if isinstance(failure, Unavailable) else str(failure)
                if self.abandoned.wait(outage.failed(reason)):
                    return None
            else:
                outage.is_over()
                return answer


class LooksForInput(InputOperator):
    """An input operator that looks on another thread for what is new."""

    # It is made in `setup`: an operator is pickled before that, and the event within cannot be pickled.
    _looks: Looks[Any] | None = PrivateAttr(default=None)

    @property
    def looks(self) -> Looks[Any]:
        """The looks of this launch."""
        assert self._looks is not None, "an operator is set up before it runs"
        return self._looks

    def setup(self, context: Context) -> None:
        super().setup(context)
        self._looks = Looks(context)

    def teardown(self) -> None:
        if self._looks is not None:
            self._looks.abandoned.set()
        super().teardown()

    def looks_again_in_millis(self) -> int | None:
        return 0 if self._looks is None else self._looks.due_in_millis()


@cache
def outage_of(server: str) -> Outage:
    """The outage of a server as the readers of this process see it."""
    # It is kept in the process, since each window makes new readers and an outage lasts longer than a window.
    return Outage(server)


def defer_unanswered(tracker: RestrictionTracker[Any, Any], outage: Outage, reason: str) -> None:
    """Defer the rest of an element since a server does not answer.

    A launch with an end waits for unanswered work. Otherwise it would end beside a server that has just been started,
    and report that all was read.
    """
    pause = timedelta(seconds=outage.failed(reason))
    tracker.defer_remainder(pause, unanswered=True, waits_for=outage.problem)


class FileEvents:
    """The events in local places since it was created."""

    def __init__(self, watcher: Any, stop: threading.Event) -> None:
        self._watcher = watcher
        self._stop = stop

    @classmethod
    def of(cls, places: Sequence[str], stop: threading.Event, *, recursive: bool) -> "FileEvents | None":
        """Watch local files and folders; return None, with a warning, if that is impossible. `stop` ends waiting."""
        local = [local_path(place) for place in places if not is_url(place)]
        if not local:
            return None
        try:
            # Not `watchfiles.watch`: a generator begins to watch when it is first asked, and would miss what changes
            # until then. It is imported by name since the package is optional, and may have no types here.
            notify = import_module("watchfiles._rust_notify")
            watcher = notify.RustNotify(
                local,
                False,  # debug
                False,  # force_polling
                0,  # poll_delay_ms
                recursive,
                True,  # ignore_permission_denied
            )
        except (ImportError, OSError, RuntimeError) as error:
            _log_missing(shown(local[0]), str(error))
            return None
        return cls(watcher, stop)

    def wait(self, millis: int) -> bool:
        """Wait until something has changed since the last call, at most so long. Return whether it has."""
        return isinstance(self._watcher.watch(_DEBOUNCE_MILLIS, _STEP_MILLIS, millis, self._stop), set)


@lru_cache(maxsize=256)  # logs once in each process
def _log_missing(place: str, why: str) -> None:
    _log.warning("changes in %s cause no scan (%s); files are found by scans at intervals", place, why)
