"""A store in memory, for tests and trials: as strict as a real one, lost with the process."""

import threading
from collections.abc import Iterable
from datetime import UTC, datetime

from dagkit.ledger.stores.store import KeyMissing, KeyTaken


class MemoryStore:
    """Keys in a dict; creation is atomic between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contents: dict[str, bytes] = {}
        self._modified: dict[str, datetime] = {}

    def get(self, key: str) -> bytes:
        try:
            return self._contents[key]
        except KeyError:
            raise KeyMissing(key) from None

    def get_range(self, key: str, start: int, end: int) -> bytes:
        return self.get(key)[start:end]

    def create(self, key: str, content: bytes) -> None:
        with self._lock:
            if key in self._contents:
                raise KeyTaken(key)
            self._put(key, content)

    def replace(self, key: str, content: bytes) -> None:
        with self._lock:
            self._put(key, content)

    def note(self, key: str, content: bytes) -> None:
        self.replace(key, content)

    def exists(self, key: str) -> bool:
        return key in self._contents

    def names(self, folder: str) -> list[str]:
        return [rest for rest in self._under(folder) if "/" not in rest]

    def folders(self, folder: str) -> list[str]:
        return list(dict.fromkeys(rest.split("/")[0] for rest in self._under(folder) if "/" in rest))

    def delete(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._contents.pop(key, None)
                self._modified.pop(key, None)

    def modified(self, key: str) -> datetime | None:
        return self._modified.get(key)

    def _put(self, key: str, content: bytes) -> None:
        self._contents[key] = bytes(content)
        self._modified[key] = datetime.now(UTC)

    def _under(self, folder: str) -> list[str]:
        start = f"{folder}/" if folder else ""
        # Another thread may create a key, and a dict must not change while it is iterated.
        with self._lock:
            return [key.removeprefix(start) for key in self._contents if key.startswith(start)]
