"""The Python environments of contestants: dagkit's own, or one that is created at first use.

Peers have separate environments, so that their dependencies do not conflict, and dagkit's does not change. They are
stored in $DAGKIT_BENCH_VENV, else in the user's cache.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


class Unavailable(Exception):
    """A contestant cannot be installed; the message says how to try."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Packages that are installed together, apart from all others; without packages, the environment of dagkit."""

    name: str
    requirements: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Its folder, one for each version of Python."""
        return cache_folder() / f"{self.name}-{sys.implementation.cache_tag}"

    @property
    def python(self) -> Path:
        """The interpreter with these packages, once they are installed."""
        return self.folder / "bin" / "python" if self.requirements else Path(sys.executable)

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions to report of what is no Python package."""
        return {}

    @property
    def recipe(self) -> str:
        """What it is made from: if this changes, it is created again."""
        return "\n".join(self.requirements)

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands that create it."""
        pip = (str(self.python), "-m", "pip", "--disable-pip-version-check")
        install = (*pip, "install", "--quiet", *self.requirements)
        return (sys.executable, "-m", "venv", "--clear", str(self.folder)), install

    def make(self, say: Callable[[str], None]) -> None:
        """Create the environment, unless it exists with the current requirements."""
        made, wanted = self.folder / "requirements.txt", self.recipe
        if self.requirements and not (made.exists() and made.read_text(encoding="utf-8") == wanted):
            say(f"creating an environment for {', '.join(self.requirements)}")
            for command in self.commands:
                self._run(command)
            made.write_text(wanted, encoding="utf-8")

    def _run(self, command: tuple[str, ...]) -> None:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)  # noqa: S603
            failed, why = done.returncode != 0, (done.stdout + done.stderr).strip()
        except (OSError, subprocess.TimeoutExpired) as fault:
            failed, why = True, str(fault)
        if failed:
            how = " && ".join(shlex.join(command) for command in self.commands)
            raise Unavailable(f"{', '.join(self.requirements)} cannot be installed; try: {how}\n{why}")


def cache_folder() -> Path:
    """The folder for environments, and by default for the files of the disk measurements."""
    named = os.environ.get("DAGKIT_BENCH_VENV")
    return Path(named) if named else Path.home() / ".cache" / "dagkit-bench"


OWN = Environment("own")
PEERS = Environment("peers", ("polars>=2", "duckdb>=1.3", "bytewax>=0.21"))
BEAM = Environment("beam", ("apache-beam>=2.77",))
