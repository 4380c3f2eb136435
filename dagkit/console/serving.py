"""Serves the console in a thread of its own, beside a run or alone."""

import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dagkit.console.run_folder import RunFolder
from dagkit.errors import AddressTaken, LibraryMissing

LOCAL = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Console:
    """The console of one application's folder."""

    folder: RunFolder
    allows_control: bool = False
    """Whether the page may stop the run."""

    @contextmanager
    def served(self, port: int = 0, address: str = LOCAL) -> Iterator[str]:
        """Serve the console within the block; yield the URL with its token. The system chooses the port for 0."""
        uvicorn = _uvicorn()
        try:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listening = socket.create_server((address, port), family=family)
        except OSError as refused:
            raise AddressTaken("the console", "--console=PORT or --port", address, port, refused) from refused
        port, token, closing = listening.getsockname()[1], secrets.token_urlsafe(32), threading.Event()
        server = uvicorn.Server(uvicorn.Config(self._app(token, port, address, closing), **_QUIET))
        thread = threading.Thread(target=server.run, args=([listening],), name="console", daemon=True)
        thread.start()
        try:
            yield f"http://{f'[{address}]' if ':' in address else address}:{port}/?token={token}"
        finally:
            closing.set()
            server.should_exit = True
            thread.join()
            listening.close()

    def _app(self, token: str, port: int, address: str, closing: threading.Event) -> Any:
        from dagkit.console.access import LOCAL_NAMES, Access  # noqa: PLC0415 - they import optional libraries
        from dagkit.console.interface import interface  # noqa: PLC0415 - as above

        names = LOCAL_NAMES | {address.lower()}
        return Access(
            interface(self.folder, closing, allows_control=self.allows_control), token=token, port=port, names=names
        )


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
        raise LibraryMissing(str(missing.name), "console") from missing
    return uvicorn
