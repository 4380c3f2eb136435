"""State behind one lock, flat enough to be copied and pickled."""

from threading import Lock
from typing import Any, ClassVar, Self


class Locked:
    """Whatever several threads may ask: a lock and plain attributes.

    A copy, shallow or pickled, is taken between two operations, has a lock of its own and goes its own way.

    The lock is not re-entrant, on purpose: a signal handler that split a range in the middle of a claim would be let
    in by a re-entrant lock, and the record would belong to both sides. Ask from another thread.
    """

    transient: ClassVar[frozenset[str]] = frozenset({"_lock"})
    """Attributes that a copy does not get."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in vars(self).items() if name not in self.transient}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__setstate__(self.__getstate__())
        return twin
