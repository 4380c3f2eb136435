"""The process of a driver: its identity, and whether it still runs."""

import getpass
import os
import secrets
import socket
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from dagkit.engine.record.snapshot import DriverProcess, RunSnapshot

BEAT_SECONDS = 5.0
"""The longest time between two writes of a driver."""
RECENT = timedelta(seconds=4 * BEAT_SECONDS)
"""A driver on another host runs if it wrote within this time, by the clocks of both hosts."""

Presence = Literal["over", "here", "gone", "elsewhere", "silent"]
"""A launch is over; its process runs on this host, or is gone; it writes from another host, or has fallen silent."""


def this_process() -> DriverProcess:
    """The identity of this process, with the ID of a new launch."""
    pid = os.getpid()
    return DriverProcess(
        launch=secrets.token_hex(8), host=socket.gethostname(), pid=pid, began=_began(pid) or "", user=_user()
    )


def presence(snapshot: RunSnapshot, now: datetime) -> Presence:
    """Whether the driver of a snapshot runs."""
    if snapshot.is_over:
        return "over"
    driver = snapshot.driver
    if driver.host == socket.gethostname():
        return "here" if _began(driver.pid) == driver.began else "gone"
    return "elsewhere" if abs(now - snapshot.at) <= RECENT else "silent"


def _began(pid: int) -> str | None:
    """When a process began, as the system counts it; None if there is none, or only its exit code is left."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _began_by_ps(pid)
    except OSError:  # it ended while its file was read
        return None
    state, began = after_name[0], after_name[19]
    return None if state in "ZX" else began


def _began_by_ps(pid: int) -> str | None:
    """As `_began`, on systems without `/proc`."""
    listed = subprocess.run(  # noqa: S603 - a number
        ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, began = listed.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else began.strip()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return str(os.getuid())
