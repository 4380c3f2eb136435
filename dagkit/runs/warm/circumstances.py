"""The circumstances of a process that a launch depends on: a warm driver runs only launches that share its own."""

import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from dagkit.runs.machine import Machine

_OF_A_TERMINAL = frozenset(
    [
        "_",
        "COLUMNS",
        "GPG_TTY",
        "LINES",
        "OLDPWD",
        "SHLVL",
        "SSH_CLIENT",
        "SSH_CONNECTION",
        "SSH_TTY",
        "STY",
        "TERM_SESSION_ID",
        "TMUX",
        "TMUX_PANE",
        "WINDOWID",
        "XDG_SESSION_ID",
    ]
)
"""Variables of a shell or a terminal. A launch has its own values; Java and workers have those of the warm driver."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The circumstances of a process."""

    settings: Mapping[str, Any]
    """By name, so that a message can say which of them differs; of types that JSON keeps."""
    environment: Mapping[str, str]

    @classmethod
    def here(cls, machine: Machine) -> Self:
        """The circumstances of this process, which is to run on this machine."""
        return cls(
            {
                "master": machine.name,
                "settings of Spark": dict(machine.settings),
                "version of dagkit": sys.modules["dagkit"].__version__,
                "Python": [sys.executable, sys.version, list(sys.flags), sys.warnoptions, repr(sys._xoptions)],  # noqa: SLF001
                "user": [os.getuid(), os.geteuid(), os.getgid(), sorted(os.getgroups())],
                "working directory": [str(Path.cwd()), Path.cwd().stat().st_dev, Path.cwd().stat().st_ino],
                "umask": _umask(),
                "limits": {name: list(resource.getrlimit(getattr(resource, name))) for name in _limits()},
                "priority": os.getpriority(os.PRIO_PROCESS, 0),
                "processors": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
            },
            dict(os.environ),
        )

    def document(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)

    def difference(self, other: Self) -> str | None:
        """The first difference from another process, in words; None if there is none that matters."""
        for name, value in self.settings.items():
            if other.settings.get(name) != value:
                return f"another {name}" if name != "settings of Spark" else "other settings of Spark"
        for name in sorted(self.environment.keys() | other.environment.keys()):
            if name not in _OF_A_TERMINAL and self.environment.get(name) != other.environment.get(name):
                return f"another value of the environment variable {name}"
        return None


def _umask() -> int:
    # The mask can only be read by setting it: for this moment, to one that opens no file to others.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _limits() -> list[str]:
    return sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))
