"""Serves the console in a thread of its own, beside a run or alone."""

import logging
import os
import secrets
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dagkit.console.run_folder import RunFolder
from dagkit.errors import address_taken, library_missing
from dagkit.ground.urls import is_url

# The folder keeps the token and the port of the last console that a browser opened, in `PATH/console.json`.
# The next console takes them again, so that bookmarks and open pages stay valid. Only the user can read the file.


ADDRESS = "console.json"

_logger = logging.getLogger(__name__)


class ConsoleAddress(BaseModel):
    """What the address of a console contains beside the host."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    token: str = Field(min_length=32)
    port: int = Field(gt=0, lt=1 << 16)


@dataclass(frozen=True, slots=True)
class KeptAddress:
    """The address that a folder keeps. One in an object store keeps none: all its readers would read the token."""

    place: str

    def read(self) -> ConsoleAddress | None:
        """Return the address; None if there is none, or another user may have read or written it."""
        if is_url(self.place):
            return None
        with suppress(OSError, ValueError), Path(self.place, ADDRESS).open("rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_IMODE(about.st_mode) & 0o077 and about.st_uid == os.getuid():
                return ConsoleAddress.model_validate_json(file.read())
        return None

    def keep(self, address: ConsoleAddress) -> None:
        """Write the address, unless the folder does not exist yet. If that fails, the next console gets another one."""
        if is_url(self.place) or self.read() == address or not Path(self.place).is_dir():
            return
        # The file is made with its mode: others could read a token that is written before the mode is set. A killed
        # process of this number may have left a file.
        path = Path(self.place, f"{ADDRESS}.{os.getpid()}")
        try:
            with suppress(FileNotFoundError):
                path.unlink()
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(address.model_dump_json())
            path.replace(Path(self.place, ADDRESS))
        except OSError as refused:
            _logger.debug("%s cannot be written: %s", ADDRESS, refused)


LOCAL = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class FolderOfApplications:
    """A folder that holds the folders of applications."""

    place: str


@dataclass(frozen=True, slots=True)
class Console:
    """The console of one application's folder, or of all those in a folder."""

    folder: RunFolder | FolderOfApplications
    allows_control: bool = False
    """Whether the page may stop the run."""

    @contextmanager
    def served(self, port: int = 0, address: str = LOCAL) -> Iterator[str]:
        """Serve the console within the block; yield the URL with its token.

        For port 0 it takes the port of the folder's last console, or, if that is in use, one that the system chooses.
        """
        uvicorn = _uvicorn()
        before = KeptAddress(self.folder.place).read()
        listening = _listening(address, port, None if before is None else before.port)
        port, closing = listening.getsockname()[1], threading.Event()
        token = secrets.token_urlsafe(32) if before is None else before.token
        server = uvicorn.Server(uvicorn.Config(self._app(token, port, address, closing), **_QUIET))
        thread = threading.Thread(target=server.run, args=([listening],), name="console", daemon=True)
        thread.start()
        try:
            yield f"http://{f'[{address}]' if ':' in address else address}:{port}/?token={token}"
        finally:
            # The streams of events end by this. Without it, the server would wait for them until its timeout.
            closing.set()
            server.should_exit = True
            thread.join()
            listening.close()

    def _app(self, token: str, port: int, address: str, closing: threading.Event) -> Any:
        from dagkit.console.access import LOCAL_NAMES, Access  # noqa: PLC0415 - they import optional libraries
        from dagkit.console.interface import interface  # noqa: PLC0415 - as above
        from dagkit.console.several import interface_of_several  # noqa: PLC0415 - as above

        kept, own = KeptAddress(self.folder.place), ConsoleAddress(token=token, port=port)
        answers = (
            interface(self.folder, closing, allows_control=self.allows_control)
            if isinstance(self.folder, RunFolder)
            else interface_of_several(self.folder.place, closing, allows_control=self.allows_control)
        )
        return Access(
            answers,
            token=token,
            port=port,
            names=LOCAL_NAMES | {address.lower()},
            opened=lambda: kept.keep(own),
        )


def _listening(address: str, port: int, last_port: int | None) -> socket.socket:
    """Listen at a port; for port 0, at the last one if it is free. Raise `address-taken` if that is impossible."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if port == 0 and last_port is not None:
        with suppress(OSError):
            return socket.create_server((address, last_port), family=family)
    try:
        return socket.create_server((address, port), family=family)
    except OSError as refused:
        raise address_taken("the console", "--console=PORT or --port", address, port, refused) from refused


_QUIET = {
    "lifespan": "off",
    "ws": "none",
    "http": "h11",
    "loop": "asyncio",
    "log_config": None,
    "access_log": False,
    "log_level": "warning",
    "server_header": False,
    "timeout_graceful_shutdown": 1,
}
"""Settings of uvicorn: requests contain the token, so they are not logged."""


def _uvicorn() -> Any:
    """The server; raise if it or what it serves is not installed."""
    try:
        import starlette  # noqa: F401, PLC0415 - an extra brings it
        import uvicorn  # noqa: PLC0415 - as above
    except ImportError as missing:
        raise library_missing(str(missing.name), "console") from missing
    return uvicorn
