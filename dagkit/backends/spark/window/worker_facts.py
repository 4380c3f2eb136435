"""What a worker finds out about itself, for the preflight.

Workers import this module with nothing installed but PySpark: it imports other packages only inside functions.
"""

import importlib.metadata
import importlib.util
import json
import platform
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

PACKAGES = ("cloudpickle", "numpy", "pyarrow", "pydantic")
"""What every worker needs besides Spark."""
ANSWERED_WITHIN_SECONDS = 15.0
"""The time within which the storage must answer a worker. Clients that search for credentials take minutes."""
UNKNOWN = "?"
"""The version of a package whose code is found without its metadata."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What one worker found on its machine."""

    host: str
    python: str
    packages: Mapping[str, str]
    """The version of each of PACKAGES that is installed."""
    storage: str = ""
    """Why it cannot use the storage of the application's folder; empty if it can."""
    file: str = ""
    """The file that it wrote there."""
    clock: float = 0.0
    free_bytes: int = 0
    """Free space where it keeps temporary files."""
    libraries: Sequence[str] = ()
    """What each library reports about itself."""


@dataclass(frozen=True, slots=True)
class Visit:
    """The task: find the facts of the worker that runs it."""

    application_path: str
    folder: str
    """A folder below that path, into which the driver wrote a file, and the worker writes another one."""
    file: str
    """The driver's file."""
    libraries: tuple[str, ...] = ()
    """Packages that are asked about themselves."""
    within: float = ANSWERED_WITHIN_SECONDS

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        """Find the facts once for each partition of a frame."""
        import pyarrow as pa  # noqa: PLC0415 - a worker may lack it

        for _ in batches:
            yield pa.record_batch([pa.array([self.facts()])], names=["facts"])

    def facts(self, _: Any = None) -> str:
        """The facts as JSON."""
        versions = {name: _version(name) for name in PACKAGES}
        own = secrets.token_hex(8)
        found = Facts(
            host=socket.gethostname(),
            python=platform.python_version(),
            packages={name: version for name, version in versions.items() if version is not None},
            # It imports dagkit, which needs all these packages: the error would blame the storage for a missing one.
            storage=self._storage(own) if None not in versions.values() else "",
            file=own,
            clock=time.time(),
            # Spark gives each executor a folder. Its name may be gone: a local Spark may have begun in a folder that
            # was deleted since.
            free_bytes=shutil.disk_usage(".").free,
            libraries=[about(library) for library in self.libraries],
        )
        return json.dumps(asdict(found))

    def _storage(self, own: str) -> str:
        """Read the driver's file and write another one. Give up after some seconds."""
        answer: Future[str] = Future()

        def use() -> None:
            try:
                answer.set_result(self._used(own))
            except Exception as error:  # noqa: BLE001 - reported to the driver, whatever the client of a storage raises
                answer.set_result(f"{type(error).__name__}: {error}")

        threading.Thread(target=use, daemon=True).start()
        try:
            return answer.result(self.within)
        except TimeoutError:
            return f"no answer within {self.within:g} s, as if credentials are searched for or the network is cut"

    def _used(self, own: str) -> str:
        from dagkit.engine.files.folders import folder_at  # noqa: PLC0415 - it imports what may be missing

        folder = folder_at(self.application_path).below(self.folder)
        if folder.length(folder.path_of(self.file)) is None:
            return "a file that the driver wrote is not there"
        with folder.create(own) as sink:
            sink.write(b"seen")
        return ""


def _version(name: str) -> str | None:
    """The installed version of a package; `?` if only its code is found."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN if importlib.util.find_spec(name) else None


def about(library: str) -> str:
    """The line about a library that `dagkit --version` prints, too."""
    try:
        about = getattr(importlib.import_module(library), "about", None)
        return str(about()) if callable(about) else ""
    except ImportError as error:
        return f"{type(error).__name__}: {error}"
